"""Executors: where independent tasks run, in this process, in others on this machine, or on a Ray cluster.

    with ggpi.cluster.processes(4) as executor:
        results = executor.map(function, tasks)

A task carries its seeds, and running it twice has the same effect as once. Results then do not depend on the executor,
on the order in which tasks run, or on workers that die: such tasks are repeated. What all tasks share, such as models
or data, is bound to the function by `functools.partial` and sent to each worker once.

Rounding depends on the number of threads, so results are equal bit for bit at equal `threads` only. JAX and Ray are
imported by workers and by `ray`, never here.
"""

from ggpi.cluster.executor import Executor, TaskError
from ggpi.cluster.local import local
from ggpi.cluster.naming import named
from ggpi.cluster.on_ray import ray
from ggpi.cluster.processes import processes
from ggpi.cluster.together import together

__all__ = ["Executor", "TaskError", "local", "named", "processes", "ray", "together"]
