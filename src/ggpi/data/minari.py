"""Minari datasets, read and written (extra `data`); they live in MINARI_DATASETS_PATH, and nothing is downloaded.

Minari keeps observations of whole episodes. The acting policy and the step go into the infos, where entry 0
belongs to the reset, so that what is written and read again is the same.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete

from ggpi.data.files import begin_npy, finish_npy, open_npy, read_npy
from ggpi.data.transitions import Transitions
from ggpi.spaces import check_action_space, state_reader


def write_minari(
    data: Transitions, dataset_id: str, *, env: str | None = None, description: str = ""
) -> None:
    """Writes transitions as a dataset such as "pointmass/turns-v0"; `env` is the id of their environment.

    Rewards are zero: a GHM knows of none. Every episode must be whole, each state the one before's next.

    Beyond the paper: data in the format that others read
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

    Beyond the paper: learn from data that others collected
    """
    dataset = _minari().load_dataset(dataset_id, download=False)
    try:
        read = state_reader(dataset.observation_space, keys)
        check_action_space(dataset.action_space)
    except (KeyError, TypeError) as error:
        raise type(error)(f"dataset {dataset_id!r}: {error.args[0]}") from error
    if not dataset.total_episodes:
        raise ValueError(f"dataset {dataset_id!r} has no episodes")
    data = _copied(dataset, read, mapped)
    try:
        data.check()
    except ValueError as error:
        raise ValueError(f"dataset {dataset_id!r}: {error}") from error
    return data


def _copied(dataset: Any, read: Callable[[Any], np.ndarray], mapped: str | Path | None) -> Transitions:
    """Every episode's rows, in memory or on disk."""
    columns, done, outside, size = {}, 0, 0, int(dataset.total_steps)
    if mapped is not None:
        begin_npy(mapped)
    with contextlib.ExitStack() as stack:
        for number, episode in enumerate(dataset.iterate_episodes()):
            rows = _columns(episode, read) | {"episode": np.full(len(episode.actions), number)}
            rows["action"], clipped = _clipped(rows["action"], dataset.action_space)
            for name, values in rows.items():
                if name not in columns:
                    shape = (size, *values.shape[1:])
                    columns[name] = (
                        np.empty(shape, values.dtype)
                        if mapped is None
                        else stack.enter_context(open_npy(mapped, name, shape, values.dtype))
                    )
                columns[name][done : done + len(values)] = values
            done, outside = done + len(rows["action"]), outside + clipped
    if outside:
        warnings.warn(
            f"{outside} of {size} actions were outside of the action space and clipped", stacklevel=3
        )
    if mapped is None:
        return Transitions(**columns)
    finish_npy(mapped)
    return read_npy(mapped)


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


def _columns(episode: Any, read: Callable[[Any], np.ndarray]) -> dict[str, np.ndarray]:
    seen, acted, size = read(episode.observations), _single(episode.actions), len(episode.actions)
    truncated = np.array(episode.truncations, bool)
    terminated = np.array(episode.terminations, bool)
    truncated[-1] |= not terminated[-1]
    infos = {name: np.asarray(values) for name, values in (episode.infos or {}).items() if values is not None}
    return {
        "state": seen[:-1],
        "action": acted,
        "next_state": seen[1:],
        "terminated": terminated,
        "truncated": truncated & ~terminated,
        "behaviour": infos["behaviour"][1:] if "behaviour" in infos else np.full(size, -1),
        "step": infos["step"][1:] if "step" in infos else np.arange(size),
    }


def _single(values: Any) -> np.ndarray:
    """Integers as they are, other numbers in single precision."""
    values = np.asarray(values)
    return values.astype(np.int32 if values.dtype.kind in "iu" else np.float32)


def _clipped(actions: np.ndarray, space: Any) -> tuple[np.ndarray, int]:
    """Actions within the space, and how many were outside."""
    if not isinstance(space, Box):
        return actions, 0
    inside = np.clip(actions, space.low, space.high)
    outside = int((np.abs(inside - actions) > 1e-6).reshape(len(actions), -1).any(axis=1).sum())
    return inside.astype(actions.dtype), outside
