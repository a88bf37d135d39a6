"""Several devices in one process: the models of one device up to rounding, computed by all of them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from ggpi._jax.devices import over_devices

TOLERANCE = 1e-5
"""Twelve steps move weights by about 1e-2; measured differences are of 1e-8."""
SCRIPT = Path(__file__).parents[2] / "devices.py"


def trained(count):
    settings = {**os.environ, "PYTHONPATH": str(SCRIPT.parent)}
    command = [sys.executable, SCRIPT, str(count)]
    return json.loads(
        subprocess.run(command, env=settings, check=True, capture_output=True, text=True).stdout
    )


def test_one_device_needs_no_division():
    batch = jnp.zeros((2, 3))
    assert over_devices(batch) is batch


@pytest.mark.slow
def test_eight_devices_train_the_models_of_one():
    """Twelve steps with batches of 36, which eight does not divide; sums of 36 numbers differ by rounding only."""
    one, eight = trained(1), trained(8)
    assert not one["is_summed"] and eight["is_summed"], "gradients are added up over devices"
    assert (one["devices"], eight["devices"]) == (1, 8)
    moved = [
        np.abs(np.subtract(new, old)).max() for new, old in zip(one["weights"], one["before"], strict=True)
    ]
    assert max(moved) > 100 * TOLERANCE, "weights have moved further than the tolerance"
    for weights, others in zip(one["weights"], eight["weights"], strict=True):
        np.testing.assert_allclose(others, weights, rtol=0, atol=TOLERANCE)
