"""Every experiment keeps the contract's form."""

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
    for preset, config in module.PRESETS.items():
        assert isinstance(config, module.Config) and isinstance(config.seed, int)
        contract.describe(name, preset, config)
    assert list(inspect.signature(module.run).parameters) == ["config", "cells"]
    assert callable(module.table) and callable(module.plot)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.seed = 1


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_each_field_has_words_under_it(name):
    source = inspect.getsource(contract.experiment(name).Config)
    body = ast.parse(textwrap.dedent(source)).body[0].body
    for field, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(field, ast.AnnAssign):
            assert isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant), field.target.id
