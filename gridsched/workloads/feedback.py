"""Users who react: jobs are submitted some time after those before them ended, not when the log says.

The submit times of a log are what users did with the waits that they met there. Shmueli and Feitelson model
users instead ("Using site-level modeling to evaluate the performance of parallel system schedulers", MASCOTS
2006; "On simulation and design of parallel-systems schedulers: are we doing the right thing?", IEEE
Transactions on Parallel and Distributed Systems 20(7), 2009): they submit *batches* of jobs, think for a
while after a batch has ended and submit the next one; batches with short think times between them are a
*session*. Zakay and Feitelson take batches, think times and sessions from a log ("Preserving user behavior
characteristics in trace-based simulation of parallel job scheduling", MASCOTS 2014). Submissions then follow
the simulated ends: a slow scheduler gets them later, and fewer in the same time.

Users also go away when they have to wait: the longer a response, the less likely another batch follows within
the session (Shmueli and Feitelson 2009). How likely that is, `continuation_of` takes from a log. With
sessions that end so, every batch has a response from which on its user goes away, and a time of the day at
which he is back; both are drawn such that they agree with what the user did in the log.

Think times become delays of dependencies, so that every scheduler that knows these can be studied. When a job
is submitted for its scheduler is the variable `eligible_time` of a run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from gridsched.engine.job_lifecycle import DAY
from gridsched.errors import WorkloadError, check_choice, check_whole
from gridsched.workloads.dependencies import DEPENDENCY, KINDS
from gridsched.workloads.table import NOTICES, UNKNOWN, Workload, add_counts

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

SessionName = Literal["clock", "think", "leave"]

THINK_TIME = 1200
"""Longest think time [s] within a session, by default."""


@dataclass(frozen=True)
class Sessions:
    """Batches and sessions of a log.

    Parameters
    ----------
    batch : int64[n]
        Batch of each job, numbered user by user in order of submission; -1 for jobs of unknown users.
    before : int64[b]
        The batch before each batch, of the same user; -1 for the first one of a user.
    think_time : int64[b]
        Seconds from the end of the batch before until the first submission of each; 0 for a first one.
    opens : bool[b]
        Whether each batch is the first one of a session.
    """

    batch: Integers
    before: Integers
    think_time: Integers
    opens: NDArray[np.bool_]

    @property
    def session(self) -> Integers:
        """Session of each batch, from 0."""
        return np.asarray(np.cumsum(self.opens) - 1)


def sessions_of(workload: Workload, *, think_time: int = THINK_TIME) -> Sessions:
    """Batches and sessions of the users of a log, by its recorded waits.

    A job that is submitted before all earlier jobs of its user have ended belongs to the batch of the one
    before it; else it opens a new batch. A batch that comes at most `think_time` after the end of all earlier
    jobs of its user continues the session.

    Parameters
    ----------
    workload : Workload
        Jobs in order of submission; unknown waits count as 0.
    think_time : int
        Longest think time within a session [s]; Shmueli and Feitelson (2006) take 20 minutes.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import gridsched as gs
    >>> jobs = gs.synthesise("M3", jobs=1000, seed=1)
    >>> jobs = replace(jobs, user=jobs.job_number % 7, wait_time=0 * jobs.run_time)
    >>> sessions = gs.sessions_of(jobs)
    >>> bool(sessions.opens.sum() <= len(sessions.before) <= len(jobs))
    True
    """
    submit = np.asarray(workload.submit_time, np.int64)
    end = submit + np.maximum(workload.wait_time, 0).astype(np.int64) + workload.run_time.astype(np.int64)
    batch = np.full(len(workload), UNKNOWN, np.int64)
    before: list[int] = []
    thought: list[int] = []
    opens: list[bool] = []
    for own in _by_user(workload):
        last = UNKNOWN
        ended = 0
        for job in own:
            if last == UNKNOWN or submit[job] >= ended:
                gap = 0 if last == UNKNOWN else int(submit[job]) - ended
                before.append(last)
                thought.append(gap)
                opens.append(last == UNKNOWN or gap > think_time)
                last = len(before) - 1
            batch[job] = last
            ended = max(ended, int(end[job]))
    return Sessions(batch, np.array(before, np.int64), np.array(thought, np.int64), np.array(opens, np.bool_))


def _by_user(workload: Workload) -> list[Integers]:
    """Places of the jobs of each known user, in order of submission."""
    order = np.lexsort((workload.submit_time, workload.user))
    order = order[workload.user[order] >= 0]
    return [own for own in np.split(order, np.flatnonzero(np.diff(workload.user[order])) + 1) if len(own)]


@dataclass(frozen=True)
class Continuation:
    """How likely users continue a session after a response.

    Parameters
    ----------
    limit : int64[k]
        Responses [s] by classes: the first class has those below `limit[0]`, the last one all others.
    batches, continued : int64[k + 1]
        Batches with a response of each class, and those that another one followed within the session.
    share : float64[k + 1]
        Probability to go on, by class: the share of those that did, of neighbouring classes together where
        it would rise with the response.
    """

    limit: Integers
    batches: Integers
    continued: Integers
    share: Floats

    def probability(self, response: Integers) -> Floats:
        """Probability to go on after responses [s]."""
        return np.asarray(self.share[np.searchsorted(self.limit, response, side="right")])

    def tolerated(self, level: Floats) -> Integers:
        """Smallest responses [s] at which the probability to go on is at most a level; -1 if it never is."""
        # shares fall from class to class
        classes = np.searchsorted(-self.share, -level, side="left")
        bounds = np.concatenate([[0], self.limit, [UNKNOWN]])
        return np.asarray(bounds[classes])


LIMITS: Integers = 60 * 2 ** np.arange(12)
"""Bounds of classes of responses [s]: from a minute on, each twice as long as the one before, to 34 hours."""


def continuation_of(workload: Workload, *, think_time: int = THINK_TIME) -> Continuation:
    """How likely users of a log go on after a response, by its recorded waits.

    The response of a batch is the time from its first submission until all its jobs have ended. Its session
    goes on if another batch of the user follows within the think time. After the last batch of a user it
    does not.

    Parameters
    ----------
    workload : Workload
        Jobs in order of submission; unknown waits count as 0.
    think_time : int
        Longest think time within a session [s].

    Notes
    -----
    The share of the log is no experiment: who submits long jobs may go home for other reasons. Shmueli and
    Feitelson (2009) find that it falls with the response and not with the slowdown of jobs, and fit
    0.8 / (0.05 r + 1) for a response of r minutes.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import gridsched as gs
    >>> jobs = gs.synthesise("M3", jobs=1000, seed=1)
    >>> jobs = replace(jobs, user=jobs.job_number % 7, wait_time=0 * jobs.run_time)
    >>> going_on = gs.continuation_of(jobs)
    >>> bool((going_on.share <= 1).all())
    True
    """
    batches, going_on = (each.sum(axis=0) for each in continuation_by_user(workload, think_time=think_time))
    return Continuation(LIMITS, batches, going_on, _falling(going_on, batches))


def continuation_by_user(workload: Workload, *, think_time: int = THINK_TIME) -> tuple[Integers, Integers]:
    """Batches of each known user by class of their response, and those after which the session goes on.

    Parameters
    ----------
    workload, think_time
        As of `continuation_of`.

    Returns
    -------
    batches, continued : int64[m, k + 1]
        Of m users and the classes of `LIMITS`.
    """
    found = sessions_of(workload, think_time=think_time)
    begin, end = _extent(workload, found)
    user = np.empty(len(begin), np.int64)
    user[found.batch[found.batch >= 0]] = workload.user[found.batch >= 0]
    names, number = np.unique(user, return_inverse=True)
    size = len(LIMITS) + 1
    place = number * size + np.searchsorted(LIMITS, end - begin, side="right")
    counts = (np.bincount(each, minlength=len(names) * size) for each in (place, place[_continued(found)]))
    batches, continued = (each.reshape(len(names), size).astype(np.int64) for each in counts)
    return batches, continued


def _extent(workload: Workload, found: Sessions) -> tuple[Integers, Integers]:
    """First submission and last end of each batch."""
    known = found.batch >= 0
    submit = np.asarray(workload.submit_time, np.int64)
    ended = submit + np.maximum(workload.wait_time, 0).astype(np.int64) + workload.run_time.astype(np.int64)
    begin = np.full(len(found.before), np.iinfo(np.int64).max)
    end = np.full(len(found.before), np.iinfo(np.int64).min)
    np.minimum.at(begin, found.batch[known], submit[known])
    np.maximum.at(end, found.batch[known], ended[known])
    return begin, end


def _continued(found: Sessions) -> NDArray[np.bool_]:
    """Whether the session goes on after each batch."""
    continued = np.zeros(len(found.before), np.bool_)
    continued[found.before[~found.opens]] = True
    return continued


def _falling(hits: Integers, trials: Integers) -> Floats:
    """Shares of hits that never rise: neighbours where they would are taken together.

    Ayer, Brunk, Ewing, Reid and Silverman, "An empirical distribution function for sampling with incomplete
    information", Annals of Mathematical Statistics 26(4), 1955. Classes without trials have the share of the
    class before them, the first ones that of the first with trials.
    """
    pools: list[list[int]] = []  # hits, trials, classes
    for hit, trial in zip(hits.tolist(), trials.tolist(), strict=True):
        pools.append([hit, trial, 1])
        while len(pools) > 1 and _rises(*pools[-2:]):
            last = pools.pop()
            pools[-1] = [mine + other for mine, other in zip(pools[-1], last, strict=True)]
    return np.concatenate([np.full(count, hit / max(trial, 1)) for hit, trial, count in pools])


def _rises(before: list[int], after: list[int]) -> bool:
    """Whether the share of a pool is not below that of the one before, or one of them has no share."""
    return before[1] == 0 or after[1] == 0 or after[0] * before[1] >= before[0] * after[1]


def with_feedback(
    workload: Workload,
    *,
    think_time: int = THINK_TIME,
    sessions: SessionName = "clock",
    seed: int = 0,
    continuation: Continuation | None = None,
) -> Workload:
    """The workload with dependencies that make its submissions follow the ends of earlier jobs.

    Every job of a batch becomes eligible when all jobs of the batch before have ended, the think time of the
    log has passed, and as much more as the log has between the first submission of the batch and its own.

    Parameters
    ----------
    workload : Workload
        Clean jobs of a log that names its users.
    think_time : int
        Longest think time within a session [s].
    sessions : {"clock", "think", "leave"}
        When a new session begins: when the log says, or once the jobs of the session before have ended, if
        that is later; or, as within sessions, after the time that passed in the log; or, after a response
        that is too long for the user, at a time of the day at which one began in the log.
    seed : int
        Of what is drawn for users who leave.
    continuation : Continuation, optional
        How likely they go on; by default that of this log.

    Returns
    -------
    Workload
        Jobs of all but the first batch of a session, with "think" and "leave" of all but the first batch of a
        user, are submitted when the first job of that session, or of that user, is, and wait for their
        dependencies. Jobs are in order of these submissions. `repaired` counts jobs that react. With "leave"
        there are the columns `NOTICES` and `recorded_submit`.

    Raises
    ------
    WorkloadError
        If the log does not name its users or has no recorded waits, users give up waiting, the rule is
        unknown, or the seed is no whole number from 0 on.

    Notes
    -----
    With "leave" each batch has a level u, drawn uniformly from the part of [0, 1) that agrees with the log:
    below the probability p to go on after its response there if its session went on, else from p on. Its user
    goes on after a response r where p(r) > u. So a log reproduces itself under the policy that made it, and a
    session that ended there may go on after a shorter response. How long users think, and after which break
    they are back, is as in the log where the log has it, else drawn from the think times of all sessions and
    from the breaks of the same user, or of all if he has none.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import gridsched as gs
    >>> jobs = gs.synthesise("M3", jobs=1000, seed=1)
    >>> jobs = replace(jobs, user=jobs.job_number % 7, wait_time=0 * jobs.run_time)
    >>> reacting = gs.with_feedback(jobs)
    >>> run = gs.simulate(reacting, scheduler="easy")
    >>> waits = gs.summarise(run, since="eligible").wait_time_mean
    >>> len(reacting.dependencies) > 0
    True
    """
    _check_feedback(workload, sessions)
    seed = check_whole(f"{workload.name}: seed", seed, error=WorkloadError)
    found = sessions_of(workload, think_time=think_time)
    submit = np.asarray(workload.submit_time, np.int64)
    begin, end = _extent(workload, found)
    known = found.batch >= 0
    thinks = ~found.opens if sessions == "clock" else found.before >= 0
    thought = found.think_time
    columns: dict[str, Any] = {}
    if sessions == "leave":
        rng = np.random.default_rng(seed)
        chosen = continuation_of(workload, think_time=think_time) if continuation is None else continuation
        thought, columns = _leaving(workload, found, (begin, end), chosen, rng)
        columns["recorded_submit"] = submit
    # the batch whose first submission stands for that of each batch
    source = np.where(thinks, -1, np.arange(len(thinks)))
    source = np.maximum.accumulate(source) if len(source) else source
    moved = submit.copy()
    moved[known] = np.where(thinks[found.batch[known]], begin[source[found.batch[known]]], submit[known])
    members = np.argsort(found.batch, kind="stable")
    first = np.searchsorted(found.batch[members], np.arange(len(found.before) + 1))
    rows = []
    for job in np.flatnonzero(known):
        batch = found.batch[job]
        earlier = found.before[batch]
        if earlier >= 0:
            on = members[first[earlier] : first[earlier + 1]]
            table = np.empty(len(on), DEPENDENCY)
            table["job"], table["on"], table["kind"] = job, on, KINDS["afterany"]
            offset = submit[job] - begin[batch]
            table["delay"] = thought[batch] + offset if thinks[batch] else offset
            rows.append(table)
    reacting = int(np.isin(found.batch, np.flatnonzero(found.before >= 0)).sum())
    given = [] if workload.dependencies is None else [workload.dependencies]
    changes = {"job submitted after earlier ones end": reacting}
    made = replace(
        workload,
        submit_time=moved,
        dependencies=np.concatenate([np.empty(0, DEPENDENCY), *given, *rows]),
        repaired=add_counts(workload.repaired, changes),
        **columns,
    )
    return made.select(np.argsort(moved, kind="stable"))


def _check_feedback(workload: Workload, sessions: str) -> None:
    """Refuse logs from which feedback cannot be taken."""
    check_choice("sessions", sessions, get_args(SessionName), WorkloadError)
    if not (workload.user >= 0).any():
        raise WorkloadError(f"{workload.name}: the log does not name its users; feedback needs column user")
    if len(workload) and not (workload.wait_time >= 0).any():
        raise WorkloadError(f"{workload.name}: no recorded waits; feedback takes think times from them")
    if workload.gives_up_time is not None:
        raise WorkloadError(
            f"{workload.name}: users give up (gives_up_time) at times of a log without feedback"
        )


def _leaving(
    workload: Workload,
    found: Sessions,
    extent: tuple[Integers, Integers],
    continuation: Continuation,
    rng: np.random.Generator,
) -> tuple[Integers, dict[str, Integers]]:
    """When users go away and are back: think times before batches, and the columns `NOTICES` of jobs."""
    begin, end = extent
    after = np.full(len(begin), UNKNOWN)  # the batch after each one, of the same user
    after[found.before[found.before >= 0]] = np.flatnonzero(found.before >= 0)
    continued = _continued(found)
    share = continuation.probability(end - begin)
    drawn = rng.random(len(begin))
    limit = continuation.tolerated(np.where(continued, drawn * share, share + drawn * (1 - share)))

    within = found.think_time[~found.opens]
    thought = found.think_time.copy()
    later = np.flatnonzero(found.opens & (found.before >= 0))
    thought[later] = rng.choice(within, len(later)) if len(within) else 0

    # after which break a session begins: the log's own, or one that is drawn, by the batch that opens it
    break_of = after.copy()
    user = np.full(len(begin), UNKNOWN)
    user[found.batch[found.batch >= 0]] = workload.user[found.batch >= 0]
    for name in np.unique(user):
        own = np.flatnonzero((user == name) & continued)
        breaks = later[user[later] == name]
        pool = breaks if len(breaks) else later
        break_of[own] = rng.choice(pool, len(own)) if len(pool) else UNKNOWN
    # nobody comes back to what was the last batch, or where nobody ever took a break
    has = (after >= 0) & (break_of >= 0)
    limit = np.where(has, limit, UNKNOWN)
    opening = np.where(has, break_of, 0)
    pause = begin[opening] - end[found.before[opening]]
    think = np.where(has, thought[np.where(has, after, 0)], 0)
    # noticed so long before the session that thinking is over when it begins
    returns = begin[opening] - think
    away = np.maximum(pause - think, 0) // DAY

    job = found.batch >= 0
    of = found.batch[job]
    columns = {name: np.full(len(workload), UNKNOWN) for name in NOTICES}
    offset = np.asarray(workload.submit_time, np.int64)[job] - begin[of]
    columns["response_limit"][job] = np.where(limit[of] < 0, UNKNOWN, np.maximum(limit[of] - offset, 0))
    columns["returns_at"][job] = np.where(has[of], returns[of], UNKNOWN)
    columns["away_days"][job] = np.where(has[of], away[of], UNKNOWN)
    return thought, columns
