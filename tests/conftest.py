"""Set up before JAX is imported: a compilation cache that outlives the run, and tests that do not flake."""

import os
from pathlib import Path

from hypothesis import settings

CACHE = Path(__file__).parents[1] / ".pytest_cache" / "jax"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

settings.register_profile("ggpi", derandomize=True, deadline=None, database=None)
settings.load_profile("ggpi")
