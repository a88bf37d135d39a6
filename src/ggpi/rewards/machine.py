"""A formula over named coordinates as a reward: a small stack machine, whose program is data.

The program is an array of opcodes and numbers, and so an argument of compiled planners: another formula needs no new
compilation. `ggpi.rewards.grammar` reads the text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ggpi.data.spec import StateSpec
from ggpi.rewards.forms import Reward, arrival
from ggpi.rewards.grammar import BINARY, DEEPEST, LONGEST_PROGRAM, OPCODES, SHAPES, UNARY, parse
from ggpi.types import Numbers

SIZES = (32, LONGEST_PROGRAM)
"""Programs are padded to one of these lengths, each of which is compiled once."""
NUMBERS = max(SHAPES.values())
Stack = Float[Array, "depth"]
"""The top is the first."""
Operation = Callable[[Stack, Array, Array], Stack]

FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "neg": jnp.negative,
    "abs": jnp.abs,
    "exp": jnp.exp,
    "log": jnp.log,
    "sqrt": jnp.sqrt,
    "sin": jnp.sin,
    "cos": jnp.cos,
    "tanh": jnp.tanh,
}


def _power(base: Array, exponent: Array) -> Array:
    """Also of negative bases, where the exponent is whole."""
    size = jnp.abs(base) ** exponent
    is_whole, is_odd = exponent == jnp.round(exponent), jnp.mod(exponent, 2) == 1
    return jnp.where(base >= 0, size, jnp.where(is_whole, jnp.where(is_odd, -size, size), jnp.nan))


OPERATORS: dict[str, Callable[[Array, Array], Array]] = {
    "+": jnp.add,
    "-": jnp.subtract,
    "*": jnp.multiply,
    "/": jnp.divide,
    "^": _power,
    "<": lambda one, two: (one < two).astype(jnp.float32),
    ">": lambda one, two: (one > two).astype(jnp.float32),
    "min": jnp.minimum,
    "max": jnp.maximum,
}


def _disc(place: Array, a: Array) -> Array:
    return jnp.sum((place - a[:2]) ** 2) <= a[2] ** 2


def _box(place: Array, a: Array) -> Array:
    low, high = jnp.minimum(a[:2], a[2:4]), jnp.maximum(a[:2], a[2:4])
    return jnp.all((low <= place) & (place <= high))


def _line(place: Array, a: Array) -> Array:
    along = a[2:4] - a[:2]
    share = jnp.sum((place - a[:2]) * along) / jnp.maximum(jnp.sum(along**2), 1e-12)
    nearest = a[:2] + jnp.clip(share, 0.0, 1.0) * along
    return jnp.sum((place - nearest) ** 2) <= (a[4] / 2) ** 2


INSIDE: dict[str, Callable[[Array, Array], Array]] = {"disc": _disc, "box": _box, "line": _line}


class Formula(eqx.Module):
    """The value of a program at a state."""

    opcodes: Int[Array, "n"]
    numbers: Float[Array, "n 5"]
    size: int = eqx.field(static=True)
    """Coordinates of a state."""
    plane: tuple[int, int] = eqx.field(static=True, default=(0, 1))
    """The state dimensions that shapes are drawn in."""

    def __call__(self, state: Numbers) -> Float[Array, ""]:
        """The value at one state [D]."""
        return _run(self.opcodes, self.numbers, jnp.asarray(state, jnp.float32), self.plane)


@partial(jax.jit, static_argnames="plane")
def _run(opcodes: Array, numbers: Array, state: Array, plane: tuple[int, int]) -> Array:
    """What is on top of the stack at the end; traced once, whatever the program."""
    operations = _operations(plane)

    def step(stack: Stack, given: tuple[Array, Array]) -> tuple[Stack, None]:
        opcode, own = given
        return jax.lax.switch(opcode, operations, stack, own, state), None

    empty = jnp.zeros(DEEPEST) + 0 * state[0]  # batched from the start, where states are
    return jax.lax.scan(step, empty, (opcodes, numbers))[0][0]


def formula(text: str, spec: StateSpec | Sequence[str]) -> Reward:
    """A formula of the state that is entered, such as "disc(1, 2, .5) - .1*abs(vx)".

    Args:
        text: The formula, see `ggpi.rewards.grammar`.
        spec: The names of the state dimensions.
    """
    return arrival(read_formula(text, spec))


def plane_of(names: Sequence[str]) -> tuple[int, int]:
    """The dimensions in which shapes are drawn: x and y, or else the first two."""
    if {"x", "y"} <= set(names):
        return names.index("x"), names.index("y")
    return 0, min(1, len(names) - 1)


def read_formula(text: str, spec: StateSpec | Sequence[str]) -> Formula:
    """The function of one state that a formula describes."""
    names = spec.names if isinstance(spec, StateSpec) else tuple(spec)
    program = parse(text, names)
    size = next(size for size in SIZES if size >= len(program))
    opcodes, numbers = np.zeros(size, np.int32), np.zeros((size, NUMBERS), np.float32)
    for i, (name, given) in enumerate(program):
        opcodes[i] = OPCODES[name]
        numbers[i, : len(given)] = given
    return Formula(jnp.asarray(opcodes), jnp.asarray(numbers), len(names), plane_of(names))


def _operations(plane: tuple[int, int]) -> list[Operation]:
    """What each opcode does, in the order of `OPCODES`."""
    unary = [_unary(FUNCTIONS[name]) for name in UNARY]
    binary = [_binary(OPERATORS[name]) for name in BINARY]
    shapes = [_shape(INSIDE[name], plane) for name in SHAPES]
    return [_pass, _number, _coordinate, *unary, *binary, *shapes]


def _push(stack: Stack, value: Array) -> Stack:
    return jnp.concatenate([value[None].astype(jnp.float32), stack[:-1]])


def _pass(stack: Stack, numbers: Array, state: Array) -> Stack:
    return stack


def _number(stack: Stack, numbers: Array, state: Array) -> Stack:
    return _push(stack, numbers[0])


def _coordinate(stack: Stack, numbers: Array, state: Array) -> Stack:
    is_it = jnp.arange(len(state)) == numbers[0]
    return _push(stack, jnp.where(is_it, state, 0.0).sum())  # faster than a gather, and never out of range


def _unary(function: Callable[[Array], Array]) -> Operation:
    return lambda stack, numbers, state: jnp.concatenate([function(stack[:1]), stack[1:]])


def _binary(function: Callable[[Array, Array], Array]) -> Operation:
    def apply(stack: Stack, numbers: Array, state: Array) -> Stack:
        return jnp.concatenate([function(stack[1:2], stack[:1]), stack[2:], jnp.zeros(1)])

    return apply


def _shape(is_inside: Callable[[Array, Array], Array], plane: tuple[int, int]) -> Operation:
    def apply(stack: Stack, numbers: Array, state: Array) -> Stack:
        return _push(stack, is_inside(jnp.stack([state[i] for i in plane]), numbers))

    return apply
