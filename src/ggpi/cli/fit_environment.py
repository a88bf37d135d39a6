"""`ggpi fit --env ID --policies a.zip b.zip`: models of policies of your own.

Everything is checked before the first step: the environment, its spaces, policies, names, horizons and the directory.
Transitions are collected by the policies taking turns, or read. Re-running the same command resumes an interrupted fit.
"""

import contextlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table

from ggpi.cli import loss_curves
from ggpi.cli.fit_recipe import LossName, ModelName, note_on_rates, recipe_of, with_loss
from ggpi.cli.policy_files import read_policies
from ggpi.cli.verdict_table import verdict_table
from ggpi.data import Transitions, read_flat, read_minari, read_npy, read_npz, write_npz
from ggpi.data.memory import is_mapped, within_memory
from ggpi.data.opening import Npz
from ggpi.diagnosis.report import diagnose_held_out
from ggpi.diagnosis.report import names as distinct
from ggpi.diagnosis.verdict import KNOWING_NOTHING, judge
from ggpi.ghm.base import GHMs
from ggpi.lab.fit_directory import World, claim, look, record
from ggpi.learning.event_file import TensorBoard
from ggpi.learning.fitting import fit
from ggpi.learning.horizons import spread
from ggpi.learning.preparation import split
from ggpi.learning.recipe import CPU
from ggpi.mdp.tabular import check_gamma
from ggpi.policies.checks import check_policies, space_of
from ggpi.rollout.collection import collect
from ggpi.storage.arrays import write_json
from ggpi.storage.locking import sole_writer
from ggpi.storage.objects import save
from ggpi.switching import beta_of
from ggpi.types import Key

LIKELIHOODS = ("cetd", "cemc")
"""Losses that are negative log-likelihoods, which knowing nothing can be compared with."""
UNCHECKED = "From held-out transitions. What the first action does and how models compose, ggpi diagnose --env checks."


@dataclass(frozen=True)
class WorldConfig:
    """An environment, policies that act in it, and how models of their futures are learned."""

    env: str
    """Gymnasium id, such as Pendulum-v1 or gymnasium_robotics:PointMaze_UMaze-v3."""
    policies: tuple[str, ...]
    """Zips of Stable-Baselines3, or directories that ggpi.save wrote. A zip whose observations were normalised is
    given with its file of VecNormalize.save, as policy.zip:vecnormalize.pkl."""
    gamma: float = 0.95
    """Discount γ; models look 1/(1−γ) steps ahead on average."""
    alpha: float = 0.1
    """Probability of a switch per step, such as 1/9."""
    data: str | None = None
    """Transitions to learn from instead of collecting: .npz, .hdf5, a directory of .npy, or a Minari dataset."""
    keys: tuple[str, ...] = ()
    """Keys of dictionary observations that make the state; leave goals out."""
    names: tuple[str, ...] = ()
    """Names of the state's coordinates, such as x,y,vx,vy (default: x0, x1, …)."""
    relative: tuple[str, ...] = ()
    """Names of coordinates on which the dynamics do not depend, such as x,y: models predict displacements."""
    places: tuple[str, ...] = ()
    """Names of positions among walls, such as x,y in a maze: models see them more finely, and graphs put them first."""
    transitions: int = 100_000
    """Transitions to collect."""
    switch_every: int = 40
    """While collecting, policies take turns of at most this many steps."""
    explore: float = 0.0
    """Share of these turns in which actions are random; agents that score first actions need some, such as 0.25."""
    steps: int = 10_000
    """Training steps. More of them continue a fit that is finished."""
    model: ModelName = "vae"
    """vae; flow, a normalising flow, which has densities; flow-matching, which has both; or diffusion."""
    loss: LossName | None = None
    """cetd, cemc (recorded futures alone), or ll2td (biased; needs densities); for flow-matching td2-cfm, td-cfm,
    td-cfm-c or mc-cfm (recorded futures alone); for diffusion td2-dd or td-dd. The first of a model is its default."""
    n_step: int | None = None
    """Recorded steps that are followed before the model is sampled; 20 by default."""
    batch_size: int = 256
    """Transitions per model and step."""
    learning_rate: float = 1e-3
    """Adam's step size."""
    decay: Literal["linear", "constant"] = "linear"
    """Whether the step size falls to zero over the run: linear or constant."""
    one_network: bool = False
    """Trains one network for all policies and all horizons up to γ, of flow matching unless the model is diffusion;
    ghms.with_alpha and ghms.with_gamma then choose others than --alpha and --gamma."""
    consistency: float = 0.0
    """Share of rows that one network learns through a shorter horizon, such as 0.25."""
    kl_weight: float | None = None
    """Weight of the KL term in the VAE's loss; 1 by default."""
    latent: int | None = None
    """Latent dimensions of the VAE; 1 by default."""
    vecnormalize: tuple[str, ...] = ()
    """A file of VecNormalize.save for all zips that are given without one (or one for each of these)."""
    deterministic: bool = False
    """Zips act as with predict(deterministic=True): by their means or most probable actions."""
    seed: int = 0
    """Seed of data and training."""


def fit_world(config: WorldConfig, out: Path, tensorboard: bool = False) -> tuple[RenderableType, str]:
    """Learns models and keeps them in `out`; held-out scores with a verdict, and what to do next."""
    config = with_loss(config)
    world, policies = prepare(config)
    with sole_writer(out, "ggpi fit"):
        has_more_steps = claim(out, world, asdict(config))
        data = transitions(config, world, policies, out)
        recipe = recipe_of(config)
        segments = config.gamma, beta_of(config.gamma, config.alpha)
        horizons = spread(config.gamma) if config.one_network else segments
        blank = KNOWING_NOTHING if config.loss in LIKELIHOODS else None
        with loss_curves.drawing(out, distinct(policies), horizons, len(world.names), blank) as draw:
            ghms = fit(
                policies,
                data,
                gamma=config.gamma,
                alpha="any" if config.one_network else config.alpha,
                consistency=config.consistency,
                recipe=recipe,
                spec=world.spec,
                out=out,
                callbacks=[draw, TensorBoard()] if tensorboard else [draw],
                key=jax.random.key(config.seed),
            )
        if config.one_network:
            ghms = ghms.with_alpha(config.alpha)
            save(out / "models", ghms)
        record(out, world, asdict(config))
        losses = held_out_losses(ghms, out) / len(world.names)
        numbers = fit_verdict(ghms, data, None if blank is None else losses, jax.random.key(config.seed))
        write_json(out / "verdict.json", numbers)
        scored = score_table(ghms, horizons, losses, config.steps, blank)
        shown = Group(scored, verdict_table(numbers, UNCHECKED))
        return shown, next_words(world, data, out) + note_on_rates(recipe, has_more_steps)


def prepare(config: WorldConfig) -> tuple[World, list[Any]]:
    """The world and its policies, after everything that can be checked before the first step."""
    if not config.env:
        raise ValueError("no environment given; see ggpi fit --help, or ggpi fit ant for the paper's")
    if not config.policies:
        raise ValueError(
            "no policies given: --policies takes zips of Stable-Baselines3 or directories of ggpi.save"
        )
    check_gamma(config.gamma)
    beta_of(config.gamma, config.alpha)
    recipe_of(config)
    for name, least in (("transitions", config.batch_size), ("switch_every", 1)):
        if getattr(config, name) < least:
            raise ValueError(f"{name} is at least {least}, got {getattr(config, name)}")
    parts = [_split(part) for part in (config.keys, config.names, config.relative, config.places)]
    world, actions = look(config.env, *parts)
    policies = read_policies(config.policies, config.vecnormalize, config.deterministic)
    check_policies(policies, np.zeros((1, len(world.names)), np.float32), actions, config.env)
    return world, policies


def _split(words: Sequence[str]) -> tuple[str, ...]:
    """Words that were given one by one, or joined by commas."""
    return tuple(part.strip() for word in words for part in word.split(",") if part.strip())


def transitions(config: WorldConfig, world: World, policies: Sequence[Any], out: Path) -> Transitions:
    """Transitions from --data, from an earlier start of the same fit, or collected now."""
    if config.data is not None:
        data = read_data(config.data, world.keys)
        if np.shape(data.state)[1:] != (len(world.names),):
            found = np.shape(data.state)[1:]
            raise ValueError(
                f"{config.data}: state has shape {found}, a state of {world.env} has {len(world.names)} numbers"
            )
        check_policies(policies, np.asarray(data.state[:1]), space_of(data, policies), config.data)
        return data
    kept = out / "data.npz"
    if not kept.exists():
        keys = world.keys or None
        data = collect(
            world.env,
            policies,
            config.transitions,
            switch_every=config.switch_every,
            explore=config.explore,
            keys=keys,
            seed=config.seed,
        )
        write_npz(kept, data)
    return read_npz(kept)


def read_data(name: str, keys: Sequence[str] = ()) -> Transitions:
    """Transitions by name: files of ours, flat files of others, or a Minari dataset on this disk."""
    path = Path(name)
    if path.is_dir():
        return read_npy(path) if (path / "about.json").exists() else read_flat(path)
    if path.suffix == ".npz" and path.exists():
        with contextlib.ExitStack() as stack:
            ours = "format" in Npz(path, stack)
        return read_npz(path) if ours else read_flat(path)
    if path.suffix in (".npz", ".hdf5", ".h5"):
        return read_flat(path)
    return read_minari(name, keys=keys or None)


def held_out_losses(ghms: GHMs, out: Path) -> np.ndarray:
    """The last held-out loss of each model, by horizon and policy."""
    *_, last = (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return np.array(json.loads(last)["held_out"]).reshape(-1, len(ghms.policies))


def fit_verdict(ghms: GHMs, data: Transitions, losses: np.ndarray | None, key: Key) -> dict[str, Any]:
    """Numbers and a verdict from the episodes that `fit` held out, without a step of the environment.

    Losses that are no likelihoods (None) are not judged.
    """
    if is_mapped(data):
        data = within_memory(data, 1.0, seed=int(jax.random.key_data(key)[-1]))
    seen, held = split(data, CPU.held_out, key)
    numbers = diagnose_held_out(ghms, held, seen, key=key)
    for k, rows in enumerate(numbers.values()):
        for i, about in enumerate(rows.values()):
            kl_weight = getattr(ghms.models[i], "kl_weight", 1.0)
            if losses is not None and kl_weight <= 1:  # else the loss is no bound of the likelihood
                about |= {"held_out_loss": float(losses[i, k]), "held_out_blank": KNOWING_NOTHING}
            about |= judge(about)
    return numbers


def score_table(
    ghms: GHMs, horizons: Sequence[float], losses: np.ndarray, steps: int, blank: float | None
) -> Table:
    """The held-out loss of each model after training, per coordinate of the state."""
    shown = Table(
        title=f"Held-out loss after {steps} steps",
        caption="per coordinate of the state"
        if blank is None
        else f"nats per coordinate of the state; {blank:.2f} is what knowing only mean and spread scores",
        title_justify="left",
    )
    shown.add_column("policy")
    for horizon in horizons:
        shown.add_column(f"horizon {horizon:g}", justify="right")
    for k, name in enumerate(distinct(ghms.policies)):
        shown.add_row(name, *(f"{score:.2f}" for score in losses[:, k]))
    return shown


def next_words(world: World, data: Transitions, out: Path) -> str:
    """Where the models are, and the commands that use them."""
    state = data.state[len(data) // 2]
    place = ",".join(f"{name}={number:.2g}" for name, number in zip(world.names[:2], state[:2], strict=False))
    radius = float(np.linalg.norm(np.std(data.state[:10_000, :2], axis=0))) / 2 or 1.0
    keys = f" --keys {','.join(world.keys)}" if world.keys else ""
    env = f" --env {world.env}" if ":" in world.env else ""
    lines = [
        f"models: {out / 'models'}",
        f"losses: {out / 'losses.png'}",
        f"state:  {', '.join(world.names)}",
        f"next:   ggpi diagnose {out} --env {world.env}{keys}",
        f"        ggpi play {out}{env} --reward target:{place},radius={radius:.2g} --depth 2",
    ]
    if np.any(data.terminated):
        lines.append(
            "note:   this world ends in some states; tell play in which with --terminal FILE.py:FUNCTION,\n"
            "        whose boundary is best drawn a little inside the world's (docs/how-to/terminals.md)"
        )
    return "\n".join(lines)
