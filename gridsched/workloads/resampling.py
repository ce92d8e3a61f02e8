"""A log put together again from the histories of its users: many workloads with the structure of one log.

One log is one sample. Zakay and Feitelson ("Workload resampling for performance evaluation of parallel job
schedulers", ICPE 2013; Concurrency and Computation: Practice and Experience 26(12), 2014) take it apart into
the histories of its users and combine these in other ways. What a user does stays as it is, job by job; hours
of the day and days of the week stay too, since histories move by whole weeks. What changes is which weeks of
which users fall together, and with that the load of each week.

*Temporary* users, whose jobs all lie within a few weeks, come at random: their number in each week has a
Poisson distribution with the mean of the log, and each has the history of a temporary user that is drawn,
from its first week on. *Long-term* users are there throughout: each has the history of one of them, which
begins at a week that is drawn and goes round, with its pauses. More or fewer users make more or less load,
while users keep their pace; scaling the times between submissions changes hours of the day and think times.

On average a week has the work of a week of the log, times the number of users.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridsched.errors import WorkloadError, check_number, check_whole
from gridsched.workloads.clock import wall_clock
from gridsched.workloads.dependencies import DEPENDENCY
from gridsched.workloads.table import UNKNOWN, Workload, add_counts

Integers = NDArray[np.int64]

DAY = 86_400
WEEK = 7 * DAY
_MONDAY = 4 * DAY
"""A Monday, 0:00, in seconds of the clock of `wall_clock`."""

TEMPORARY_WEEKS = 12
"""Most weeks from the first to the last job of a temporary user, by default."""

PLACEMENT = np.dtype(
    [
        ("user", np.int64),  # number of the user in the log
        ("shift", np.int64),  # weeks to add to the week of the log
        ("first", np.int64),  # first week of the log that counts
        ("last", np.int64),  # the week after the last one that counts
        ("number", np.int64),  # number of the user in the new log
    ]
)
"""A part of the history of a user, and where it is put."""


@dataclass(frozen=True)
class Histories:
    """When the users of a log submit, by weeks that begin on Monday, 0:00, of the local clock.

    Parameters
    ----------
    week : int64[n]
        Week of each job, from 0; the first and the last week of the log are those that it has in full.
        Negative or at least `weeks` for a job outside of these.
    offset : int64[n]
        Seconds from the beginning of that week.
    weeks : int
        Weeks that the log has in full.
    users : int64[m]
        Users with jobs in these weeks, in ascending order.
    first, last : int64[m]
        Weeks of the first and the last of these jobs of each user.
    """

    week: Integers
    offset: Integers
    weeks: int
    users: Integers
    first: Integers
    last: Integers


def histories(workload: Workload) -> Histories:
    """Weeks and users of a log.

    A week at the beginning or the end of the log counts as whole if at most a day of it is missing.

    Raises
    ------
    WorkloadError
        If the log does not name its users, or has fewer than two whole weeks.
    """
    if not (workload.user >= 0).any():
        raise WorkloadError(f"{workload.name}: the log does not name its users; resampling needs column user")
    clock = wall_clock(workload, _recorded(workload)) - _MONDAY
    begin, end = int(clock.min()), int(clock.max())
    first = -((DAY - begin) // WEEK)
    after = (end + DAY) // WEEK
    if after - first < 2:
        raise WorkloadError(
            f"{workload.name}: {max(after - first, 0)} whole weeks from Monday to Sunday; "
            "resampling needs 2 or more"
        )
    week = clock // WEEK - first
    inside = (week >= 0) & (week < after - first)
    users, place = np.unique(workload.user[inside], return_inverse=True)
    earliest = np.full(len(users), after - first)
    latest = np.full(len(users), -1)
    np.minimum.at(earliest, place, week[inside])
    np.maximum.at(latest, place, week[inside])
    return Histories(week, clock % WEEK, after - first, users.astype(np.int64), earliest, latest)


def _recorded(workload: Workload) -> Integers:
    """Submit times of the log."""
    recorded = workload.recorded_submit
    return np.asarray(workload.submit_time if recorded is None else recorded, np.int64)


def resample(
    workload: Workload,
    *,
    seed: int,
    weeks: int | None = None,
    users: float = 1.0,
    temporary_weeks: int = TEMPORARY_WEEKS,
) -> Workload:
    """A workload of the same users in other combinations.

    Parameters
    ----------
    workload : Workload
        Clean jobs of a log that names its users and has at least two whole weeks. Jobs whose user is not
        known are taken as those of one user.
    seed : int
        The same seed and parameters give the same workload, bit for bit.
    weeks : int, optional
        Weeks of the new workload; by default as many as the log has in full.
    users : float
        Users relative to the log: with 1.2 there are a fifth more of both kinds, and as much more work on
        average. What is not whole is drawn.
    temporary_weeks : int
        Users whose jobs lie within so many consecutive weeks are temporary.

    Returns
    -------
    Workload
        Second 0 is a Monday, 0:00, of the local clock. Every history that is put somewhere is a user of its
        own, numbered from 1. Jobs with a `recorded_submit` are placed by it. There are no recorded waits, and
        dependencies only within a history. Jobs in weeks that the log does not have in full are counted in
        `left_out`.

    Raises
    ------
    WorkloadError
        As `histories`, if a number is out of range, or if nobody submits anything.

    Notes
    -----
    Zakay and Feitelson (2014, sections 3 and 4) describe the method. Choices of ours: arrivals of temporary
    users are a Poisson process; both kinds of users are distinguished by the weeks between first and last job
    alone, so that one who comes shortly before the end of the log counts as temporary.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import gridsched as gs
    >>> jobs = gs.synthesise("M3", jobs=8000, seed=1)
    >>> log = replace(jobs, user=jobs.job_number % 7, unix_start_time=0, time_zone="UTC")
    >>> gs.resample(log, seed=1, weeks=4)
    Workload 'M3-synthetic': 7,289 jobs submitted over 28.0 d, 1 to 1,064 processors, ...
      left out: 1,115 in a week that the log has in part
    """
    where = workload.name
    seed = check_whole(f"{where}: seed", seed, error=WorkloadError)
    if weeks is not None:
        weeks = check_whole(f"{where}: weeks", weeks, least=1, error=WorkloadError)
    check_number(f"{where}: users", users, above=0, error=WorkloadError)
    temporary_weeks = check_whole(f"{where}: temporary_weeks", temporary_weeks, least=1, error=WorkloadError)
    found = histories(workload)
    length = found.weeks if weeks is None else weeks
    placed = placements(found, length, users, temporary_weeks, np.random.default_rng(seed))
    made = assembled(workload, found, placed, length)
    if not len(made):
        raise WorkloadError(
            f"{workload.name}: nobody submits a job in {length} weeks with {users:g} times the users; "
            "give more of one"
        )
    options = f"seed {seed}, weeks {length}, users {users!r}, temporary_weeks {temporary_weeks}"
    return replace(
        made,
        header=(*workload.header, f"; Note: resampled by users: {options}"),
        checksum=hashlib.sha256(f"{workload.checksum}\nresampled: {options}".encode()).hexdigest(),
    )


def squeezed(workload: Workload, factor: float) -> Workload:
    """The workload with the times between submissions divided by a factor, the usual way to make load.

    Everything that is known by the clock of the submit times keeps its distance from the submission of its
    job.
    """
    submit = np.asarray(workload.submit_time, np.int64)
    first = int(submit.min(initial=np.iinfo(np.int64).max)) if len(submit) else 0
    moved = first + np.floor((submit - first) / factor).astype(np.int64)
    columns: dict[str, Any] = workload.moved_times(moved - submit)
    return replace(
        workload,
        submit_time=moved,
        **columns,
        header=(*workload.header, f"; Note: times between submissions divided by {factor!r}"),
        checksum=hashlib.sha256(f"{workload.checksum}\nsqueezed: {factor!r}".encode()).hexdigest(),
    )


def placements(
    found: Histories, weeks: int, users: float, temporary_weeks: int, rng: np.random.Generator
) -> NDArray[Any]:
    """Which histories are put where.

    Parameters
    ----------
    found : Histories
        What the users of the log do.
    weeks : int
        Weeks of the new log.
    users : float
        Users relative to the log.
    temporary_weeks : int
        Most weeks of a temporary user.
    rng : numpy.random.Generator
        Of all that is drawn.

    Returns
    -------
    PLACEMENT[...]
        Parts of histories, some of which may lie in part outside of the new log.
    """
    is_temporary = found.last - found.first < temporary_weeks
    rows: list[tuple[int, int, int, int, int]] = []
    number = 0
    residents = np.flatnonzero(~is_temporary)
    for resident in np.concatenate([residents] * int(users) + [_some(residents, users % 1.0, rng)]):
        number += 1
        user = int(found.users[resident])
        start = int(rng.integers(found.weeks))
        for lap in range(0, weeks, found.weeks):
            rows.append((user, lap - start, start, found.weeks, number))
            rows.append((user, lap + found.weeks - start, 0, start, number))
    temporary = np.flatnonzero(is_temporary)
    if len(temporary):
        # those who came before the first week may still be there
        earliest = 1 - temporary_weeks
        coming = rng.poisson(users * len(temporary) / found.weeks, weeks - earliest)
        for week in np.repeat(np.arange(earliest, weeks), coming):
            number += 1
            drawn = temporary[rng.integers(len(temporary))]
            shift = int(week - found.first[drawn])
            rows.append((int(found.users[drawn]), shift, 0, found.weeks, number))
    return np.array(rows, PLACEMENT)


def _some(members: Integers, share: float, rng: np.random.Generator) -> Integers:
    """A share of the members, without repetition; what is not a whole number is drawn."""
    wanted = share * len(members)
    count = int(wanted) + int(rng.random() < wanted % 1.0)
    return np.sort(rng.permutation(members)[:count])


def assembled(workload: Workload, found: Histories, placed: NDArray[Any], weeks: int) -> Workload:
    """The jobs of all placements, in order of submission.

    Parameters
    ----------
    workload : Workload
        The log.
    found : Histories
        What its users do.
    placed : PLACEMENT[...]
        Which histories are put where.
    weeks : int
        Weeks of the new log.
    """
    order = np.argsort(workload.user, kind="stable")
    by_user = workload.user[order]
    jobs: list[Integers] = [np.empty(0, np.int64)]
    for place in placed:
        own = order[slice(*np.searchsorted(by_user, [place["user"], place["user"] + 1]))]
        week = found.week[own]
        new = week + place["shift"]
        jobs.append(own[(week >= place["first"]) & (week < place["last"]) & (new >= 0) & (new < weeks)])
    job = np.concatenate(jobs)
    part = np.repeat(np.arange(len(placed)), [len(own) for own in jobs[1:]])
    submit = (found.week[job] + placed["shift"][part]) * WEEK + found.offset[job]
    first = np.argsort(submit, kind="stable")
    job, part, submit = job[first], part[first], submit[first]
    partial = int(((found.week < 0) | (found.week >= found.weeks)).sum())
    moved = replace(workload, dependencies=None).select(job)
    table = _dependencies(workload, job, part)
    made = replace(
        moved,
        submit_time=submit,
        job_number=np.arange(1, len(job) + 1),
        wait_time=np.full(len(job), UNKNOWN),
        user=placed["number"][part],
        preceding_job=_preceding(workload, job, part),
        unix_start_time=None,
        time_zone=None,
        dependencies=table,
        left_out=add_counts(workload.left_out, {"in a week that the log has in part": partial}),
        **_moved(moved, submit - _recorded(workload)[job], part),
    )
    if workload.recorded_submit is None or table is None:
        return made
    # who waits for an earlier job of the history could be there from its first one on
    earliest = np.full(len(placed), np.iinfo(np.int64).max)
    np.minimum.at(earliest, part, submit)
    submit[table["job"]] = earliest[part[table["job"]]]
    return replace(made, submit_time=submit).select(np.argsort(submit, kind="stable"))


def _moved(moved: Workload, delta: Integers, part: Integers) -> dict[str, Any]:
    """Further columns: times by the new clock, arrays and heterogeneous jobs of each history apart."""
    columns = moved.moved_times(delta)
    for name in ("array", "component_of"):
        if (column := moved.extra.get(name)) is not None:
            _, number = np.unique(np.stack([part, column]), axis=1, return_inverse=True)
            columns[name] = np.where(column == UNKNOWN, UNKNOWN, number.reshape(-1))
    return columns


def _preceding(workload: Workload, job: Integers, part: Integers) -> Integers:
    """Numbers of the preceding jobs (SWF field 17) of the same history in the new log."""
    numbers = {int(number): index for index, number in enumerate(workload.job_number)}
    named = np.array([numbers.get(int(each), -1) for each in workload.preceding_job], np.int64)[job]
    place = _places(len(workload), job, part, named, part)
    return np.where(place >= 0, place + 1, UNKNOWN)


def _dependencies(workload: Workload, job: Integers, part: Integers) -> NDArray[Any] | None:
    """Dependencies within each history, by the places of the new log."""
    table = workload.dependencies
    if table is None:
        return None
    by_job = table[np.argsort(table["job"], kind="stable")]
    begin, end = (np.searchsorted(by_job["job"], job, side=side) for side in ("left", "right"))
    rows = np.repeat(begin - np.append(0, np.cumsum(end - begin))[:-1], end - begin)
    rows = rows + np.arange(len(rows))
    made = by_job[rows].astype(DEPENDENCY)
    made["job"] = np.repeat(np.arange(len(job)), end - begin)
    made["on"] = _places(len(workload), job, part, by_job["on"][rows], part[made["job"]])
    return np.asarray(made[made["on"] >= 0])


def _places(jobs: int, job: Integers, part: Integers, wanted: Integers, within: Integers) -> Integers:
    """Places in the new log of jobs of the old one within parts; -1 where they are not there."""
    key = part * jobs + job
    order = np.argsort(key, kind="stable")
    asked = within * jobs + wanted
    place = np.minimum(np.searchsorted(key, asked, sorter=order), max(len(key) - 1, 0))
    if not len(key):
        return np.full(len(asked), UNKNOWN)
    found = order[place]
    return np.where((wanted >= 0) & (key[found] == asked), found, UNKNOWN).astype(np.int64)
