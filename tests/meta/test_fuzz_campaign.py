"""The harness of the fuzz campaigns: each way in which a case can fail is found, named and survived."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parents[1] / "fuzz"
SCRIPT = f"""
import os, sys, time
sys.path.insert(0, {str(FUZZ)!r})
import campaign
from ggpi.storage.errors import FileError

campaign.SECONDS = 0.5

def make(rng, folder):
    assert not list(folder.iterdir())
    (folder / "file").write_bytes(rng.bytes(3))

class Numbered(campaign.Campaign):
    def case(self, number, seed):
        object.__setattr__(self, "check", lambda _: check(number))
        return super().case(number, seed)

def check(number):
    if number == 1: raise FileError("some.zip", "damaged")
    if number == 2: {{}}["key"]
    if number == 3: bytearray(2**31)
    if number == 4: os.abort()
    if number == 5:
        while True: pass
    if number == 99:
        time.sleep(1000)
    print("noise")
    return "right answer"

if __name__ == "__main__":
    sys.exit(campaign.main(Numbered("demo", make, check)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited through /proc")
def test_every_kind_of_failure_is_named(tmp_path):
    script, summary = tmp_path / "demo.py", tmp_path / "summary.json"
    script.write_text(SCRIPT)
    command = [sys.executable, script, "--cases", "9", "--workers", "2", "--json", summary]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    found = json.loads(summary.read_text())
    assert found["outcomes"] == {"right answer": 4, "FileError": 1}
    failures = {group.split()[0]: cases for group, cases in found["failures"].items()}
    assert failures == {"KeyError": [2], "MemoryError": [3], "crash": [4], "TooSlowError": [5]}
    assert "KeyError at demo.py" in done.stdout and "TooSlowError at demo.py" in done.stdout
    alone = subprocess.run([sys.executable, script, "--only", "2"], capture_output=True, text=True)
    assert alone.returncode == 1 and "KeyError: 'key'" in alone.stderr


def test_a_case_that_waits_for_ever_is_a_hang(tmp_path):
    """However slow the machine is: the case never ends, so the harness always loses patience first."""
    script, summary = tmp_path / "demo.py", tmp_path / "summary.json"
    script.write_text(
        SCRIPT.replace("campaign.SECONDS = 0.5", "campaign.PATIENCE = 1").replace("== 99", "== 0")
    )
    command = [sys.executable, script, "--cases", "2", "--workers", "2", "--json", summary]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and json.loads(summary.read_text())["failures"] == {"hang": [0]}
    assert "time.sleep(1000)" not in done.stderr and "in check" in done.stdout, "the stack says where it was"


def test_a_campaign_without_failures_passes(tmp_path):
    script = tmp_path / "demo.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, script, "--cases", "2", "--workers", "1"], capture_output=True, text=True
    )
    assert done.returncode == 0 and "demo: 2 cases" in done.stdout, done.stdout + done.stderr
