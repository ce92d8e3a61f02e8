"""Costs of clusters: a grid scheduler as a function. A job goes to the asked cluster with the smallest cost.

A cost is a plain Python function of any of these parameters, by name; times in seconds:

==============  ========================================================================================
now             time of submission
wait            predicted wait on the cluster
estimate        estimated run time on the cluster
processors      processors that the job asks for
waiting         jobs that wait on the cluster
work_left       processor-seconds that its running and waiting jobs are expected to take still
idle            processors that are idle now
size            processors of the cluster
at_home         1 if the job was submitted there, else 0
user, group,    numbers of the log, -1 if unknown
queue
==============  ========================================================================================

It is compiled, so it may use arithmetic, conditions and the functions of `math`. Of equal clusters the one
with the earliest predicted completion is taken, then the one that was asked first.
"""

from __future__ import annotations

from gridsched.policies.callbacks import Function, Kind

Cost = Function

PARAMETERS: tuple[str, ...] = (
    "now",
    "wait",
    "estimate",
    "processors",
    "waiting",
    "work_left",
    "idle",
    "size",
    "at_home",
    "user",
    "group",
    "queue",
)
"""What a cost may look at, in the order in which the kernel passes it."""

COST = Kind("cost", PARAMETERS)


def predicted_wait(wait: int) -> float:
    """The metric ``wait`` as a cost; also what kernels are given that ask no cost."""
    return float(wait)
