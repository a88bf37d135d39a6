"""Flow-matching and diffusion models: paths, solvers, densities, settings."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import ggpi
from ggpi.ghm.coordinates import Frame
from ggpi.ghm.flow_matching import EXACT_TRACE, divergence_of
from ggpi.ghm.paths import PATHS

KEY = jax.random.key(0)
CONFIGS = [
    ggpi.FlowMatchingConfig(width=16, depth=2),
    ggpi.FlowMatchingConfig(width=16, depth=2, path="curved", solver="heun"),
    ggpi.DiffusionConfig(width=16, depth=2),
]


def frame(size=2, mean=0.5, scale=2.0):
    zeros, ones = jnp.zeros(size), jnp.ones(size)
    kept = tuple(range(size))
    return Frame(zeros, ones, zeros[:1], ones[:1], zeros + mean, ones * scale, kept, (1.0,) * size, (), None)


def rough(config, size=2, *, key=KEY):
    """A model whose output layer is not zero."""
    model = config.build(frame(size), key=key)
    weights = 0.5 * jax.random.normal(key, model.network.outer.shape)
    return eqx.tree_at(lambda model: model.network.outer, model, weights)


@pytest.mark.parametrize("name", PATHS)
def test_rates_are_derivatives_of_levels(name):
    path, t = PATHS[name], jnp.linspace(0.02, 0.98, 33)
    levels = [jax.vmap(jax.grad(lambda s, i=i: path.levels(s)[i]))(t) for i in (0, 1)]
    for found, expected in zip(path.rates(t), levels, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(path.levels(jnp.array([0.0, 1.0])), [[0, 1], [1, 0]], atol=0.01)


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_fresh_models_are_standard_normal_in_the_frame(config):
    """Raw samples are x + mean + scale · noise, up to the steps of the solver."""
    model = dataclasses.replace(config, num_steps=200).build(frame(), key=KEY)
    noise = jax.random.normal(KEY, (200, 2))
    x, a = jnp.array([1.0, -1.0]), jnp.zeros(1)
    drawn = jax.vmap(lambda z: model.push(x, a, z))(noise)
    np.testing.assert_allclose(drawn, x + 0.5 + 2.0 * noise, rtol=0.1, atol=0.1)


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_batches_and_single_pairs_agree(config):
    model = rough(config)
    states, actions, noise = (jax.random.normal(KEY, (5, size)) for size in (2, 1, 2))
    each = jax.vmap(model.push)(states, actions, noise)
    np.testing.assert_allclose(model.push(states, actions, noise), each, rtol=1e-4, atol=1e-4)


def test_one_code_serves_many_times_and_points():
    model, t = rough(CONFIGS[0]), jnp.array([0.1, 0.7, 0.9])
    states, actions = jax.random.normal(KEY, (5, 2)), jnp.ones((5, 1))
    y = jax.random.normal(KEY, (3, 5, 2))
    many = model.velocity(y, t[:, None], states, actions)
    for i, j in np.ndindex(3, 5):
        alone = model.velocity(y[i, j], t[i], states[j], actions[j])
        np.testing.assert_allclose(many[i, j], alone, rtol=1e-4, atol=1e-5)


def test_noise_and_targets_have_different_times():
    """Features of t with a period of 1 would not tell them apart."""
    codes = rough(CONFIGS[0]).network.encode_time(jnp.array([0.0, 1.0]))
    assert np.abs(codes[0] - codes[1]).max() > 0.1


@pytest.mark.parametrize(("solver", "order"), [("euler", 1), ("midpoint", 2), ("heun", 2)])
def test_errors_of_solvers_fall_at_their_order(solver, order):
    """With twice the steps they fall by 2^order; by at least 0.7 of that, on a field that is no polynomial."""
    noise, pair = jnp.array([[0.3, -1.2], [1.5, 0.4]]), (jnp.zeros((2, 2)), jnp.zeros((2, 1)))

    def ends(steps):
        config = ggpi.FlowMatchingConfig(width=16, depth=2, num_steps=steps, solver=solver)
        return np.asarray(rough(config).push(*pair, noise), float)

    exact = ends(1024)
    coarse, fine = (np.abs(ends(steps) - exact).max() for steps in (32, 64))
    assert coarse / fine > 0.7 * 2**order


def test_the_density_of_an_affine_field_is_known():
    """dY/dt = Y q̇/q + c with q² = t² + (1−t)²: Y₁ = Y₀ + c ∫ dt/q."""
    model = CONFIGS[0].build(frame(), key=KEY)
    model = eqx.tree_at(lambda model: model.network.outer_bias, model, jnp.array([0.5, -1.0]))
    moved = quad(lambda t: (t**2 + (1 - t) ** 2) ** -0.5, 0, 1)[0]
    x, a = jnp.array([1.0, 3.0]), jnp.zeros(1)
    targets = x + jax.random.normal(KEY, (7, 2))
    found = jax.vmap(lambda y: model.log_prob(y, x, a))(targets)
    mean = np.asarray(x) + 0.5 + 2.0 * moved * np.array([0.5, -1.0])
    np.testing.assert_allclose(found, norm.logpdf(targets, mean, 2.0).sum(axis=1), atol=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("path", ["straight", "curved"])
def test_densities_integrate_to_one_and_are_those_of_samples(path):
    model = rough(ggpi.FlowMatchingConfig(width=16, depth=2, num_steps=50, path=path), size=1)
    x, a = jnp.array([0.3]), jnp.zeros(1)
    grid = jnp.linspace(-200, 200, 40_001)[:, None]  # samples of this model reach 82
    density = np.exp(jax.jit(jax.vmap(lambda y: model.log_prob(y, x, a)))(grid))
    assert np.trapezoid(density, grid[:, 0]) == pytest.approx(1, abs=2e-3)
    levels = (np.arange(999) + 0.5) / 999
    drawn = np.asarray(
        model.push(
            *(jnp.tile(part, (999, 1)) for part in (x, a)),
            jnp.asarray(norm.ppf(levels)[:, None], jnp.float32),
        )
    )
    below = np.interp(drawn[:, 0], grid[:, 0], np.cumsum(density) * 0.01)
    np.testing.assert_allclose(below, levels, atol=0.01)


def test_divergences_are_exact_until_they_are_estimated():
    for size in (EXACT_TRACE, EXACT_TRACE + 1):
        matrix = jax.random.normal(KEY, (size, size)) / size + jnp.eye(size)
        value, found = divergence_of(lambda y, m=matrix: m @ y, jnp.ones(size))
        np.testing.assert_allclose(value, matrix @ jnp.ones(size), rtol=1e-5)
        exact = float(jnp.trace(matrix))
        if size == EXACT_TRACE:
            assert found == pytest.approx(exact, rel=1e-5)
        else:
            assert found != pytest.approx(exact, rel=1e-6)
            assert found == pytest.approx(exact, abs=2.0)  # the estimate's deviation is √2/√16, about .35


def test_a_diffusion_model_has_no_density():
    model = rough(CONFIGS[2])
    assert not isinstance(model, ggpi.ghm.AbstractDensity)
    with pytest.raises(
        TypeError, match='can only be sampled; model="flow-matching" and "flow" have densities'
    ):
        model.log_prob(jnp.zeros(2), jnp.zeros(2), jnp.zeros(1))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_steps": 0}, "num_steps is at least 1, got 0"),
        ({"width": 0}, "width is at least 1"),
        ({"solver": "rk45"}, "solver is one of euler, midpoint, heun, got 'rk45'"),
        ({"path": "diffusion"}, "path is one of straight, curved, got 'diffusion'"),
    ],
)
def test_settings_that_make_no_sense(changes, message):
    config = ggpi.FlowMatchingConfig()
    for name, value in changes.items():
        object.__setattr__(config, name, value)  # types are checked in tests only
    with pytest.raises(ValueError, match=message):
        config.__post_init__()


def test_a_diffusion_needs_steps_and_a_solver():
    with pytest.raises(ValueError, match="num_steps is at least 1, got 0"):
        ggpi.DiffusionConfig(num_steps=0)
    config = ggpi.DiffusionConfig()
    object.__setattr__(config, "solver", "euler")  # types are checked in tests only
    with pytest.raises(ValueError, match="solver is one of ddim, midpoint, got 'euler'"):
        config.__post_init__()


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_how_fast_a_field_changes_with_y_is_bounded_over_all_pairs(config):
    """A million spreads from the data as at ten thousand: scales are at their limits, and shifts do not matter.

    Each layer multiplies the derivative by at most 1 + 1.1 |W| (1 + 2 · 4), |silu′| ≤ 1.1, in spectral norms.
    """
    model = rough(config)
    network = model.network
    norms = [float(jnp.linalg.norm(w, 2)) for w in (network.inner, *network.weights, network.outer)]
    bound = norms[0] * 1.1 * norms[-1] * np.prod([1 + 1.1 * norm * 9 for norm in norms[1:-1]])
    y, t = jax.random.normal(KEY, (2,)), jnp.array(0.4)
    for size in (1.0, 1e4, 1e6):
        code = model.encode(jnp.full(2, size), jnp.full(1, -size))
        slope = jax.jacobian(lambda y, code=code: network(y, code, network.encode_time(t)))(y)
        assert np.linalg.norm(slope, 2) <= 1.01 * bound
    far = model.push(jnp.full(2, 1e3), jnp.full(1, 1e4), jax.random.normal(KEY, (2,)))
    assert np.isfinite(far).all()


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_models_are_saved_and_loaded(config, tmp_path):
    model = rough(config)
    ggpi.save(tmp_path / "model", model)
    loaded = ggpi.load(tmp_path / "model")
    assert eqx.tree_equal(loaded, model)
    ggpi.save(tmp_path / "config", config)
    assert ggpi.load(tmp_path / "config") == config
