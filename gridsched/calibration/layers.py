"""Layers of a present policy: what keeps jobs from starting at real sites, each with its parameters.

A calibration is a mapping of parameters to numbers; a layer is there if one of its parameters is. Without
any, the present policy is EASY on requested times with all processors of the log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from gridsched.calibration import kernel
from gridsched.calibration.measures import UNKNOWN, Explained, explained
from gridsched.calibration.site import QUEUED, History, LoggedSite, steps
from gridsched.engine.records import FOREVER
from gridsched.errors import ScheduleError
from gridsched.policies.local import LocalPolicy
from gridsched.simulation import start_times
from gridsched.workloads.usage import peaks

Calibration = Mapping[str, float]
Integers = NDArray[np.int64]

PILED_IN_FITS = 3
"""A replay of some jobs is given up where so many times more wait than did in the first half at most ..."""

FEW = 200
"""... or than so many, if fewer did; ..."""

PILED = 10
"""... one of all jobs, where so many times more wait."""

_HOUR = 3600
_DAY = 86400
_DAYTIME = range(8, 18)


@dataclass(frozen=True)
class Layer:
    """What keeps jobs from starting.

    Parameters
    ----------
    text : str
        What it is, for people.
    draw : callable
        Parameters drawn at random, given a history and a generator; by name, of which some may be missing.
    """

    text: str
    draw: Callable[[History, Generator], dict[str, float]]


def _log_uniform(rng: Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _some(rng: Generator, **chances: tuple[float, Callable[[], float]]) -> dict[str, float]:
    """Each parameter with its chance; one at least."""
    names = [name for name, (chance, _) in chances.items() if rng.random() < chance]
    names = names or [str(rng.choice(list(chances)))]
    return {name: float(chances[name][1]()) for name in names}


def _queues(history: History, rng: Generator) -> dict[str, float]:
    found: dict[str, float] = {}
    if history.apart.any() and rng.random() < 0.9:
        found["apart"] = 1.0
    large = history.large_queues
    if len(large) > 1:
        spread = _log_uniform(rng, 2, 200)
        # queues whose jobs waited less are likelier to come first
        wait = np.log(60 + history.queue_wait[large])
        promptness = (wait.mean() - wait) / max(float(wait.std()), 1e-9)
        for queue, prompt in zip(large.tolist(), promptness, strict=True):
            name = f"priority {int(history.site.queue_numbers[queue])}"
            found[name] = float(spread * (prompt + 0.5 * rng.normal()))
        if rng.random() < 0.4:
            found["queue_share"] = rng.uniform(0.5, 1.1)
    return found


def _shares(history: History, rng: Generator) -> dict[str, float]:
    return {
        "long": float(rng.choice([900, _HOUR, 2 * _HOUR, 4 * _HOUR, 8 * _HOUR])),
        "long_share": rng.uniform(0.6, 1.0),
        "daytime": float(rng.random() < 0.5),
    }


def _outages(history: History, rng: Generator) -> dict[str, float]:
    return {"notice": float(rng.choice([0, _HOUR, 6 * _HOUR, _DAY, 3 * _DAY, 7 * _DAY]))}


def _holds(history: History, rng: Generator) -> dict[str, float]:
    return {"held": rng.uniform(0.2, 0.8)}


def _idle_waits(history: History, rng: Generator) -> dict[str, float]:
    return {"idle_wait": rng.uniform(0.2, 0.8)}


def _fair_share(history: History, rng: Generator) -> dict[str, float]:
    return {"fair": _log_uniform(rng, 3, 3000), "half_life": _log_uniform(rng, 0.3, 30)}


def _processors(history: History, rng: Generator) -> dict[str, float]:
    return {"processors": _log_uniform(rng, 0.75, 1.5)}


def _order(history: History, rng: Generator) -> dict[str, float]:
    return _some(
        rng,
        size=(0.5, lambda: 4 * rng.normal()),
        length=(0.5, lambda: 6 * rng.normal()),
        expansion=(0.5, lambda: _log_uniform(rng, 0.1, 30)),
    )


LAYERS: dict[str, Layer] = {
    "queues": Layer("queues whose jobs start at once; priorities and shares of queues", _queues),
    "shares": Layer("processors that long jobs may not have, always or on weekdays from 8 to 18 h", _shares),
    "outages": Layer("outages that the log shows, known some time in advance", _outages),
    "holds": Layer("minimum waits of similar jobs (user, queue, size)", _holds),
    "idle waits": Layer("waits of similar jobs although enough processors were free", _idle_waits),
    "fair share": Layer("lower priority of users with high past usage", _fair_share),
    "processors": Layer("processors that the log does not show, or that were not available", _processors),
    "order": Layer("priorities by size, requested time, and wait relative to requested time", _order),
}
"""Layers by name."""

ON_NODES = ("queues", "holds", "order")
"""Those that a replay on nodes has; the others are about counted processors."""

_COUNTED = ("queue_share", "expansion")
"""Parameters of these that it does not have."""


def layers_for(site: LoggedSite) -> tuple[str, ...]:
    """Layers that can explain the waits of a site."""
    return tuple(LAYERS) if site.on_nodes is None else ON_NODES


def drawn(site: LoggedSite, layer: str, history: History, rng: Generator) -> dict[str, float]:
    """Parameters of a layer of a site, drawn at random; none if it has none there."""
    found = LAYERS[layer].draw(history, rng)
    return {name: found[name] for name in found if site.on_nodes is None or name not in _COUNTED}


PARAMETERS: dict[str, str] = {
    "apart": "queues",
    "priority": "queues",
    "queue_share": "queues",
    "long": "shares",
    "long_share": "shares",
    "daytime": "shares",
    "notice": "outages",
    "held": "holds",
    "idle_wait": "idle waits",
    "fair": "fair share",
    "half_life": "fair share",
    "processors": "processors",
    "size": "order",
    "length": "order",
    "expansion": "order",
}
"""Layer of each parameter; those that begin with `priority` have the number of a queue behind it."""


def layer_of(parameter: str) -> str:
    """Layer that a parameter belongs to."""
    return PARAMETERS[parameter.partition(" ")[0]]


def without_layer(calibration: Calibration, layer: str) -> dict[str, float]:
    """A calibration without a layer."""
    return {name: value for name, value in calibration.items() if layer_of(name) != layer}


def layers_in(calibration: Calibration) -> list[str]:
    """Layers of a calibration, in their order."""
    there = {layer_of(name) for name in calibration}
    return [layer for layer in LAYERS if layer in there]


@dataclass(frozen=True, kw_only=True)
class Replacement:
    """Queue order and backfilling, which another policy has in place of those that are fitted.

    Parameters
    ----------
    age : float
        Weight of the hours that a job waited.
    expansion : float
        Weight of wait over estimate.
    length : float
        Points that a job loses for each second of its estimate.
    backfilling : int
        As of `kernel`.
    """

    age: float = 1.0
    expansion: float = 0.0
    length: float = 0.0
    backfilling: int = kernel.EASY


ORDERS: dict[str, Replacement] = {
    "fcfs": Replacement(backfilling=kernel.NONE),
    "ff": Replacement(backfilling=kernel.FIRST_FIT),
    "easy": Replacement(),
    "sjf": Replacement(age=0.0, length=1.0, backfilling=kernel.NONE),
    "sjbf": Replacement(backfilling=kernel.SHORTEST_FIRST),
    "conservative": Replacement(backfilling=kernel.CONSERVATIVE),
    "lxf": Replacement(age=0.0, expansion=1.0),
    "lxwf": Replacement(age=0.02, expansion=1.0),
}
"""Local policies, by their names in `gridsched.policies.local`, that a calibrated site can have instead."""


def simulated_waits(
    site: LoggedSite,
    calibration: Calibration,
    *,
    order: Replacement | None = None,
    jobs: Integers | None = None,
    history: History | None = None,
    held: Integers | None = None,
    begun: Integers | None = None,
    used: NDArray[np.float64] | None = None,
    now: int | None = None,
    most: int | None = None,
) -> Integers:
    """Wait of each job [s] under a calibrated present policy.

    Parameters
    ----------
    site : LoggedSite
        The jobs.
    calibration : mapping
        Parameters by name.
    order : Replacement, optional
        Another policy: its queue order and backfilling take the place of priorities of queues, fair share
        and `order`; all else stays.
    jobs : int64, optional
        Jobs to replay, by number; all of them if not given.
    history : History, optional
        What users, queues and hours are known from; the first half of the log if not given.
    held : int64[n], optional
        Seconds from submission until a job may start; by the layers, if not given.
    begun : int64[n], optional
        Start of jobs that run when the replay begins, -1 for all others; none runs if not given.
    used : float64[users], optional
        Processor-seconds that users had when the replay begins, for the fair share.
    now : int, optional
        When the replay begins [s]; jobs submitted before wait since their submission. With the first
        submission, if not given.
    most : int, optional
        Jobs that may wait before a replay is given up; see below, if not given.

    Returns
    -------
    int64[n]
        -1 for jobs that are not replayed or never start. A replay is given up where too many jobs wait: of
        some of the jobs three times as many as the history had at most, and more than 600; of all of them
        ten times as many, and more than 6,000.
    """
    n = len(site)
    waits = np.full(n, -1, np.int64)
    chosen = np.arange(n) if jobs is None else jobs
    history = history or site.history
    held = held_waits(history, calibration) if held is None else held
    eligible = site.submit + held
    if now is not None:
        eligible = np.maximum(eligible, now)
    begun = np.full(n, -1, np.int64) if begun is None else begun
    if "apart" in calibration:
        prompt = history.apart[site.queue[chosen]]
        apart, chosen = chosen[prompt], chosen[~prompt]
        waits[apart] = np.where(begun[apart] >= 0, begun[apart], eligible[apart]) - site.submit[apart]
    usual = (
        PILED * max(history.waiting, QUEUED) if jobs is None else PILED_IN_FITS * max(history.waiting, FEW)
    )
    most = usual if most is None else most
    numbers = _numbers(site, calibration, order, n if order is not None else most)
    score = _scores(site, calibration, order)
    if site.on_nodes is not None:
        entered = np.where(begun >= 0, begun, eligible)
        start = _starts_on_nodes(site, numbers, score, chosen, entered)
        waits[chosen] = np.where(start >= 0, start - site.submit[chosen], -1)
        return waits
    # those that run come first
    order_of = np.where(begun >= 0, -1, eligible)
    mine = chosen[np.argsort(order_of[chosen], kind="stable")]
    if not len(mine):
        return waits
    replayed = kernel.ReplayJobs(
        submit=site.submit[mine],
        eligible=eligible[mine],
        run=site.run[mine],
        estimate=site.estimate[mine],
        processors=site.processors[mine],
        user=site.user[mine],
        queue=site.queue[mine],
        score=score[mine],
        long=(site.estimate[mine] > calibration.get("long", FOREVER)).astype(np.int64),
        begun=begun[mine],
    )
    start = kernel.replay(replayed, _rules(site, calibration, history), numbers, used)
    waits[mine] = np.where(start >= 0, start - site.submit[mine], -1)
    return waits


_BACKFILLING: dict[int, Any] = {
    kernel.NONE: {"backfilling": "none"},
    kernel.FIRST_FIT: {"backfilling": "first_fit"},
    kernel.EASY: {"backfilling": "easy"},
    kernel.SHORTEST_FIRST: {"backfilling": "easy", "backfill_order": "shortest"},
    kernel.CONSERVATIVE: {"backfilling": "conservative"},
}


def _as_ranked(group: Any) -> Any:
    """Score of a job whose group is its place in the queue."""
    return -group


def _starts_on_nodes(
    site: LoggedSite, numbers: kernel.Numbers, score: NDArray[np.float64], jobs: Integers, eligible: Integers
) -> Integers:
    """Starts of some jobs on the nodes of a site, by the engine; -1 for those that never start."""
    assert site.on_nodes is not None
    workload, cluster = site.on_nodes
    turn = np.argsort(eligible[jobs], kind="stable")
    mine = jobs[turn]
    submit = eligible[mine]
    if workload.gives_up_time is not None:
        # who gives up does so whether or not anything holds the job
        gives_up = workload.gives_up_time[mine]
        submit = np.where(gives_up >= 0, np.minimum(submit, gives_up), submit)
    order: Any = "lxwf" if numbers.age else "lxf"
    if not numbers.expansion:
        order = _as_ranked
    place = np.unique(numbers.age * site.submit[mine] / _HOUR - score[mine], return_inverse=True)[1]
    start = np.empty(len(jobs), np.int64)
    start[turn] = start_times(
        workload.select(mine, submit_time=submit, group=place.reshape(-1)),
        cluster,
        LocalPolicy(order=order, **_BACKFILLING[numbers.backfilling]),
    )
    return start


def verify_waits(site: LoggedSite, calibration: Calibration, waits: Integers, history: History) -> None:
    """Raise an error unless a replay keeps to the processors that it has, and starts no job too early.

    Parameters
    ----------
    site : LoggedSite
        The jobs.
    calibration : mapping
        Parameters by name.
    waits : int64[n]
        Of `simulated_waits`; jobs that never start do not count.
    history : History
        Input of the replay.

    Raises
    ------
    ScheduleError
        If more processors are in use than there are, or a job starts while it is held.
    """
    ran = waits >= 0
    early = ran & (waits < held_waits(history, calibration))
    if early.any():
        raise ScheduleError(f"{site.name}: {int(early.sum()):,} jobs of a replay start while they are held")
    if "apart" in calibration:
        ran &= ~history.apart[site.queue]
    start = site.submit + waits
    sizes, together = site.processors[ran], np.zeros(int(ran.sum()), np.int64)
    most = int(peaks(start[ran], start[ran] + site.run[ran], sizes, together, 1)[0])
    there = _size(site, calibration)
    if most > there:
        raise ScheduleError(f"{site.name}: a replay has {most:,} processors in use, of {there:,}")


def held_waits(history: History, calibration: Calibration) -> Integers:
    """Seconds that each job of a log waits in any case."""
    held = np.zeros(len(history.site), np.int64)
    if "held" in calibration:
        held += history.short_waits(calibration["held"])
    if "idle_wait" in calibration:
        held += history.idle_waits(calibration["idle_wait"])
    return held


def used_until(
    calibration: Calibration,
    now: int,
    users: int,
    user: Integers,
    processors: Integers,
    start: Integers,
    end: Integers,
) -> NDArray[np.float64] | None:
    """Processor-seconds that users had until `now`, what is long ago counting less; none without fair share.

    Parameters
    ----------
    calibration : mapping
        Parameters by name.
    now : int
        Seconds.
    users : int
        How many there are.
    user, processors, start, end : int64[n]
        Jobs; those that start later do not count, those that end later count up to now.
    """
    if "fair" not in calibration:
        return None
    rate = np.log(2) / (_DAY * calibration["half_life"])
    before = start < now
    begin, last = start[before], np.minimum(end[before], now)
    had = processors[before] * (np.exp(rate * (last - now)) - np.exp(rate * (begin - now))) / rate
    return np.bincount(user[before], had, minlength=users).astype(np.float64)


def _size(site: LoggedSite, calibration: Calibration) -> int:
    """Processors of the site, at least those of its largest job."""
    return max(round(calibration.get("processors", 1.0) * site.size), int(site.processors.max()))


def _scores(site: LoggedSite, calibration: Calibration, order: Replacement | None) -> NDArray[np.float64]:
    """Hours that are added to the wait of each job."""
    if order is not None:
        return np.asarray(-order.length * site.estimate)
    given = calibration.get
    score = given("size", 0.0) * np.log2(site.processors) - given("length", 0.0) * np.log2(
        site.estimate / _HOUR
    )
    return np.asarray(score + np.array([given(f"priority {q}", 0.0) for q in site.queue_numbers])[site.queue])


def _numbers(
    site: LoggedSite, calibration: Calibration, order: Replacement | None, most: int
) -> kernel.Numbers:
    given = calibration.get
    plain = order or Replacement(expansion=given("expansion", 0.0))
    own = order is None
    return kernel.Numbers(
        backfilling=plain.backfilling,
        age=plain.age,
        expansion=plain.expansion,
        fair=given("fair", 0.0) if own else 0.0,
        half_life=_DAY * given("half_life", 7.0),
        notice=int(given("notice", 0.0)),
        week=site.week,
        most=most,
    )


def _rules(site: LoggedSite, calibration: Calibration, history: History) -> kernel.SiteRules:
    processors = _size(site, calibration)
    times, capacity = steps(site, processors, site.outages if "notice" in calibration else site.outages[:0])
    queue_processors = np.full(history.queues, FOREVER, np.int64)
    if "queue_share" in calibration:
        own = np.ceil(calibration["queue_share"] * history.queue_processors).astype(np.int64)
        queue_processors = np.where(history.queue_processors > 0, own, FOREVER)
    long_processors = np.full((7, 24), FOREVER, np.int64)
    if "long" in calibration:
        days, hours = (range(5), _DAYTIME) if calibration["daytime"] else (range(7), range(24))
        long_processors[days.start : days.stop, hours.start : hours.stop] = max(
            1, int(calibration["long_share"] * processors)
        )
    return kernel.SiteRules(
        queue_processors=queue_processors,
        long_processors=long_processors.reshape(168),
        times=times,
        capacity=capacity,
    )


STARTED = 0.99
"""Share of the jobs that have to start in a replay; else it says nothing."""


def judged(site: LoggedSite, waits: NDArray[Any], half: str) -> Explained:
    """Measures of waits over the jobs of a half ("first" or "second"); unknown where 1 % never started."""
    mine = site.known & (site.second if half == "second" else ~site.second)
    there = mine & (waits >= 0)
    if there.sum() < STARTED * mine.sum():
        return UNKNOWN
    return explained(waits[there], site.recorded[there])
