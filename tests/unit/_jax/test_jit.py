"""Compiled functions are the functions, also where XLA does not know an option."""

import gc
import os
import weakref
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ggpi
from ggpi import rewards
from ggpi._jax import jit as compiling
from ggpi.evaluation import queries


def test_it_computes_the_same():
    x, w = jnp.ones((3, 5, 4)), jnp.full((3, 4, 2), 0.5)
    np.testing.assert_allclose(compiling.fast_jit(lambda x, w: x @ w)(x, w), x @ w)


def test_arguments_that_are_no_arrays_are_part_of_the_program():
    def repeated(x, *, times):
        return jnp.concatenate([x] * times)

    assert compiling.fast_jit(repeated)(jnp.ones(2), times=3).shape == (6,)
    assert compiling.fast_jit(repeated).__name__ == "repeated"


def test_unknown_options_are_left_out(monkeypatch):
    monkeypatch.setattr(compiling, "OPTIONS", {"xla_cpu_no_such_option": "1"})
    compiling._understood.cache_clear()
    assert compiling._understood() == {}
    compiling._understood.cache_clear()


def test_other_errors_are_raised(monkeypatch):
    monkeypatch.setattr(compiling, "OPTIONS", {"xla_cpu_experimental_ynn_fusion_type": "nonsense"})
    compiling._understood.cache_clear()
    with pytest.raises(jax.errors.JaxRuntimeError, match="nonsense"):
        compiling._understood()
    compiling._understood.cache_clear()


def test_a_function_that_is_dropped_takes_its_programs_with_it():
    paid = compiling.jit(lambda reward, x: reward(x))
    double, triple = (lambda x: 2 * x), (lambda x: 3 * x)
    for _ in range(2):
        assert paid(double, jnp.ones(())) == 2 and paid(triple, jnp.ones(())) == 3
    assert len(paid.programs) == 2
    gone = weakref.ref(double)
    del double
    gc.collect()
    assert gone() is None and len(paid.programs) == 1
    assert paid(triple, jnp.ones(3)).sum() == 9
    assert len(paid.programs) == 1


def test_the_latest_programs_are_kept(monkeypatch):
    monkeypatch.setattr(compiling, "KEPT", 2)
    traced = []

    @compiling.jit
    def paid(reward, x):
        traced.append(reward)
        return reward(x)

    rewards = [lambda x, i=i: i * x for i in range(3)]
    for i in (0, 1, 0, 2, 0, 2, 1):
        assert paid(rewards[i], jnp.ones(())) == i
    assert [rewards.index(one) for one in traced] == [0, 1, 2, 1], "0 was used again before 1"
    assert len(paid.programs) == 2


def test_programs_are_forgotten_but_for_the_latest():
    scaled = compiling.jit(lambda x, by: x * by)
    for by in (1, 2, 3, 1):
        scaled(jnp.ones(()), by)
    gone = [weakref.ref(program) for program in scaled.programs._held.values()]
    compiling.forget(but=10)
    assert len(scaled.programs) == 3
    before = compiling.num_programs()
    compiling.forget(but=1)
    gc.collect()
    assert before - compiling.num_programs() >= 2
    assert [program() is None for program in gone] == [True, True, False]
    assert scaled(jnp.ones(()), 2) == 2


def test_numbers_of_different_types_have_different_programs():
    halved = compiling.jit(lambda x, by: x // by)
    assert halved(jnp.asarray(5), 2).dtype == jnp.int32
    assert halved(jnp.asarray(5), 2.0).dtype == jnp.float32


def test_what_is_no_array_comes_back():
    def both(x, words):
        return {"x": x + 1, "words": words, "f": jnp.sin}

    found = compiling.jit(both)(jnp.ones(2), words="yes")
    assert found["words"] == "yes" and found["f"] is jnp.sin and found["x"][0] == 2


def test_compiled_functions_call_each_other():
    inner = compiling.jit(lambda f, x: f(x) + 1)
    outer = compiling.jit(lambda f, x: inner(f, inner(f, x)))
    assert outer(lambda x: 2 * x, jnp.ones(())) == 7


def test_donated_arguments_are_all_but_the_first():
    kept, given = jnp.ones(1000), jnp.ones(1000)
    compiling.jit(lambda kept, given: kept + given, donate="all-except-first")(kept, given)
    assert given.is_deleted() and not kept.is_deleted()


def resident():
    """Megabytes of memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_memory_stays_within_bounds_over_200_rewards():
    """200 programs took 14 MB each when none was freed. The last 100 may take 1 MB each."""
    ghms = ggpi.exact_ghms(mdp := ggpi.envs.four_rooms(), [ggpi.TabularPolicy.uniform(mdp)], 0.9, 0.5)
    agent = ggpi.GGPIAgent(ghms, np.zeros(mdp.num_states), depth=1, num_samples=2)
    sizes, gone = [], []
    for i in range(200):
        one = agent.with_reward(rewards.arrival(lambda x, i=i: jnp.cos(x + i)))
        one.act(0, key=jax.random.key(0))
        gone.append(weakref.ref(one.reward.values))
        if i % 100 == 99:
            gc.collect()
            sizes.append(resident())
    assert sizes[1] - sizes[0] < 100
    del one
    gc.collect()
    assert not any(function() for function in gone)


def test_an_agent_that_is_dropped_frees_its_programs():
    mdp = ggpi.envs.four_rooms()
    ghms = ggpi.exact_ghms(mdp, [ggpi.TabularPolicy.uniform(mdp)], 0.9, 0.5)
    agent = ggpi.GGPIAgent(ghms, rewards.arrival(lambda x: jnp.cos(x)), depth=1, num_samples=2)
    agent.act(0, key=jax.random.key(0))
    *_, last = queries._compiled.programs._held.values()
    gone, program = weakref.ref(agent.reward.values), weakref.ref(last)
    del agent, last
    gc.collect()
    assert gone() is None and program() is None
