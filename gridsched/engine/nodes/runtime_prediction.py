"""Run times that a local scheduler of nodes predicts, as `gridsched.engine.runtime_prediction` does.

A job is predicted when it enters the queue. Of each user the run times of the two jobs are known that ended
last on this cluster; what a job that was killed had done before its last checkpoint does not count, nor do
checkpoints. A killed job keeps its prediction, less what it has done.
"""

from __future__ import annotations

from typing import Any

from gridsched.engine.jit import inline
from gridsched.engine.overrun import expected_end
from gridsched.engine.records import BY_ACTUAL, BY_DOUBLE, BY_RECENT
from gridsched.engine.runtime_prediction import corrected_end


@inline
def predict(jobs: Any, j: int, recent: Any, prediction: int) -> None:
    """Say how many seconds of work a job that enters a queue is thought to have."""
    job = jobs[j]
    if prediction == BY_DOUBLE:
        job["guess"] = 2 * job["given"]
    elif prediction == BY_ACTUAL:
        job["guess"] = max(1, job["work"])
    elif prediction == BY_RECENT and job["user"] >= 0 and recent[job["user"], 1] >= 0:
        mean = (recent[job["user"], 0] + recent[job["user"], 1]) // 2
        job["guess"] = max(1, min(mean, job["given"]))
    job["predicted"] = job["guess"]


@inline
def learn(jobs: Any, j: int, recent: Any, prediction: int) -> None:
    """Remember how long a job that ends now has run."""
    user = jobs[j]["user"]
    if prediction == BY_RECENT and user >= 0:
        recent[user, 1] = recent[user, 0]
        recent[user, 0] = jobs[j]["work"]


@inline
def end_not_before(job: Any, prediction: int, correction: int, overrun: int, not_before: int) -> int:
    """First expected end of a running job at or after a time."""
    if prediction == BY_RECENT:
        return corrected_end(job["start"], job["estimate"], job["limit"], correction, overrun, not_before)
    return expected_end(job["start"], job["estimate"], overrun, not_before)
