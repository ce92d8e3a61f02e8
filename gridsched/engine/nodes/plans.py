"""When something will be free: the changes that are known of each node, and the earliest place for a job.

A running job ends when it is expected to; a planned job and a maintenance window begin and end. Each node
keeps these changes in a list by time; at one time ends come first.
"""

from __future__ import annotations

from gridsched.engine import heap
from gridsched.engine.jit import inline, noinline
from gridsched.engine.nodes.arrays import UNTIL, NodeArrays
from gridsched.engine.nodes.resources import bits_of, parts_fit, units_at, units_free
from gridsched.engine.records import FOREVER


@inline
def take_piece(a: NodeArrays) -> int:
    """A free piece, to be used from now on; there must be one."""
    store = a.store[0]
    p = store["free_piece"]
    store["free_piece"] = a.pieces[p]["next"]
    store["free_pieces"] -= 1
    return p


@inline
def free_piece(a: NodeArrays, p: int) -> None:
    """Let a piece be free."""
    store = a.store[0]
    a.pieces[p]["next"] = store["free_piece"]
    store["free_piece"] = p
    store["free_pieces"] += 1


@inline
def free_pieces_of(a: NodeArrays, j: int) -> None:
    """Let a job have no pieces."""
    p = a.jobs[j]["piece"]
    while p >= 0:
        following = a.pieces[p]["next"]
        free_piece(a, p)
        p = following
    a.jobs[j]["piece"] = -1


@inline
def _is_before(a: NodeArrays, c: int, time: int, is_end: int) -> bool:
    """Whether a change comes before one at a time."""
    own = a.changes[c]["time"]
    return own < time or (own == time and (c & 1) >= is_end)


@inline
def _link(a: NodeArrays, n: int, c: int, time: int) -> None:
    """Put a change into the list of a node."""
    a.changes[c]["time"] = time
    before = -1
    after = a.nodes[n]["change"]
    while after >= 0 and _is_before(a, after, time, c & 1):
        before = after
        after = a.changes[after]["next"]
    a.changes[c]["next"] = after
    if before < 0:
        a.nodes[n]["change"] = c
    else:
        a.changes[before]["next"] = c


@inline
def _unlink(a: NodeArrays, n: int, c: int) -> None:
    """Take a change out of the list of a node."""
    before = -1
    k = a.nodes[n]["change"]
    while k != c:
        before = k
        k = a.changes[k]["next"]
    if before < 0:
        a.nodes[n]["change"] = a.changes[c]["next"]
    else:
        a.changes[before]["next"] = a.changes[c]["next"]


@noinline
def expect_end(a: NodeArrays, p: int, time: int) -> None:
    """Note when a piece is expected to end."""
    _link(a, a.pieces[p]["node"], 2 * p + 1, time)


@noinline
def forget_end(a: NodeArrays, p: int) -> None:
    """Forget when a piece was expected to end."""
    _unlink(a, a.pieces[p]["node"], 2 * p + 1)


@noinline
def expect_begin(a: NodeArrays, p: int, time: int) -> None:
    """Note when a piece begins."""
    n = a.pieces[p]["node"]
    _link(a, n, 2 * p, time)
    a.nodes[n]["plans"] += 1


@noinline
def forget_begin(a: NodeArrays, p: int) -> None:
    """Forget when a piece was to begin."""
    n = a.pieces[p]["node"]
    _unlink(a, n, 2 * p)
    a.nodes[n]["plans"] -= 1


@inline
def note_plan(a: NodeArrays, j: int, start: int) -> None:
    """Note when the pieces of a job begin and end."""
    a.jobs[j]["plan"] = start
    p = a.jobs[j]["piece"]
    while p >= 0:
        expect_begin(a, p, start)
        expect_end(a, p, start + a.jobs[j]["estimate"])
        p = a.pieces[p]["next"]


@inline
def forget_plan(a: NodeArrays, j: int) -> None:
    """Forget when the pieces of a job begin and end; it keeps them."""
    a.jobs[j]["plan"] = FOREVER
    p = a.jobs[j]["piece"]
    while p >= 0:
        forget_begin(a, p)
        forget_end(a, p)
        p = a.pieces[p]["next"]


@inline
def _first_change(a: NodeArrays, n: int) -> int:
    """Time of the first change of a node."""
    c = a.nodes[n]["change"]
    return a.changes[c]["time"] if c >= 0 else FOREVER


@noinline
def earliest(a: NodeArrays, j: int, now: int, latest: int) -> int:
    """Earliest start of a job beside all that is known, up to `latest`; FOREVER if there is none.

    `fitting` says then how many units fit where. Of several choices of nodes it is the first of those with
    the earliest start.
    """
    job, first, chosen, tried = a.jobs[j], FOREVER, 0, 0
    for choice in range(job["choices"]):
        start = _earliest_of(a, j, now, min(latest, first - 1), choice)
        tried = choice
        if start < first:  # what fits now starts now, whatever the latest start
            first, chosen = start, choice
    if first < FOREVER and chosen != tried:
        _earliest_of(a, j, now, first, chosen)
    return first


@inline
def _earliest_of(a: NodeArrays, j: int, now: int, latest: int, choice: int) -> int:
    """The same for one choice of nodes.

    What fits on a node changes only where a change enters or leaves the time of the job, so that each node
    is looked at again when that happens first.
    """
    wanted = a.jobs[j]["units"]
    a.jobs[j]["choice"] = bits_of(a, j, choice)
    fitting, size = 0, 0
    a.state[0]["looked"] = len(a.nodes)
    for n in range(len(a.nodes)):
        if a.nodes[n]["plans"] == 0:
            a.fitting[n] = units_free(a, j, n)
            a.least[UNTIL] = _first_change(a, n)
        else:
            a.fitting[n] = units_at(a, j, n, now)
        fitting += a.fitting[n]
        if a.least[UNTIL] < FOREVER:
            size = heap.push(a.turns, size, a.least[UNTIL], n)
    start = now
    while fitting < wanted or (a.jobs[j]["parts"] > 0 and not parts_fit(a, j)):
        if size == 0 or a.turns[0]["key"] > latest:
            return FOREVER
        start = a.turns[0]["key"]
        while size > 0 and a.turns[0]["key"] == start:
            n = a.turns[0]["job"]
            size = heap.pop(a.turns, size)
            fitting -= a.fitting[n]
            a.fitting[n] = units_at(a, j, n, start)
            fitting += a.fitting[n]
            if a.least[UNTIL] < FOREVER:
                size = heap.push(a.turns, size, a.least[UNTIL], n)
    return start
