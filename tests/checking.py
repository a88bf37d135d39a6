"""The type checker that runs while tests run: beartype, with int taken for float as type checkers do."""

from beartype import BeartypeConf, beartype

typechecker = beartype(conf=BeartypeConf(is_pep484_tower=True))
