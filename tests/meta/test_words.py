"""Words that cannot drift: code blocks are executed, and no text names a machine's paths or package hosts."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# Split, so that this file does not accuse itself.
FORBIDDEN = [
    "/wo" + "rk/",
    "/tm" + "p/",
    "/ho" + "me/",
    "py" + "pi.org",
    "python" + "hosted",
    "--index" + "-url",
]


def blocks(page):
    return re.findall(
        r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name)
def test_code_in_words_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for block in blocks(page):
        exec(compile(block, page.name, "exec"), namespace)


def test_links_in_words_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} → {target}"


def test_no_machine_in_the_texts():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    for name in filter(None, listed.stdout.split("\0")):
        content = (ROOT / name).read_bytes() if (ROOT / name).is_file() else b""
        found = [words for words in FORBIDDEN if words.encode() in content]
        assert not found, f"{name}: {found}"
