"""Logs with recorded waits for tests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import gridsched as gs
from gridsched.calibration.site import LoggedSite, site_of


def log(count: int, *, seed: int, policy: str = "easy", processors: int = 32) -> gs.Workload:
    """Jobs of a busy cluster, with the waits that they have under a policy."""
    rng = np.random.default_rng(seed)
    run = rng.integers(60, 20_000, count)
    jobs = gs.Workload(
        name="log",
        processors_available=processors,
        submit_time=np.sort(rng.integers(0, 600 * count, count)),
        run_time=run,
        requested_time=(run * rng.choice([1, 2, 4], count)).astype(np.int64),
        requested_processors=rng.choice([1, 2, 4, 8], count, p=[0.6, 0.2, 0.15, 0.05]),
        user=rng.integers(0, 12, count),
        queue=rng.integers(1, 3, count),
    )
    start = gs.simulate(jobs, processors, policy)["start_time"].values
    return replace(jobs, wait_time=start - jobs.submit_time)


def site(jobs: gs.Workload, processors: int = 32) -> LoggedSite:
    """The site of a log, of whose outages nothing is asked."""
    return site_of(jobs, processors, seen_outages=False)
