"""A short training of one network, for a process with some number of devices: `python tests/devices.py COUNT`.

Prints JSON: weights before and after, on how many devices they are, and whether gradients are added up over devices.
"""

import json
import os
import sys

BATCH, STEPS = 36, 12


def main(count: int) -> None:
    os.environ["XLA_FLAGS"] = (
        f"--xla_force_host_platform_device_count={count} --xla_backend_optimization_level=0"
    )
    import equinox as eqx
    import jax
    import numpy as np

    import ggpi
    from drifts import DATA, FLOW, KEY, POLICIES
    from ggpi.learning.loop import run_chunk
    from ggpi.learning.preparation import Inputs, new_training
    from ggpi.learning.recipe import CPU, any_horizon, changed

    assert jax.device_count() == count
    recipe = any_horizon(changed(CPU, model=FLOW, loss=None, steps=STEPS, batch_size=BATCH), 0.9, 0.0)
    spec = ggpi.StateSpec(("x",))
    training, state = new_training(Inputs(POLICIES, DATA, recipe.loss.horizons, recipe, spec, KEY))

    @eqx.filter_jit
    @eqx.filter_grad
    def gradient(models):
        return recipe.loss.batch(models, models, training.problem, BATCH, key=KEY)[0].sum()

    def weights(models):
        return [
            np.asarray(leaf).ravel().tolist() for leaf in jax.tree.leaves(eqx.filter(models, eqx.is_array))
        ]

    program = gradient.lower(state.models).compile().compiled.as_text()
    before = weights(state.models)
    state, _ = run_chunk(training, state, first=0, count=STEPS)
    (leaf, *_) = jax.tree.leaves(eqx.filter(state.models, eqx.is_array))
    found = {"before": before, "weights": weights(state.models), "devices": len(leaf.sharding.device_set)}
    print(json.dumps({**found, "is_summed": "all-reduce" in program}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
