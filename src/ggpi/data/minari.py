"""Minari datasets, read and written (extra `data`); they live in MINARI_DATASETS_PATH, and nothing is downloaded.

Minari keeps observations of whole episodes. The acting policy and the step go into the infos, where entry 0
belongs to the reset, so that what is written and read again is the same.
"""

from __future__ import annotations

import contextlib
import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete

from ggpi.data.files import open_npy, read_npy, writing_npy
from ggpi.data.opening import check_dataset, open_hdf5
from ggpi.data.spaces import Reader, check_action_space, clipped, state_reader
from ggpi.data.transitions import Transitions
from ggpi.storage.errors import FileError
from ggpi.storage.reading import JSON_LIMIT, as_file_errors, read_bytes, short


def write_minari(
    data: Transitions, dataset_id: str, *, env: str | None = None, description: str = ""
) -> None:
    """Writes transitions as a dataset such as "pointmass/turns-v0"; `env` is the id of their environment.

    Rewards are zero: a GHM knows of none. Every episode must be whole, each state the one before's next.
    """
    minari = _minari()
    episodes = [_buffer(minari, number, episode) for number, episode in enumerate(data.episodes())]
    facts = {
        "algorithm_name": "policies that take turns",
        "author": "ggpi",
        "author_email": "none",
        "code_permalink": "none",
        "description": description or "Transitions collected by ggpi; infos hold the acting policy.",
    }
    spaces = {"observation_space": _space(data.state, data.next_state), "action_space": _space(data.action)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Minari recommends things that a dataset without rewards has not
        minari.create_dataset_from_buffers(
            dataset_id, episodes, env=env, data_format="hdf5", **spaces, **facts
        )


def read_minari(
    dataset_id: str, *, keys: Sequence[str] | None = None, mapped: str | Path | None = None
) -> Transitions:
    """All transitions of a dataset that is on this disk; −1 where it does not say who acted.

    Of observations that are dictionaries, as the mazes have them, `keys` says which parts make the state:
    `keys=("observation",)` leaves the goal out. Actions outside of the action space are clipped and counted. With
    `mapped`, rows are written to this directory episode by episode and mapped from there, so that a dataset may be
    larger than memory.
    """
    folder = _minari().storage.get_dataset_path(dataset_id) / "data"
    if not folder.is_dir():
        raise FileNotFoundError(_absent(dataset_id))
    facts = _facts(folder / "metadata.json")
    try:
        read = state_reader(facts.observation_space, keys)
        check_action_space(facts.action_space)
    except (KeyError, TypeError) as error:
        raise type(error)(f"dataset {dataset_id!r}: {error.args[0]}") from error
    path = folder / "main_data.hdf5"
    if not path.exists():
        raise FileError(path, "is not there; datasets of Minari are read if their format is HDF5")
    with contextlib.ExitStack() as stack, as_file_errors(path):
        data = _copied(path, open_hdf5(path, stack), facts, read, mapped)
    try:
        data.check()
    except ValueError as error:
        raise FileError(path, f"dataset {dataset_id!r}: {error}") from error
    return data


def _absent(dataset_id: str) -> str:
    """What to do about a dataset that is not there."""
    root = _minari().storage.get_dataset_path("")
    found = [path for depth in range(1, 4) for path in root.glob(f"{'*/' * depth}data/metadata.json")]
    there = sorted(path.parents[1].relative_to(root).as_posix() for path in found)
    held = f"it holds {', '.join(there[:5])}{' …' * (len(there) > 5)}" if there else "it holds none"
    return (
        f"there is no file and no Minari dataset {dataset_id!r}: datasets are in {root} (MINARI_DATASETS_PATH), "
        f"{held}. One that Minari hosts is fetched by: minari download {dataset_id}"
    )


INFOS = ("infos/behaviour", "infos/step")
READ = ("observations", "actions", "rewards", "terminations", "truncations", "infos")


class Facts(NamedTuple):
    """What `metadata.json` says of a dataset."""

    observation_space: Any
    action_space: Any
    episodes: int
    steps: int


def _facts(path: Path) -> Facts:
    """Minari itself would make the environment of a dataset without spaces, and so run what the file names."""
    with as_file_errors(path):
        held = json.loads(read_bytes(path, JSON_LIMIT))
        spaces = [_space_of(json.loads(held[name])) for name in ("observation_space", "action_space")]
        counts = [held["total_episodes"], held["total_steps"]]
    for name, count in zip(("total_episodes", "total_steps"), counts, strict=True):
        if not isinstance(count, int) or not 0 < count < 2**40:
            raise FileError(path, f"expected a positive number, got {short(count)}", field=name)
    return Facts(*spaces, *counts)


def _space_of(held: Any) -> Any:
    """A space from its JSON: boxes, numbers from 0, and dictionaries of these."""
    kind = held["type"]
    if kind == "Dict":
        return Dict({str(name): _space_of(part) for name, part in held["subspaces"].items()})
    if kind == "Discrete":
        return Discrete(held["n"], start=held["start"])
    if kind != "Box":
        raise ValueError(f"expected a space of kind Box, Discrete or Dict, got {short(kind)}")
    dtype, shape = np.dtype(held["dtype"]), tuple(held["shape"])
    low, high = (np.asarray(held[name], dtype) for name in ("low", "high"))
    if low.shape != shape or high.shape != shape or not (low <= high).all():
        raise ValueError(f"a box of shape {shape} has bounds of this shape, low ≤ high")
    return Box(low, high, shape, dtype.type)


def _copied(
    path: Path,
    there: dict[str, Any],
    facts: Facts,
    read: Reader,
    mapped: str | Path | None,
) -> Transitions:
    """Every episode's rows, in memory or on disk."""
    columns, done, outside, size = {}, 0, 0, facts.steps
    episodes = _episodes(path, there, facts)
    with contextlib.ExitStack() as stack:
        stack.enter_context(writing_npy(mapped))
        for number, episode in enumerate(episodes):
            rows = _columns(_arrays(episode), read)
            rows["episode"] = np.full(len(rows["action"]), number)
            inside, beyond = clipped(rows["action"], facts.action_space)
            rows["action"] = inside.astype(rows["action"].dtype)
            for name, values in rows.items():
                if name not in columns:
                    shape = (size, *values.shape[1:])
                    columns[name] = (
                        np.empty(shape, values.dtype)
                        if mapped is None
                        else stack.enter_context(open_npy(mapped, name, shape, values.dtype))
                    )
                columns[name][done : done + len(values)] = values
            done, outside = done + len(rows["action"]), outside + int(beyond.sum())
        if done != size:
            raise FileError(path, f"has {done} steps in {facts.episodes} episodes, expected {size}")
    if outside:
        warnings.warn(
            f"{outside} of {size} actions were outside of the action space and clipped", stacklevel=3
        )
    if mapped is None:
        return Transitions(**columns)
    return read_npy(mapped)


def _episodes(path: Path, there: dict[str, Any], facts: Facts) -> list[dict[str, Any]]:
    """The datasets of each episode by name, after what they declare was checked; they hold all the steps."""
    episodes: list[dict[str, Any]] = [{} for _ in range(min(facts.episodes, len(there)))]
    numbers = {f"episode_{number}": number for number in range(len(episodes))}
    for name, values in there.items():
        group, _, rest = name.partition("/")
        if (
            group in numbers
            and rest.split("/")[0] in READ
            and (rest in INFOS or not rest.startswith("infos"))
        ):
            check_dataset(path, name, values)
            episodes[numbers[group]][rest] = values
    steps = sum(episode["rewards"].size for episode in episodes if "rewards" in episode)
    if steps != facts.steps or len(episodes) != facts.episodes:
        raise FileError(
            path,
            f"has {steps} steps in {len(episodes)} episodes, metadata.json says {facts.steps} in {facts.episodes}",
        )
    return episodes


def _arrays(datasets: dict[str, Any]) -> dict[str, Any]:
    """The arrays of one episode; observations that are dictionaries are gathered."""
    found: dict[str, Any] = {}
    for name, values in datasets.items():
        group, _, rest = name.partition("/")
        if group == "observations" and rest:
            found.setdefault(group, {})[rest] = values[()]
        else:
            found[name] = values[()]
    return found


def _minari() -> Any:
    try:
        import minari
    except ImportError as error:
        raise ImportError("Minari datasets need the extra: pip install '.[data]' in the checkout") from error
    return minari


def _buffer(minari: Any, number: int, episode: Transitions) -> Any:
    if not np.array_equal(episode.state[1:], episode.next_state[:-1]):
        raise ValueError(f"episode {number} has gaps: a state is not the next state of the row before it")
    none = np.array([-1])
    return minari.data_collector.EpisodeBuffer(
        id=number,
        observations=np.concatenate([episode.state, episode.next_state[-1:]]),
        actions=episode.action,
        rewards=np.zeros(len(episode)),
        terminations=np.asarray(episode.terminated, bool),
        truncations=np.asarray(episode.truncated, bool),
        infos={
            "behaviour": np.concatenate([none, episode.behaviour]),
            "step": np.concatenate([none, episode.step]),
        },
    )


def _space(*values: np.ndarray) -> Any:
    """A space that holds these values."""
    if values[0].dtype.kind in "iu":
        return Discrete(int(max(each.max() for each in values)) + 1)
    return Box(-np.inf, np.inf, values[0].shape[1:], values[0].dtype.type)


def _columns(episode: dict[str, Any], read: Reader) -> dict[str, np.ndarray]:
    seen, acted = read(episode["observations"]), _single(episode["actions"])
    size = len(acted)
    truncated, terminated = (np.array(episode[name], bool) for name in ("truncations", "terminations"))
    if not size or len(seen) != size + 1 or not len(truncated) == len(terminated) == size:
        raise ValueError(
            f"{len(seen)} observations, {size} actions, {len(terminated)} terminations and {len(truncated)} "
            "truncations are not an episode"
        )
    truncated[-1] |= not terminated[-1]
    rows = {
        "state": seen[:-1],
        "action": acted,
        "next_state": seen[1:],
        "terminated": terminated,
        "truncated": truncated & ~terminated,
        "behaviour": episode["infos/behaviour"][1:] if "infos/behaviour" in episode else np.full(size, -1),
        "step": episode["infos/step"][1:] if "infos/step" in episode else np.arange(size),
    }
    for name, values in rows.items():
        if len(values) != size:
            raise ValueError(f"{len(values)} of {name} for {size} steps")
    return rows


def _single(values: Any) -> np.ndarray:
    """Integers as they are, other numbers in single precision."""
    values = np.asarray(values)
    return values.astype(np.int32 if values.dtype.kind in "iu" else np.float32)
