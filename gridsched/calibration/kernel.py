"""Replay of a site: EASY with what keeps jobs from starting at real sites, one small kernel.

A pass goes through the waiting jobs in order of their score. A job that a share of its queue, the processors
for long jobs or an announced outage keep from starting is passed over and holds up nobody. The first that
lacks processors has a reservation, as in EASY. Without any of this it is EASY of
`gridsched.engine.static_order`, start by start.

Under conservative backfilling every job that nothing keeps from starting has a place in a plan that is kept
between passes, as in `gridsched.engine.passes`. The plan is made anew when a job outruns its estimate, and
when processors come, go, or are announced to go.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gridsched.engine import heap, profile
from gridsched.engine.jit import inline, jit
from gridsched.engine.overrun import expected_end
from gridsched.engine.records import ENTRY, FOREVER, STEP

NONE = 0
FIRST_FIT = 1
EASY = 2
SHORTEST_FIRST = 3
"""EASY that tries the jobs behind the reservation by their estimates."""
CONSERVATIVE = 4

_HOUR = 3600
_WEEK = 168
_REFRESH = 600
"""Seconds after which the use of processors by users is added up anew."""


class ReplayJobs(NamedTuple):
    """Jobs in order of eligible time; before them those that run already, if any."""

    submit: Any  # int64[n]
    eligible: Any  # int64[n], when they enter the queue
    run: Any  # int64[n]
    estimate: Any  # int64[n], at least 1
    processors: Any  # int64[n]
    user: Any  # int64[n], from 0
    queue: Any  # int64[n], from 0
    score: Any  # float64[n], hours that are added to the wait
    long: Any  # int64[n], 1 for jobs that may have `SiteRules.long_processors` together, else 0
    begun: Any  # int64[n], start of those that run already, else -1


class SiteRules(NamedTuple):
    """What jobs may have together; a group that has nothing may always have one job."""

    queue_processors: Any  # int64[queues]
    long_processors: Any  # int64[168], by hour of the week
    times: Any  # int64[m], when the number of processors changes; the first before all jobs
    capacity: Any  # int64[m]


class Numbers(NamedTuple):
    """What else a replay depends on."""

    backfilling: int  # NONE, FIRST_FIT, EASY, SHORTEST_FIRST or CONSERVATIVE
    age: float  # weight of the hours that a job waited
    expansion: float  # weight of wait / estimate
    fair: float  # hours that a user loses who had all processors
    half_life: float  # seconds after which what a user had counts half
    notice: int  # seconds for which outages are known before
    week: int  # seconds from Monday, 0 h, to time 0
    most: int  # jobs that may wait; a replay with more is given up


class _State(NamedTuple):
    """Arrays of a replay."""

    starts: Any  # int64[n]
    ends: Any  # ENTRY[...], heap of the ends of running jobs
    expected: Any  # int64[...], expected ends of running jobs, sorted
    running: Any  # int64[...], these jobs
    waiting: Any  # int64[...], waiting jobs by score
    keys: Any  # float64[...], their scores
    user_processors: Any
    queue_processors: Any
    used: Any  # float64[users], processor-seconds that count
    shortest: Any  # ENTRY[...], heap of the places of waiting jobs by estimate
    plan: Any  # int64[n], planned starts; FOREVER for jobs without a place
    steps: Any  # STEP[...], what is free beside running jobs and plans
    now: Any  # int64[13], by the numbers below


_RUNNING, _ENDING, _WAITING, _BUSY, _ARRIVAL, _STEP, _COUNTED, _STARTED, _HOURLY, _LONG = range(10)
_PLANNED, _EARLY, _KNOWN = range(10, 13)
"""Next planned start; whether a job ended before it was expected to; what of outages the plan counts with, -1
where it has to be made anew."""


def replay(jobs: ReplayJobs, rules: SiteRules, numbers: Numbers, used: Any = None) -> Any:
    """Start time of each job [s], -1 for those that never started; see the module.

    Parameters
    ----------
    jobs : ReplayJobs
        The jobs.
    rules : SiteRules
        What they may have.
    numbers : Numbers
        How the queue is served.
    used : float64[users], optional
        Processor-seconds that users had when the replay begins; none if not given.
    """
    count = len(jobs.submit)
    users = int(jobs.user.max(initial=0)) + 1 if used is None else len(used)
    running = int(np.count_nonzero(jobs.begun >= 0))
    most = int(min(count, max(1, rules.capacity.max()) + running)) + 1
    planned = numbers.backfilling == CONSERVATIVE
    state = _State(
        starts=np.full(count, -1, np.int64),
        ends=np.empty(most + 1, ENTRY),
        expected=np.empty(most, np.int64),
        running=np.empty(most, np.int64),
        waiting=np.empty(count, np.int64),
        keys=np.empty(count, np.float64),
        user_processors=np.zeros(users, np.int64),
        queue_processors=np.zeros(len(rules.queue_processors), np.int64),
        used=np.zeros(users, np.float64) if used is None else used.astype(np.float64),
        shortest=np.empty(count if numbers.backfilling == SHORTEST_FIRST else 0, ENTRY),
        plan=np.full(count if planned else 0, FOREVER, np.int64),
        steps=np.empty(2 * (count + most) + 8 if planned else 0, STEP),
        now=np.zeros(13, np.int64),
    )
    hourly = bool((rules.long_processors < FOREVER).any())
    if count > running:
        _replay(jobs, rules, numbers, state, running, hourly)
    return state.starts


@jit
def _replay(
    jobs: ReplayJobs, rules: SiteRules, numbers: Numbers, s: _State, running: int, hourly: bool
) -> None:
    now = s.now
    now[_ARRIVAL] = running
    now[_PLANNED] = FOREVER
    now[_COUNTED] = jobs.eligible[running]
    for j in range(running):
        _run(jobs, s, j, jobs.begun[j], expected_end(jobs.begun[j], jobs.estimate[j], 0, now[_COUNTED]))
    changing = numbers.expansion != 0.0 or numbers.fair != 0.0
    while now[_STARTED] < len(jobs.submit):
        time = _next_event(jobs, rules, numbers, s, hourly)
        if time == FOREVER:
            return
        if numbers.fair != 0.0 and time - now[_COUNTED] >= _REFRESH:
            _count(numbers, s, time)
        while now[_ENDING] > 0 and s.ends[0]["key"] <= time:
            _end(jobs, s, time)
        while now[_RUNNING] > 0 and s.expected[0] <= time:
            j = s.running[0]
            _forget(s, 0)
            _expect(jobs, s, expected_end(s.starts[j], jobs.estimate[j], 0, time + 1), j)
            now[_KNOWN] = -1
        while now[_STEP] + 1 < len(rules.times) and rules.times[now[_STEP] + 1] <= time:
            now[_STEP] += 1
        while now[_ARRIVAL] < len(jobs.submit) and jobs.eligible[now[_ARRIVAL]] <= time:
            j = now[_ARRIVAL]
            now[_ARRIVAL] += 1
            _queue(s, now[_WAITING], jobs.score[j] - numbers.age * jobs.submit[j] / 3600.0, j)
            now[_WAITING] += 1
        if now[_WAITING] > numbers.most:
            return
        now[_HOURLY] = ((time + numbers.week) // _HOUR + 1) * _HOUR - numbers.week
        planned = numbers.backfilling == CONSERVATIVE
        if now[_WAITING] == 0 or (rules.capacity[now[_STEP]] <= now[_BUSY] and not planned):
            continue
        if changing:
            _sort(jobs, numbers, s, time)
        if planned:
            _plan_pass(jobs, rules, numbers, s, time)
        else:
            _pass(jobs, rules, numbers, s, time)


@inline
def _next_event(jobs: ReplayJobs, rules: SiteRules, numbers: Numbers, s: _State, hourly: bool) -> int:
    """Time of the next event; without waiting jobs only ends and submissions count."""
    now = s.now
    time = FOREVER
    if now[_ARRIVAL] < len(jobs.submit):
        time = jobs.eligible[now[_ARRIVAL]]
    if now[_ENDING] > 0:
        time = min(time, s.ends[0]["key"])
    if now[_WAITING] > 0:
        time = min(time, now[_PLANNED])
        if now[_RUNNING] > 0:
            time = min(time, s.expected[0])
        if now[_STEP] + 1 < len(rules.times):
            time = min(time, rules.times[now[_STEP] + 1])
        if hourly:
            time = min(time, now[_HOURLY])
    return time


@inline
def _queue(s: _State, place: int, key: float, j: int) -> None:
    """Put a job among the `place` first waiting jobs; ties go by number."""
    while place > 0 and (s.keys[place - 1] < key or (s.keys[place - 1] == key and s.waiting[place - 1] > j)):
        s.keys[place] = s.keys[place - 1]
        s.waiting[place] = s.waiting[place - 1]
        place -= 1
    s.keys[place] = key
    s.waiting[place] = j


@inline
def _count(numbers: Numbers, s: _State, time: int) -> None:
    """Add up what users had since this was done last, as if they had what they have now."""
    length = time - s.now[_COUNTED]
    rest = 0.5 ** (length / numbers.half_life)
    for u in range(len(s.used)):
        s.used[u] = s.used[u] * rest + s.user_processors[u] * length
    s.now[_COUNTED] = time


@inline
def _sort(jobs: ReplayJobs, numbers: Numbers, s: _State, time: int) -> None:
    """Order the waiting jobs by their present scores."""
    now = s.now
    total = 0.0
    if numbers.fair != 0.0:
        for u in range(len(s.used)):
            total += s.used[u]
    for place in range(now[_WAITING]):
        j = s.waiting[place]
        key = jobs.score[j] - numbers.age * jobs.submit[j] / 3600.0
        key += numbers.expansion * (time - jobs.submit[j]) / jobs.estimate[j]
        if total > 0.0:
            key -= numbers.fair * s.used[jobs.user[j]] / total
        _queue(s, place, key, j)


@inline
def _expect(jobs: ReplayJobs, s: _State, end: int, j: int) -> None:
    """Add a running job by its expected end."""
    place = s.now[_RUNNING]
    while place > 0 and s.expected[place - 1] > end:
        s.expected[place] = s.expected[place - 1]
        s.running[place] = s.running[place - 1]
        place -= 1
    s.expected[place] = end
    s.running[place] = j
    s.now[_RUNNING] += 1


@inline
def _forget(s: _State, place: int) -> None:
    """Take out the running job at a place."""
    s.now[_RUNNING] -= 1
    for k in range(place, s.now[_RUNNING]):
        s.expected[k] = s.expected[k + 1]
        s.running[k] = s.running[k + 1]


@inline
def _have(jobs: ReplayJobs, s: _State, j: int, sign: int) -> None:
    """Count a job that starts (1) or ends (-1)."""
    processors = sign * jobs.processors[j]
    s.now[_BUSY] += processors
    s.user_processors[jobs.user[j]] += processors
    s.queue_processors[jobs.queue[j]] += processors
    s.now[_LONG] += processors * jobs.long[j]


@inline
def _end(jobs: ReplayJobs, s: _State, time: int) -> None:
    """Let the first running job end."""
    j = s.ends[0]["job"]
    s.now[_ENDING] = heap.pop(s.ends, s.now[_ENDING])
    place = 0
    while s.running[place] != j:
        place += 1
    if s.expected[place] > time:
        s.now[_EARLY] = 1
    _forget(s, place)
    _have(jobs, s, j, -1)


@inline
def _run(jobs: ReplayJobs, s: _State, j: int, start: int, end: int) -> None:
    """Let a job run from a time on, which is expected to end at another."""
    s.starts[j] = start
    s.now[_STARTED] += 1
    _have(jobs, s, j, 1)
    _expect(jobs, s, end, j)
    s.now[_ENDING] = heap.push(s.ends, s.now[_ENDING], start + jobs.run[j], j)


@inline
def _is_held(jobs: ReplayJobs, rules: SiteRules, s: _State, j: int, hour: int) -> bool:
    """Whether a share of processors keeps a job from starting."""
    size, queue = jobs.processors[j], jobs.queue[j]
    held: bool = (
        s.queue_processors[queue] > 0 and s.queue_processors[queue] + size > rules.queue_processors[queue]
    ) or (jobs.long[j] == 1 and s.now[_LONG] > 0 and s.now[_LONG] + size > rules.long_processors[hour])
    return held


@inline
def _next_outage(rules: SiteRules, numbers: Numbers, s: _State, time: int) -> int:
    """Place of the outage that is known and begins next, -1 if there is none."""
    following: int = s.now[_STEP] + 1
    if (
        following < len(rules.times)
        and rules.times[following] <= time + numbers.notice
        and rules.capacity[following] < rules.capacity[s.now[_STEP]]
    ):
        return following
    return -1


@inline
def _drop_started(s: _State) -> None:
    """Keep the jobs that still wait, in their order."""
    kept = 0
    for place in range(s.now[_WAITING]):
        s.waiting[kept], s.keys[kept] = s.waiting[place], s.keys[place]
        kept += int(s.starts[s.waiting[kept]] < 0)
    s.now[_WAITING] = kept


@inline
def _pass(jobs: ReplayJobs, rules: SiteRules, numbers: Numbers, s: _State, time: int) -> None:
    """Start waiting jobs."""
    now = s.now
    free = rules.capacity[now[_STEP]] - now[_BUSY]
    hour = ((time + numbers.week) // _HOUR) % _WEEK
    outage, left = FOREVER, 0
    following = _next_outage(rules, numbers, s, time)
    if following >= 0:
        outage, left = rules.times[following], rules.capacity[following]
        for k in range(now[_RUNNING]):
            if s.expected[k] > outage:
                left -= jobs.processors[s.running[k]]
    shadow, extra, reserved = FOREVER, 0, False
    listed = 0
    for turn in range(now[_WAITING]):
        place = turn
        if reserved and numbers.backfilling == SHORTEST_FIRST:
            if listed == 0:
                for k in range(turn, now[_WAITING]):
                    listed = heap.push(s.shortest, listed, jobs.estimate[s.waiting[k]], k)
            place = s.shortest[0]["job"]
            listed = heap.pop(s.shortest, listed)
        j = s.waiting[place]
        size, end = jobs.processors[j], time + jobs.estimate[j]
        can = free > 0 and not (end > outage and size > left) and not _is_held(jobs, rules, s, j, hour)
        if can and reserved:
            can = size <= free and (end <= shadow or size <= extra)
        elif can and size > free:
            can = False
            if numbers.backfilling == NONE:
                free = 0
            elif numbers.backfilling >= EASY:
                reserved = True
                extra = free
                k = 0
                while k < now[_RUNNING] and (extra < size or s.expected[k] == shadow):
                    extra += jobs.processors[s.running[k]]
                    shadow = s.expected[k]
                    k += 1
                extra -= size
                if extra < 0:
                    # it waits for processors that are out
                    shadow, extra = FOREVER, 0
        if can:
            if reserved and end > shadow:
                extra -= size
            free -= size
            if end > outage:
                left -= size
            _run(jobs, s, j, time, end)
    _drop_started(s)


@inline
def _place(jobs: ReplayJobs, s: _State, high: Any, time: int, j: int) -> Any:
    """Give a waiting job the earliest place that is not later than the one it has; return the new `high`."""
    size, length, old = jobs.processors[j], jobs.estimate[j], s.plan[j]
    start = profile.earliest_fit(s.steps, 0, high, time, size, length, old)
    if start < old:
        if old < FOREVER:
            high = profile.change(s.steps, 0, high, old, old + length, size)
        high = profile.change(s.steps, 0, high, start, start + length, -size)
        s.plan[j] = start
    return high


@inline
def _plan_pass(jobs: ReplayJobs, rules: SiteRules, numbers: Numbers, s: _State, time: int) -> None:
    """Repair the plan after what happened, place new jobs, start those that are due."""
    now, steps = s.now, s.steps
    hour = ((time + numbers.week) // _HOUR) % _WEEK
    following = _next_outage(rules, numbers, s, time)
    known = 2 * now[_STEP] + int(following >= 0)
    broken = known != now[_KNOWN]
    now[_KNOWN] = known
    steps[0]["time"], steps[0]["free"] = time, rules.capacity[now[_STEP]] - now[_BUSY]
    high = 1
    for k in range(now[_RUNNING]):
        free = steps[high - 1]["free"] + jobs.processors[s.running[k]]
        if steps[high - 1]["time"] < s.expected[k]:
            high += 1
        steps[high - 1]["time"], steps[high - 1]["free"] = s.expected[k], free
    if following >= 0:
        until = rules.times[following + 1] if following + 1 < len(rules.times) else FOREVER
        lost = rules.capacity[now[_STEP]] - rules.capacity[following]
        high = profile.change(steps, 0, high, rules.times[following], until, -lost)
    for place in range(now[_WAITING]):
        j = s.waiting[place]
        if broken or _is_held(jobs, rules, s, j, hour):
            s.plan[j] = FOREVER
        elif s.plan[j] < FOREVER:
            end = s.plan[j] + jobs.estimate[j]
            high = profile.change(steps, 0, high, s.plan[j], end, -jobs.processors[j])
    for is_new in (False, True):
        for place in range(now[_WAITING]):
            j = s.waiting[place]
            turn = (s.plan[j] == FOREVER) == is_new and (is_new or now[_EARLY] == 1)
            if turn and not _is_held(jobs, rules, s, j, hour):
                high = _place(jobs, s, high, time, j)
    now[_EARLY] = 0
    now[_PLANNED] = FOREVER
    for place in range(now[_WAITING]):
        j = s.waiting[place]
        if s.plan[j] > time:
            now[_PLANNED] = min(now[_PLANNED], s.plan[j])
        elif _is_held(jobs, rules, s, j, hour):
            s.plan[j] = FOREVER
        else:
            _run(jobs, s, j, time, time + jobs.estimate[j])
    _drop_started(s)
