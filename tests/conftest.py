"""Set up before JAX is imported: a compilation cache that outlives the run, and tests that do not flake."""

import ctypes
import gc
import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

import seeds

CACHE = Path(__file__).parents[1] / ".pytest_cache" / "jax"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

settings.register_profile("ggpi", derandomize=True, deadline=None, database=None)
settings.load_profile("ggpi")

seeds.shift(int(os.environ.get("GGPI_TEST_SEED_OFFSET", "0")))

pytest_plugins = ["suite_report"]


@pytest.fixture(scope="module", autouse=True)
def _free_compiled_programs():
    """Compiled programs of a module are of no use to the next one, and together they take gigabytes."""
    yield
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
