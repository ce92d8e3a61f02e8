"""When a job ends that fails after 350 of its 1000 s, with checkpoints each 100 s, under every system."""

import warnings

import numpy as np

import gridsched as gs

warnings.simplefilter("ignore")
job = gs.Workload(
    name="one",
    submit_time=np.array([0]),
    run_time=np.array([1000]),
    requested_time=np.array([1000]),
    requested_processors=np.array([1]),
    home=np.array([0]),
)
events = [gs.NodeEvent(time=350, node="*", kind=kind) for kind in ("down", "up")]
cluster = gs.Cluster(processors=1, processors_per_node=1, events=events, checkpoint_interval=100)
# jobs of calendars start at the begin of a slot
for name in (
    "easy",
    "s-i",
    "jscheduler",
    "multiple-requests",
    "dynamic-grid",
    "muscle",
    "slurm",
    "calendars",
):
    run = gs.simulate(job, gs.Platform([cluster]), name)
    gs.verify(run)
    print(int(run.end_time[0]))
