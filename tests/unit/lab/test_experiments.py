"""Every experiment has the form that the contract describes."""

import ast
import dataclasses
import inspect
import textwrap

import pytest

from ggpi.lab import EXPERIMENTS, contract


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_form(name):
    module = contract.experiment(name)
    assert list(module.PRESETS) == ["tiny", "cpu", "paper"]
    for config in module.PRESETS.values():
        assert isinstance(config, module.Config) and config.seed == 0, "as `ggpi.lab.run` has it"
    assert list(inspect.signature(module.run).parameters) == ["config", "cells"]
    figure = contract.figure_of(name)
    assert callable(figure.table) and callable(figure.plot)
    assert not {"table", "plot", "film"} & vars(module).keys(), "figures are no part of the numbers"
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.seed = 1


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_each_field_has_words_under_it(name):
    source = inspect.getsource(contract.experiment(name).Config)
    body = ast.parse(textwrap.dedent(source)).body[0].body
    for field, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(field, ast.AnnAssign):
            assert isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant), field.target.id
