"""Rewards, apart from dynamics, in three forms that the constructor names.

    state(r)          r(x)      earned on leaving x
    state_action(r)   r(x, a)   earned on leaving x with a
    arrival(ρ)        ρ(x′)     earned on entering x′

The return is Σ γᵗ Rₜ from t = 0. A terminal state is never left, so r is 0 there; it is entered
once, so ρ is paid once there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ggpi.typing import Numbers

Form = Literal["state", "state_action", "arrival"]


@dataclass(frozen=True, eq=False)
class Reward:
    """A reward function of a finite MDP: its values and the form that they have.

    Beyond the paper: Janner et al. pay on arrival, the paper on leaving; both are needed
    """

    form: Form
    values: Numbers

    def __post_init__(self):
        axes = 2 if self.form == "state_action" else 1
        if self.values.ndim != axes:
            wanted = "[S, A]" if axes == 2 else "[S]"
            raise ValueError(f"a {self.form} reward has shape {wanted}, got {self.values.shape}")
        bad = np.argwhere(~np.isfinite(self.values))
        if len(bad):
            at = tuple(map(int, bad[0]))
            raise ValueError(f"{len(bad)} reward values are not finite, the first at index {at}")


def state(values: ArrayLike) -> Reward:
    """r(x), earned on leaving x.

    Paper: Thm 3.2
    """
    return Reward("state", np.asarray(values, float))


def state_action(values: ArrayLike) -> Reward:
    """r(x, a), earned on leaving x with a.

    Paper: Thm F.1
    """
    return Reward("state_action", np.asarray(values, float))


def arrival(values: ArrayLike) -> Reward:
    """ρ(x′), earned on entering x′: Q = E_{X∼μ}[ρ(X)] / (1−γ).

    Beyond the paper: the form that Janner et al. use, to compare with them
    """
    return Reward("arrival", np.asarray(values, float))


def as_reward(reward: Reward | ArrayLike) -> Reward:
    """A plain array is r(x) when it has one axis and r(x, a) when it has two.

    Beyond the paper: so that NumPy users need no constructor
    """
    if isinstance(reward, Reward):
        return reward
    values = np.asarray(reward, float)
    if values.ndim not in (1, 2):
        raise ValueError(f"a reward array has shape [S] or [S, A], got {values.shape}")
    return state(values) if values.ndim == 1 else state_action(values)
