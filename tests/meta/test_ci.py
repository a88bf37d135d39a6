"""What `.ci/run` needs is there, or it says so and fails."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(not shutil.which("bash"), reason="a script of bash")
@pytest.mark.parametrize(("variables", "code"), [({"CI": "true"}, 1), ({}, 127)], ids=["ci", "elsewhere"])
def test_the_page_is_not_left_out_where_there_is_no_browser(tmp_path, variables, code):
    """With nothing but a shell; elsewhere than in CI the script continues, here to a missing make."""
    for name in ("bash", "dirname", "id"):
        (tmp_path / name).symlink_to(Path(shutil.which(name) or "").resolve())
    kept = {name: value for name, value in os.environ.items() if name not in ("CI", "PATH")}
    environment = kept | {"PATH": str(tmp_path), **variables}
    done = subprocess.run(
        ["bash", ROOT / ".ci" / "run"],
        env=environment,
        executable=shutil.which("bash"),
        capture_output=True,
        text=True,
    )
    assert "install chromium and chromedriver" in done.stderr
    assert done.returncode == code, done.stderr
