"""Whether a run could have happened: checks that share no code with the simulators.

`schedule` checks jobs, segments and clusters; `job_outcomes` jobs that leave the queue or wait for others,
and processors that are out; `nodes` the nodes of clusters that have some.
"""

from __future__ import annotations

from gridsched.verification.schedule import verify, violations

__all__ = ["verify", "violations"]
