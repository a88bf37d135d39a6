"""Frames bring states to unit scale and back; the VAE's bounds are bounds."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ggpi
import ggpi.ghm.vae
from ggpi._jax.batching import over_models, stack
from ggpi.data import StateSpec
from ggpi.ghm.coordinates import fit_frame

RNG = np.random.default_rng(0)
STATES = RNG.normal(size=(500, 8)) * 3 + 1
ACTIONS = RNG.uniform(-1, 1, (500, 2))
AHEAD = STATES + RNG.normal(size=(500, 8)) * 0.5 + 2
ROTATED = StateSpec(("x", "y", *"abcdef"), relative=(0, 1), rotations=((2, 3, 4, 5, 6, 7),))


def plain(size):
    return StateSpec(tuple(f"x{i}" for i in range(size)))


@pytest.mark.parametrize("predict", ["change", "state"])
def test_targets_have_unit_scale_and_come_back(predict):
    frame = fit_frame(STATES, ACTIONS, AHEAD, plain(8), None, predict)
    y = jax.vmap(frame.change)(jnp.asarray(STATES, jnp.float32), jnp.asarray(AHEAD, jnp.float32))
    np.testing.assert_allclose(np.mean(y, axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(np.std(y, axis=0), 1, atol=1e-3)
    back = jax.vmap(frame.restore)(jnp.asarray(STATES, jnp.float32), y)
    np.testing.assert_allclose(back, AHEAD, rtol=1e-4, atol=1e-4)
    volume = np.linalg.slogdet(jax.jacobian(lambda z: frame.restore(jnp.zeros(8), z))(jnp.zeros(8)))[1]
    assert frame.log_volume == pytest.approx(volume, rel=1e-4)


def test_positions_are_not_seen_but_moved_along():
    frame = fit_frame(STATES, ACTIONS, AHEAD, ROTATED, None, "state")
    here, action = jnp.asarray(STATES[0], jnp.float32), jnp.asarray(ACTIONS[0], jnp.float32)
    there = here.at[:2].add(jnp.array([100.0, -7.0]))
    np.testing.assert_array_equal(frame.inputs(here, action), frame.inputs(there, action))
    y = jnp.ones(8)
    moved = frame.restore(there, y) - frame.restore(here, y)
    np.testing.assert_allclose(moved, [100, -7, 0, 0, 0, 0, 0, 0], atol=1e-4)


@pytest.mark.parametrize("predict", ["change", "state"])
def test_coordinates_that_are_not_predicted_stay(predict):
    """All are seen; targets are those of the predicted ones, and samples keep the others of their start."""
    spec = dataclasses.replace(plain(8), predicted=(0, 3))
    frame = fit_frame(STATES, ACTIONS, AHEAD, spec, None, predict)
    every = fit_frame(STATES, ACTIONS, AHEAD, plain(8), None, predict)
    here, there = jnp.asarray(STATES[:5], jnp.float32), jnp.asarray(AHEAD[:5], jnp.float32)
    assert (frame.target_size, frame.input_size) == (2, every.input_size)
    y = frame.change(here, there)
    np.testing.assert_allclose(y, every.change(here, there)[:, [0, 3]], rtol=1e-5)
    np.testing.assert_allclose(frame.restore(here, y), here.at[:, [0, 3]].set(there[:, [0, 3]]), rtol=1e-5)
    moved = frame.displacement(here, there)
    np.testing.assert_allclose(moved, every.displacement(here, there)[:, [0, 3]], rtol=1e-5)


@pytest.mark.parametrize("predicted", [(3, 0), (0, 0)])
def test_predicted_coordinates_ascend(predicted):
    with pytest.raises(ValueError, match="ascend"):
        dataclasses.replace(plain(8), predicted=predicted)


def test_relative_positions_and_rotations_are_predicted():
    with pytest.raises(ValueError, match="are predicted"):
        dataclasses.replace(ROTATED, predicted=(0, 1))
    with pytest.raises(IndexError, match="0 to 7"):
        dataclasses.replace(plain(8), predicted=(8,))


@pytest.mark.slow
@pytest.mark.parametrize("model", ["flow-matching", "vae", "flow", "diffusion"])
def test_all_models_predict_some_coordinates(model):
    policies = ggpi.policies.direction_policies()
    data = ggpi.collect("ggpi/PointMass-v0", policies, num_steps=300, switch_every=10, seed=0)
    spec = StateSpec(("x", "y", "vx", "vy"), predicted=(0, 1))
    ghms = ggpi.fit(
        policies,
        data,
        gamma=0.9,
        alpha=0.2,
        model=model,
        spec=spec,
        steps=2,
        batch_size=8,
        key=jax.random.key(0),
    )
    state, action = data.state[0], data.action[0]
    found = ghms.segment(0, None).sample(state, action, key=jax.random.key(1))
    np.testing.assert_array_equal(found[2:], state[2:])
    assert (np.asarray(found[:2]) != state[:2]).all()
    graph = ggpi.jumpy_graph(ghms, data, num_landmarks=20, num_jumps=2, key=jax.random.key(2))
    np.testing.assert_allclose(graph.distance(graph.landmarks + np.array([0, 0, 9, 9])), 0, atol=1e-6)


def test_places_are_also_seen_as_waves():
    """sin and cos of 1, 2, …, 16 radians per standard deviation of each place, after the normalised state."""
    spec = dataclasses.replace(plain(8), places=(1, 4))
    frame = fit_frame(STATES, ACTIONS, AHEAD, spec, None)
    state, action = jnp.asarray(STATES[3], jnp.float32), jnp.asarray(ACTIONS[3], jnp.float32)
    seen = frame.inputs(state, action)
    assert seen.shape == (frame.input_size,) == (8 + 2 * 5 * 2 + 2,)
    z = (STATES[3] - STATES.mean(axis=0)) / STATES.std(axis=0)
    angles = np.outer(z[[1, 4]], [1, 2, 4, 8, 16]).ravel()
    np.testing.assert_allclose(seen[:8], z, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(seen[8:28], [*np.sin(angles), *np.cos(angles)], atol=1e-4)
    np.testing.assert_array_equal(
        seen[28:], fit_frame(STATES, ACTIONS, AHEAD, plain(8), None).inputs(state, action)[8:]
    )
    both = jax.vmap(frame.inputs)(jnp.stack([state, 0 * state]), jnp.stack([action, action]))
    np.testing.assert_allclose(both[0], seen, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("waves", [1, 7])
def test_waves_of_places_go_down_to_what_differs(waves):
    spec = dataclasses.replace(plain(8), places=(4,), waves=waves)
    frame = fit_frame(STATES, ACTIONS, AHEAD, spec, None)
    seen = frame.inputs(jnp.asarray(STATES[3], jnp.float32), jnp.asarray(ACTIONS[3], jnp.float32))
    assert seen.shape == (frame.input_size,) == (8 + 2 * waves + 2,)
    z = (STATES[3, 4] - STATES[:, 4].mean()) / STATES[:, 4].std()
    np.testing.assert_allclose(seen[8 + waves - 1], np.sin(2 ** (waves - 1) * z), atol=1e-3)


def test_places_are_coordinates_that_are_seen():
    with pytest.raises(ValueError, match="waves is at least 1, got 0"):
        StateSpec(("x", "y"), places=(0,), waves=0)
    with pytest.raises(ValueError, match=r"so they are no places; \[1\] are both"):
        StateSpec(("x", "y"), relative=(1,), places=(0, 1))
    with pytest.raises(IndexError, match="indices 0 to 1"):
        StateSpec(("x", "y"), places=(2,))


@pytest.mark.parametrize("places", [(2, 3, 4, 5, 6, 7), (4, 3, 2, 5, 7, 6), (0, 1, 2, 5, 6, 7)])
def test_rotations_are_orthonormal_in_every_sample(places):
    """Also where the coordinates of the axes are not in a row; all others are what they were."""
    frame = fit_frame(STATES, ACTIONS, AHEAD, StateSpec(tuple("abcdefgh"), rotations=(places,)), None)
    drawn = jax.vmap(lambda y: frame.restore(jnp.asarray(STATES[0], jnp.float32), y))(
        jnp.asarray(STATES, jnp.float32)
    )
    free = fit_frame(STATES, ACTIONS, AHEAD, plain(8), None)
    start, y = jnp.asarray(STATES[0], jnp.float32), jnp.asarray(STATES, jnp.float32)
    plainly = np.asarray(jax.vmap(lambda y: free.restore(start, y))(y))
    first, second = drawn[:, jnp.array(places[:3])], drawn[:, jnp.array(places[3:])]
    rest = [i for i in range(8) if i not in places]
    np.testing.assert_allclose(drawn[:, jnp.array(rest)], plainly[:, rest], rtol=1e-5)
    along = plainly[:, places[:3]] / np.linalg.norm(plainly[:, places[:3]], axis=1, keepdims=True)
    np.testing.assert_allclose(first, along, atol=1e-5)
    np.testing.assert_allclose((first**2).sum(1), 1, atol=1e-5)
    np.testing.assert_allclose((second**2).sum(1), 1, atol=1e-5)
    np.testing.assert_allclose((first * second).sum(1), 0, atol=1e-5)


def test_discrete_actions_are_one_hot():
    frame = fit_frame(STATES, np.arange(500) % 3, AHEAD, plain(8), 3)
    assert frame.input_size == 11
    np.testing.assert_array_equal(frame.inputs(jnp.zeros(8), 2)[8:], [0, 0, 1])


def model(size=2, **changes):
    frame = fit_frame(STATES[:, :size], ACTIONS, AHEAD[:, :size], plain(size), None)
    config = ggpi.ghm.vae.VAEConfig(width=8, depth=2, **changes)
    return config.build(frame, key=jax.random.key(0))


def integrated_log_prob(vae, x, a, target):
    """log ∫ p(x′|c, z) p(z|c) dz on a fine grid of z."""
    contexts, y = vae._contexts(x, a), vae.frame.change(x, target)
    from ggpi._jax.densities import log_normal
    from ggpi.ghm.vae import _gaussian

    mean, scale = _gaussian(vae.prior(jax.nn.silu(contexts[1])))
    grid = jnp.linspace(-10, 10, 20_001)

    def log_joint(u):
        z = mean + scale * u
        return log_normal(y, *vae._decode(contexts[2], z)) - 0.5 * u**2 - 0.5 * jnp.log(2 * jnp.pi)

    values = jax.vmap(lambda u: log_joint(u[None]).squeeze())(grid)
    return jax.nn.logsumexp(values) + jnp.log(grid[1] - grid[0]) - vae.frame.log_volume


@pytest.mark.slow
def test_the_bounds_are_bounds():
    """E[ELBO] ≤ E[importance-weighted bound] ≤ log μ, and the latter is close with many draws."""
    vae = model()
    x, a, target = (jnp.asarray(part[0], jnp.float32) for part in (STATES[:, :2], ACTIONS, AHEAD[:, :2]))
    truth = float(integrated_log_prob(vae, x, a, target))
    noise = jax.random.normal(jax.random.key(1), (4000, 1))
    elbo = float(jax.vmap(lambda n: vae.elbo(x, a, target, n))(noise).mean())
    bound = float(vae.log_prob_bound(target, x, a, num_samples=4000, key=jax.random.key(2)))
    assert elbo <= truth + 0.05
    assert bound == pytest.approx(truth, abs=0.05)
    assert elbo <= bound + 0.05


def test_the_loss_weighs_the_divergence():
    """loss = fit + kl_weight · KL; the ELBO always weighs it by 1."""
    x, a, target = (jnp.asarray(part[0], jnp.float32) for part in (STATES[:, :2], ACTIONS, AHEAD[:, :2]))
    noise = jnp.array([0.3])
    one, twenty = model(kl_weight=1.0), model(kl_weight=20.0)
    fit, divergence = one._bound(x, a, target, noise)
    assert divergence >= 0
    assert twenty.loss(x, a, target, noise) == pytest.approx(float(fit + 20 * divergence), rel=1e-5)
    assert one.elbo(x, a, target, noise) == pytest.approx(float(twenty.elbo(x, a, target, noise)), rel=1e-5)
    assert -one.loss(x, a, target, noise) - one.frame.log_volume == pytest.approx(
        float(one.elbo(x, a, target, noise)), rel=1e-5
    )


def test_decoder_means_are_narrower_than_true_samples():
    vae = model(size=8)
    quiet = dataclasses.replace(vae, decoder_noise=0.0)
    x, a = jnp.zeros(8), jnp.zeros(2)
    keys = jax.random.split(jax.random.key(0), 2000)
    spread = [np.std(jax.vmap(lambda k, m=m: m.sample(x, a, key=k))(keys), axis=0) for m in (vae, quiet)]
    assert (spread[1] < spread[0]).all()


def test_gradients_do_not_reach_the_frame():
    import equinox as eqx

    vae = model()
    x, a = jnp.zeros(2), jnp.zeros(2)
    gradient = eqx.filter_grad(lambda m: m.loss(x, a, x + 1, jnp.ones(1)))(vae)
    assert all((leaf == 0).all() for leaf in jax.tree.leaves(gradient.frame))
    assert any((leaf != 0).any() for leaf in jax.tree.leaves(gradient.decoder))


def test_stacked_models_are_the_models():
    frame = model().frame
    models = [ggpi.ghm.vae.VAEConfig(width=8, depth=2).build(frame, key=jax.random.key(i)) for i in range(3)]
    x, a, noise = (jnp.asarray(RNG.normal(size=(3, 5, size)), jnp.float32) for size in (2, 2, 3))
    together = over_models(lambda m, *args: m.push(*args), stack(models), x, a, noise)
    for i, one in enumerate(models):
        alone = jax.vmap(one.push)(x[i], a[i], noise[i])
        np.testing.assert_allclose(together[i], alone, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("spec", [plain(8), ROTATED, StateSpec(tuple("abcdefgh"), relative=tuple(range(8)))])
def test_losses_and_samples_of_a_batch_are_those_of_its_pairs(spec):
    frame = fit_frame(STATES, ACTIONS, AHEAD, spec, None)
    vae = ggpi.ghm.vae.VAEConfig(width=8, depth=2).build(frame, key=jax.random.key(0))
    x, a, target = (jnp.asarray(part[:6], jnp.float32) for part in (STATES, ACTIONS, AHEAD))
    noise = jnp.asarray(RNG.normal(size=(6, vae.noise_size)), jnp.float32)
    one_by_one = jax.vmap(vae.loss)(x, a, target, noise[:, :1])
    np.testing.assert_allclose(vae.loss(x, a, target, noise[:, :1]), one_by_one, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(vae.push(x, a, noise), jax.vmap(vae.push)(x, a, noise), rtol=1e-4, atol=1e-4)
