"""A slice of the campaign of kills: what was killed ends with the same bits."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mujoco")


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_killed_jobs_end_with_the_same_bits():
    script = Path(__file__).parents[1] / "fuzz" / "kills.py"
    done = subprocess.run([sys.executable, script, "--kills", "5"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("all the same bits") == 5
