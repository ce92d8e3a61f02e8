"""Whether a run could have happened: checks that share no code with the simulators.

`schedule` checks jobs, segments and clusters; `nodes` the nodes of clusters that have some, and jobs that
leave the queue or wait for others.
"""

from __future__ import annotations

from gridsched.verification.schedule import verify, violations

__all__ = ["verify", "violations"]
