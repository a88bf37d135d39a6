"""Makes the saved directories beside this file, one of each kind, and `expected.json`: what they answer.

    PYTHONPATH=tests python tests/data/saved/make.py

The directories were written by the first format, whose `about.json` has no digest, and are not to be made again:
they show that such directories load for ever. A kind that is added later is written by the format of its day.
"""

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import ggpi
from ggpi._jax.alias import AliasTable, alias_table
from ggpi._jax.batching import part_of, stack
from ggpi._jax.networks import mlp
from ggpi.data import StateSpec, Transitions
from ggpi.envs.ant import SPEC
from ggpi.envs.pendulum import Pendulum
from ggpi.envs.point_mass import PointMass
from ggpi.evaluation.values import QValues
from ggpi.ghm.abstract import AbstractGHM
from ggpi.ghm.base import GHMs
from ggpi.ghm.conditioned import Conditioned, conditioned
from ggpi.ghm.coordinates import fit_frame
from ggpi.ghm.exact import ExactGHM, Simulator, TabularSampler, tabular_sampler
from ggpi.ghm.one_pass import student_of
from ggpi.ghm.spline_flow import FlowConfig
from ggpi.ghm.symmetric import four_models
from ggpi.ghm.tabular import TabularGHM
from ggpi.ghm.timed import TimedConfig
from ggpi.ghm.vae import VAEConfig
from ggpi.learning.energy_losses import EnergyMC, EnergyTD
from ggpi.learning.flow_losses import MCCFM, TD2CFM, TD2DD, TDCFM, TDDD, CoupledTDCFM
from ggpi.learning.losses import CEMC, LL2TD
from ggpi.learning.recipe import Recipe
from ggpi.mdp.optimal import howard
from ggpi.planning import JumpyGraph
from ggpi.policies import action_heads as kinds
from ggpi.policies import networks
from ggpi.policies.bank import PolicyBank
from ggpi.policies.gaussian import GaussianPolicy, LayerNormMLP
from ggpi.policies.linear import MixedPolicy, linear_policy
from ggpi.policies.symmetric import eight_directions, four_directions
from ggpi.rewards.learned import LearnedReward, RewardNetwork
from ggpi.storage.objects import Foreign
from linear_gaussian import LinearGaussian
from ring import Ring

HERE = Path(__file__).parent
SIZE = 3
"""Dimensions of a state vector; an action vector has two."""
GAMMA, ALPHA = 0.9, 0.25


@dataclass(frozen=True)
class Walker:
    """A policy of someone else's class."""

    name: str


def _chain() -> ggpi.TabularMDP:
    """Three states in a row, the last of which ends; the first action stays, the second moves on."""
    P = np.zeros((3, 2, 3))
    P[:, 0] = np.eye(3)
    P[:, 1] = [[0.2, 0.8, 0], [0, 0.3, 0.7], [0, 0, 1]]
    return ggpi.TabularMDP(P, terminal=[False, False, True], labels=("a", "b", "c"))


def _tabular(name: str = "go") -> ggpi.TabularPolicy:
    return ggpi.TabularPolicy(np.array([[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]]), name)


def _gaussian(seed: int = 0) -> GaussianPolicy:
    network = LayerNormMLP((2, 4, 4), key=jax.random.key(seed))
    return GaussianPolicy(network=network, name=f"gaussian{seed}", inputs=(0, 2), scale=(1.0, 0.5))


def _linear(name: str = "linear") -> Any:
    return linear_policy([[0.5, 0.0, -1.0], [0.0, 2.0, 0.25]], [0.1, -0.2], 0.3, name)


def _directed() -> Any:
    network = LayerNormMLP((4, 4, 16), key=jax.random.key(1))
    base = GaussianPolicy(network=network, name="walk", inputs=(2, 7, 12, 30), scale=(1.0, 0.5, 0.1, 0.1))
    return four_directions(base)


def _network(outputs: int, activation: str = "Tanh") -> networks.Network:
    rng = np.random.default_rng(outputs)
    sizes = (SIZE, 4, outputs)
    pairs = list(itertools.pairwise(sizes))
    return networks.Network(
        networks.normaliser(rng.normal(size=SIZE), rng.uniform(0.5, 2, SIZE)),
        tuple(jnp.asarray(rng.normal(size=(n, m)), jnp.float32) for m, n in pairs),
        tuple(jnp.asarray(rng.normal(size=n), jnp.float32) for _, n in pairs),
        (jnp.full(4, 0.25),) if activation == "PReLU" else (),
        activation,
    )


def _kinds() -> dict[str, Any]:
    low, high = jnp.array([-1.0, -jnp.inf]), jnp.array([1.0, jnp.inf])
    finite = {"low": jnp.array([-1.0, -2.0]), "high": jnp.array([1.0, 2.0])}
    return {
        "choice": kinds.ChoicePolicy(networks.Greedy(_network(3, "ReLU")), "dqn", 3),
        "categorical": kinds.CategoricalPolicy(_network(3), "ppo", 3),
        "deterministic": kinds.DeterministicPolicy(networks.Unscaled(_network(2), **finite), "td3", **finite),
        "clipped": kinds.ClippedGaussianPolicy(
            networks.FixedDeviation(_network(2, "PReLU"), jnp.array([-1.0, 0.0])), "a2c", low, high
        ),
        "squashed": kinds.SquashedGaussianPolicy(networks.MeanAndLogDeviation(_network(4)), "sac", **finite),
    }


def _models(config: Any, policies: tuple[Any, ...], alpha: float, num_actions: int | None = None) -> GHMs:
    """Untrained models of these policies."""
    rng = np.random.default_rng(0)
    states, ahead = rng.normal(size=(2, 64, SIZE)).astype(np.float32)
    actions = rng.normal(size=(64, 2)).astype(np.float32) if num_actions is None else rng.integers(3, size=64)
    spec = StateSpec(("x", "y", "z"), relative=(0,))
    frame = fit_frame(states, actions, states + ahead, spec, num_actions)
    keys = iter(jax.random.split(jax.random.key(2), 2 * len(policies)))
    models = tuple(stack([config.build(frame, key=next(keys)) for _ in policies]) for _ in range(2))
    return GHMs(policies, GAMMA, (alpha,), models)


def _timed() -> GHMs:
    ghms = _models(TimedConfig(width=4, depth=1, longest=100), (_linear(), _linear("two")), ALPHA)
    horizons = GAMMA, GAMMA * (1 - ALPHA)
    models = tuple(model.at_horizon(beta) for model, beta in zip(ghms.models, horizons, strict=True))
    return replace(ghms, models=models)


def _turned() -> AbstractGHM:
    """A model of the ant that walks left, by symmetry."""
    rng = np.random.default_rng(7)
    states, actions = rng.normal(size=(64, 35)).astype(np.float32), rng.normal(size=(64, 8))
    frame = fit_frame(states, actions.astype(np.float32), states + 1, SPEC, None)
    base = TimedConfig(width=4, depth=1, longest=100).build(frame, key=jax.random.key(7))
    return part_of(four_models(base.at_horizon(GAMMA)), 2)


def _path_models(config: Any) -> GHMs:
    """Models that follow a path, whose last layers are not zero."""
    ghms = _models(config, (_linear(),), ALPHA)

    def rough(models: Any) -> Any:
        outer = models.network.outer
        values = 0.1 * jnp.sin(jnp.arange(outer.size)).reshape(outer.shape)
        return eqx.tree_at(lambda models: models.network.outer, models, values)

    return replace(ghms, models=tuple(map(rough, ghms.models)))


def _one_network(codes: Any) -> Conditioned:
    """One network for all horizons up to γ, whose last layer is not zero."""
    (model, _) = _path_models(ggpi.FlowMatchingConfig(width=4, depth=2, num_steps=3)).models
    model = jax.tree.map(lambda leaf: leaf[0], model)
    return conditioned(model, jnp.asarray(codes, jnp.float32), GAMMA, len(codes), key=jax.random.key(6))


def _shared(network: Conditioned, policies: tuple[Any, ...]) -> GHMs:
    horizons = GAMMA, GAMMA * (1 - ALPHA)
    return GHMs(policies, GAMMA, (ALPHA,), tuple(map(network.at_horizon, horizons)))


def _family() -> GHMs:
    codes = [[0.5, 1.0], [0.25, 2.0]]
    policies = ggpi.policy_family(lambda state, z: z, codes, ([-1, -1], [1, 1]), names=["mine", "yours"])
    return _shared(_one_network(codes), policies)


def _student() -> GHMs:
    network = _one_network(np.eye(2))
    network = eqx.tree_at(lambda net: net.model, network, student_of(network.model))
    return _shared(network, (_linear(), _linear("two")))


def _learned_reward() -> LearnedReward:
    rng = np.random.default_rng(3)
    moments = [jnp.asarray(rng.uniform(0.5, 1, size), jnp.float32) for size in (SIZE, SIZE, 2, 2, (), ())]
    network = RewardNetwork(mlp((SIZE + 2, 4, 1), key=jax.random.key(3)), *moments, None)
    return LearnedReward("state_action", network, 0.75, 0.125, 1000)


def _transitions() -> Transitions:
    rng = np.random.default_rng(4)
    states = rng.normal(size=(7, SIZE)).astype(np.float32)
    return Transitions(
        state=states[:-1],
        action=rng.normal(size=(6, 2)).astype(np.float32),
        next_state=states[1:],
        terminated=np.array([False] * 5 + [True]),
        truncated=np.zeros(6, bool),
        behaviour=np.array([0, 0, 1, 1, -1, -1]),
        episode=np.zeros(6, int),
        step=np.arange(6),
    )


def _values() -> QValues:
    gsps = ggpi.compositions(num_policies=2, depth=2, alpha=ALPHA)
    policies = _tabular(), _tabular("again")
    ghms = ggpi.exact_ghms(_chain(), policies, gamma=GAMMA, alpha=ALPHA)
    return ggpi.evaluate(gsps, ghms, ggpi.rewards.arrival([0.0, 0.5, 1.0]))


def _graph() -> JumpyGraph:
    """Jumps of two policies of the chain."""
    ghms = ggpi.exact_ghms(_chain(), [_tabular(), _tabular("again")], gamma=GAMMA, alpha=ALPHA)
    sizes = {"num_landmarks": 2, "num_jumps": 3, "num_neighbours": 2}
    return ggpi.jumpy_graph(ghms, np.arange(3), **sizes, key=jax.random.key(8))


def _along() -> JumpyGraph:
    """The same along a record of two steps."""
    state, none = np.array([0, 1]), np.zeros(2, bool)
    parts = none, np.array([False, True]), np.array([0, 0]), np.array([0, 0]), np.array([0, 1])
    return _graph().along(Transitions(state, state, np.array([1, 1]), *parts))


def _simulator() -> Simulator:
    return Simulator.of(ExactGHM(_chain(), _tabular(), GAMMA))


OBJECTS: dict[str, Callable[[], Any]] = {
    "tabular-policy": _tabular,
    "gaussian-policy": _gaussian,
    "linear-policy": _linear,
    "mixed-policy": lambda: MixedPolicy(jnp.array([0.5, 0.25, 0.25]), "mixed"),
    "directed-policies": _directed,
    **{f"{name}-policy": lambda name=name: _kinds()[name] for name in _kinds()},
    "policy-bank": lambda: PolicyBank([_linear("one"), _gaussian(), _linear("two")]),
    "tabular-bank": lambda: PolicyBank([_tabular(), _tabular("again")]),
    "vae-ghms": lambda: _models(VAEConfig(width=4, depth=2), (_linear(), _linear("two")), ALPHA),
    "flow-ghms": lambda: _models(FlowConfig(hidden=4, knots=2), (_gaussian(), _gaussian(1)), ALPHA),
    "discrete-ghms": lambda: _models(VAEConfig(width=4, depth=1), (_kinds()["categorical"],), ALPHA, 3),
    "one-step-ghms": lambda: _models(VAEConfig(width=4, depth=1, latent=2), (_linear(),), 1.0),
    "foreign-ghms": lambda: _models(VAEConfig(width=4, depth=1), (Walker("mine"), Walker("yours")), ALPHA),
    "exact-ghms": lambda: ggpi.exact_ghms(_chain(), [_tabular()], gamma=GAMMA, alpha=[ALPHA, 0.5]),
    "ghms-2-vae": lambda: _models(VAEConfig(width=4, depth=1), (_linear(), _linear("two")), ALPHA),
    "ghms-2-exact": lambda: ggpi.exact_ghms(_chain(), [_tabular()], gamma=GAMMA, alpha=[ALPHA, 0.5]),
    "exact-ghm": lambda: ExactGHM(_chain(), _tabular(), GAMMA),
    "tabular-ghm": lambda: TabularGHM(
        jnp.asarray(np.random.default_rng(5).normal(size=(3, 2, 3)), jnp.float32)
    ),
    "tabular-sampler": lambda: tabular_sampler(ExactGHM(_chain(), _tabular(), GAMMA).dense(), _tabular()),
    "simulator": _simulator,
    "alias-table": lambda: alias_table(np.array([[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]])),
    "mdp": _chain,
    "state-reward": lambda: ggpi.rewards.state([0.0, 0.5, 1.0]),
    "state-action-reward": lambda: ggpi.rewards.state_action([[0.0, 0.5], [1.0, 2.0], [0.0, 0.0]]),
    "target-reward": lambda: ggpi.rewards.target([0.5, -1.0], 0.75, (0, 2)),
    "targets-reward": lambda: ggpi.rewards.targets([[0.5, -1.0], [0.0, 1.0]], 0.75),
    "features-reward": lambda: ggpi.rewards.features({"x": 0.5, "z": -1.0}, StateSpec(("x", "y", "z"))),
    "learned-reward": _learned_reward,
    "spec": lambda: StateSpec(tuple("abcdefgh"), relative=(0, 1), rotations=((2, 3, 4, 5, 6, 7),)),
    "transitions": _transitions,
    "values": _values,
    "flow-matching-ghms": lambda: _path_models(ggpi.FlowMatchingConfig(width=4, depth=2, num_steps=3)),
    "diffusion-ghms": lambda: _path_models(ggpi.DiffusionConfig(width=4, depth=2, num_steps=3)),
    "one-network-ghms": lambda: _shared(_one_network(np.eye(2)), (_linear(), _linear("two"))),
    "family-ghms": _family,
    "one-pass-ghms": _student,
    "path-recipes": lambda: (
        *(Recipe(ggpi.FlowMatchingConfig(), loss) for loss in (TD2CFM(), TDCFM(), CoupledTDCFM(), MCCFM())),
        *(Recipe(ggpi.DiffusionConfig(), loss) for loss in (TD2DD(), TDDD())),
    ),
    "recipes": lambda: (Recipe(), Recipe(FlowConfig(), LL2TD()), Recipe(loss=CEMC())),
    "worlds": lambda: (PointMass(), Ring(), Pendulum(), LinearGaussian(0.5, 1.0, 0.25, -0.5, 0.0, 0.5)),
    "jumpy-graph": _graph,
    "jumpy-graph-along": _along,
    "timed-ghms": _timed,
    "directed-ghm": _turned,
    "ogbench-walkers": lambda: eight_directions(_directed()[0].base)[5],
    "energy-recipes": lambda: tuple(Recipe(TimedConfig(), loss) for loss in (EnergyTD(), EnergyMC())),
    "solution": lambda: howard(_chain(), ggpi.rewards.arrival([0.0, 0.5, 1.0]), GAMMA),
    "plain": lambda: {0.5: (1, [True, None, "größer"]), "inf": (float("inf"), float("nan")), 3: np.arange(3)},
}


def numbers(value: Any) -> dict[str, Any]:
    """What an object answers to fixed questions, or is made of, as JSON."""
    return json.loads(json.dumps({name: _plain(part) for name, part in _answers(value).items()}))


def _answers(value: Any) -> dict[str, Any]:
    states, actions, key = _questions(value)
    match value:
        case AbstractGHM():
            return {"push": _pushed(value, states, actions)}
        case GHMs():
            rows = {
                f"{h:.6f}": [_answers(value.segment(k, a)) for k in range(len(value.policies))]
                for a in (None, *value.alphas)
                for h in (value.horizon(a),)
            }
            return {"gamma": value.gamma, "alphas": value.alphas, "policies": value.policies, "models": rows}
        case JumpyGraph():
            v = value.solve(ggpi.rewards.arrival([0.0, 0.5, 1.0]))
            return {
                "v": v,
                "landmarks": value.landmarks,
                "coverage": str(value.diagnose()),
                **vars(value.jumps),
            }
        case ExactGHM():
            return {"mu": value.dense()}
        case TabularGHM():
            return {"mu": value.mu}
        case AliasTable() | TabularSampler() | Simulator() | PolicyBank():
            return {"leaves": jax.tree.leaves(value), "drawn": _drawn(value, key)}
        case ggpi.rewards.Reward() if callable(value.values) and not isinstance(
            value.values, ggpi.rewards.Each
        ):
            given = (states, actions) if value.form == "state_action" else (states,)
            return {"form": value.form, "rewards": jax.vmap(value.values)(*given)}
        case Foreign():
            return {"name": value.name, "kind": value.kind}
        case _ if hasattr(value, "mode"):
            answers = {"name": value.name, "mode": value.mode(states)}
            if hasattr(value, "log_prob"):
                answers["log_prob"] = value.log_prob(states, value.mode(states))
            return answers
    return {"value": value}


@eqx.filter_jit
def _pushed(model: AbstractGHM, states: Any, actions: Any) -> Any:
    noise = jnp.linspace(-1, 1, model.noise_size)
    return jax.vmap(lambda x, a: model.push(x, a, noise))(states, actions)


@eqx.filter_jit
def _drawn(value: Any, key: Any) -> Any:
    match value:
        case AliasTable():
            return value.sample(jnp.zeros(8, int), key=key)
        case PolicyBank() if len(value) == 2:
            return value.sample_each(jnp.zeros((2, 4), int), key=key)
        case PolicyBank():
            return value.sample_each(jnp.zeros((3, 2, SIZE)), key=key)
    return value.sample(jnp.zeros(8, int), jnp.ones(8, int), key=key)


def _questions(value: Any) -> tuple[Any, Any, Any]:
    """States and actions that suit the object, and a key."""
    size = {"DirectedPolicy": 35, "DirectedGHM": 35, "OGBenchWalker": 29}.get(type(value).__name__, SIZE)
    states = jnp.sin(jnp.arange(4.0 * size)).reshape(4, size)
    if isinstance(value, ggpi.TabularPolicy):
        states = jnp.arange(3)
    discrete = isinstance(value, AbstractGHM) and value.frame.num_actions is not None
    width = 8 if type(value).__name__ == "DirectedGHM" else 2
    actions = jnp.array([0, 1, 2, 0]) if discrete else jnp.cos(jnp.arange(4.0 * width)).reshape(4, width)
    return (
        states,
        actions,
        jax.random.wrap_key_data(jnp.array([0, 7], jnp.uint32)),
    )  # no seed that tests shift


def _plain(value: Any) -> Any:
    """Lists, names and rounded numbers."""
    if isinstance(value, np.ndarray | jax.Array | np.generic):
        value = np.asarray(value).tolist()
    if isinstance(value, float):
        return float(f"{value:.9g}") if np.isfinite(value) else str(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    answers = _answers(value)
    if list(answers) == ["value"]:
        answers = {name: getattr(value, name) for name in value.__dataclass_fields__}
    return {"class": type(value).__name__, **{name: _plain(part) for name, part in answers.items()}}


def main() -> None:
    path = HERE / "expected.json"
    expected = json.loads(path.read_text()) if path.exists() else {}
    for name, build in OBJECTS.items():
        if not (HERE / name).exists():
            ggpi.save(HERE / name, build())
            expected[name] = numbers(ggpi.load(HERE / name))
    path.write_text(json.dumps(expected, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
