"""Do we work on every Python that the metadata names, and with the newest JAX that it allows?

`make test-pythons` makes an environment for each of them, with the locked packages, and runs the tests below: those
that compile the loops of collecting, training and planning, and the command line. The newest Python gets the newest
JAX. An interpreter is taken from the PATH, from pyenv, or is downloaded by uv; where it cannot be had, the run says so
and passes.
"""

import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = [
    "tests/unit/_jax/test_random.py",
    "tests/unit/cli/test_main.py::test_light_commands_import_nothing_heavy",
    "tests/unit/rollout/test_collection.py",
    "tests/unit/test_progress.py",
    "tests/unit/agent/test_agent.py::test_another_target_compiles_nothing",
    "tests/unit/learning/test_fit.py::test_the_same_call_gives_the_same_models",
    "tests/unit/cli/test_play.py::test_a_row_for_each_episode",
]


def main() -> int:
    uv = find_uv()
    if uv is None:
        print("test-pythons: left out, there is no uv (pip install uv)")
        return 0
    if not can_install(uv):
        print("test-pythons: left out, uv cannot reach a package index")
        return 0
    versions, failed = named_versions(), []
    for version in versions:
        newest = version == versions[-1]
        if version == f"{sys.version_info.major}.{sys.version_info.minor}" and not newest:
            print(f"Python {version}: make test runs on it")
        elif (python := interpreter(version, uv)) is None:
            print(
                f"Python {version}: left out, it is neither on the PATH nor in pyenv, nor can uv download it"
            )
        elif not check(version, python, uv, newest):
            failed.append(version)
    if failed:
        print(f"test-pythons: failed on Python {', '.join(failed)}")
    return bool(failed)


def named_versions() -> list[str]:
    """The versions in the metadata's classifiers, oldest first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    return sorted(found, key=lambda version: int(version[2:]))


def find_uv() -> str | None:
    return shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")


def can_install(uv: str) -> bool:
    """Whether uv finds packages; it need not know of the indices that pip is told of."""
    asked = [
        "pip",
        "install",
        "--dry-run",
        "--reinstall",
        "--no-deps",
        "--no-cache",
        "--python",
        sys.executable,
    ]
    return output(uv, "-q", *asked, "hatchling") is not None


def interpreter(version: str, uv: str) -> str | None:
    """The path of a Python that starts and is of this version."""
    for python in candidates(version, uv):
        words = "import sys; print('{}.{}'.format(*sys.version_info))"
        if output(python, "-c", words) == version:
            return python
    return None


def candidates(version: str, uv: str) -> Iterator[str]:
    if found := shutil.which(f"python{version}"):  # a shim of pyenv is found, too, but need not start
        yield found
    if prefix := output("pyenv", "prefix", version):
        yield str(Path(prefix) / "bin" / "python")
    if output(uv, "python", "install", version) is not None:
        yield output(uv, "python", "find", "--managed-python", version) or ""


def output(*command: str) -> str | None:
    """What a command prints; None if it fails or does not exist."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def check(version: str, python: str, uv: str, newest: bool) -> bool:
    """Runs the tests in a fresh environment; says how it went."""
    began, folder = time.monotonic(), ROOT / ".venv-pythons" / version
    own = str(folder / ("Scripts" if os.name == "nt" else "bin") / "python")
    install = [uv, "-q", "pip", "install", "--python", own]
    steps = [
        [uv, "-q", "venv", "--clear", "--python", python, str(folder)],
        [*install, "--no-deps", "--require-hashes", "-r", "requirements.lock"],
        [*install, "--no-deps", "--no-build-isolation", "-e", "."],
    ]
    if newest:
        steps.append([*install, "--upgrade", "jax", "jaxlib"])
    steps.append([own, "-m", "pytest", "-q", "-n", "2", "--durations=0", "--durations-min=5", *TESTS])
    settings = {**os.environ, "PYTHONPATH": ""}
    is_good = all(subprocess.run(step, cwd=ROOT, env=settings).returncode == 0 for step in steps)
    jax = output(own, "-c", "from importlib.metadata import version; print(version('jax'))")
    words = "good" if is_good else "failed"
    print(f"Python {version} with jax {jax}: {words}, {time.monotonic() - began:.0f} s", flush=True)
    return is_good


if __name__ == "__main__":
    sys.exit(main())
