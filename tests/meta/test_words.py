"""Words that cannot drift: code blocks are executed, and no text names a machine's paths or package hosts.

Python blocks of a page run in one namespace and an empty directory with a file of Stable-Baselines3. What a line that
ends in `# → words` prints has these words, in this order. Commands of shell blocks are parsed, not run.
"""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from ggpi.cli.config import read_config
from ggpi.cli.fit_environment import WorldConfig
from ggpi.cli.main import parser
from ggpi.lab import EXPERIMENTS, contract

ROOT = Path(__file__).parents[2]
GENERATED = ROOT / "docs" / "reference"
PLAYABLE = ROOT / "docs" / "play"
PAGES = [ROOT / "README.md", *sorted(set((ROOT / "docs").rglob("*.md")) - set(GENERATED.glob("*")))]
# Split, so that this file does not accuse itself.
FORBIDDEN = [
    "/wo" + "rk/",
    "/tm" + "p/",
    "/ho" + "me/",
    "py" + "pi.org",
    "python" + "hosted",
    "--index" + "-url",
]


def text(page):
    return page.read_text(encoding="utf-8")


def blocks(page, language="python"):
    return re.findall(rf"^```{language}\n(.*?)^```", text(page), flags=re.DOTALL | re.MULTILINE)


def name(page):
    return page.relative_to(ROOT).as_posix()


def marked(page):
    """Pages other than the README take long together."""
    return pytest.param(page, id=name(page), marks=() if page.name == "README.md" else pytest.mark.slow)


@pytest.mark.parametrize("page", [marked(page) for page in PAGES if blocks(page)])
def test_code_in_words_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "tests" / "data" / "sb3" / "a2c-cartpole.zip", tmp_path)
    namespace = {"__name__": "page"}
    for block in blocks(page):
        exec(compile(block, page.name, "exec"), namespace)
        printed, at = capsys.readouterr().out, 0
        for words in re.findall(r"# → (.*)$", block, flags=re.MULTILINE):
            at = printed.find(words.strip(), at)
            assert at >= 0, f"{page.name} promises {words!r}, printed was\n{printed}"


COMMANDS = [
    pytest.param(line.split("#")[0].strip(), id=f"{page.stem}: {line.split('#')[0].strip()}")
    for page in PAGES
    for block in blocks(page, "sh")
    for line in block.splitlines()
    if line.startswith("ggpi ") and "--help" not in line
]


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_in_words_are_understood(line):
    options, rest = parser().parse_known_args(shlex.split(line)[1:])
    if options.command == "run":
        assert options.name in EXPERIMENTS
        config = contract.experiment(options.name).PRESETS[options.preset]
        assert read_config("ggpi run", config, rest) is not None
    elif options.command == "fit":
        assert read_config("ggpi fit", WorldConfig, rest).env
    else:
        assert not rest


def test_links_in_words_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", text(page)):
            path = Path(os.path.normpath(page.parent / target))
            assert path.exists() or path.parent in (GENERATED, PLAYABLE), f"{page.name} → {target}"


def test_every_experiment_has_its_section():
    page = text(ROOT / "docs" / "experiments.md")
    sections = dict(re.findall(r"^### (\S+)\n(.*?)(?=^##|\Z)", page, flags=re.DOTALL | re.MULTILINE))
    assert sections.keys() >= EXPERIMENTS.keys()
    for experiment in EXPERIMENTS:
        assert f"ggpi run {experiment}\n" in sections[experiment]


def test_figures_are_small():
    for path in (ROOT / "docs" / "figures").glob("*.png"):
        assert path.stat().st_size <= 150_000, f"{path.name}: python docs/keep_figure.py makes it smaller"


def test_every_page_is_in_the_navigation():
    listed = set(re.findall(r": (\S+\.md)$", text(ROOT / "mkdocs.yml"), flags=re.MULTILINE))
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in PAGES if page.name != "README.md"}
    assert listed == pages | {"reference/api.md", "reference/equations.md", "reference/studio.md"}


def test_no_machine_in_the_texts():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    for name in filter(None, listed.stdout.split("\0")):
        content = (ROOT / name).read_bytes() if (ROOT / name).is_file() else b""
        found = [words for words in FORBIDDEN if words.encode() in content]
        assert not found, f"{name}: {found}"
