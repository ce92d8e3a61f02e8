"""The grid scheduler of a dynamic grid: reports, the queues CJ and NJ, cliques, confirmations.

Cliques are the maximal ones of the whole graph, found before the simulation; a cluster that is not in the
grid has no processors for anybody, so that what is chosen of a clique is always a clique of clusters that
are.
"""

from __future__ import annotations

from collections.abc import Iterator

from gridsched.engine import line
from gridsched.engine.jit import inline, noinline
from gridsched.engine.records import FOREVER, LARGEST
from gridsched.engine.reference import by_reference
from gridsched.systems.dynamic_grid.kernels.jobs import add_part, begin_spell, cost_of, expected_length
from gridsched.systems.dynamic_grid.kernels.state import (
    IN_PROGRESS,
    NEW,
    NOBODY,
    DynamicGridArrays,
    DynamicGridOptions,
    has_room,
    offered,
    whole,
)


@inline
def _forget_refusals(g: DynamicGridArrays) -> None:
    """Try all jobs anew: who was refused may have a place now."""
    g.clock[0]["retest"] = 1
    g.grid_queues.span[NEW, 0]["tested"] = 0


@noinline
def renew(g: DynamicGridArrays, o: DynamicGridOptions) -> None:
    """Let the grid scheduler look at everything anew, as the clusters in the grid or their nodes changed."""
    _forget_refusals(g)
    g.clock[0]["capacity"] = NOBODY
    _set_most(g, o)


@inline
def _learn(g: DynamicGridArrays, i: int, processors: int, o: DynamicGridOptions) -> None:
    """Believe that a cluster has so many processors for the grid."""
    clock = g.clock[0]
    # without a slow cluster, jobs are expected to end before leases do that they would have outlasted
    if processors > g.clusters[i]["view"] or (o.heeds and processors == 0 < g.clusters[i]["view"]):
        _forget_refusals(g)
    if processors != g.clusters[i]["view"]:
        clock["capacity"] = NOBODY
    g.clusters[i]["view"] = processors


@noinline
def report(g: DynamicGridArrays, only_new: bool, o: DynamicGridOptions) -> None:
    """Let all clusters of the grid report, or only those that have just joined."""
    for i in range(len(g.clusters)):
        cluster = g.clusters[i]
        if cluster["member"] != 0 and (not only_new or cluster["view"] == NOBODY):
            processors = offered(g, i, o)
            cluster["changes"] += processors != cluster["view"]
            _learn(g, i, processors, o)
    if not only_new:
        g.clock[0]["unreported"] = 0


@inline
def _members(g: DynamicGridArrays, c: int) -> Iterator[int]:
    """The clusters of a clique."""
    for k in range(g.clique_ends[c], g.clique_ends[c + 1]):
        yield g.cliques[k]


@inline
def _believed(g: DynamicGridArrays, i: int, until: int) -> int:
    """Processors that a job which is expected to end at a time may have of a cluster."""
    cluster = g.clusters[i]
    return int(cluster["view"]) if cluster["member"] != 0 and cluster["lease"] >= until else 0


@noinline
def _set_capacity(g: DynamicGridArrays) -> None:
    """Find how many processors are believed to be available in the best clique."""
    best = 0
    for c in range(len(g.clique_ends) - 1):
        total = 0
        for i in _members(g, c):
            total += _believed(g, i, 0)
        best = max(best, total)
    g.clock[0]["capacity"] = best


@inline
def _take_largest(g: DynamicGridArrays, c: int) -> tuple[int, int]:
    """The first cluster of a clique that has most in `scratch[2]`, and what; it has nothing from then on."""
    chosen = g.cliques[g.clique_ends[c]]
    for i in _members(g, c):
        if g.scratch[2, i] > g.scratch[2, chosen]:
            chosen = i
    has = g.scratch[2, chosen]
    g.scratch[2, chosen] = 0
    return chosen, has


@noinline
def _set_most(g: DynamicGridArrays, o: DynamicGridOptions) -> None:
    """Find how many processors the largest clique of the clusters in the grid has."""
    g.clock[0]["most"] = 0
    for c in range(len(g.clique_ends) - 1):
        for i in _members(g, c):
            cluster = g.clusters[i]
            g.scratch[2, i] = cluster["member"] * (cluster["processors"] - cluster["closed"])
        total = 0
        for _ in range(min(o.most_sites, g.clique_ends[c + 1] - g.clique_ends[c])):
            _, has = _take_largest(g, c)
            total += has
        g.clock[0]["most"] = max(g.clock[0]["most"], total)


@inline
def _first_in_turn(g: DynamicGridArrays, row: int) -> int:
    """Place of the first job of a queue that the clusters in the grid could hold; its end if none."""
    queue = by_reference(line.row(g.grid_queues, row))
    most = line.as_column(g.clock[0]["most"])
    return line.next_fit(queue, queue.span[0]["first"], most, most, line.as_column(0))


@inline
def _cost(g: DynamicGridArrays, j: int, o: DynamicGridOptions) -> int:
    """Seconds until a job that is sent to clusters can run."""
    resumes = o.keeps and g.progress[j]["left"] < g.requests[j]["run"] * o.work
    return cost_of(int(g.requests[j]["processors"]), o.resume_cost) if resumes else 0


@inline
def _until(g: DynamicGridArrays, j: int, clusters: int, pace: int, ready: int, o: DynamicGridOptions) -> int:
    """Until when clusters have to stay if a job runs there from a time on; 0 if leases are not looked at."""
    return ready + expected_length(g, j, clusters, pace, o) if o.heeds else 0


@noinline
def _choose_one(g: DynamicGridArrays, j: int, needed: int, ready: int, o: DynamicGridOptions) -> bool:
    """Choose one cluster that has all processors: with the fewest or most, then the first."""
    chosen = NOBODY
    best = 0
    for i in range(len(g.clusters)):
        has = _believed(g, i, _until(g, j, 1, g.clusters[i]["pace"], ready, o))
        if has >= needed and (chosen == NOBODY or (has > best if o.emptiest else has < best)):
            chosen = i
            best = has
    g.scratch[0, 0] = chosen
    g.scratch[1, 0] = needed
    g.clock[0]["chosen"] = 1
    return chosen != NOBODY


@inline
def _pace_of_clique(g: DynamicGridArrays, c: int) -> int:
    """Pace of the slowest cluster of a clique that is believed to have processors."""
    slowest = FOREVER
    for i in _members(g, c):
        if _believed(g, i, 0) > 0:
            slowest = min(slowest, g.clusters[i]["pace"])
    return 1 if slowest == FOREVER else slowest


@noinline
def _choose_clique(g: DynamicGridArrays, j: int, needed: int, ready: int, o: DynamicGridOptions) -> bool:
    """Choose as few clusters of a clique as have all processors together, those with the most first."""
    fewest = min(o.most_sites, len(g.clusters)) + 1
    g.clock[0]["chosen"] = 0
    for c in range(len(g.clique_ends) - 1):
        missing = needed
        until = _until(g, j, 2, _pace_of_clique(g, c), ready, o) if o.heeds else 0
        for i in _members(g, c):
            g.scratch[2, i] = _believed(g, i, until)
            missing -= g.scratch[2, i]
        if missing > 0:
            continue
        count = 0
        missing = needed
        while missing > 0 and count < fewest:
            g.scratch[3, count], has = _take_largest(g, c)
            missing -= has
            count += 1
        if count < fewest:
            fewest = count
            g.clock[0]["chosen"] = count
            for k in range(count):
                g.scratch[0, k] = g.scratch[3, k]
    for k in range(g.clock[0]["chosen"]):
        g.scratch[1, k] = min(needed, _believed(g, g.scratch[0, k], 0))
        needed -= g.scratch[1, k]
    return bool(g.clock[0]["chosen"] > 0)


@noinline
def _choose(g: DynamicGridArrays, j: int, now: int, o: DynamicGridOptions) -> bool:
    """Choose clusters for a job by what is believed of them; return whether there are such."""
    needed = int(g.requests[j]["processors"])
    if needed > g.clock[0]["capacity"]:
        return False
    ready = now + _cost(g, j, o)
    return _choose_one(g, j, needed, ready, o) or _choose_clique(g, j, needed, ready, o)


@inline
def _longest_lease(g: DynamicGridArrays, now: int, o: DynamicGridOptions) -> int:
    """Longest estimate of a job that a cluster with idle processors is known to stay for."""
    longest = 0
    for i in range(len(g.clusters)):
        if _believed(g, i, 0) > 0:
            lasts = g.clusters[i]["lease"] - now
            # No estimate in a queue is longer than LARGEST
            lasts = lasts * g.clusters[i]["pace"] // (o.work // o.scale) if lasts < LARGEST else lasts
            longest = max(longest, lasts)
    return longest


@noinline
def _next_new(g: DynamicGridArrays, now: int, o: DynamicGridOptions) -> int:
    """Place of the first candidate in NJ that was not refused yet; NOBODY if there is none."""
    queue = by_reference(line.row(g.grid_queues, NEW))
    span = queue.span[0]
    place = max(span["tested"], span["first"])
    # what clusters are believed to have may have failed
    capacity = line.as_column(min(g.clock[0]["capacity"], g.clock[0]["most"]))
    narrow = line.as_column(-1) if o.heeds else capacity
    window = line.as_column(_longest_lease(g, now, o) if o.heeds else 0)
    while place < span["end"]:
        if o.first_only:
            first = _first_in_turn(g, NEW)
            if first < place:
                return NOBODY
            place = first
        else:
            place = line.next_fit(queue, place, narrow, capacity, window)
        if place < span["end"]:
            span["tested"] = place
            if _choose(g, queue.job[place], now, o):
                return int(place)
            place += 1
    span["tested"] = place
    return NOBODY


@noinline
def _confirm(g: DynamicGridArrays, o: DynamicGridOptions) -> bool:
    """Ask the chosen clusters; return whether all have the processors. They tell how many they have."""
    clock = g.clock[0]
    confirmed = True
    for k in range(clock["chosen"]):
        i = g.scratch[0, k]
        has = offered(g, i, o)
        g.clusters[i]["asked"] += 1
        if has < g.scratch[1, k]:
            g.clusters[i]["refused"] += 1
            confirmed = False
            clock["retest"] = 1
        _learn(g, i, has, o)
    return confirmed


@noinline
def _send(g: DynamicGridArrays, j: int, now: int, o: DynamicGridOptions) -> None:
    """Let a job run on the chosen clusters."""
    clock = g.clock[0]
    cost = _cost(g, j, o)
    for k in range(clock["chosen"]):
        i = g.scratch[0, k]
        add_part(g, j, i, g.scratch[1, k])
        _learn(g, i, g.clusters[i]["view"] - whole(g, i, g.scratch[1, k]), o)
    clock["dispatches"] += clock["chosen"]
    begin_spell(g, j, now, cost, o)


@noinline
def take(g: DynamicGridArrays, row: int, place: int) -> int:
    """Let the job of a place wait no longer in a queue; return it."""
    queue = by_reference(line.row(g.grid_queues, row))
    j = int(queue.job[place])
    line.leave(queue, place)
    g.queued[row] -= 1
    line.tidy(queue, g.queued[row])
    return j


@noinline
def scheduling_pass(g: DynamicGridArrays, now: int, o: DynamicGridOptions) -> bool:
    """Send jobs of CJ and NJ to clusters until there is no candidate; return False if there is no room."""
    clock = g.clock[0]
    while g.queued[IN_PROGRESS] + g.queued[NEW] > 0:
        if not has_room(g):
            return False
        if clock["capacity"] == NOBODY:
            _set_capacity(g)
        row = IN_PROGRESS
        place = _first_in_turn(g, IN_PROGRESS)
        in_progress = place < g.grid_queues.span[IN_PROGRESS, 0]["end"]
        if in_progress and clock["retest"] != 0:
            clock["retest"] = int(_choose(g, g.grid_queues.job[IN_PROGRESS, place], now, o))
        if not in_progress or clock["retest"] == 0:
            if in_progress and o.strict:
                return True
            row = NEW
            place = _next_new(g, now, o) if g.queued[NEW] > 0 else NOBODY
            if place == NOBODY:
                return True
        if _confirm(g, o):
            _send(g, take(g, row, place), now, o)
    return True


@inline
def reports_next(g: DynamicGridArrays, o: DynamicGridOptions) -> int:
    """Time of the next report that may tell anything new."""
    clock = g.clock[0]
    if o.status_period == 0 or clock["unreported"] == 0:
        return FOREVER
    return (clock["now"] // o.status_period + 1) * o.status_period
