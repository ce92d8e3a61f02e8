"""Rules of runs that say which nodes jobs had."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched.verification.reporting import report_jobs

Integers = NDArray[np.int64]

_WHOLE = 1000
_REJECTED = 1
_DRAINED = 2
_TOO_LARGE = "rejected: no nodes that it may use can hold it"
"""The reason to reject jobs that would not fit on the nodes; other ones are limits."""


def node_violations(run: xr.Dataset) -> list[str]:
    """What is wrong on the nodes of a run: one line a broken rule, none where all is well.

    The rules, beside those of `schedule.violations` and `job_outcomes.outcome_violations`:

    - the pieces of a segment have its processors together, and all parts of its job, each with what a part
      asks for; on nodes that the job may use, at most as many on one node as it allows;
    - no node ever has less than nothing free of its processors, its memory or one of its GPUs;
    - a job that wants nodes to itself has all of them, and nobody else is there;
    - nothing runs on a node that is down or in maintenance, nothing starts on one that is drained;
    - no group has more jobs or processors than its limit at any instant (processor-minutes are not checked);
    - a job is rejected only if its parts do not fit on the empty nodes, or by a limit.

    Parameters
    ----------
    run : xarray.Dataset
        A run with the variables piece_*, node_*, asked_*, outage_*, fate.
    """
    v = {str(name): run[name].to_numpy() for name in run.variables}
    rejected = {str(name): count for name, count in run.attrs.items() if str(name).startswith("rejected: ")}
    limited = sum(int(count) for reason, count in rejected.items() if reason != _TOO_LARGE)
    rules: tuple[Callable[[dict[str, NDArray[Any]]], Iterator[str]], ...] = (
        _pieces_make_segments,
        _units,
        _capacity,
        _alone,
        _outages,
        _within_limits,
    )
    return [line for rule in rules for line in rule(v)] + _wrongly_rejected(v, limited)


def _job(v: dict[str, NDArray[Any]]) -> Integers:
    """Job of each piece."""
    return np.asarray(v["segment_job"][v["piece_segment"]], np.int64)


def _pieces_make_segments(v: dict[str, NDArray[Any]]) -> Iterator[str]:
    """Pieces add up to segments."""
    total = np.bincount(v["piece_segment"], weights=v["piece_cores"], minlength=len(v["segment_job"]))
    wrong = np.flatnonzero(total != v["segment_processors"])
    yield from report_jobs(v, v["segment_job"][wrong], "has pieces that do not add up to its segment")
    other = v["node_cluster"][v["piece_node"]] != v["segment_cluster"][v["piece_segment"]]
    yield from report_jobs(v, _job(v)[other], "has a piece on a node of another cluster")


def _units(v: dict[str, NDArray[Any]]) -> Iterator[str]:
    """Each part of a job is somewhere, with what it asks for, where it may be."""
    job, segment, node = _job(v), v["piece_segment"], v["piece_node"]
    units = np.bincount(segment, weights=v["piece_units"], minlength=len(v["segment_job"]))
    wrong = np.flatnonzero(units != v["asked_units"][v["segment_job"]])
    yield from report_jobs(v, v["segment_job"][wrong], "has more or fewer parts than it asks for")
    whole = v["asked_whole"][job] == 1
    gpus = _bits(v["piece_devices"])
    shares = v["asked_share"][job] > 0
    wanted = np.where(shares, 1, v["piece_units"] * v["asked_gpus"][job])
    each = np.where(shares, v["asked_share"][job], _WHOLE)
    short = v["piece_cores"] < v["piece_units"] * v["asked_cores"][job]
    short |= v["piece_memory"] < v["piece_units"] * v["asked_memory"][job]
    short |= np.where(whole, gpus < wanted, gpus != wanted)
    short |= (wanted > 0) & ~whole & (v["piece_share"] != each)
    yield from report_jobs(v, job[short], "has less on a node than its parts ask for")
    yield from report_jobs(v, job[v["piece_units"] > v["asked_most"][job]], "has too many parts on one node")
    reach = v["node_reach"][v["asked_where"][job], node]
    yield from report_jobs(v, job[reach == 0], "runs on a node that it may not use")
    common = np.full(len(v["segment_job"]), -1)
    np.bitwise_and.at(common, segment, reach.astype(np.int64))
    numbered = _numbers(v, job)[:, 0] > 0
    apart = (common[segment] == 0) & (reach > 0) & ~numbered
    yield from report_jobs(v, job[apart], "runs on nodes without one of its features in common")
    pieces = np.flatnonzero(numbered)
    pieces = pieces[np.argsort(segment[pieces], kind="stable")]
    of_segments = np.split(pieces, np.flatnonzero(np.diff(segment[pieces])) + 1) if len(pieces) else []
    lacking = [
        job[each[0]]
        for each in of_segments
        if not is_enough(v, int(job[each[0]]), reach[each].astype(np.int64), v["piece_units"][each])
    ]
    yield from report_jobs(
        v, np.array(lacking, np.int64), "has too few parts on nodes with one of its features"
    )
    beyond = v["piece_devices"] >> v["node_gpus"][node]
    yield from report_jobs(v, job[beyond != 0], "has a GPU that its node has not")


def _bits(numbers: Integers) -> Integers:
    """Bits that are set in each number."""
    return np.array([int(number).bit_count() for number in numbers], np.int64)


def _most_used(node: Integers, start: Integers, end: Integers, taken: Integers, nodes: int) -> Integers:
    """Most that is taken of each node at any instant; ends come before starts."""
    time = np.concatenate([end, start])
    change = np.concatenate([-taken, taken])
    both = np.concatenate([node, node])
    order = np.lexsort((np.repeat([0, 1], len(node)), time, both))
    # of each node the changes add up to nothing, so that one sum serves all
    used = np.cumsum(change[order])
    most = np.zeros(nodes, np.int64)
    np.maximum.at(most, both[order], used)
    return most


def _capacity(v: dict[str, NDArray[Any]]) -> Iterator[str]:
    """No node has more taken than it has."""
    start, end = v["segment_start"][v["piece_segment"]], v["segment_end"][v["piece_segment"]]
    long = end > start
    node, names = v["piece_node"][long], v["node_name"]
    start, end = start[long], end[long]
    for name in ("cores", "memory"):
        most = _most_used(node, start, end, v[f"piece_{name}"][long], len(names))
        for n in np.flatnonzero(most > v[f"node_{name}"])[:1]:
            yield f"node {names[n]} has {most[n]} of {v[f'node_{name}'][n]} {name} taken at some time"
    devices, share = v["piece_devices"][long], v["piece_share"][long]
    for device in range(int(v["node_gpus"].max(initial=0))):
        here = (devices >> device) & 1 == 1
        most = _most_used(node[here], start[here], end[here], share[here], len(names))
        for n in np.flatnonzero(most > _WHOLE)[:1]:
            yield f"GPU {device} of node {names[n]} has {most[n]} thousandths taken at some time"


def _alone(v: dict[str, NDArray[Any]]) -> Iterator[str]:
    """Jobs that want nodes to themselves have all their processors; `_capacity` sees who else is there."""
    job = _job(v)
    shared = (v["asked_whole"][job] == 1) & (v["piece_cores"] != v["node_cores"][v["piece_node"]])
    yield from report_jobs(v, job[shared], "wants whole nodes, but has a part of one")


def _outages(v: dict[str, NDArray[Any]]) -> Iterator[str]:
    """Nothing runs on a node that is out, and nothing starts on one that is drained."""
    job, node = _job(v), v["piece_node"]
    start, end = v["segment_start"][v["piece_segment"]], v["segment_end"][v["piece_segment"]]
    wrong = np.zeros(len(job), np.bool_)
    # who was suspended may go on where nothing new starts
    goes_on = np.zeros_like(start)
    if "segment_resumed" in v:
        goes_on = v["segment_resumed"][v["piece_segment"]]
    columns = [v[f"outage_{name}"] for name in ("node", "start", "end", "kind")]
    for n, begin, back, kind in zip(*columns, strict=True):
        since = (start >= begin) & (goes_on == 0) if kind == _DRAINED else end > begin
        wrong |= (node == n) & (start < back) & since
    yield from report_jobs(v, job[wrong], "runs on a node that is out")


def _within_limits(v: dict[str, NDArray[Any]]) -> Iterator[str]:
    """No group has more than its limit."""
    if "limited" not in v:
        return
    long = v["segment_end"] > v["segment_start"]
    job, start, end = (v[f"segment_{name}"][long] for name in ("job", "start", "end"))
    cores = v["asked_units"][job] * v["asked_cores"][job]
    for group in v["limited"].T:
        mine = group[job] >= 0
        for name, taken in (("jobs", np.ones_like(cores)), ("cores", cores)):
            limit = v[f"limit_{name}"]
            most = _most_used(group[job][mine], start[mine], end[mine], taken[mine], len(limit))
            for k in np.flatnonzero((limit >= 0) & (most > limit))[:1]:
                yield f"a group has {most[k]} {name} at some time, its limit is {limit[k]}"


def _numbers(v: dict[str, NDArray[Any]], job: Any) -> Integers:
    """How many parts of a job, or of each of several, have to be on nodes with each bit of their reach."""
    where = v["asked_where"][job]
    if "reach_numbers" not in v:
        return np.zeros((*np.shape(where), 1), np.int64)
    numbers: Integers = v["reach_numbers"][where]
    return numbers


def is_enough(v: dict[str, NDArray[Any]], job: int, reach: Integers, parts: Integers) -> bool:
    """Whether so many parts on nodes with this reach are enough for a job.

    With one of its choices; with numbers, any of them together have as many nodes as they name.
    """
    units, numbers = int(v["asked_units"][job]), _numbers(v, job)
    bits = int(reach.max(initial=1)).bit_length()
    if not numbers.any():
        return any(int(parts[reach >> choice & 1 != 0].sum()) >= units for choice in range(bits))
    wanted = [*numbers[numbers > 0].tolist(), units - int(numbers.sum())]
    return wanted[-1] >= 0 and all(
        int(parts[reach & these != 0].sum()) >= sum(n for k, n in enumerate(wanted) if these >> k & 1)
        for these in range(1, 1 << len(wanted))
    )


def _fits(v: dict[str, NDArray[Any]], job: int) -> bool:
    """Whether the parts of a job fit on the empty nodes that it may use."""
    parts = np.full(len(v["node_cores"]), min(int(v["asked_most"][job]), int(v["asked_units"][job])))
    for name in ("cores", "memory", "gpus"):
        if asked := int(v[f"asked_{name}"][job]):
            parts = np.minimum(parts, v[f"node_{name}"] // asked)
    if v["asked_share"][job] > 0:
        parts = np.where(v["node_gpus"] > 0, parts, 0)
    return is_enough(v, job, v["node_reach"][v["asked_where"][job]].astype(np.int64), parts)


def _wrongly_rejected(v: dict[str, NDArray[Any]], limited: int) -> list[str]:
    """Jobs that would fit are rejected by a limit only."""
    rejected = np.flatnonzero(v["fate"] == _REJECTED)
    fitting = [job for job in rejected if _fits(v, int(job))]
    if len(fitting) <= limited:
        return []
    return list(report_jobs(v, np.array(fitting), f"was rejected, but would fit; limits reject {limited}"))
