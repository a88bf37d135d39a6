"""Pretraining of ants' base policies: rounds of walking and learning, with checkpoints.

    OUT/checkpoint/   everything that the future depends on: a killed run resumes from there, bit for bit
    OUT/policies/     the policies, once done
    OUT/training.json config, versions and the curve

Round r uses the key fold_in(key(seed), r), so nothing of the random state is hidden in a process.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import equinox as eqx
import jax

from ggpi.envs.ant import SPEC
from ggpi.lab.cells import Metrics
from ggpi.lab.pretraining import mpo, ppo
from ggpi.lab.pretraining.replay import Replay
from ggpi.lab.pretraining.walking import Walk, Walkers
from ggpi.policies.gaussian import GaussianPolicy, LayerNormMLP
from ggpi.policies.symmetric import eight_directions, four_directions
from ggpi.storage.arrays import load_arrays, save_arrays, sweep, to_json, write_json
from ggpi.storage.errors import FileError
from ggpi.storage.locking import sole_writer
from ggpi.storage.objects import save
from ggpi.storage.verify import fits, matching

PACKAGES = ("ggpi", "jax", "jaxlib", "equinox", "optax", "numpy", "gymnasium", "mujoco")
SHOWN = ("along", "across", "falls", "reward", "std")
Report = Callable[[int, dict[str, float]], None]
INPUTS = tuple(range(SPEC.index("z"), SPEC.index("foot_1")))
SCALE = tuple(1.0 if i < 17 else 0.5 if i < 20 else 0.2 if i < 23 else 0.1 for i in INPUTS)
"""Networks see all but the place and the feet's heights, which follow from the rest; speeds are scaled."""


@dataclass(frozen=True)
class Config:
    """What to train, and for how long."""

    seed: int = 0
    """Seed of all randomness."""
    algorithm: Literal["ppo", "mpo"] = "ppo"
    """How to learn: MPO is the paper's."""
    rounds: int = 1100
    """Rounds of walking and learning."""
    save_every: int = 25
    """Rounds between checkpoints."""
    noise: float = 0.3
    """Deviation of the finished policies, as a share of what they practised with."""
    num_threads: int = 2
    """Threads of the simulation; the numbers do not depend on it."""
    walk: Walk = field(default_factory=Walk)
    """The walking task and its reward."""
    ppo: ppo.PPO = field(default_factory=ppo.PPO)
    """How PPO learns."""
    mpo: mpo.MPO = field(default_factory=mpo.MPO)
    """How MPO learns."""


def preset(name: str, algorithm: str | None = None, world: str = "ant") -> Config:
    """The config of a preset: `cpu` for two cores, `paper` for the paper's sizes, `tiny` to see that it works.

    The algorithm is the paper's MPO, but for `cpu` and for OGBench's ant, where PPO gets there in the time.
    """
    if world == "ogbench-ant":
        default = preset(name if name == "tiny" else "cpu", algorithm or "ppo")
        rough = 1 if name == "tiny" else 380
        walk = replace(default.walk, world="ogbench-ant", rough_rounds=rough, careful_after=250)
        learning = replace(default.ppo, curious_rounds=150)
        return replace(default, rounds=min(default.rounds, 420), walk=walk, ppo=learning)
    chosen: Any = algorithm or ("ppo" if name == "cpu" else "mpo")
    if name == "paper":
        plain = Walk(num_ants=64, lateral=0.0, effort=0.0, tilt=0.0, fall=0.0)
        return Config(algorithm=chosen, rounds=15_625, save_every=250, walk=plain)
    if name == "tiny":
        few = Walk(num_ants=8)
        small = ppo.PPO(policy_widths=(16,), value_widths=(16,), horizon=5)
        mini = mpo.MPO((16,), (16,), horizon=5, updates=3, batch=8, length=2, capacity=200, num_actions=4)
        return Config(algorithm=chosen, rounds=4, save_every=2, walk=few, ppo=small, mpo=mini)
    return CPU_MPO if chosen == "mpo" else Config()


CPU_MPO = Config(
    algorithm="mpo",
    rounds=2500,
    save_every=200,
    walk=Walk(num_ants=128, fall=5.0, careful_after=1500),
    mpo=mpo.MPO(
        policy_widths=(128, 128),
        critic_widths=(128, 128),
        updates=40,
        length=1,
        num_actions=10,
        capacity=500_000,
        learning_rate=1e-3,
        epsilon_mean=0.01,
        epsilon_std=1e-4,
    ),
)
"""Smaller networks and batches, larger trust regions: two cores make 100 000 updates, not a million. A fall is cheaper
than for PPO: rare, large penalties dominate the errors of a one-step critic and hide how actions differ."""


class Training:
    """A run in progress: ants, learner and curve; `round`, `save`, and the policies so far."""

    def __init__(self, config: Config):
        self.config = config
        self.key = jax.random.key(config.seed)
        learning = config.ppo if config.algorithm == "ppo" else config.mpo
        policy_key, value_key = jax.random.split(self.key)
        network = LayerNormMLP((len(INPUTS), *learning.policy_widths, 16), last=0.01, key=policy_key)
        policy = GaussianPolicy(network=network, name="walker", inputs=INPUTS, scale=SCALE)
        algorithm: Any = ppo if config.algorithm == "ppo" else mpo
        self.learner: Any = algorithm.new_learner(learning, policy, key=value_key)
        self.walkers = self._walkers(config.walk.rough_rounds > 0)
        self.replay = Replay(config.mpo.capacity)
        self.curve: list[dict[str, float]] = []

    def _walkers(self, rough: bool) -> Walkers:
        return Walkers(self.config.walk, self.config.seed, self.config.num_threads, rough)

    def round(self) -> dict[str, float]:
        """One round of walking and learning; its numbers are added to the curve."""
        config, done = self.config, len(self.curve)
        key = jax.random.fold_in(self.key, done)
        if self.walkers.rough and done >= config.walk.rough_rounds:
            arrays, about = self.walkers.save()
            self.walkers = self._walkers(rough=False)
            self.walkers.restore(arrays, about)
        self.walkers.walk = config.walk if done < config.walk.careful_after else config.walk.careful()
        if config.algorithm == "ppo":
            now = config.ppo if done < config.ppo.curious_rounds else config.ppo.settled()
            self.learner, numbers = ppo.round_of(now, self.learner, self.walkers, key=key)
        else:
            self.learner, numbers = mpo.round_of(
                config.mpo, self.walkers.walk, self.learner, self.walkers, self.replay, key=key
            )
        self.curve.append(numbers)
        return numbers

    def policies(self) -> tuple[Any, ...]:
        """The base policies as they are now: four of our ant, eight of OGBench's."""
        directions = four_directions if self.config.walk.world == "ant" else eight_directions
        return directions(replace(self.learner.policy, noise=self.config.noise))

    def save(self, directory: Path) -> None:
        """Writes a checkpoint atomically."""
        leaves = jax.tree.leaves(eqx.filter(self.learner, eqx.is_array))
        arrays = {f"learner.{i:04}": leaf for i, leaf in enumerate(leaves)}
        walking, about = self.walkers.save()
        arrays |= {f"walkers.{name}": array for name, array in walking.items()}
        held, added = self.replay.save()
        arrays |= {f"replay.{name}": array for name, array in held.items()}
        state = {"walkers": about, "replay": added, "curve": self.curve}
        save_arrays(directory, arrays, {"config": asdict(self.config), **state})

    def restore(self, directory: Path) -> None:
        """Resumes exactly where the checkpoint was written."""
        arrays, about = load_arrays(directory)
        if about.get("config") != _as_stored(asdict(self.config)):
            raise ValueError(f"{directory} was made with another config; choose another --out")
        dynamic, static = eqx.partition(self.learner, eqx.is_array)
        expected, structure = jax.tree.flatten(dynamic)
        leaves = matching(expected, list(_under("learner.", arrays).values()), directory)
        self.learner = eqx.combine(jax.tree.unflatten(structure, leaves), static)
        try:
            self.walkers.restore(_under("walkers.", arrays), about["walkers"])
            self.replay.restore(_under("replay.", arrays), about["replay"])
            if not fits(about["curve"], list[dict[str, float]]):
                raise TypeError("the curve is not a list of numbers by name")
            self.curve = about["curve"]
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise FileError(directory, f"is not a checkpoint of this training: {error!r}") from error


def pretrain(
    config: Config, out: Path, report: Report = lambda done, numbers: None, command: str = ""
) -> tuple[Any, ...]:
    """Trains the base policies, from the last checkpoint in `out` if there is one, and saves them there.

    Paper: App E.1
    """
    with sole_writer(out, "ggpi pretrain"):
        sweep(out)
        training = Training(config)
        checkpoint = out / "checkpoint"
        if (checkpoint / "about.json").exists():
            training.restore(checkpoint)
        elif any(entry.name != "checkpoint" for entry in out.glob("[!.]*")):
            raise ValueError(f"{out} holds files that are not a training of ggpi; choose another --out")
        while (done := len(training.curve)) < config.rounds:
            numbers = training.round()
            report(done + 1, numbers)
            if (done + 1) % config.save_every == 0 or done + 1 == config.rounds:
                training.save(checkpoint)
        policies = training.policies()
        save(out / "policies", policies)
        write_json(out / "training.json", provenance(config, command) | {"curve": curve(training)})
        return policies


def provenance(config: Config, command: str) -> Metrics:
    """The command, config and versions that make a run what it is."""
    versions = {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}
    return {"command": command, "config": asdict(config), "versions": versions}


def curve(training: Training) -> dict[str, list[float]]:
    """What the training curve shows, column by column, against the steps of all ants."""
    config = training.config
    horizon = (config.ppo if config.algorithm == "ppo" else config.mpo).horizon
    per_round = config.walk.num_ants * horizon
    shown = {name: [float(f"{row[name]:.4g}") for row in training.curve] for name in SHOWN}
    return {"steps": [per_round * (i + 1) for i in range(len(training.curve))], **shown}


def _as_stored(value: Any) -> Any:
    return json.loads(to_json(value))


def _under(prefix: str, arrays: Metrics) -> Metrics:
    """The arrays whose names begin so, in order and without the prefix."""
    return {name[len(prefix) :]: arrays[name] for name in sorted(arrays) if name.startswith(prefix)}
