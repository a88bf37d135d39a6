"""Reads pickles without executing them.

A pickle is a program for a stack machine that names functions and calls them. This machine handles data only: a name
becomes a `Name`, a call or an object becomes a `Record` of the name and its arguments, and the few functions that
create arrays are replaced by our own. Names that are not on the allow-list, unusual instructions and too much of
anything raise `FileError`.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ggpi.policies.sb3 import pickled_arrays
from ggpi.policies.sb3.archives import damaged
from ggpi.policies.sb3.pickled_arrays import Array, Dtype, Name, UnreadableError
from ggpi.storage.errors import FileError
from ggpi.storage.reading import abbreviate

BYTES = 64 * 2**20
"""The largest pickle."""
INSTRUCTIONS = 50_000
"""The longest program; files of Stable-Baselines3 have about a thousand instructions, PyTorch's 30 per tensor."""


class Record:
    """An object that is not created: the name of its class, its arguments and its state."""

    __slots__ = ("args", "module", "name", "state")

    def __init__(self, kind: Name, args: tuple[object, ...] = (), state: object = None):
        (self.module, self.name), self.args, self.state = kind, args, state

    def get(self, field: str, default: object = None) -> Any:
        """A field of the state."""
        return self.state.get(field, default) if isinstance(self.state, dict) else default

    def array(self, field: str) -> np.ndarray | None:
        """A field of the state if it is an array, or None."""
        value = self.get(field)
        return value.values if isinstance(value, Array) else None

    def __repr__(self) -> str:
        return f"<{self.module}.{self.name}>"


Builders = Mapping[Name, Callable[..., Any]]
"""Replacements for the functions that a pickle calls by these names."""


def read_pickle(
    content: bytes,
    path: str | Path,
    field: str | None,
    admits: Callable[[Name], bool],
    builders: Builders | None = None,
    outside: Callable[[object], object] | None = None,
) -> Any:
    """The content of a pickle, as plain data, arrays and records.

    Args:
        content: The pickle.
        path: The file, for errors.
        field: The place in the file, for errors.
        admits: Whether a name is allowed, besides those of `builders` and of NumPy's arrays.
        builders: Replacements for functions.
        outside: Resolves references to data outside the pickle.
    """
    if len(content) > BYTES:
        raise FileError(path, f"is a pickle of more than {BYTES} bytes, the limit", field=field)
    with damaged(path, field, "not a pickle, or a damaged one"):
        try:
            return _Machine(admits, {**pickled_arrays.BUILDERS, **(builders or {})}, outside).run(content)
        except UnreadableError as error:
            raise FileError(path, f"{error}; nothing in it was executed", field=field) from None


class _Machine:
    def __init__(
        self, admits: Callable[[Name], bool], builders: Builders, outside: Callable[[object], object] | None
    ):
        self.admits, self.builders, self.outside = admits, builders, outside
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def run(self, content: bytes) -> Any:
        for count, (opcode, argument, _) in enumerate(pickletools.genops(content)):
            if count == INSTRUCTIONS:
                raise UnreadableError(f"it has more than {INSTRUCTIONS} instructions")
            if opcode.name == "STOP":
                break
            if opcode.name in _VALUES:
                self.stack.append(argument)
            elif opcode.name in _CONSTANTS:
                self.stack.append(_CONSTANTS[opcode.name]())
            elif opcode.name in _ACTIONS:
                _ACTIONS[opcode.name](self, argument)
            else:
                raise UnreadableError(f"it has the instruction {opcode.name}, which is not on the allow-list")
        return self.pop()

    def pop(self) -> Any:
        if len(self.stack) <= (self.marks[-1] if self.marks else 0):
            raise UnreadableError("an instruction lacks its arguments")
        return self.stack.pop()

    def pop_to_mark(self, *_: object) -> list[Any]:
        if not self.marks:
            raise UnreadableError("an instruction lacks its arguments")
        start = self.marks.pop()
        taken = self.stack[start:]
        del self.stack[start:]
        return taken

    def top(self, kind: type) -> Any:
        """The value below the arguments, which is changed in place."""
        self.stack.append(value := self.pop())
        if not isinstance(value, kind):
            raise UnreadableError(f"it changes {abbreviate(value)}, expected a {kind.__name__}")
        return value

    def mark(self, _: object) -> None:
        self.marks.append(len(self.stack))

    def put(self, index: int | None) -> None:
        self.stack.append(value := self.pop())
        self.memo[len(self.memo) if index is None else index] = value

    def get(self, index: int) -> None:
        if index not in self.memo:
            raise UnreadableError("it refers to something that it did not store")
        self.stack.append(self.memo[index])

    def tuple_of(self, count: int) -> None:
        self.stack.append(tuple(reversed([self.pop() for _ in range(count)])))

    def extend(self, values: list[object]) -> None:
        self.top(list).extend(values)

    def set_items(self, items: list[object]) -> None:
        target = self.top(dict)
        for key in items[::2]:
            if not isinstance(key, str) and not (isinstance(key, int) and abs(key) < 2**31):
                raise UnreadableError(f"a dictionary has the key {abbreviate(key)}, expected text")
        target.update(zip(items[::2], items[1::2], strict=True))

    def name(self, module: object, name: object) -> None:
        if not (isinstance(module, str) and isinstance(name, str)):
            raise UnreadableError("it has a name that is not text")
        if module == "numpy.core" or module.startswith("numpy.core."):  # before NumPy 2
            module = module.replace("numpy.core", "numpy._core", 1)
        kind = Name(module, name)
        if kind not in self.builders and not self.admits(kind):
            raise UnreadableError(f"it names {module[:80]}.{name[:80]}, which is not on the allow-list")
        self.stack.append(kind)

    def call(self, _: object) -> None:
        args, kind = self.pop(), self.pop()
        if not (isinstance(kind, Name) and isinstance(args, tuple)):
            raise UnreadableError(f"it calls {abbreviate(kind)}, which is not a name")
        builder = self.builders.get(kind)
        self.stack.append(builder(*args) if builder else Record(kind, args))

    def call_with_options(self, argument: object) -> None:
        self.pop()
        self.call(argument)

    def build(self, _: object) -> None:
        state, target = self.pop(), self.pop()
        if isinstance(target, Dtype | Array):
            target.build(state)
        elif isinstance(target, Record):
            target.state = state
        elif not isinstance(target, dict):  # attributes of dictionaries are ignored
            raise UnreadableError(f"it changes the state of {abbreviate(target)}, which has none")
        self.stack.append(target)

    def persistent(self, _: object) -> None:
        reference = self.pop()
        if self.outside is None:
            raise UnreadableError("it refers to data outside the file")
        self.stack.append(self.outside(reference))


_VALUES = {
    *("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
    *("SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "BYTEARRAY8"),
}
"""Instructions that push their argument; integers of LONG1 have at most 255 bytes."""
_CONSTANTS: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_TUPLE": tuple,
    "EMPTY_LIST": list,
    "EMPTY_SET": list,  # members of a set would be hashed
    "EMPTY_DICT": dict,
}
_ACTIONS: dict[str, Callable[[_Machine, Any], Any]] = {
    "PROTO": lambda m, _: None,
    "FRAME": lambda m, _: None,
    "MARK": _Machine.mark,
    "POP": lambda m, _: m.pop(),
    "POP_MARK": _Machine.pop_to_mark,
    "MEMOIZE": _Machine.put,
    "BINPUT": _Machine.put,
    "LONG_BINPUT": _Machine.put,
    "BINGET": _Machine.get,
    "LONG_BINGET": _Machine.get,
    "TUPLE1": lambda m, _: m.tuple_of(1),
    "TUPLE2": lambda m, _: m.tuple_of(2),
    "TUPLE3": lambda m, _: m.tuple_of(3),
    "TUPLE": lambda m, _: m.stack.append(tuple(m.pop_to_mark())),
    "FROZENSET": lambda m, _: m.stack.append(tuple(m.pop_to_mark())),
    "APPEND": lambda m, _: m.extend([m.pop()]),
    "APPENDS": lambda m, _: m.extend(m.pop_to_mark()),
    "ADDITEMS": lambda m, _: m.extend(m.pop_to_mark()),
    "SETITEM": lambda m, _: m.set_items([m.pop(), m.pop()][::-1]),
    "SETITEMS": lambda m, _: m.set_items(m.pop_to_mark()),
    "GLOBAL": lambda m, both: m.name(*both.split(" ", 1)),
    "STACK_GLOBAL": lambda m, _: m.name(*[m.pop(), m.pop()][::-1]),
    "REDUCE": _Machine.call,
    "NEWOBJ": _Machine.call,
    "NEWOBJ_EX": _Machine.call_with_options,
    "BUILD": _Machine.build,
    "BINPERSID": _Machine.persistent,
}
