"""`evaluate_sampled` is a pure function: jitted, vmapped over states and rewards, scanned; and any Sampler will do."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ggpi
from chance import error_of_estimate
from ggpi import rewards
from ggpi.envs.point_mass import PointMass
from ggpi.evaluation import evaluate_states_sampled

GAMMA, ALPHA = 0.9, 0.25
KEY = jax.random.key(3)
WORLD = PointMass()
PUSHES = jnp.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])


def stepped(state, action):
    """The point mass in JAX, one state."""
    velocity = (1 - WORLD.drag) * state[2:] + WORLD.force * jnp.clip(action, -1, 1)
    place = state[:2] + velocity
    return jnp.concatenate([jnp.clip(place, -1, 1), velocity * (jnp.abs(place) <= 1)])


class Pushes(eqx.Module):
    """A Sampler of the true point mass: policy k always pushes into direction k."""

    pushes: jax.Array
    gamma: float = eqx.field(static=True, default=GAMMA)
    terminal: None = None

    def act(self, policies, state, *, key):
        return jnp.broadcast_to(self.pushes[jnp.array(policies)][:, None], (*state.shape[:2], 2))

    def jump(self, policies, horizon, state, action, *, key):
        times = jax.random.geometric(key, 1 - horizon, state.shape[:2])

        def walked(x, a, steps, push):
            later = jax.lax.fori_loop(
                1, jnp.minimum(steps, 100), lambda _, x: stepped(x, push), stepped(x, a)
            )
            return later

        over_rows = jax.vmap(walked, (0, 0, 0, None))
        return jax.vmap(over_rows)(state, action, times, self.pushes[jnp.array(policies)])

    def onward(self, policies, horizon, state, *, key):
        return self.jump(policies, horizon, state, self.act(policies, state, key=key), key=key)


SAMPLER = Pushes(PUSHES)
GSPS = ggpi.compositions(4, 2, ALPHA)


def value(state, nearness, key):
    """V of all GSPs in one state."""
    return ggpi.evaluate_sampled(
        GSPS, SAMPLER, rewards.arrival(nearness), jnp.asarray(state, jnp.float32), num_samples=30, key=key
    )


class Nearness(eqx.Module):
    """More the nearer a place is: no two places pay the same."""

    place: jax.Array

    def __call__(self, state):
        return jnp.exp(-5 * jnp.linalg.norm(state[:2] - self.place))


def test_the_point_mass_of_this_test_is_that_of_the_library():
    rng = np.random.default_rng(0)
    states, actions = WORLD.start(50, rng), rng.uniform(-2, 2, (50, 2))
    found = jax.vmap(stepped)(jnp.asarray(states), jnp.asarray(actions))
    np.testing.assert_allclose(found, WORLD.step(states, actions), atol=1e-6)


def test_jit_and_vmap_over_states_and_rewards_change_nothing():
    states = jnp.array([[0.0, 0.0, 0.0, 0.0], [0.5, -0.5, 0.05, 0.0], [-0.9, 0.9, 0.0, 0.0]])
    many = Nearness(jnp.array([[0.6, 0.0], [0.0, 0.9], [-0.9, 0.5]]))
    keys = jax.random.split(KEY, 3)
    one_by_one = [
        value(state, jax.tree.map(lambda leaf, i=i: leaf[i], many), key)
        for i, (state, key) in enumerate(zip(states, keys, strict=True))
    ]
    together = jax.jit(jax.vmap(value))(states, many, keys)
    for i, alone in enumerate(one_by_one):
        np.testing.assert_allclose(together.mean[i], alone.mean, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(together.stderr[i], alone.stderr, rtol=1e-3, atol=1e-5)
    assert len({float(mean.max()) for mean in together.mean}) == 3, "each pair has its own values"


def test_an_episode_is_one_scan():
    """From the middle to a corner: the scan chooses and steps as a loop in Python does, and arrives."""
    goal = Nearness(jnp.array([0.7, 0.7]))
    heads = jnp.array([gsp.head for gsp in GSPS])

    def step(state, key):
        best = value(state, goal, key).mean.argmax()
        state = stepped(state, PUSHES[heads[best]])
        return state, state

    keys = jax.random.split(KEY, 40)
    _, visited = jax.jit(lambda start: jax.lax.scan(step, start, keys))(jnp.zeros(4))
    assert (np.linalg.norm(np.asarray(visited)[:, :2] - 0.7, axis=1) <= 0.4).any()
    state = jnp.zeros(4)
    for i in range(3):
        state, _ = step(state, keys[i])
        np.testing.assert_allclose(state, visited[i], atol=1e-6)


@pytest.mark.parametrize("form", ["state", "state_action", "arrival"])
@pytest.mark.parametrize("with_action", [False, True], ids=["V", "Q"])
def test_values_are_the_exact_ones(form, with_action):
    """Models and their Sampler, in a state of a finite MDP with a terminal state, under jit."""
    rng = np.random.default_rng(1)
    P = rng.dirichlet(np.ones(5), (5, 3))
    P[4] = np.eye(5)[4]
    mdp = ggpi.TabularMDP(P, np.arange(5) == 4)
    ghms = ggpi.exact_ghms(mdp, list(rng.dirichlet(np.ones(3), (2, 5))), GAMMA, ALPHA)
    reward = getattr(rewards, form)(rng.uniform(size=(5, 3) if form == "state_action" else 5))
    gsps, n = ggpi.compositions(2, 2, ALPHA), 4000
    exact = ggpi.evaluate(gsps, ghms, reward)
    for models in (ghms, ghms.sampler()):
        evaluate = jax.jit(
            lambda x, a, models=models: ggpi.evaluate_sampled(
                gsps, models, reward, x, a if with_action else None, num_samples=n, key=KEY
            )
        )
        for state in (0, 4):
            found = evaluate(state, 2)
            expected = exact.array[:, state, 2] if with_action else exact.v[:, state]
            bound = error_of_estimate(np.asarray(found.stderr), n, 1 / (1 - GAMMA), 48)
            assert (np.abs(found.mean - expected) <= bound + 1e-4).all()


class OnHost:
    """The same point mass, stepped by NumPy."""

    gamma, terminal = GAMMA, None

    def act(self, policies, state, *, key):
        return np.broadcast_to(np.asarray(PUSHES)[list(policies)][:, None], (*state.shape[:2], 2))

    def jump(self, policies, horizon, state, action, *, key):
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        x, left = np.array(state), rng.geometric(1 - horizon, state.shape[:2])
        for t in range(1, left.max() + 1):
            a = action if t == 1 else self.act(policies, state, key=key)
            following = WORLD.step(x.reshape(-1, 4), a.reshape(-1, 2)).reshape(x.shape)
            x = np.where((left >= t)[..., None], following, x)
        return x

    def onward(self, policies, horizon, state, *, key):
        return self.jump(policies, horizon, state, self.act(policies, state, key=key), key=key)


@pytest.mark.parametrize(
    "reward", [lambda x: x[0] + 1, lambda x: float(np.asarray(x)[0]) + 1], ids=["JAX", "Python"]
)
def test_samplers_and_rewards_on_the_host_give_the_same(reward):
    """Two estimates of means of values in [0, 2/(1−γ)], from independent samples."""
    states, n = np.array([[0.0, 0.0, 0.0, 0.0], [-0.5, 0.5, 0.0, 0.0]], np.float32), 2000
    traced = rewards.arrival(lambda x: x[0] + 1)
    compiled = evaluate_states_sampled(GSPS, SAMPLER, traced, states, num_samples=n, key=KEY)
    found = evaluate_states_sampled(GSPS, OnHost(), rewards.arrival(reward), states, num_samples=n, key=KEY)
    assert found.mean.shape == compiled.mean.shape == (len(GSPS), 2)
    bounds = [error_of_estimate(part.stderr, n, 2 / (1 - GAMMA), 64) for part in (compiled, found)]
    assert (np.abs(compiled.mean - found.mean) <= sum(bounds)).all()
