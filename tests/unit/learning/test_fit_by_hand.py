"""What `fit` prepares: frames at each horizon, held-out episodes, and models in the right places."""

import json
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ggpi
import ggpi.ghm.vae
from ggpi._jax.networks import linear
from ggpi.data import StateSpec
from ggpi.ghm.coordinates import fit_frame
from ggpi.learning.fitting import fit
from ggpi.learning.loop import score
from ggpi.learning.preparation import Inputs, new_training
from ggpi.learning.recipe import Recipe

KEY, SPEC = jax.random.key(0), StateSpec(("x",))
SMALL = ggpi.ghm.vae.VAEConfig(width=4, depth=1)
HORIZONS = (0.9, 0.5, 0.0)


class Go(eqx.Module):
    by: jax.Array
    name: str = "go"

    def sample(self, state, *, key):
        return self.by


POLICIES = [Go(jnp.ones(1)), Go(2 * jnp.ones(1))]


def walks(num=40, length=100):
    """Unit steps, from 10⁶ e in episode e; policies change from episode to episode."""
    episode, step = (part.ravel() for part in np.indices((num, length)))
    state = (1e6 * episode + step).astype(np.float64)[:, None]
    last = step == length - 1
    return ggpi.Transitions(state, 1 + 0 * state, state + 1, last & False, last, episode % 2, episode, step)


def started(data, horizons, policies=POLICIES):
    return new_training(Inputs(policies, data, horizons, recipe(), SPEC, KEY))


def recipe(**changes):
    return Recipe(**({"model": SMALL, "steps": 3, "batch_size": 8, "chunk": 2, "held_out": 0.25} | changes))


def test_frames_have_the_scale_of_their_horizon():
    """X_T − x is T, of mean 1/(1−β) and deviation √β/(1−β), but for the ends of episodes; models of a horizon share it.

    `fit` draws T with a seed of its own, so these are the same numbers on every machine.
    """
    frame = started(walks(), HORIZONS)[1].models.frame
    means, scales = (np.asarray(part)[:, 0] for part in (frame.target_mean, frame.target_scale))
    np.testing.assert_allclose(means, np.repeat([10, 2, 1], 2), rtol=0.15)
    np.testing.assert_allclose(scales[:4], np.repeat([90**0.5, 2**0.5], 2), rtol=0.2)
    np.testing.assert_allclose(scales[4:], 1e-3, rtol=1e-3)


def test_models_and_horizons_are_in_one_order(monkeypatch):
    monkeypatch.setattr("ggpi.learning.fitting.train", lambda training, state, *rest: state.models)
    training, state = started(walks(), HORIZONS)
    np.testing.assert_allclose(training.problem.betas, np.repeat(HORIZONS, 2))
    assert len({float(leaf.sum()) for leaf in state.models.context}) == 6, "each has weights of its own"
    ghms = fit(POLICIES, walks(), gamma=0.9, alpha=(1.0, 4 / 9), key=KEY, model=SMALL, batch_size=8)
    assert ghms.horizons == pytest.approx((0.9, 0.0, 0.5))
    for alpha, mean in ((None, 10), (4 / 9, 2), (1.0, 1)):
        for policy in (0, 1):
            assert float(ghms.segment(policy, alpha).frame.target_mean[0]) == pytest.approx(mean, rel=0.15)


def test_episodes_are_held_out_whole_and_of_every_policy():
    """A quarter of the twenty episodes of each policy; one of two, and none of one."""
    for num, held in ((40, 10), (4, 2), (2, 0)):
        training, _ = started(walks(num), (0.9,))
        seen, scored = (
            set(np.unique(np.asarray(part.data.state)[:, 0] // 1e6))
            for part in (training.problem, training.held_out)
        )
        if held:
            assert len(scored) == held and not seen & scored and len(seen | scored) == num
            assert sum(episode % 2 for episode in scored) == held / 2
            assert len(training.held_out.data.state) == 100 * held
        else:
            assert seen == scored == {0, 1}


@pytest.mark.slow
def test_the_last_chunk_is_as_long_as_it_must_be_and_scores_are_held_out(tmp_path):
    """Three steps in chunks of two; the score is that of the episodes which were not trained on."""
    seen, far = [], walks(8)
    data = replace(far, state=far.state % 1e6, next_state=far.state % 1e6 + 1)

    def keep(report):
        seen.append((report.step, jax.tree.map(jnp.array, report.models)))

    fit(POLICIES[:1], data, gamma=0.9, alpha=(), recipe=recipe(), key=KEY, out=tmp_path, callbacks=[keep])
    assert [step for step, _ in seen] == [0, 2, 3]
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    training, _ = started(data, (0.9,), POLICIES[:1])
    seen_too = replace(training, held_out=training.problem)
    scores = [float(score(given, seen[-1][1])[0]) for given in (training, seen_too)]
    assert scores[0] != scores[1]
    assert any(value == pytest.approx(scores[0], rel=1e-6) for value in numbers(lines[-1]))


def numbers(entry):
    """All numbers of a line of metrics."""
    if isinstance(entry, dict):
        entry = list(entry.values())
    return [x for part in entry for x in numbers(part)] if isinstance(entry, list) else [entry]


def test_everything_that_decides_the_result_is_in_the_fingerprint():
    data = walks(4)
    given = {
        "recipe": Recipe(),
        "horizons": (0.9,),
        "spec": SPEC,
        "key": KEY,
        "data": data,
        "policies": POLICIES,
    }
    moved = replace(data, next_state=data.next_state + 1)
    others = {"data": moved, "key": jax.random.key(1), "horizons": (0.8,), "policies": POLICIES[::-1]}
    others |= {"recipe": Recipe(batch_size=7), "spec": StateSpec(("y",))}
    digest = Inputs(**given).fingerprint()
    assert Inputs(**given).fingerprint() == digest
    for name, other in others.items():
        assert Inputs(**given | {name: other}).fingerprint() != digest, name
    longer = given | {"recipe": Recipe(steps=7)}
    assert Inputs(**longer).fingerprint() == digest, "more steps continue a run"


def test_numbers_that_hardly_vary_are_not_blown_up():
    states = np.stack([np.arange(4.0), np.full(4, 7.0)], axis=1)
    frame = fit_frame(states, np.zeros((4, 1)), states + 1, StateSpec(("x", "y")), None)
    for scale in (frame.state_scale[1], frame.action_scale[0], frame.target_scale[0]):
        assert float(scale) == pytest.approx(1e-3)
    assert float(frame.state_scale[0]) == pytest.approx(np.std(np.arange(4)))
    assert float(frame.inputs(jnp.array([0.0, 7.001]), jnp.zeros(1))[1]) == pytest.approx(1, rel=1e-2)


@pytest.mark.parametrize(("fan_in", "fan_out"), [(4, 400), (400, 4)])
def test_fresh_weights_are_within_the_bound_of_their_inputs(fan_in, fan_out):
    """±1/√fan-in: that all of 1600 are within 0.97 of it has probability below 10⁻²¹."""
    largest = float(abs(linear(fan_in, fan_out, key=KEY)).max())
    assert 0.97 < largest * fan_in**0.5 <= 1
