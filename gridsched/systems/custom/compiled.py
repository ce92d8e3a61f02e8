"""Decisions that are compiled: a function of arrays, which kernels call without being compiled anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from gridsched.engine.simulator import ACTION, QUEUED, RUNNING
from gridsched.errors import ConfigurationError, ScheduleError
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


def room_for_actions(jobs: int) -> NDArray[Any]:
    """Actions that there is room for where so many jobs wait or run."""
    return np.zeros(2 * jobs + 64, ACTION)


def miscounted(actions: int, now: int, room: int) -> ScheduleError:
    """Error of a number of actions that cannot be."""
    found = f"decide returned {actions} actions at {now} s"
    return ScheduleError(f"{found}; there is room for {room}" if actions > 0 else found)


class CompiledDecision:
    """A function of what a scheduler sees that writes actions and returns their number, see `compiled`."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self._callback: Any = None
        self._compiled: Any = None

    def actions(
        self,
        now: int,
        queue: NDArray[Any],
        running: NDArray[Any],
        free: NDArray[np.int64],
        parameters: NDArray[np.float64],
    ) -> NDArray[Any]:
        """What it decides, asked from Python.

        Raises
        ------
        ScheduleError
            If it decides more than there is room for.
        """
        actions = room_for_actions(len(queue) + len(running))
        count = self._call(now, queue, running, free, parameters, actions)
        if not 0 <= count <= len(actions):
            raise miscounted(count, now, len(actions))
        return actions[:count]

    def _call(self, now: int, *arrays: NDArray[Any]) -> int:
        """Call the function without a kernel."""
        if self._compiled is None:
            self._compiled = numba.njit(self.function)
        return int(self._compiled(now, *arrays))

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
