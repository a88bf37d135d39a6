"""Lock files pin every dependency with its hashes, and name no address."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
LOCKED = {
    "requirements.lock": [
        *PROJECT["dependencies"],
        *(r for e in ("ant", "cluster", "data", "dev", "maze", "ogbench", "studio") for r in EXTRAS[e]),
    ],
    "requirements-docs.lock": EXTRAS["docs"],
    "requirements-sb3.lock": EXTRAS["sb3"],
    "requirements-bench.lock": EXTRAS["bench"],
}


def plain(requirement: str) -> str:
    return re.split(r"[\[<>=!~; ]", requirement)[0].lower().replace("_", "-")


@pytest.mark.parametrize("name", LOCKED)
def test_lock_file_is_complete_and_hashed(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    pins = {plain(pin): pin for pin in re.split(r"\n(?=\w)", text.strip())}
    expected = {plain(requirement) for requirement in LOCKED[name]} - {"torch"}
    assert expected <= pins.keys()
    assert "torch" not in pins, "its wheels differ by platform"
    assert all(re.match(r"[\w.-]+==\S+", pin) and "--hash=sha256:" in pin for pin in pins.values())
    assert "://" not in text


def test_lock_files_agree():
    """What two files pin has one version, so that installing one never changes another."""
    found: dict[str, set[str]] = {}
    for name in LOCKED:
        for pin in re.findall(
            r"^[\w.-]+==\S+(?: ; [^\\\n]*)?", (ROOT / name).read_text(encoding="utf-8"), re.M
        ):
            found.setdefault(plain(pin) + pin.partition(";")[2].strip(), set()).add(pin)
    assert [pins for pins in found.values() if len(pins) > 1] == []
