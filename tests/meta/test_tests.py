"""Tests do not look at the clock: what a busy machine may make slow is measured in benchmarks, not asserted."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
CLOCK = re.compile(r"\b(perf_counter|process_time|time\.(time|monotonic))(_ns)?\(")


def test_no_test_reads_a_clock():
    for path in TESTS.rglob("test_*.py"):
        assert not CLOCK.search(path.read_text(encoding="utf-8")), path.name
