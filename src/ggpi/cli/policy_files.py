"""Policies that options of `ggpi fit` name: zips of Stable-Baselines3, and directories of `ggpi.save`."""

import itertools
import re
from collections.abc import Sequence
from pathlib import Path

from ggpi.policies.sb3.reader import load_sb3
from ggpi.storage.objects import Foreign, load
from ggpi.types import Actor, Policy


def read_policies(
    given: Sequence[str], vecnormalize: Sequence[str] = (), deterministic: bool = False
) -> list[Policy]:
    """The policies of files and directories, in their order; called as the files are."""
    pairs = [_with_statistics(word) for word in given]
    without = sum(own is None and not Path(path).is_dir() for path, own in pairs)
    if len(vecnormalize) not in ((0, 1, without) if without else (0,)):
        raise ValueError(
            f"--vecnormalize takes one file for all zips or one for each of the {without} that are given without "
            f"their own (as policy.zip:vecnormalize.pkl), got {len(vecnormalize)}"
        )
    others = itertools.cycle(vecnormalize or [None])
    stems = [Path(path).stem for path, _ in pairs]
    policies: list[Policy] = []
    for path, own in pairs:
        if Path(path).is_dir():
            policies.extend(_saved(path))
            continue
        name = Path(path).stem if stems.count(Path(path).stem) == 1 else path.removesuffix(".zip")
        statistics = next(others) if own is None else own
        policies.append(load_sb3(path, vecnormalize=statistics, deterministic=deterministic, name=name))
    return policies


def _with_statistics(word: str) -> tuple[str, str | None]:
    """The file of a policy, and that of its statistics if it is given behind a colon; C:\\a.zip has no such colon."""
    match = None if Path(word).exists() else re.fullmatch(r"(.+?\.zip):(.+)", word, re.IGNORECASE)
    return (match[1], match[2]) if match else (word, None)


def _saved(path: str) -> list[Policy]:
    """The policy or policies that `ggpi.save` wrote to a directory."""
    found = load(path)
    policies = list(found) if isinstance(found, tuple | list) else [found]
    for policy in policies:
        if not isinstance(policy, Actor) or isinstance(policy, Foreign):
            raise ValueError(
                f"{path} holds a {type(policy).__name__}, expected policies that ggpi.save wrote"
            )
    return policies
