"""What is free on the nodes, now and over a time, and how many units of a job fit into it."""

from __future__ import annotations

from typing import Any

from gridsched.engine.jit import inline, noinline
from gridsched.engine.nodes.arrays import CLOSED, CORES, DEVICES, MEMORY, UNTIL, NodeArrays
from gridsched.engine.nodes.records import WHOLE
from gridsched.engine.records import FOREVER


@inline
def is_closed(a: NodeArrays, n: int) -> bool:
    """Whether a node takes no jobs now."""
    node = a.nodes[n]
    return node["down"] + node["drained"] + node["windows"] > 0


@inline
def _count_gpus(a: NodeArrays, n: int) -> None:
    """Update what a node has recorded about its GPUs."""
    node = a.nodes[n]
    idle, free, largest = 0, 0, 0
    for d in range(node["device"], node["device"] + node["gpus"]):
        idle += int(a.devices[d] == WHOLE)
        free += a.devices[d]
        largest = max(largest, a.devices[d])
    node["free_gpus"] = idle
    node["free_share"] = free
    node["largest_share"] = largest


@inline
def _hand_over(a: NodeArrays, p: int, sign: int) -> None:
    """Take (-1) or give back (1) what a piece has."""
    piece = a.pieces[p]
    node = a.nodes[piece["node"]]
    node["free_cores"] += sign * piece["cores"]
    node["free_memory"] += sign * piece["memory"]
    node["pieces"] -= sign
    a.fragments[piece["node"]] = -1.0
    if piece["devices"] != 0:
        for d in range(node["gpus"]):
            if (piece["devices"] >> d) & 1:
                a.devices[node["device"] + d] += sign * piece["share"]
        _count_gpus(a, piece["node"])


@inline
def take(a: NodeArrays, p: int) -> None:
    """Let a piece have what it asks for from now on."""
    _hand_over(a, p, -1)


@inline
def give_back(a: NodeArrays, p: int) -> None:
    """Free what a piece has."""
    _hand_over(a, p, 1)


@inline
def _apply(a: NodeArrays, c: int, gpus: int) -> None:
    """Let a change happen to the level."""
    piece = a.pieces[c >> 1]
    sign = 2 * (c & 1) - 1
    if piece["job"] < 0:
        a.level[CLOSED] -= sign
        return
    a.level[CORES] += sign * piece["cores"]
    a.level[MEMORY] += sign * piece["memory"]
    if piece["devices"] != 0:
        for d in range(gpus):
            if (piece["devices"] >> d) & 1:
                a.level[DEVICES + d] += sign * piece["share"]


@inline
def _set_level(a: NodeArrays, n: int, gpus: int) -> None:
    """Let the level be what is free now, of so many GPUs."""
    node = a.nodes[n]
    a.level[CORES] = node["free_cores"]
    a.level[MEMORY] = node["free_memory"]
    a.level[CLOSED] = node["down"] + node["drained"] + node["windows"]
    for d in range(gpus):
        a.level[DEVICES + d] = a.devices[node["device"] + d]


@inline
def _lower(a: NodeArrays, gpus: int, anew: bool) -> None:
    """Let the least be no more than the level; `anew` the level itself."""
    if anew:
        for k in range(DEVICES + gpus):
            a.least[k] = a.level[k]
        return
    a.least[CORES] = min(a.least[CORES], a.level[CORES])
    a.least[MEMORY] = min(a.least[MEMORY], a.level[MEMORY])
    a.least[CLOSED] = max(a.least[CLOSED], a.level[CLOSED])
    for d in range(gpus):
        a.least[DEVICES + d] = min(a.least[DEVICES + d], a.level[DEVICES + d])


@noinline
def find_least(a: NodeArrays, n: int, start: int, end: int) -> None:
    """Write into `least` what is free on a node throughout [start, end), and until which start that holds."""
    gpus = a.nodes[n]["gpus"]
    _set_level(a, n, gpus)
    begun = False
    until = FOREVER
    c = a.nodes[n]["change"]
    while c >= 0:
        time = a.changes[c]["time"]
        if time > start and not begun:
            begun = True
            until = time
            _lower(a, gpus, True)
        if time >= end:
            if c & 1 == 0:
                until = min(until, time - (end - start) + 1)
                break
        else:
            _apply(a, c, gpus)
            if begun and c & 1 == 0:
                _lower(a, gpus, False)
        c = a.changes[c]["next"]
    if not begun:
        _lower(a, gpus, True)
    a.least[UNTIL] = until


@inline
def _units_in(a: NodeArrays, j: int, cores: int, memory: int, gpus: int, largest_share: int) -> int:
    """Units of a job that fit into so much on one node."""
    job = a.jobs[j]
    if cores < job["cores"] or memory < job["memory"] or gpus < job["gpus"] or largest_share < job["share"]:
        return 0
    units = job["most"]
    if units > 1:
        if job["cores"] > 0:
            units = min(units, cores // job["cores"])
        if job["memory"] > 0:
            units = min(units, memory // job["memory"])
        if job["gpus"] > 0:
            units = min(units, gpus // job["gpus"])
    return units


@inline
def _units_in_slots(a: NodeArrays, j: int, n: int, free: Any, gpus: int) -> int:
    """Units of a job that fit into what is free, a level or the least, of so many GPUs."""
    node = a.nodes[n]
    if free[CLOSED] > 0:
        return 0
    if a.jobs[j]["whole"] and (free[CORES] < node["cores"] or free[MEMORY] < node["memory"]):
        return 0
    idle, largest = 0, 0
    for d in range(gpus):
        idle += int(free[DEVICES + d] == WHOLE)
        largest = max(largest, free[DEVICES + d])
    return _units_in(a, j, free[CORES], free[MEMORY], idle, largest)


@inline
def _units_in_least(a: NodeArrays, j: int, n: int) -> int:
    """Units of a job that fit into `least`."""
    return _units_in_slots(a, j, n, a.least, a.nodes[n]["gpus"])


@noinline
def _fewest_units(a: NodeArrays, j: int, n: int, start: int, gpus: int) -> int:
    """Fewest units of a job that fit at an instant while it runs; `least` says until which start that holds.

    The start moves on over the changes of the node as long as the answer stays: the time that allows no more
    is still in the time of the job, and nothing that allows less has come into it.
    """
    length = a.jobs[j]["estimate"]
    _set_level(a, n, gpus)
    c = a.nodes[n]["change"]
    while c >= 0 and a.changes[c]["time"] <= start:
        _apply(a, c, gpus)
        c = a.changes[c]["next"]
    fewest = _units_in_slots(a, j, n, a.level, gpus)
    until = FOREVER
    while c >= 0:
        time = a.changes[c]["time"]
        # an end after that gives no less, if nothing is planned
        if until < FOREVER and (time - length >= until or a.nodes[n]["plans"] == 0):
            break
        while c >= 0 and a.changes[c]["time"] == time:
            _apply(a, c, gpus)
            c = a.changes[c]["next"]
        units = _units_in_slots(a, j, n, a.level, gpus)
        if units < fewest and time - length >= start:
            until = time - length + 1
            break
        if units <= fewest:
            fewest = units
            until = FOREVER
        elif until == FOREVER:
            until = time
    a.least[UNTIL] = until
    return fewest


@inline
def bits_of(a: NodeArrays, j: int, choice: int) -> int:
    """Bits of `allowed` of which a node has to have one, for a choice of nodes of a job."""
    parts = a.jobs[j]["parts"]
    return 1 << choice if parts == 0 else (1 << parts) - 1


@inline
def _units_of(a: NodeArrays, j: int, these: int) -> int:
    """Units of a job that some of its parts, bits, have."""
    job = a.jobs[j]
    last = job["parts"] - 1
    units, others = 0, job["units"]
    for part in range(last):
        number = a.numbers[job["where"], part]
        units += number if these >> part & 1 else 0
        others -= number
    return units + others if these >> last & 1 else units


@noinline
def parts_fit(a: NodeArrays, j: int) -> bool:
    """Whether what `fitting` says is enough for each part of a job, and for all of them together.

    So it is if any of its parts have as many units as they need on the nodes of one of them (Hall's theorem).
    """
    job = a.jobs[j]
    for these in range(1, 1 << job["parts"]):
        wanted = _units_of(a, j, these)
        for n in range(a.state[0]["looked"]):
            if a.allowed[job["where"], n] & these != 0:
                wanted -= a.fitting[n]
        if wanted > 0:
            return False
    return True


@noinline
def room_of_parts(a: NodeArrays, j: int, n: int, ranked: int) -> int:
    """Units that a node may have beside those that `turns` gives to ranked ones: each part has its own.

    Those on nodes of some parts alone are no more than these parts have. Who takes what that leaves, from the
    best node on, ends with the best nodes that there are (a greedy choice in a transversal matroid).
    """
    job = a.jobs[j]
    own, room = a.allowed[job["where"], n], job["units"]
    for these in range(1, 1 << job["parts"]):
        if own & ~these == 0:
            left = _units_of(a, j, these)
            for k in range(ranked):
                if a.allowed[job["where"], a.turns[k]["job"]] & ~these == 0:
                    left -= a.turns[k]["key"]
            room = min(room, left)
    return room


@inline
def units_free(a: NodeArrays, j: int, n: int) -> int:
    """Units of a job for which enough is free on a node now, whatever is planned."""
    job, node = a.jobs[j], a.nodes[n]
    # most nodes of a busy cluster have too few free cores, so that this is asked first
    if node["free_cores"] < job["cores"] or a.allowed[job["where"], n] & job["choice"] == 0:
        return 0
    if is_closed(a, n) or (job["whole"] and node["pieces"] > 0):
        return 0
    return _units_in(a, j, node["free_cores"], node["free_memory"], node["free_gpus"], node["largest_share"])


@inline
def units_beside_plans(a: NodeArrays, j: int, n: int, now: int) -> int:
    """Units of a job that fit on a node with plans if it starts now."""
    find_least(a, n, now, now + a.jobs[j]["estimate"])
    return _units_in_least(a, j, n)


@inline
def units_at(a: NodeArrays, j: int, n: int, start: int) -> int:
    """Units of a job that fit on a node if it starts then; `least` says until which start."""
    job = a.jobs[j]
    if a.allowed[job["where"], n] & job["choice"] == 0:
        a.least[UNTIL] = FOREVER
        return 0
    gpus = a.nodes[n]["gpus"] if job["gpus"] + job["share"] > 0 else 0
    units = _fewest_units(a, j, n, start, gpus)
    if units > 0 and gpus > 0:
        # at each instant other GPUs may be free
        find_least(a, n, start, start + job["estimate"])
        units = _units_in_least(a, j, n)
    return units
