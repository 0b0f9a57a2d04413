"""Image files, each with a label."""

import io
import pathlib
from typing import Any, NamedTuple

import PIL.Image

from lexrl import store
from lexrl.errors import InputError, names_path
from lexrl.report import markup
from lexrl.report.checked import Checked, brief
from lexrl.report.palette import Palette

FORMATS = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".gif": "gif", ".svg": "svg+xml", ".webp": "webp"}
"""The images that a page can hold, by file extension."""
LARGE, MAX_WIDTH = 40_000, 720
"""A PNG of more bytes is scaled down for the page, to so many pixels across; the folder keeps the original."""


class Image(NamedTuple):
    file: pathlib.Path
    """Relative to the experiment's folder while its `content` is not written yet."""
    alt: str
    label: str
    content: bytes | None = None


class Images(NamedTuple):
    kind = "images"
    title: str
    caption: str
    images: tuple[Image, ...]
    name: str = ""
    wide: bool = False
    """One below the other, each as wide as the page: charts, which have words in them."""


def read(part: Checked) -> Images:
    found = tuple(map(_read_image, part.parts("images", "image")))
    return Images(part.text("title", ""), part.text("caption", ""), found, wide=part.get("wide", bool, False))


def _read_image(part: Checked) -> Image:
    folder, given = part.path.parent, part.text("file")
    if not names_path(given):
        raise part.error(f"names the file {brief(given)}, which cannot be one")
    file = folder / given
    if not file.resolve().is_relative_to(folder.resolve()):
        raise part.error(f"names the file {brief(given)}, which is outside the experiment's folder")
    if file.suffix.lower() not in FORMATS:
        raise part.error(f"names the file {brief(given)}, which is not an image that a page can hold")
    return Image(file, part.text("alt"), part.text("label", ""))


def write(section: Images, folder: pathlib.Path) -> dict[str, Any]:
    for image in section.images:
        if image.content is not None:
            store.write_bytes(folder / image.file, image.content)
    written = [{"file": image.file.as_posix(), "alt": image.alt, "label": image.label} for image in section.images]
    about = {"name": section.name, "title": section.title, "caption": section.caption, "images": written}
    return about | ({"wide": True} if section.wide else {})


def labels(section: Images) -> list[str]:
    return []


def html(section: Images, styles: Palette) -> str:
    caption = f"<p class=caption>{markup.rich(section.caption)}</p>" if section.caption else ""
    kind = "'pictures wide'" if section.wide else "pictures"
    return f"<div class={kind}>{''.join(map(_html, section.images))}</div>{caption}"


def _html(image: Image) -> str:
    label = f"<figcaption>{markup.safe(image.label)}</figcaption>" if image.label else ""
    try:
        shown = f"<img alt='{markup.safe(image.alt)}' src='{_embedded(image.file)}'>"
    except InputError as error:
        shown = f"<p class=absent>{markup.safe(error)}</p>"
    return f"<figure class=picture>{shown}{label}</figure>"


def _embedded(path: pathlib.Path) -> str:
    """A file as an address that holds all of it."""
    if not path.is_file():
        raise InputError(f"The picture {path.name!r} is missing.")
    kind, content = FORMATS[path.suffix.lower()], path.read_bytes()
    if kind == "png" and len(content) > LARGE:
        try:
            content = min(_smaller(content), content, key=len)
        except (OSError, ValueError, SyntaxError, PIL.Image.DecompressionBombError):
            raise store.Damaged(f"The picture {path.name!r} is damaged.") from None
    return markup.image(kind, content)


def _smaller(content: bytes) -> bytes:
    with PIL.Image.open(io.BytesIO(content)) as opened:
        image = opened.convert("RGB")
    image.thumbnail((MAX_WIDTH, 2 * MAX_WIDTH))
    buffer = io.BytesIO()
    image.quantize(128).save(buffer, "png", optimize=True)
    return buffer.getvalue()


def figure(section: Images, styles: Palette) -> None:
    return None


def rows(section: Images) -> list[list[Any]]:
    return []
