"""Formulas: values against Python's own arithmetic, shapes against geometry, and mistakes that are named."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ggpi
from ggpi.rewards.grammar import DEEPEST, FUNCTIONS, LONGEST_PROGRAM, parse, stack_height
from ggpi.rewards.machine import plane_of, read_formula
from ggpi.rewards.text import read_reward

NAMES = ("x", "y", "vx", "vy")
STATE = np.array([0.7, -1.3, 2.0, 0.25], np.float32)
NUMBERS = st.floats(0.25, 4.0).map(lambda number: f"{number:.3f}")


def combined(parts):
    binary = st.tuples(parts, st.sampled_from("+-*"), parts).map(lambda p: f"({p[0]} {p[1]} {p[2]})")
    unary = st.tuples(st.sampled_from(("abs", "sin", "cos", "tanh")), parts).map(lambda p: f"{p[0]}({p[1]})")
    pair = st.tuples(st.sampled_from(("min", "max")), parts, parts).map(lambda p: f"{p[0]}({p[1]}, {p[2]})")
    return binary | unary | pair | parts.map(lambda part: f"-{part}")


FORMULAS = st.recursive(NUMBERS | st.sampled_from(NAMES), combined, max_leaves=8)


@given(FORMULAS)
def test_values_are_those_of_python(text):
    """Python's parser and float64 arithmetic are the independent computation."""
    functions = {"sin": math.sin, "cos": math.cos, "tanh": math.tanh, "abs": abs, "min": min, "max": max}
    expected = eval(text, {"__builtins__": {}}, functions | dict(zip(NAMES, STATE.tolist(), strict=True)))
    assert math.isclose(value(text), expected, rel_tol=1e-4, abs_tol=1e-4)


def value(text, state=STATE):
    return float(read_formula(text, NAMES)(jnp.asarray(state)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 - 2 - 3", -4),
        ("8 / 4 / 2", 1),
        ("2 ^ 3 ^ 2", 512),
        ("2 ** 3", 8),
        ("-2 ^ 2", -4),
        ("(-2) ^ 3", -8),
        ("2 ^ -1", 0.5),
        ("1 + 2 * 3", 7),
        ("x < 1", 1),
        ("x > 1", 0),
        ("3 * (x > 0) - 1", 2),
        ("exp(log(5))", 5),
        ("sqrt(16)", 4),
        ("1.5e1 + .5", 15.5),
        ("cos(pi)", -1),
        ("--x", 0.7),
        ("0", 0),
    ],
)
def test_precedence(text, expected):
    assert value(text) == pytest.approx(expected, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("disc(1, 2, .5)", [(1, 2), (1.49, 2), (1, 1.51)], [(1.36, 2.36), (1.51, 2), (0, 0)]),
        ("box(2, 3, 0, 1)", [(0, 1), (2, 3), (1, 2)], [(2.01, 2), (1, 0.99)]),
        ("line(0, 0, 2, 0, .4)", [(1, 0.19), (2.19, 0), (-0.19, 0)], [(1, 0.21), (2.21, 0), (2.15, 0.15)]),
        ("line(1, 1, 1, 1, 1)", [(1.4, 1)], [(1.6, 1)]),
    ],
)
def test_shapes(text, inside, outside):
    for place, expected in [(p, 1) for p in inside] + [(p, 0) for p in outside]:
        assert value(text, [*place, 0, 0]) == expected, place


def test_shapes_are_drawn_in_x_and_y():
    assert plane_of(("vx", "y", "x")) == (2, 1)
    assert plane_of(("cos", "sin", "speed")) == (0, 1)
    assert plane_of(("only",)) == (0, 0)
    reward = ggpi.rewards.formula("disc(1, 2, .1)", ("vx", "y", "x"))
    assert float(reward.values(jnp.array([9.0, 2.0, 1.0]))) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("x +", "character 4 .* got the end"),
        ("x y", "character 3 .* operator"),
        ("(x", r"expected '\)'"),
        ("z + 1", "'z' is neither a coordinate"),
        ("disc(1, 2)", "disc takes 3 arguments, got 2"),
        ("disc(x, 1, 1)", "plain number"),
        ("max(1)", "max takes 2"),
        ("exp", "'exp' is neither"),
        ("1e10", "at most 1e9"),
        ("1e999", "at most 1e9"),
        ("x.__class__", "operator"),
        ("__import__('os').system('true')", "neither a coordinate"),
        ("lambda: 1", "neither"),
        ("x; y", "operator"),
        ("x = 1", "operator"),
        ("'x'", "number, a coordinate"),
        ("(" * 400 + "x" + ")" * 400, "nested"),
        ("2^" * 300 + "2", "nested"),
        ("x+" * 300 + "x", "operations"),
        ("x" * 5_000, "characters"),
        ("x\x00", "operator"),
    ],
)
def test_mistakes_are_named(text, words):
    with pytest.raises(ValueError, match=words):
        read_formula(text, NAMES)


@given(st.text(alphabet="xy+-*/^()<>,. 0123456789discboxlineabsexp_'[]{}", max_size=60))
def test_any_text_is_a_formula_or_a_value_error(text):
    try:
        program = parse(text, NAMES)
    except ValueError:
        return
    assert 1 <= stack_height(program) <= DEEPEST and len(program) <= LONGEST_PROGRAM
    assert value(text) is not None


def test_deep_stacks_are_rejected():
    text = "x"
    for _ in range(DEEPEST):
        text = f"y - ({text})"
    with pytest.raises(ValueError, match="intermediate values"):
        read_formula(text, NAMES)


def test_a_new_formula_needs_no_compilation():
    traced = []

    @jax.jit
    def run(formula, states):
        traced.append(1)
        return jax.vmap(formula)(states)

    states = np.zeros((3, 4), np.float32)
    for text in ("disc(1, 2, .5)", "x + y", "exp(-x^2) * (vx > 0) - line(0, 0, 1, 1, .2)"):
        run(read_formula(text, NAMES), states)
    assert len(traced) == 1


def test_every_function_has_a_value():
    for name, count in FUNCTIONS.items():
        assert math.isfinite(value(f"{name}({', '.join(['0.5'] * count)})"))


def test_the_command_line_reads_formulas():
    spec = ggpi.StateSpec(NAMES)
    reward = read_reward("formula:disc(1, 2, .5) - .1*vx", spec)
    assert reward.form == "arrival"
    assert float(reward.values(jnp.array([1.0, 2.0, 3.0, 0.0]))) == pytest.approx(0.7)


def test_an_agent_names_a_formula_of_other_states(point_agent):
    with pytest.raises(ValueError, match="states with 2 coordinates, these have 4"):
        point_agent.with_reward(ggpi.rewards.formula("x", ("x", "y")))


def test_an_agent_explains_a_reward_that_is_not_finite(point_agent):
    agent = point_agent.with_reward(ggpi.rewards.formula("log(0 * x)", NAMES))
    with pytest.raises(ValueError, match="finite"):
        agent.plan(np.zeros(4, np.float32), key=jax.random.key(0))


@pytest.fixture(scope="module")
def point_agent():
    ghms = ggpi.pretrained("point-mass-ghms")
    return ggpi.GGPIAgent(ghms, ggpi.rewards.formula("x", NAMES), depth=1, num_samples=4)
