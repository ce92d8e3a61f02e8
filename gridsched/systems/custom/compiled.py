"""Decisions that are compiled: a function of arrays, which kernels call without being compiled anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba import types

from gridsched.engine.simulator import ACTION, QUEUED, RUNNING
from gridsched.errors import ConfigurationError
from gridsched.policies.callbacks import Kind

Function = Callable[..., int]

DECISION = Kind("decision", ("now", "queue", "running", "free", "parameters", "actions"))
"""What a compiled decision takes."""

_SOURCE = """
def adapter(now, queue, queued, running, count, free, clusters, parameters, number, actions, room):
    return function(
        now,
        carray(queue, (queued,)),
        carray(running, (count,)),
        carray(free, (clusters,)),
        carray(parameters, (number,)),
        carray(actions, (room,)),
    )
"""

SIGNATURE = types.int64(
    types.int64,
    types.CPointer(numba.from_dtype(QUEUED)),
    types.int64,
    types.CPointer(numba.from_dtype(RUNNING)),
    types.int64,
    types.CPointer(types.int64),
    types.int64,
    types.CPointer(types.float64),
    types.int64,
    types.CPointer(numba.from_dtype(ACTION)),
    types.int64,
)
"""Types of a decision as kernels call it, those of `gridsched_decide` in gridsched.h."""


class CompiledDecision:
    """A function of what a scheduler sees that writes actions and returns their number, see `compiled`."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self._callback: Any = None

    @property
    def callback(self) -> Any:
        """The compiled function, as kernels take it.

        Raises
        ------
        ConfigurationError
            If it takes something else, or cannot be compiled.
        """
        if self._callback is None:
            names = DECISION.parameters_of(self.function)
            if names != DECISION.parameters:
                raise ConfigurationError(
                    f"{DECISION.named(self.function)}: takes {', '.join(names)}; "
                    f"it has to take {', '.join(DECISION.parameters)}"
                )
            namespace: dict[str, Any] = {"function": numba.njit(self.function), "carray": numba.carray}
            exec(_SOURCE, namespace)
            try:
                self._callback = numba.cfunc(SIGNATURE)(namespace["adapter"])
            except Exception as error:
                raise DECISION.cannot_compile(self.function, error) from None
            self._callback._numba_type_ = numba.typeof(self._callback)
        return self._callback


def compiled(function: Any) -> Any:
    """Mark the static method `decide` of a `CustomScheduler` to be compiled with Numba.

    It takes the present time, the arrays of `Simulator.queue`, `Simulator.running` and `Simulator.free`, the
    parameters of the scheduler in their order as float64, and an array of actions. Into that it writes what
    is done, one after the other, and it returns how many. The fields of an action are kind (a value of
    `gridsched.Action`), job, cluster and time; there is room for two for each job that waits or runs, and 64
    more. The arrays show what there is before the first action.

    Examples
    --------
    >>> import gridsched as gs
    >>> class Fcfs(gs.CustomScheduler):
    ...     @gs.compiled
    ...     @staticmethod
    ...     def decide(now, queue, running, free, parameters, actions):
    ...         count, idle = 0, free[0]
    ...         while count < len(queue) and queue[count]["processors"] <= idle:
    ...             idle -= queue[count]["processors"]
    ...             actions[count]["kind"] = gs.Action.START
    ...             actions[count]["job"] = queue[count]["job"]
    ...             actions[count]["cluster"] = 0
    ...             count += 1
    ...         return count
    >>> jobs = gs.synthesise("M3", jobs=200, seed=1)
    >>> run = gs.simulate(jobs, 1152, Fcfs())
    >>> bool((run.start_time == gs.simulate(jobs, 1152, "fcfs").start_time).all())
    True
    """
    return CompiledDecision(getattr(function, "__func__", function))
