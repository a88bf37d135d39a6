"""Errors of jumpy graphs fall with jumps and landmarks; jumps of vectors are those of the finite world."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from chance import are_frequencies
from ggpi.lab.cells import as_stored
from ggpi.lab.finite import graph_errors as experiment
from ggpi.lab.finite import graph_errors_figure as experiment_figure

CONFIG = experiment.PRESETS["tiny"]


@pytest.fixture(scope="module")
def metrics():
    return as_stored(experiment.run(CONFIG))


def error(metrics, group):
    return [row["error"]["mean"] for row in metrics["rows"] if row["group"] == group]


@pytest.mark.slow
def test_errors_fall(metrics):
    """Jumps: 1/√n would be a ratio of .25. All cells as landmarks, many jumps: the error is noise alone."""
    one, many = error(metrics, "jumps")
    few, every = error(metrics, "landmarks")
    assert many < 0.5 * one and every < 0.5 * few
    assert metrics["cells"] == CONFIG.landmarks[-1]


def test_jumps_of_vectors_are_those_of_the_finite_world():
    given = experiment.world(CONFIG)
    x, n = 17, 20_000
    place = jnp.asarray(given.places[x])
    for k in range(experiment.DIRECTIONS):
        model = jax.tree.map(lambda leaf, k=k: leaf[k], given.models.models[1])
        noise = jax.random.normal(jax.random.key(k), (n, 1))
        ends = np.asarray(jax.vmap(lambda z, model=model: model.push(place, jnp.zeros(2), z))(noise))
        cells = [given.mdp.index(tuple(end)) for end in ends.astype(int).tolist()]
        counts = np.bincount(cells, minlength=len(given.places))
        assert are_frequencies(counts, given.jumps[k, x], comparisons=4 * len(counts))


def test_exact_values_choose_what_the_closed_loop_chooses():
    """One backup of the exact V is the closed loop's own U, so that nothing is lost besides."""
    given = experiment.world(CONFIG)
    heads = experiment.chosen(CONFIG, given, given.u.max(axis=0))
    best = given.u.max(axis=0)
    np.testing.assert_allclose(given.u[heads, np.arange(len(heads))], best, rtol=1e-9)
    assert 0 <= experiment.loss(CONFIG, given, heads) < 1


@pytest.mark.slow
def test_table_and_figure_come_from_metrics(metrics):
    assert experiment_figure.table(metrics).row_count == 6
    assert len(experiment_figure.plot(metrics).axes) == 3
