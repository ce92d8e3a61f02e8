"""Rules of runs that with the outcomes of jobs: who gave up, who waited for whom, what was out of order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched.verification.reporting import report_jobs

Integers = NDArray[np.int64]

_COMPLETED, _REJECTED, _GAVE_UP, _NEVER_ELIGIBLE, _LOST, _STARVED, _REFUSED = range(7)
_DAY = 86_400
_AFTER, _AFTER_ANY, _AFTER_OK, _AFTER_NOT_OK = range(4)


def outcome_violations(run: xr.Dataset) -> list[str]:
    """What is wrong with what a run says of its jobs' fates: one line a broken rule, none where all is well.

    The rules, beside those of `schedule.violations`:

    - a job that completed ran; one that is rejected, gave up or was never eligible did not; one that is lost
      was killed;
    - who gave up did so when it was said; nobody starts after giving up;
    - nobody starts before what it waits for, nor before the user has noticed its end; who waits for what
      cannot be never runs, and nobody else is said never to be eligible;
    - no cluster has more processors in use than it has without those that are out (`closure_*`).

    Parameters
    ----------
    run : xarray.Dataset
        A run with the variable fate.
    """
    v = {str(name): run[name].to_numpy() for name in run.variables}
    rules: tuple[Callable[[dict[str, NDArray[Any]]], Iterator[str]], ...] = (
        _rejections,
        _giving_up,
        _dependencies,
        _closures,
    )
    return [line for rule in rules for line in rule(v)]


def _rejections(v: dict[str, NDArray[Any]]) -> Iterator[str]:
    """Who could run is not rejected; who has another fate than to complete has it for a reason."""
    fate, started = v["fate"], v["start_time"] >= 0
    yield from report_jobs(
        v, np.flatnonzero((fate == _COMPLETED) & ~started), "neither ran nor has another fate"
    )
    kept = np.isin(fate, (_GAVE_UP, _NEVER_ELIGIBLE, _REJECTED, _REFUSED))
    yield from report_jobs(v, np.flatnonzero(kept & started), "ran, but is said not to have run")
    lost = (fate == _LOST) & (v.get("killed", fate) == 0)
    yield from report_jobs(v, np.flatnonzero(lost), "is said to be lost, but was never killed")


def _giving_up(v: dict[str, NDArray[Any]]) -> Iterator[str]:
    """Users give up when they said, and only while they wait."""
    gives_up = v.get("gives_up_time", np.full(len(v["fate"]), -1))
    late = (gives_up >= 0) & (v["start_time"] >= np.maximum(gives_up, v["submit_time"]))
    yield from report_jobs(v, np.flatnonzero(late), "starts after its user gave up")
    yield from report_jobs(
        v, np.flatnonzero((v["fate"] == _GAVE_UP) & (gives_up < 0)), "gave up, but was never to"
    )


def _dependencies(v: dict[str, NDArray[Any]]) -> Iterator[str]:
    """Nobody starts before what it waits for."""
    columns = ("job", "on", "kind", "delay")
    job, on, kind, delay = (v.get(f"dependency_{name}", np.empty(0, np.int64)) for name in columns)
    ran = v["start_time"][on] >= 0
    since = np.where(kind == _AFTER, v["start_time"][on], _noticed(v)[on]) + delay
    started = v["start_time"][job] >= 0
    early = started & ran & (v["start_time"][job] < since)
    yield from report_jobs(v, job[early], "starts before a job that it waits for")
    well = (v["fate"][on] == _COMPLETED) & (v.get("fails", np.zeros_like(v["fate"]))[on] == 0)
    never = (v["fate"][on] == _NEVER_ELIGIBLE) | ((kind == _AFTER_OK) & ~well)
    never |= (kind == _AFTER_NOT_OK) & well
    yield from report_jobs(v, job[started & never], "starts although a job that it waits for ended otherwise")
    excused = np.zeros(len(v["fate"]), np.bool_)
    excused[job[never]] = True
    wrong = np.flatnonzero((v["fate"] == _NEVER_ELIGIBLE) & ~excused)
    yield from report_jobs(v, wrong, "is said never to be eligible, but could be")


def _noticed(v: dict[str, NDArray[Any]]) -> Integers:
    """When the users of jobs notice their ends: those who went away meanwhile do when they are back."""
    end: Integers = v["end_time"]
    if "response_limit" not in v:
        return end
    left = (v["response_limit"] >= 0) & (end - v["eligible_time"] >= v["response_limit"])
    back = end + (v["returns_at"] - end) % _DAY + v["away_days"] * _DAY
    return np.where(left, back, end)


def _closures(v: dict[str, NDArray[Any]]) -> Iterator[str]:
    """Processors that are out run nothing: what is in use and what is out fit together."""
    if "closure_cluster" not in v:
        return
    closed = _without_overlap(v)
    long = v["segment_end"] > v["segment_start"]
    taken = v["segment_processors"][long]
    size = closed[:, 1]
    cluster = np.concatenate([v["segment_cluster"][long], closed[:, 0]])
    cluster = np.concatenate([cluster, cluster])
    time = np.concatenate([v["segment_start"][long], closed[:, 2], v["segment_end"][long], closed[:, 3]])
    change = np.concatenate([taken, size, -taken, -size])
    order = np.lexsort((change, time, cluster))
    # of each cluster the changes add up to nothing, so that one sum serves all
    used = np.cumsum(change[order])
    for k in np.flatnonzero(used > v["cluster_processors"][cluster[order]])[:1]:
        c = cluster[order[k]]
        yield (
            f"cluster {v['cluster'][c]} has {used[k]} of its {v['cluster_processors'][c]} processors in use "
            f"or out at {time[order[k]]} s"
        )


def _without_overlap(v: dict[str, NDArray[Any]]) -> Integers:
    """Cluster, number of processors, start and end of times in which processors are out, each once."""
    columns = ("cluster", "first", "end", "start", "until")
    rows: list[list[int]] = []
    for cluster, first, end, start, until in sorted(
        zip(*(v[f"closure_{name}"].tolist() for name in columns), strict=True)
    ):
        if rows and rows[-1][:3] == [cluster, first, end] and start <= rows[-1][4]:
            rows[-1][4] = max(rows[-1][4], until)
        else:
            rows.append([cluster, first, end, start, until])
    table = np.array(rows, np.int64).reshape(-1, 5)
    return np.stack([table[:, 0], table[:, 2] - table[:, 1], table[:, 3], table[:, 4]], axis=1)
