"""Changes saved directories and gives them new digests, so that what is behind the digests is reached."""

import hashlib
import json
from pathlib import Path

import numpy as np
import safetensors.numpy

import linear_gaussian  # noqa: F401 - registers a class of the saved directories
import ring  # noqa: F401
from ggpi.storage import arrays as io

SAVED = Path(__file__).parent / "data" / "saved"


def read(directory):
    """`(arrays, index)` of a directory, unchecked."""
    index = json.loads((directory / "about.json").read_text(encoding="utf-8"))
    return safetensors.numpy.load((directory / index["arrays"]).read_bytes()), index


def write(directory, arrays, index, *, content=None, first=False):
    """Writes a directory with digests that are right, whatever is in it; `content` replaces the arrays' file."""
    content = (
        safetensors.numpy.save({k: np.asarray(v, order="C") for k, v in arrays.items()})
        if content is None
        else content
    )
    digest = hashlib.sha256(content).hexdigest()
    name = f"arrays-{digest[:12]}.safetensors"
    index = {
        "format": io.FIRST if first else io.FORMAT,
        "arrays": name,
        "sha256": digest,
        "about": index["about"],
    }
    text = json.dumps(index, indent=1) + "\n"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_bytes(content)
    (directory / "about.json").write_text(text if first else io.signed(text), encoding="utf-8")


def at(structure, path):
    """The part of a structure of fields, such as ("models", 0.9, "frame")."""
    for step in path:
        match structure:
            case {"fields": fields}:
                structure = fields[step]
            case {"dict": items}:
                structure = next(value for key, value in items if key == step)
            case {"tuple": parts} | {"list": parts}:
                structure = parts[step]
    return structure
