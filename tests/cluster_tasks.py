"""Tasks that tests run in other processes, which import them by this name."""

import os
import signal
import time
from pathlib import Path


def square(number):
    return number * number


def where(_):
    """The process that runs the task, and what it has imported."""
    import sys

    return os.getpid(), {name for name in ("jax", "numpy", "ray") if name in sys.modules}


def variable(name):
    return os.environ.get(name)


def fail_at(bad, number):
    if number == bad:
        raise ValueError(f"{number} is bad")
    return number


def die_at(bad, folder, number):
    """Kills its worker at one number, once for each file that it can take out of a folder."""
    if number == bad and (left := sorted(Path(folder).iterdir())):
        left[0].unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def nap(seconds):
    time.sleep(seconds)
    return os.getpid()


def product(shape, seed):
    """A matrix product by XLA, whose last bits depend on the number of threads."""
    import jax

    one, other = jax.random.normal(jax.random.key(seed), (2, *shape))
    return (one @ other.T).sum(axis=0).tolist()


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(condition):
    """Waits without an end of its own: pytest's time limit catches what never happens."""
    while not condition():
        time.sleep(0.05)


class Unpicklable(Exception):
    def __init__(self, one, other):
        super().__init__(f"{one} of {other}")


def fail_strangely(_):
    raise Unpicklable(7, 8)


class Counted:
    """Counts how often it was unpickled in this process."""

    count = 0

    def __reduce__(self):
        return _counted, ()


def _counted():
    Counted.count += 1
    return Counted()


def count_loads(shared, _):
    return os.getpid(), type(shared).count


def big(size, number):
    """A result that goes to the object store."""
    import numpy as np

    time.sleep(0.05)
    return np.full(size, number)


def allocate(size):
    return len(bytearray(size))


def first_coordinate(state):
    return state[0]


def short_fit(steps):
    """One network for two drifts and all horizons."""
    import ggpi
    from drifts import DATA, FLOW, KEY, POLICIES

    return ggpi.fit(POLICIES, DATA, gamma=0.9, alpha="any", model=FLOW, steps=steps, batch_size=36, key=KEY)


def devices_and_fit(steps):
    import jax

    return (jax.device_count(), jax.local_device_count()), short_fit(steps)


def fail_in_the_second():
    """The first waits for what the second does not do."""
    import jax
    from jax.experimental.multihost_utils import sync_global_devices

    return fail_at(1, jax.process_index()) or sync_global_devices("never")


def die_in_the_second():
    import jax

    if jax.process_index() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(600)
