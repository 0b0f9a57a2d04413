"""Files of runs without what makes each run unique: what is left must be the same, bit for bit."""

import json

from lexrl import store

UNIQUE = ("id", "run", "files", "sha256")


def content(path, without=()):
    """The bytes of a file without the run's id and checksums of it; of JSON also without other keys."""
    if path.suffix == ".safetensors":
        arrays, about = store.read_arrays(path)
        for name in ("run", "seconds"):
            about.pop(name, None)
        described = [about, *((name, str(array.dtype), array.shape) for name, array in sorted(arrays.items()))]
        return json.dumps(described).encode() + b"".join(array.tobytes() for _, array in sorted(arrays.items()))
    if path.suffix == ".json":
        found = json.loads(path.read_text())
        return json.dumps({key: found[key] for key in found if key not in (*UNIQUE, *without)}).encode()
    return path.read_bytes()
