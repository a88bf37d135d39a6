"""Functions as policies: in JAX and in plain Python, alone, in a bank, in `collect` and in `fit`."""

import dataclasses
from inspect import unwrap as untyped  # as users call it: types are checked in tests only

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from scipy import stats

import ggpi
import ggpi.ghm.vae
import ggpi.learning.losses
from chance import is_share
from ggpi import policy_from
from ggpi.policies import PolicyBank
from ggpi.storage.objects import Foreign
from ggpi.types import Policy

KEY = jax.random.key(0)
SMALL = ggpi.ghm.vae.VAEConfig(width=16, depth=1)
STATES = np.random.default_rng(0).normal(size=(5, 4, 3)).astype(np.float32)
BOUNDS = ([-1.0, -0.5], [1.0, 2.0])
LANGUAGES = ("jax", "python", "python-batch")


def push(state):
    """Works on one state and on rows of them, in NumPy and in JAX."""
    return 3 * state[..., :2]


def sign(state):
    return (state[..., 0] > 0).astype("int32")


def uneven(state):
    return state[..., :2] ** 2 / (state[..., :2] ** 2).sum(-1, keepdims=True)


def noisy(state):
    return state[..., :2], abs(state[..., 1:3]) + 0.1


@pytest.mark.parametrize("runs", LANGUAGES)
def test_actions_are_clipped_and_have_leading_axes(runs):
    policy = policy_from(push, BOUNDS, runs=runs)
    assert isinstance(policy, Policy) and policy.name == "push"
    wanted = np.clip(3 * STATES[..., :2], *BOUNDS)
    np.testing.assert_allclose(policy.mode(STATES), wanted, rtol=1e-6)
    np.testing.assert_allclose(policy.sample(STATES[0, 0], key=KEY), wanted[0, 0], rtol=1e-6)
    jitted = eqx.filter_jit(lambda policy, states: policy.sample(states, key=KEY))
    np.testing.assert_allclose(jitted(policy, STATES), wanted, rtol=1e-6)
    assert policy.action_space == Box(np.float32(BOUNDS[0]), np.float32(BOUNDS[1]))


@pytest.mark.parametrize("runs", LANGUAGES)
def test_discrete_actions(runs):
    policy = policy_from(sign, Discrete(2), runs=runs, name="sign of the first")
    actions = policy.sample(STATES, key=KEY)
    assert actions.dtype == jnp.int32 and policy.name == "sign of the first"
    np.testing.assert_array_equal(actions, STATES[..., 0] > 0)


@pytest.mark.parametrize("runs", LANGUAGES)
@pytest.mark.parametrize("returns", ["probabilities", "logits"])
def test_distributions_over_discrete_actions(runs, returns):
    if returns == "probabilities":
        policy = policy_from(uneven, 2, returns=returns, runs=runs)
    else:
        policy = policy_from(lambda state: 2.5 + np.log(2) * state[..., :2], 2, returns=returns, runs=runs)
    n, state = 4000, STATES[0, 0]
    p = np.exp(policy.log_prob(np.stack([state, state]), np.array([0, 1])))
    share = uneven(state)[1] if returns == "probabilities" else 1 / (1 + 2 ** (state[0] - state[1]))
    np.testing.assert_allclose(p, [1 - share, share], rtol=1e-5, atol=1e-6)  # 1 − share in single precision
    drawn = np.asarray(policy.sample(np.tile(state, (n, 1)), key=KEY))
    assert is_share(drawn == 1, float(share), comparisons=1)
    assert policy.mode(state) == int(share > 0.5) and drawn.dtype == np.int32


@pytest.mark.parametrize("runs", LANGUAGES)
def test_gaussians(runs):
    policy = policy_from(noisy, BOUNDS, returns="gaussian", runs=runs)
    n, state = 4000, STATES[1, 1]
    drawn = np.asarray(policy.sample(np.tile(state, (n, 1)), key=KEY))
    (mean, std) = noisy(state)
    for coordinate, bound in ((0, 0.1), (0, -0.9), (1, 0.3)):
        share = stats.norm.cdf(bound, mean[coordinate], std[coordinate])
        assert is_share(drawn[:, coordinate] <= bound, share, comparisons=3)
    np.testing.assert_allclose(policy.mode(state), np.clip(mean, *BOUNDS), rtol=1e-6)
    action = np.array([0.2, 0.4], np.float32)
    np.testing.assert_allclose(
        policy.log_prob(state, action), stats.norm.logpdf(action, mean, std).sum(), rtol=1e-5
    )


def test_python_is_called_once_per_batch():
    calls = []

    def remember(states):
        calls.append(np.shape(states))
        return np.zeros((len(states), 2), np.float32)

    policy = policy_from(remember, BOUNDS, runs="python-batch")
    jax.jit(jax.vmap(jax.vmap(policy.mode)))(STATES).block_until_ready()
    assert calls == [(20, 3)]


def test_integer_states():
    policies = [policy_from(lambda x: (x + 1) % 3, 3, runs=runs) for runs in LANGUAGES]
    for policy in policies:
        np.testing.assert_array_equal(policy.mode(np.arange(6).reshape(2, 3)), [[1, 2, 0], [1, 2, 0]])


def test_modules_stack_and_functions_stand_alone():
    nets = [eqx.nn.MLP(3, 2, 8, 2, key=key) for key in jax.random.split(KEY, 2)]
    plain = [policy_from(push, BOUNDS, runs=runs) for runs in LANGUAGES]
    policies = [policy_from(net, BOUNDS, name=f"net {i}") for i, net in enumerate(nets)] + plain
    bank = PolicyBank(policies)
    assert bank.members == ((0, 1), (2,), (3,), (4,))
    states = jnp.broadcast_to(STATES[0], (5, 4, 3))
    actions = jax.jit(lambda bank, states: bank.sample_each(states, key=KEY))(bank, states)
    for k, policy in enumerate(policies):
        np.testing.assert_allclose(actions[k], policy.mode(states[k]), atol=1e-6)
    index = np.array([4, 0, 3, 2])
    chosen = eqx.filter_jit(lambda bank, states: bank.sample(index, states, key=KEY))(bank, STATES[0])
    np.testing.assert_allclose(chosen, np.asarray(actions)[index, np.arange(4)], atol=1e-6)


def test_a_callable_without_a_hash_goes_through_jit():
    @dataclasses.dataclass
    class Gain:
        gain: float

        def __call__(self, state):
            return self.gain * state[:2]

    policy = policy_from(Gain(0.1), BOUNDS)
    assert policy.name == "Gain"
    jitted = eqx.filter_jit(lambda policy: policy.mode(STATES))
    np.testing.assert_allclose(jitted(policy), 0.1 * STATES[..., :2], rtol=1e-6)
    PolicyBank([policy]).sample_each(STATES[None], key=KEY)


def swing(state):
    return np.sign(state[..., 2:3]) * 2.0


def brake(state):
    return -state[2:3]


@pytest.mark.slow
def test_collect_fit_and_save(tmp_path):
    """The whole way, with one policy in each language; what is code is saved by name."""
    env = gymnasium.make("Pendulum-v1")
    policies = [
        policy_from(swing, env.action_space, runs="python-batch"),
        policy_from(lambda state: [-state[2]], env.action_space, runs="python", name="slow"),
        policy_from(brake, env.action_space),
    ]
    data = ggpi.collect("Pendulum-v1", policies, 600, switch_every=20, num_envs=4)
    swung = data.behaviour == 0
    np.testing.assert_array_equal(data.action[swung], 2 * np.sign(data.state[swung, 2:]))
    ghms = ggpi.fit(
        policies,
        data,
        gamma=0.9,
        alpha=0.5,
        key=KEY,
        model=SMALL,
        loss=ggpi.learning.losses.CETD(n_step=1),
        steps=4,
        batch_size=32,
        out=tmp_path,
    )
    assert ghms.policies == tuple(policies)
    saved = ggpi.load(tmp_path / "models")
    assert [policy.name for policy in saved.policies] == ["swing", "slow", "brake"]
    assert all(isinstance(policy, Foreign) for policy in saved.policies)


def test_what_does_not_fit_is_named_before_a_step():
    bounds = ([-1.0], [1.0])
    with pytest.raises(ValueError, match=r"policy 0 \(brake\) acts within \[-1.0\] and .*RescaleAction"):
        ggpi.collect("Pendulum-v1", [policy_from(brake, bounds)], 10, num_envs=1)
    with pytest.raises(ValueError, match=r"policy 0 \(push\) returns actions of shape \(2,\)"):
        ggpi.collect("Pendulum-v1", [policy_from(push, BOUNDS)], 10, num_envs=1)
    with pytest.raises(ValueError, match=r"policy 0 \(sign\) chooses between 3 actions, this env.* has 2"):
        ggpi.collect("CartPole-v1", [policy_from(sign, 3)], 10, num_envs=1)
    fits = policy_from(sign, 2)
    data = ggpi.collect("CartPole-v1", [fits], 300, num_envs=2)
    with pytest.raises(ValueError, match=r"same number of actions, got 2 for policy 0.*, 4 for policy 1"):
        ggpi.fit([fits, policy_from(sign, 4)], data, gamma=0.9, alpha=0.5, key=KEY)
    with pytest.raises(ValueError, match=r"policy 0.* chooses between 1 actions, the data has 2"):
        ggpi.fit([policy_from(sign, 1)], data, gamma=0.9, alpha=0.5, key=KEY)
    short = policy_from(lambda state: (state @ jnp.ones(3) > 0).astype(int), 2, name="short")
    with pytest.raises(ValueError, match=r"policy 0 \(short\) cannot act on states of shape \(4,\)"):
        ggpi.fit([short], data, gamma=0.9, alpha=0.5, key=KEY)


def test_bad_input():
    for actions in (0, True, "4", ([-1.0, 1.0],), None):
        with pytest.raises(TypeError, match="actions must be a Box, a Discrete"):
            untyped(policy_from)(push, actions)
    with pytest.raises(TypeError, match="actions must be a Box"):
        untyped(policy_from)(push, MultiDiscrete([2, 2]))
    for actions in ((-1.0, 1.0), ([1.0], [-1.0]), ([-1.0, -1.0], [1.0])):
        with pytest.raises(ValueError, match="bounds have one number per action dimension"):
            policy_from(push, actions)
    for actions in (Box(-1, 1, (2, 2)), Discrete(3, start=1)):
        with pytest.raises(ValueError, match="actions must be vectors, or discrete and start at 0"):
            policy_from(push, actions)
    with pytest.raises(
        ValueError, match=r"returns must be one of \('action', 'gaussian'\) for .*, got 'logits'"
    ):
        policy_from(push, BOUNDS, returns="logits")
    with pytest.raises(ValueError, match="got 'gaussian'"):
        policy_from(push, 3, returns="gaussian")
    with pytest.raises(ValueError, match="got 'numpy'"):
        policy_from(push, BOUNDS, runs="numpy")
    with pytest.raises(TypeError, match="takes a function of the state, got int"):
        untyped(policy_from)(3, BOUNDS)


def test_what_a_function_returns_is_checked():
    with pytest.raises(ValueError, match=r"policy 'push' returned action of shape \(2,\), expected \(1,\)"):
        policy_from(push, ([-1.0], [1.0])).mode(STATES)
    with pytest.raises(TypeError, match="returned float32, but discrete actions are integers"):
        policy_from(lambda state: state[0], 2).mode(STATES)
    with pytest.raises(ValueError, match=r"must return \(mean, standard deviation\)"):
        policy_from(push, BOUNDS, returns="gaussian").mode(STATES)
    with pytest.raises(TypeError, match="'float' is not a JAX function; for plain Python pass runs='python'"):
        policy_from(lambda state: [float(state[0]), 0.0], BOUNDS, name="float").mode(STATES)
    with pytest.raises(Exception, match=r"has actions 0 to 1, it returned \[7\]"):
        policy_from(lambda state: 7, 2, runs="python").mode(STATES[0, 0])
    with pytest.raises(Exception, match=r"returned action of shape \(3,\), expected \(20,\)"):
        policy_from(lambda states: [0, 1, 0], 2, runs="python-batch").mode(STATES)
