"""Where trained models are kept: in the user's cache folder, by the config that made them."""

import dataclasses
import hashlib
import json
import os
from pathlib import Path
from typing import Any


def kept(config: Any, folder: str) -> Path:
    """Where the models of a config are kept."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    digest = hashlib.sha256(json.dumps(dataclasses.asdict(config), sort_keys=True).encode()).hexdigest()[:12]
    return cache / "ggpi" / folder / f"{type(config).__name__}-seed{config.seed}-{digest}"
