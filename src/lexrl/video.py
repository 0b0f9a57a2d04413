"""Videos and single images from frames `[height, width, 3]` of uint8, as the bytes of a file."""

import importlib
import io
import pathlib
import tempfile
from collections.abc import Sequence

import numpy as np
from PIL import Image

from lexrl.errors import InputError

Frames = Sequence[np.ndarray] | np.ndarray
ENDINGS = (".gif", ".mp4", ".png")


def require_ending(path: pathlib.Path) -> None:
    """Raise an error if frames cannot be written to a file of this name."""
    if path.suffix not in ENDINGS:
        raise InputError(f"A video cannot be written as {path.name!r}; give a name that ends in .gif, .mp4 or .png.")


def encode(ending: str, frames: Frames, fps: float) -> bytes:
    """Frames as the ending of a file name says: a GIF, an MP4, or six of them side by side as a PNG."""
    if ending == ".png":
        some = np.unique(np.linspace(0, len(frames) - 1, 6).round().astype(int))
        return png(np.concatenate([frames[i] for i in some], axis=1))
    if ending == ".mp4":
        return mp4(frames, fps)
    every = 1 if fps <= 25 else 2  # every other frame of a fast environment: a GIF of them all would be large
    return gif(frames[::every], fps / every)


def png(frame: np.ndarray) -> bytes:
    """One image."""
    return _encoded(_checked([frame])[0], "PNG", optimize=True)


def gif(frames: Frames, fps: float | int) -> bytes:
    """A looping video for any browser.

    Args:
        frames: the frames, all of one size.
        fps: frames per second, 50 at most: players slow down a faster GIF.
    """
    images = _checked(frames)
    if not 0 < fps <= 50:
        raise InputError(
            f"fps is {fps:g}; a GIF needs more than 0 and at most 50 frames per second: leave out some frames."
        )
    # One palette for all frames, made from some of them: with one each, still parts would flicker.
    some = [images[i] for i in np.unique(np.linspace(0, len(images) - 1, 8).astype(int))]
    sample = Image.fromarray(np.vstack([np.asarray(image) for image in some]))
    palette = sample.quantize(255, Image.Quantize.MEDIANCUT)
    flat = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    # GIF counts in hundredths of a second; rounding the times instead of the durations keeps the frame rate.
    times = np.round(np.arange(len(images) + 1) * 100 / fps) * 10
    durations = np.diff(times).astype(int).tolist()
    return _encoded(flat[0], "GIF", save_all=True, append_images=flat[1:], duration=durations, loop=0, optimize=False)


def mp4(frames: Frames, fps: float | int) -> bytes:
    """A video in H.264, smaller than a GIF and with all colors; needs the extra `video`.

    Args:
        frames: the frames, all of one size.
        fps: frames per second.
    """
    images = _checked(frames)
    if not fps > 0:
        raise InputError(f"fps is {fps:g}; a video needs more than 0 frames per second.")
    try:
        ffmpeg = importlib.import_module("imageio_ffmpeg")
    except ImportError:
        raise InputError(
            "An MP4 needs ffmpeg, which is not installed; try pip install 'lexrl[video]', or make a GIF."
        ) from None
    # Players expect even numbers of pixels: the last row or column is repeated.
    width, height = images[0].size
    padded = [np.pad(np.asarray(image), ((0, height % 2), (0, width % 2), (0, 0)), mode="edge") for image in images]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "video.mp4"
        writer = ffmpeg.write_frames(
            str(path), (width + width % 2, height + height % 2), fps=fps, codec="libx264", macro_block_size=2,
            output_params=["-crf", "20", "-movflags", "+faststart"], ffmpeg_log_level="error",
        )  # fmt: skip
        writer.send(None)
        for frame in padded:
            writer.send(np.ascontiguousarray(frame))
        writer.close()
        return path.read_bytes()


def _checked(frames: Frames) -> list[Image.Image]:
    shapes = {np.shape(frame) for frame in frames}
    if len(shapes) != 1:
        raise InputError(f"The frames have {len(shapes)} sizes; a video needs at least one frame, all of one size.")
    (shape,) = shapes
    if len(shape) != 3 or shape[2] != 3 or any(frame.dtype != np.uint8 for frame in frames):
        raise InputError(f"Frames must be [height, width, 3] of uint8; these are {list(shape)} of {frames[0].dtype}.")
    return [Image.fromarray(frame) for frame in frames]


def _encoded(image: Image.Image, kind: str, **settings) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **settings)
    return buffer.getvalue()
