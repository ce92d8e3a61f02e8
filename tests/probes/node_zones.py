"""Whether the jobs that need a zone run on its nodes, and the others elsewhere too."""

import warnings
from dataclasses import replace

import numpy as np

import gridsched as gs

warnings.simplefilter("ignore")
jobs = gs.synthesise("M3", jobs=60, seed=1)
some = np.arange(60) % 3 == 0
jobs = replace(
    jobs,
    requested_processors=np.minimum(jobs.processors, 8),
    home=np.zeros(60, np.int64),
    **{"needed_zones": some.astype(np.int64)},
)
kinds = [
    gs.NodeType(count=8, cores=8, name="plain"),
    gs.NodeType(count=2, cores=8, name="fast", zones=1),  # type: ignore[call-arg]
]
platform = gs.Platform([gs.Cluster(name=name, nodes=kinds) for name in ("a", "b")])
for scheduler in ("easy", "s-i", "jscheduler", "multiple-requests"):
    run = gs.simulate(jobs, platform, scheduler)
    gs.verify(run)
    needs = some[run.segment_job.values[run.piece_segment.values]]
    fast = np.char.find(run.node_name.values[run.piece_node.values].astype(str), "fast") >= 0
    print(bool(fast[needs].all() and not fast[~needs].all()))
