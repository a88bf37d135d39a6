"""The grammar of reward formulas: text to a short program for a stack machine. Nothing in it evaluates Python.

    comparison = sum [("<" | ">") sum]
    sum        = product {("+" | "-") product}
    product    = signed {("*" | "/") signed}
    signed     = {"+" | "-"} power
    power      = atom ["^" signed]
    atom       = NUMBER | COORDINATE | FUNCTION "(" comparison {"," comparison} ")" | "(" comparison ")"

Coordinates are the names of state dimensions. A comparison is 1 where it holds, else 0. Shapes take plain numbers and
are 1 inside, else 0: `disc(x, y, radius)`, `box(x1, y1, x2, y2)`, and `line(x1, y1, x2, y2, width)`, the points within
half a width of a segment.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

LONGEST_TEXT, LONGEST_PROGRAM, DEEPEST, MOST_NESTED = 4_000, 256, 16, 24
CONSTANTS = {"pi": math.pi}
UNARY = ("neg", "abs", "exp", "log", "sqrt", "sin", "cos", "tanh")
BINARY = ("+", "-", "*", "/", "^", "<", ">", "min", "max")
SHAPES = {"disc": 3, "box": 4, "line": 5}
"""Name → how many numbers it takes."""
OPCODES = {name: i for i, name in enumerate(("pass", "number", "coordinate", *UNARY, *BINARY, *SHAPES))}
FUNCTIONS = {name: 1 for name in UNARY if name != "neg"} | {"min": 2, "max": 2} | SHAPES
TOKEN = re.compile(r"\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|([^\W\d]\w*)|(\*\*|.))", re.S)


class Instruction(NamedTuple):
    """What the machine does next: an opcode of `OPCODES` by name, and its numbers."""

    name: str
    numbers: tuple[float, ...] = ()


class Token(NamedTuple):
    """A piece of the text, and where it starts."""

    kind: str
    text: str
    place: int


def parse(text: str, names: Sequence[str]) -> list[Instruction]:
    """The program of a formula; raises ValueError with the place of a mistake.

    Args:
        text: The formula.
        names: The state dimensions.
    """
    if len(text) > LONGEST_TEXT:
        raise ValueError(f"a formula has at most {LONGEST_TEXT:,} characters, got {len(text):,}")
    program = _Parser(text, tuple(names)).whole()
    if len(program) > LONGEST_PROGRAM:
        raise ValueError(f"a formula has at most {LONGEST_PROGRAM} operations, got {len(program)}")
    if (height := stack_height(program)) > DEEPEST:
        raise ValueError(f"the formula needs {height} intermediate values, at most {DEEPEST} are possible")
    return program


def stack_height(program: Sequence[Instruction]) -> int:
    """The most values that a program has on its stack."""
    height = highest = 0
    for name, _ in program:
        height += -1 if name in BINARY else 0 if name in UNARY else 1
        highest = max(highest, height)
    return highest


def tokens(text: str) -> Iterator[Token]:
    """The pieces of a text, and an empty one at its end."""
    for match in TOKEN.finditer(text.rstrip()):
        kind = ("number", "name", "sign")[(match.lastindex or 1) - 1]
        word = match[match.lastindex or 1]
        yield Token(kind, "^" if word == "**" else word, match.start(match.lastindex or 1))
    yield Token("end", "", len(text))


class _Parser:
    """Recursive descent; each method appends the instructions of one rule of the grammar."""

    def __init__(self, text: str, names: tuple[str, ...]):
        self.text, self.names = text, names
        self.rest = list(tokens(text))[::-1]
        self.program: list[Instruction] = []
        self.depth = 0

    def whole(self) -> list[Instruction]:
        if self.rest[-1].kind == "end":
            raise ValueError("the formula is empty; write for example exp(-x^2)")
        self.comparison()
        if self.rest[-1].kind != "end":
            raise self.mistake("an operator such as + or *")
        return self.program

    def mistake(self, expected: str) -> ValueError:
        found = self.rest[-1]
        seen = repr(found.text) if found.text else "the end"
        return ValueError(f"at character {found.place + 1} of {self.text!r}: expected {expected}, got {seen}")

    def take(self, *signs: str) -> str | None:
        """The next piece, if it is one of these signs."""
        found = self.rest[-1]
        return self.rest.pop().text if found.kind == "sign" and found.text in signs else None

    def need(self, sign: str) -> None:
        if self.take(sign) is None:
            raise self.mistake(repr(sign))

    def nest(self) -> None:
        self.depth += 1
        if self.depth > MOST_NESTED:
            raise ValueError(f"the formula has more than {MOST_NESTED} nested brackets or powers")

    def comparison(self) -> None:
        self.nest()
        self.sum()
        if (sign := self.take("<", ">")) is not None:
            self.sum()
            self.program.append(Instruction(sign))
        self.depth -= 1

    def sum(self) -> None:
        self.chain(self.product, "+", "-")

    def product(self) -> None:
        self.chain(self.signed, "*", "/")

    def chain(self, part: Callable[[], None], *signs: str) -> None:
        part()
        while (sign := self.take(*signs)) is not None:
            part()
            self.program.append(Instruction(sign))

    def signed(self) -> None:
        is_negative = False
        while (sign := self.take("+", "-")) is not None:
            is_negative ^= sign == "-"
        self.power()
        if is_negative:
            self.program.append(Instruction("neg"))

    def power(self) -> None:
        self.atom()
        if self.take("^") is not None:
            self.nest()
            self.signed()
            self.depth -= 1
            self.program.append(Instruction("^"))

    def atom(self) -> None:
        if self.take("(") is not None:
            self.comparison()
            self.need(")")
            return
        found = self.rest[-1]
        if found.kind not in ("number", "name"):
            raise self.mistake("a number, a coordinate or a function")
        self.rest.pop()
        if found.kind == "number":
            self.program.append(Instruction("number", (self.finite(found),)))
        elif self.rest[-1].text == "(" and found.text in FUNCTIONS:
            self.call(found.text)
        else:
            self.program.append(self.named(found))

    def named(self, found: Token) -> Instruction:
        if found.text in self.names:
            return Instruction("coordinate", (float(self.names.index(found.text)),))
        if found.text in CONSTANTS:
            return Instruction("number", (CONSTANTS[found.text],))
        raise ValueError(
            f"at character {found.place + 1}: {found.text[:40]!r} is neither a coordinate ({', '.join(self.names)}) "
            f"nor a function ({', '.join(FUNCTIONS)})"
        )

    def finite(self, found: Token) -> float:
        number = float(found.text)
        if not abs(number) <= 1e9:
            raise ValueError(f"numbers are at most 1e9, got {found.text[:40]} at character {found.place + 1}")
        return number

    def call(self, name: str) -> None:
        self.need("(")
        if name in SHAPES:
            numbers = [self.plain_number()]
            while self.take(",") is not None:
                numbers.append(self.plain_number())
            self.check_count(name, len(numbers))
            self.program.append(Instruction(name, tuple(numbers)))
        else:
            count = 1
            self.comparison()
            while self.take(",") is not None:
                self.comparison()
                count += 1
            self.check_count(name, count)
            self.program.append(Instruction(name))
        self.need(")")

    def check_count(self, name: str, count: int) -> None:
        if count != FUNCTIONS[name]:
            raise ValueError(f"{name} takes {FUNCTIONS[name]} arguments, got {count} in {self.text!r}")

    def plain_number(self) -> float:
        sign = -1.0 if self.take("-") else 1.0
        found = self.rest[-1]
        if found.kind != "number":
            raise self.mistake("a plain number")
        return sign * self.finite(self.rest.pop())
