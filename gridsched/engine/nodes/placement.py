"""Which nodes, and which of their GPUs, a job gets.

Nodes are put in an order, best first, and each takes as many units as fit; under `SPREAD` they are dealt out
one by one. Scores are made of what is free now, whatever a plan says, since that is what a scheduler sees.

Best fit, packing, clustering, dot product and fragmentation gradient descent are those that Weng et al.,
"Beware of fragmentation: scheduling GPU-sharing workloads with fragmentation gradient descent", USENIX ATC
2023, compare, with the scores of their simulator: whole numbers up to 100, so that there are ties, which go
to the first node. Gradient descent needs them: with exact scores it allocates a point less on their trace.
Packing and clustering score jobs without GPUs equally everywhere, so that the order of nodes decides.
"""

from __future__ import annotations

import math

from gridsched.engine import heap
from gridsched.engine.jit import inline, noinline
from gridsched.engine.nodes.arrays import DEVICES, NodeArrays, NodeOptions
from gridsched.engine.nodes.plans import take_piece
from gridsched.engine.nodes.records import (
    BEST_FIT,
    DOT_PRODUCT,
    FIRST_FIT,
    FRAGMENTS,
    PACKED,
    RANDOM,
    SPREAD,
    WEIGHT,
    WHOLE,
    WORST_FIT,
)
from gridsched.engine.nodes.resources import (
    bits_of,
    find_least,
    parts_fit,
    room_of_parts,
    units_beside_plans,
    units_free,
)
from gridsched.engine.records import FOREVER

_STEPS = 100
"""Whole numbers that scores are rounded down to."""

_LOW = 2**31 - 1


@inline
def _random(seed: int, job: int, item: int) -> float:
    """A number that looks random, always the same for the same three."""
    value = (seed * 1000003 + job + 1) & _LOW
    for k in range(3):
        value = (value * 1103515245 + 12345 + item * 69069 + k) & _LOW
        value ^= value >> 15
    return float(value)


@inline
def _wanted_share(a: NodeArrays, j: int) -> int:
    """Thousandths of GPUs that a unit asks for."""
    return a.jobs[j]["gpus"] * WHOLE + a.jobs[j]["share"]


@inline
def _left_over(a: NodeArrays, j: int, n: int) -> float:
    """Cores and GPUs that stay free beside a unit, each as a part of the most that a node has."""
    left = (a.nodes[n]["free_cores"] - a.jobs[j]["cores"]) / a.largest[0]
    if a.largest[1] > 0:
        left += (a.nodes[n]["free_share"] - _wanted_share(a, j)) / (WHOLE * a.largest[1])
    return left


@inline
def _alignment(a: NodeArrays, j: int, n: int) -> float:
    """Product of what is free and what is asked for, each as a part of the most that a node has."""
    product = (a.nodes[n]["free_cores"] / a.largest[0]) * (a.jobs[j]["cores"] / a.largest[0])
    if a.largest[1] > 0:
        most = WHOLE * a.largest[1]
        product += (a.nodes[n]["free_share"] / most) * (_wanted_share(a, j) / most)
    return product


@inline
def _packing(a: NodeArrays, j: int, n: int) -> int:
    """GPUs in use first, the fullest ones, then idle GPUs of nodes in use, then idle nodes, small first."""
    node, job = a.nodes[n], a.jobs[j]
    idle = node["free_gpus"]
    if idle == node["gpus"]:
        return max(_STEPS // 3 - idle, idle)
    if job["gpus"] > 0:
        return max(_STEPS // 2 - job["gpus"], _STEPS // 3)
    smallest = WHOLE
    for d in range(node["device"], node["device"] + node["gpus"]):
        if a.devices[d] >= job["share"]:
            smallest = min(smallest, a.devices[d])
    if smallest == WHOLE:
        return _STEPS // 2 - 1
    return max(_STEPS - smallest * _STEPS // WHOLE // 10, _STEPS // 2)


@inline
def _affinities(a: NodeArrays, n: int) -> int:
    """Kinds of GPU jobs that run on a node: bits."""
    present = 0
    c = a.nodes[n]["change"]
    while c >= 0:
        j = a.pieces[c >> 1]["job"]
        if c & 1 and j >= 0 and a.jobs[j]["start"] >= 0 and a.jobs[j]["affinity"] >= 0:
            present |= 1 << a.jobs[j]["affinity"]
        c = a.changes[c]["next"]
    return present


@inline
def _clustering(a: NodeArrays, j: int, n: int) -> int:
    """Nodes whose GPU jobs are all of this kind first, then some, idle ones, others; fuller ones first."""
    present, own, most = _affinities(a, n), 1 << a.jobs[j]["affinity"], WHOLE * a.largest[1]
    quarter = 0
    if present == own:
        quarter = 3
    elif present & own:
        quarter = 2
    elif present == 0:
        quarter = 1
    return _STEPS // 4 * (most - a.nodes[n]["free_share"]) // most + quarter * _STEPS // 4


@inline
def _hosts(a: NodeArrays, n: int, k: int, cores: int, device: int, taken: int) -> bool:
    """Whether a node with so many cores, and so much less of one GPU, has room for a typical job."""
    kind = a.typical[k]
    if cores < kind["cores"] or not a.allowed[kind["where"], n]:
        return False
    count = 0
    for d in range(a.nodes[n]["gpus"]):
        free = a.level[DEVICES + d] - (taken if d == device else 0)
        count += int(free >= kind["share"])
    return count >= kind["gpus"]


@noinline
def _fragments_with(a: NodeArrays, n: int, cores: int, device: int, taken: int) -> float:
    """Thousandths of GPUs in `level`, `taken` from one, that are of no use to typical jobs, by frequency."""
    gpus = a.nodes[n]["gpus"]
    total = -taken if device >= 0 else 0
    for d in range(gpus):
        total += a.level[DEVICES + d]
    fragments = 0.0
    for k in range(len(a.typical)):
        kind = a.typical[k]
        if kind["gpus"] > 0 and _hosts(a, n, k, cores, device, taken):
            for d in range(gpus):
                free = a.level[DEVICES + d] - (taken if d == device else 0)
                if free < kind["share"]:
                    fragments += kind["frequency"] * free
        else:
            fragments += kind["frequency"] * total
    return fragments


@inline
def _copy_devices(a: NodeArrays, n: int) -> None:
    """Let the level have the GPUs as they are."""
    for d in range(a.nodes[n]["gpus"]):
        a.level[DEVICES + d] = a.devices[a.nodes[n]["device"] + d]


@inline
def fragments(a: NodeArrays, n: int) -> float:
    """Free thousandths of GPUs of a node that are of no use to typical jobs (Weng et al. 2023, section 3)."""
    if a.fragments[n] < 0:
        _copy_devices(a, n)
        a.fragments[n] = _fragments_with(a, n, a.nodes[n]["free_cores"], -1, 0)
    return a.fragments[n]


@inline
def _best_device(a: NodeArrays, j: int, n: int) -> int:
    """GPU, of those in `least`, that leaves the fewest fragments when a unit shares it; -1 if none can."""
    best, fewest = -1, 0.0
    for d in range(a.nodes[n]["gpus"]):
        if a.least[DEVICES + d] >= a.jobs[j]["share"]:
            left = _fragments_with(a, n, a.nodes[n]["free_cores"] - a.jobs[j]["cores"], d, a.jobs[j]["share"])
            if best < 0 or left < fewest:
                best, fewest = d, left
    return best


@noinline
def _new_fragments(a: NodeArrays, j: int, n: int) -> float:
    """By how much the fragments of a node grow with a unit."""
    before = fragments(a, n)
    _copy_devices(a, n)
    job, gpus = a.jobs[j], a.nodes[n]["gpus"]
    cores = a.nodes[n]["free_cores"] - job["cores"]
    if job["share"] > 0:
        for d in range(gpus):
            a.least[DEVICES + d] = a.level[DEVICES + d]
        best = _best_device(a, j, n)
        return _fragments_with(a, n, cores, best, job["share"]) - before
    wanted = job["gpus"]
    for d in range(gpus):
        if wanted > 0 and a.level[DEVICES + d] == WHOLE:
            a.level[DEVICES + d] = 0
            wanted -= 1
    return _fragments_with(a, n, cores, -1, 0) - before


@inline
def _score(a: NodeArrays, j: int, n: int, options: NodeOptions) -> float:
    """Place of a node in the order of a placement, smallest first."""
    placement = options.placement
    if placement == BEST_FIT:
        return -float(int((1.0 - 0.5 * _left_over(a, j, n)) * _STEPS))
    if placement in (WORST_FIT, SPREAD):
        return -_left_over(a, j, n)
    if placement == WEIGHT:
        return a.nodes[n]["weight"]
    if placement == RANDOM:
        return _random(options.seed, j, n)
    if placement == DOT_PRODUCT:
        return -float(int((1.0 - 0.5 * _alignment(a, j, n)) * _STEPS))
    if placement == FRAGMENTS:
        return -float(int(_STEPS / (1.0 + math.exp(_new_fragments(a, j, n) / WHOLE))))
    if placement == FIRST_FIT or _wanted_share(a, j) == 0:
        return 0.0
    return -float(_packing(a, j, n) if placement == PACKED else _clustering(a, j, n))


@inline
def _devices_for(a: NodeArrays, j: int, n: int, units: int, options: NodeOptions) -> int:
    """GPUs of a node, of those that `least` has, for so many units of a job: bits."""
    job, gpus = a.jobs[j], a.nodes[n]["gpus"]
    if job["share"] > 0:
        best = -1
        if options.placement == FRAGMENTS:
            _copy_devices(a, n)
            best = _best_device(a, j, n)
        else:
            for d in range(gpus):
                free = a.least[DEVICES + d]
                if free < job["share"]:
                    continue
                if options.placement == RANDOM:
                    better = best < 0 or _random(options.seed, j, -d - 1) < _random(
                        options.seed, j, -best - 1
                    )
                else:
                    better = best < 0 or free < a.least[DEVICES + best]
                if better:
                    best = d
        return 1 << best
    wanted, bits = job["gpus"] * units, 0
    for d in range(gpus):
        if wanted > 0 and a.least[DEVICES + d] == WHOLE:
            bits |= 1 << d
            wanted -= 1
    return bits


@inline
def _add_piece(a: NodeArrays, j: int, n: int, units: int, start: int, options: NodeOptions) -> None:
    """Give a job units on a node from a time on."""
    job, node = a.jobs[j], a.nodes[n]
    p = take_piece(a)
    piece = a.pieces[p]
    piece["job"] = j
    piece["node"] = n
    piece["units"] = units
    piece["cores"] = node["cores"] if job["whole"] else units * job["cores"]
    piece["memory"] = node["memory"] if job["whole"] else units * job["memory"]
    piece["share"] = 0
    piece["devices"] = 0
    if job["whole"]:
        piece["share"] = WHOLE
        piece["devices"] = (1 << node["gpus"]) - 1
    elif job["gpus"] + job["share"] > 0:
        find_least(a, n, start, start + job["estimate"])
        piece["share"] = job["share"] if job["share"] > 0 else WHOLE
        piece["devices"] = _devices_for(a, j, n, units, options)
    piece["next"] = job["piece"]
    job["piece"] = p


@inline
def _share_out(a: NodeArrays, j: int, count: int, spread: bool) -> int:
    """Say in `turns` how many units each ranked node gets; return how many nodes get some."""
    for k in range(count):
        a.turns[k]["key"] = 0
    wanted, used = a.jobs[j]["units"], 0
    while wanted > 0:
        for k in range(count):
            room = a.fitting[a.turns[k]["job"]] - a.turns[k]["key"]
            if a.jobs[j]["parts"] > 0:
                room = min(room, room_of_parts(a, j, a.turns[k]["job"], count))
            given = min(wanted, min(room, 1) if spread else room)
            used += int(given > 0 and a.turns[k]["key"] == 0)
            a.turns[k]["key"] += given
            wanted -= given
    return used


@inline
def _rank(a: NodeArrays, j: int, options: NodeOptions) -> int:
    """List in `turns` the nodes for a job, best first; return how many."""
    wanted, looked = a.jobs[j]["units"], a.state[0]["looked"]
    if a.jobs[j]["parts"] > 0:
        wanted = FOREVER  # any node may be needed
    count, room, best = 0, 0, -1
    if options.placement == FIRST_FIT:
        for n in range(looked):
            if a.fitting[n] > 0 and room < wanted:
                a.turns[count]["job"] = n
                room += a.fitting[n]
                count += 1
        return count
    for n in range(looked):
        if a.fitting[n] > 0:
            a.scores[n] = _score(a, j, n, options)
            if best < 0 or a.scores[n] < a.scores[best]:
                best = n
    if a.fitting[best] >= wanted and (wanted == 1 or options.placement != SPREAD):
        a.turns[0]["job"] = best
        return 1
    size = 0
    for n in range(looked):
        if a.fitting[n] > 0:
            size = heap.push(a.ranking, size, a.scores[n], n)
    while size > 0 and (room < wanted or options.placement == SPREAD):
        n = a.ranking[0]["job"]
        size = heap.pop(a.ranking, size)
        a.turns[count]["job"] = n
        room += a.fitting[n]
        count += 1
    return count


@noinline
def choose(a: NodeArrays, j: int, start: int, options: NodeOptions) -> bool:
    """Give a job its pieces from a time on; `fitting` says how many units fit where, enough in all.

    False, with `short` set, if there is no room to write them down.
    """
    store = a.store[0]
    count = _rank(a, j, options)
    used = _share_out(a, j, count, options.placement == SPREAD)
    if used > store["free_pieces"] or store["executions"] + used > len(a.executions):
        store["short"] = used
        return False
    for k in range(count):
        if a.turns[k]["key"] > 0:
            _add_piece(a, j, a.turns[k]["job"], a.turns[k]["key"], start, options)
    return True


@inline
def is_refused(a: NodeArrays, j: int) -> bool:
    """Whether a job of this shape did not fit since something became free last."""
    return a.refused[a.jobs[j]["shape"]] == a.state[0]["freed"]


@noinline
def could_fit(a: NodeArrays, j: int) -> bool:
    """Whether enough is free for a job now, whatever is planned."""
    job = a.jobs[j]
    if is_refused(a, j):
        return False
    for choice in range(job["choices"]):
        job["choice"], free = bits_of(a, j, choice), 0
        for n in range(len(a.nodes)):
            free += units_free(a, j, n)
            if free >= job["units"]:
                return True
    a.refused[a.jobs[j]["shape"]] = a.state[0]["freed"]
    return False


@noinline
def fits_now(a: NodeArrays, j: int, now: int, options: NodeOptions) -> bool:
    """Whether a job can start now beside all that is planned; `fitting` says how many units fit where."""
    job, enough = a.jobs[j], False
    for choice in range(job["choices"]):
        job["choice"] = bits_of(a, j, choice)
        fitting, free = _units_now(a, j, now, options)
        if fitting >= job["units"] and (job["parts"] == 0 or parts_fit(a, j)):
            return True
        enough |= free >= job["units"]
    if not enough:
        a.refused[job["shape"]] = a.state[0]["freed"]
    return False


@inline
def _units_now(a: NodeArrays, j: int, now: int, options: NodeOptions) -> tuple[int, int]:
    """Units of a job that fit now beside all that is planned, and whatever is planned, for one choice."""
    wanted, state = a.jobs[j]["units"], a.state[0]
    fitting, free = 0, 0
    for n in range(len(a.nodes)):
        units = units_free(a, j, n)
        free += units
        if units > 0 and a.nodes[n]["plans"] > 0:
            units = units_beside_plans(a, j, n, now)
        a.fitting[n] = units
        fitting += units
        if fitting >= wanted and options.placement == FIRST_FIT and a.jobs[j]["parts"] == 0:
            state["looked"] = n + 1
            return fitting, free
    state["looked"] = len(a.nodes)
    return fitting, free
