"""Set up before JAX is imported: a compilation cache that outlives the run, and tests that do not flake."""

import ctypes
import gc
import os
import sys
from pathlib import Path

from hypothesis import settings

import seeds

CACHE = Path(__file__).parents[1] / ".pytest_cache" / "jax"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

settings.register_profile("ggpi", derandomize=True, deadline=None, database=None)
settings.load_profile("ggpi")

seeds.shift(seeds.OFFSET)

pytest_plugins = ["suite_report"]


LARGE = 1_400_000_000
"""Bytes of a process above which compiled programs are dropped: those of all tests together take gigabytes."""
GROWTH = 400_000_000
"""What is left after that may grow by so much before they are dropped again."""
limit = LARGE


def pytest_runtest_logfinish() -> None:
    """Drops compiled programs between two tests, when the process has become large."""
    global limit
    if "jax" not in sys.modules or resident() < limit:
        return
    sys.modules["jax"].clear_caches()
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
    limit = max(LARGE, resident() + GROWTH)


def resident() -> int:
    """Bytes of memory that this process uses; without /proc the most that it ever used."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
