"""A short training of one network, for a process with some number of devices: `python tests/devices.py COUNT`.

Prints JSON: weights after training, and whether the compiled gradient adds up over devices.
"""

import json
import os
import sys


def main(count: int) -> None:
    os.environ["XLA_FLAGS"] = (
        f"--xla_force_host_platform_device_count={count} --xla_backend_optimization_level=0"
    )
    import equinox as eqx
    import jax
    import numpy as np

    import ggpi
    from drifts import DATA, FLOW, KEY, POLICIES
    from ggpi.learning.preparation import Inputs, new_training
    from ggpi.learning.recipe import CPU, any_horizon, changed

    assert jax.device_count() == count
    ghms = ggpi.fit(POLICIES, DATA, gamma=0.9, alpha="any", model=FLOW, batch_size=36, steps=12, key=KEY)
    recipe = any_horizon(changed(CPU, model=FLOW, loss=None, steps=1, batch_size=36), 0.9, 0.0)
    spec = ggpi.StateSpec(("x",))
    training, state = new_training(Inputs(POLICIES, DATA, recipe.loss.horizons, recipe, spec, KEY))

    @eqx.filter_jit
    @eqx.filter_grad
    def gradient(models):
        return recipe.loss.batch(models, models, training.problem, 36, key=KEY)[0].sum()

    program = gradient.lower(state.models).compile().compiled.as_text()
    leaves = [
        np.asarray(leaf).ravel().tolist() for leaf in jax.tree.leaves(eqx.filter(ghms.models, eqx.is_array))
    ]
    shape = next(iter(jax.tree.leaves(eqx.filter(ghms.models, eqx.is_array)))).sharding.device_set
    agent = ggpi.GGPIAgent(
        ghms.with_alpha(0.5), ggpi.rewards.arrival(lambda x: x[0] > 1), depth=2, num_samples=4
    )
    action = np.asarray(agent.act(DATA.state[0], key=KEY)).tolist()
    found = {"weights": leaves, "is_summed": "all-reduce" in program, "devices": len(shape), "action": action}
    print(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]))
