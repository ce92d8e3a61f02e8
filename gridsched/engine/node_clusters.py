"""Clusters of nodes in a grid: what `clusters` is for numbers of processors, on the kernels of `nodes`.

Failures and maintenance happen on the clusters; users give up, and jobs wait for others, wherever they are
(`job_lifecycle`). A job that is killed stays with the cluster that it was sent to.

Jobs, the pieces that they have, what was executed and when it ends stand in arrays that all clusters share,
so that memory grows with jobs and nodes; what belongs to jobs and clusters is the room for those that may
wait at a time, and a byte for each job and each kind of cluster. A row of an array belongs to a cluster; one
more is the copy of a cluster, on which predictions simulate what would happen if no job came any more, all
estimates were right, and nothing failed but what is announced.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gridsched.engine import bundles, due_times, heap, job_lifecycle
from gridsched.engine.checkpoints import with_checkpoints
from gridsched.engine.cluster_state import STATE as CLUSTER_STATE
from gridsched.engine.clusters import CLOCK as GRID_CLOCK
from gridsched.engine.clusters import (
    NOWHERE,
    PLAN,
    SCORE,
    SHORTEST,
    UNDECIDED,
    GridArrays,
    guess_on,
    seconds_on,
    sort_key,
)
from gridsched.engine.jit import inline, noinline
from gridsched.engine.job_lifecycle import COMPLETED, Lifecycles
from gridsched.engine.nodes import queue
from gridsched.engine.nodes.arrays import NodeArrays, NodeOptions, grown, idle_nodes, made
from gridsched.engine.nodes.events import finish, process_node_event
from gridsched.engine.nodes.placement import could_fit, fits_now
from gridsched.engine.nodes.plans import earliest, forget_plan, free_pieces_of
from gridsched.engine.nodes.records import EVENT, JOB, STATE, WHOLE
from gridsched.engine.nodes.resources import is_closed
from gridsched.engine.nodes.runtime_prediction import predict
from gridsched.engine.nodes.scheduling import reserve
from gridsched.engine.nodes.simulation import next_on_nodes, process_on_nodes
from gridsched.engine.passes import list_candidates, scheduling_pass
from gridsched.engine.records import BY_ESTIMATE, BY_RECENT, FOREVER
from gridsched.engine.reference import by_reference

NEVER = FOREVER + 1
"""Predicted start of a job that cannot start as things are."""

SITE = np.dtype(
    [
        ("kind", np.int64),  # row of `fits` and `asked`: clusters of one kind hold the same jobs
        ("node", np.int64),  # its first node
        ("nodes", np.int64),
        ("device", np.int64),  # its first GPU
        ("devices", np.int64),
        ("row", np.int64),  # its first row of `allowed`
        ("rows", np.int64),
        ("limit", np.int64),  # its first limit
        ("limits", np.int64),
        ("rule", np.int64),  # its first rule, see `RULE`
        ("rules", np.int64),
        ("event", np.int64),  # its first event
        ("events", np.int64),
        ("closing", np.int64),  # its first closing
        ("closings", np.int64),
        ("window", np.int64),  # its first maintenance window
        ("windows", np.int64),
        ("typical", np.int64),  # its first typical job
        ("typicals", np.int64),
        ("largest_cores", np.int64),
        ("placement", np.int64),
        ("requeue", np.int64),
        ("interval", np.int64),  # seconds of work between checkpoints; 0 for none
        ("cost", np.int64),  # seconds that a checkpoint takes
        ("watched", np.int64),  # whether outrun estimates are counted
        ("over", np.int64),  # closings that are over
        ("seed", np.int64),
        ("prediction", np.int64),  # value of `Prediction`
        ("correction", np.int64),  # value of `Correction`
    ]
)
"""A cluster of nodes: where its part of each array begins, how long it is, and its rules."""

RULE = np.dtype([("group", np.int64), ("limit", np.int64)])
"""A limit for groups of jobs: a row of `group_of`, and the limit of its first group."""

CLOCK = np.dtype(
    [
        ("requests", np.int64),  # jobs of the grid that are one job of its user
        ("alive", np.int64),  # jobs that there has to be room for
        ("pieces", np.int64),  # that they may have
        ("entering", np.int64),  # jobs that become eligible now
        ("entered", np.int64),  # of which so many have been taken
        ("leaving", np.int64),  # jobs whose users give up now
        ("known", np.int64),  # executions that there were after the last scheduling pass
        ("before", np.int64),  # and before it
        ("stamp", np.int64),  # how often something became free in a copy
    ]
)
"""Scalars of clusters of nodes."""


class NodeClusters(NamedTuple):
    """What the local schedulers of m clusters of nodes, and the predictions, work on, for n jobs."""

    lifecycles: Lifecycles  # of jobs as users see them, each of which may be several jobs of the grid
    labels_of_requests: Any  # LABELS[n]
    users: Any  # int64[...], number of the user of each job of a user's
    queue_key: Any  # float64[n], on the cluster that it was sent to
    order_key: Any  # float64[n], likewise
    request_of: Any  # int64[...], request of each job: jobs of one request ask for the same
    fits: Any  # int8[kinds, ...], 0 where clusters of a kind can hold a job
    asked: Any  # JOB[kinds, requests], as jobs are on clusters of a kind before they enter
    group_of: Any  # int64[..., ...], groups of jobs under each rule
    rules: Any  # RULE[...]
    sites: Any  # SITE[m]
    closings: Any  # EVENT[...], begins and ends of maintenance windows, of one cluster after the other
    entering: Any  # int64[...], jobs that become eligible now
    leaving: Any  # int64[...], jobs whose users give up now
    real: NodeArrays  # rows, or parts, are clusters; what happens to jobs is in arrays that all share
    copy: NodeArrays  # of one cluster; its pieces are at their places, then come others
    clock: Any  # CLOCK[1]


def allocate(
    known: dict[str, Any],
    of_sites: dict[str, Any],
    labels: Any,
    of_jobs: Lifecycles,
    requests: int,
    room: int,
) -> NodeClusters:
    """Arrays of idle clusters, with room for so many jobs that are alive; a job has so many requests.

    `known` are fields of `NodeClusters`, `of_sites` such of `NodeArrays` with a part for each cluster.
    """
    sites, asked, number = known["sites"], known["asked"], len(labels)
    nodes, limits, events = (of_sites.pop(name) for name in ("nodes", "limits", "events"))
    clusters, most = len(sites), int(sites["nodes"].max())
    units = np.minimum(asked["units"], most).max(axis=0)
    of_jobs.jobs["weight"] = requests * units[known["request_of"]]
    predicting = (sites["prediction"] == BY_RECENT).any()
    jobs = np.zeros((2, number), JOB)
    jobs["start"] = -1
    sizes = {
        "users": int(known["users"].max(initial=-1)) + 1 if predicting else 0,
        "rows": int(sites["rows"].max()),
        "devices": int(sites["devices"].max()),
        "shapes": asked.shape[1],
        "waiting": 0,
    }
    shared = {
        **of_sites,
        "labels": labels,
        "lifecycles": of_jobs,
        "queue_key": np.zeros(number),
        "order_key": np.zeros(number),
        "limited": np.full((number, int(sites["rules"].max())), -1, np.int64),
        "largest": np.array(
            [
                [nodes[name][s["node"] : s["node"] + s["nodes"]].max() for name in ("cores", "gpus")]
                for s in sites
            ],
            np.int64,
        ),
    }
    state = np.zeros((clusters + 1, 1), STATE)
    real = made(
        idle_nodes(nodes),
        sizes,
        **shared,
        jobs=jobs[0],
        events=events,
        limits=limits,
        # GPUs are numbered within a cluster
        devices=np.full(int(sites["devices"].sum()), WHOLE, np.int64),
        recent=np.full((clusters, sizes["users"], 2), -1, np.int64),
        refused=np.zeros((clusters, sizes["shapes"]), np.int64),
        waiting=np.empty((clusters, 0), np.int64),
        state=state,
    )
    copy = made(
        np.zeros(most, nodes.dtype),
        sizes,
        **shared,
        jobs=jobs[1],
        events=np.empty(int(sites["closings"].max()), EVENT),
        limits=np.zeros(sites["limits"].max(), limits.dtype),
        recent=real.recent,
        refused=np.zeros((1, sizes["shapes"]), np.int64),
        waiting=np.empty((1, 0), np.int64),
        state=state[-1:],
    )
    clock = np.zeros(1, CLOCK)
    clock["requests"] = requests
    return with_room(
        NodeClusters(
            **known,
            lifecycles=of_jobs,
            labels_of_requests=labels,
            queue_key=real.queue_key,
            order_key=real.order_key,
            entering=np.empty(len(of_jobs.jobs), np.int64),
            leaving=np.empty(len(of_jobs.jobs), np.int64),
            real=real,
            copy=copy,
            clock=clock,
        ),
        room,
    )


def grid_of(local: NodeClusters, requests: Any, given_speed: Any, home: Any, clusters: Any) -> GridArrays:
    """Jobs of the grid, and the clusters that they are sent to, as for numbers of processors."""
    sites, number = local.sites, len(requests)
    due = np.full(len(sites), FOREVER, np.int64)
    busy = sites["events"] > 0
    due[busy] = local.real.events["time"][sites["event"][busy]]
    return GridArrays(
        requests=requests,
        given_speed=given_speed,
        home=home,
        clusters=clusters,
        cluster=np.full(number, UNDECIDED, np.int64),
        entry=np.full(number, -1, np.int64),
        dirty=np.zeros(len(clusters), np.bool_),
        due=due_times.allocate(due),
        clock=np.zeros(1, GRID_CLOCK),
        state=np.zeros((1, 1), CLUSTER_STATE),
    )


def with_room(local: NodeClusters, room: int = 0) -> NodeClusters:
    """The same clusters with room for what `has_room` asked for, and for so many jobs that are alive."""
    real, copy = local.real, local.copy
    alive = _enough(real.waiting.shape[1], max(room, int(local.clock["alive"][0])))
    wanted = int(local.clock["pieces"][0])
    pieces = _enough(len(real.pieces), wanted)
    ends = max(int(real.store[name][0]) for name in ("ending", "expecting")) + alive
    executions = int(real.store["executions"][0]) + wanted
    sizes = {
        "waiting": alive,
        "ends": _enough(len(real.ending), ends),
        "executions": _enough(len(real.executions), executions),
    }
    real = grown(real, pieces, sizes)
    most = pieces + len(copy.nodes)
    copied = {"waiting": alive, "ends": 2 * alive + 2, "executions": most}
    copy = bundles.grow(copy, copied | {"pieces": pieces + most, "changes": 2 * (pieces + most)})
    return local._replace(real=real, copy=copy)


def _enough(have: int, wanted: int) -> int:
    """Room that is enough; twice as much where it was not, so that arrays are not copied time and again."""
    return have if have >= wanted else max(2 * have, wanted)


# --- a cluster ------------------------------------------------------------------------------------


@inline
def cluster_of(local: NodeClusters, m: int, copied: int) -> NodeArrays:
    """A cluster (0), or the copy of one (1), as the local scheduler of a single cluster knows it."""
    site = local.sites[m]
    a, here = local.real, 1
    if copied == 1:
        a, here = local.copy, 0
    # the copy begins at the begin of its arrays
    row, node, device = here * m, here * site["node"], here * site["device"]
    limit, event = here * site["limit"], here * site["event"]
    rows = site["row"] + site["rows"]
    return NodeArrays(
        a.jobs,
        a.labels,
        a.lifecycles,
        a.queue_key,
        a.order_key,
        a.nodes[node : node + site["nodes"]],
        a.allowed[site["row"] : rows],
        a.numbers[site["row"] : rows],
        a.overlap[site["row"] : rows],
        a.events[event : event + site["events"]],
        a.windows[site["window"] : site["window"] + site["windows"]],
        a.limits[limit : limit + site["limits"]],
        a.limited,
        a.typical[site["typical"] : site["typical"] + site["typicals"]],
        a.largest[m],
        a.recent[row],
        a.devices[device : device + site["devices"]],
        a.fragments[node : node + site["nodes"]],
        a.held[: site["rows"]],
        a.waiting[row],
        a.candidates,
        a.later,
        a.ending,
        a.expecting,
        a.pieces,
        a.changes,
        a.executions,
        a.refused[row],
        a.level,
        a.least,
        a.fitting,
        a.scores,
        a.ranking,
        a.turns,
        a.state[row],
        a.store,
    )


@inline
def rules_of(g: GridArrays, local: NodeClusters, m: int, overrun: int, copied: int) -> NodeOptions:
    """Options of the local scheduler of a cluster (0), or of the copy of one (1), which learns nothing."""
    cluster, site = g.clusters[m], local.sites[m]
    return NodeOptions(
        cluster["backfilling"],
        cluster["reservations"],
        overrun,
        BY_ESTIMATE if copied == 1 else site["prediction"],
        site["correction"],
        cluster["order"] == SCORE,
        cluster["queue_as_order"] != 0,
        cluster["backfill_order"] == SHORTEST,
        site["placement"],
        True,
        site["requeue"],
        site["interval"],
        site["cost"],
        site["seed"],
        0 if copied == 1 else local.clock[0]["requests"],
    )


# --- a job on a cluster ---------------------------------------------------------------------------


@inline
def _life(local: NodeClusters, j: int) -> int:
    """The job, as its user sees it, that a job of the grid belongs to."""
    return j // local.clock[0]["requests"]


@inline
def estimate_on(g: GridArrays, local: NodeClusters, j: int, m: int) -> int:
    """Estimated run time of a job on a cluster."""
    return with_checkpoints(guess_on(g, j, m), local.sites[m]["interval"], local.sites[m]["cost"])


@inline
def fits(g: GridArrays, local: NodeClusters, j: int, m: int) -> bool:
    """Whether the empty nodes of a cluster can hold a job, as far as its partition and limits allow."""
    return local.fits[local.sites[m]["kind"], _life(local, j)] == 0


@noinline
def describe(g: GridArrays, local: NodeClusters, j: int, m: int, copied: int) -> None:
    """Write down a job as it is on a cluster, or on its copy."""
    site, cluster = local.sites[m], g.clusters[m]
    jobs = local.copy.jobs if copied == 1 else local.real.jobs
    life = _life(local, j)
    jobs[j] = local.asked[site["kind"], local.request_of[life]]
    job = jobs[j]
    job["submit"] = g.requests[j]["submit"]
    job["given"] = guess_on(g, j, m)
    job["guess"] = job["given"]
    job["user"] = local.users[life]
    job["work"] = seconds_on(g, g.requests[j]["run"], j, m)
    predict(jobs, j, local.real.recent[m], site["prediction"])
    if copied == 1:
        job["work"] = job["guess"]
    queue.set_lengths(job, site["interval"], site["cost"])
    estimate, processors, priority = job["estimate"], job["units"] * job["cores"], job["priority"]
    # ties go by entry in all queues of nodes
    local.queue_key[j] = priority + sort_key(cluster["order"], 0, estimate, processors)
    local.order_key[j] = priority + sort_key(cluster["backfill_order"], 0, estimate, processors)
    if cluster["queue_as_order"]:
        local.order_key[j] = local.queue_key[j]
    limited = local.real.limited[j]
    for k in range(len(limited)):
        limited[k] = -1
        if k < site["rules"]:
            rule = local.rules[site["rule"] + k]
            group = local.group_of[rule["group"], life]
            if group >= 0:
                limited[k] = rule["limit"] + group


@inline
def note_change(g: GridArrays, local: NodeClusters, m: int, now: int) -> None:
    """Let a cluster have a scheduling pass if something changed there."""
    if local.real.state[m, 0]["changed"]:
        g.dirty[m] = True
        due_times.put(g.due, m, now)


@noinline
def enter(g: GridArrays, local: NodeClusters, j: int, m: int, now: int, options: Any, score: Any) -> None:
    """Send a job to the local queue of a cluster."""
    g.clock[0]["entered"] += 1
    g.entry[j] = j
    describe(g, local, j, m, 0)
    queue.enter(by_reference(cluster_of(local, m, 0)), j)
    note_change(g, local, m, now)


@noinline
def withdraw(g: GridArrays, local: NodeClusters, j: int, m: int, now: int) -> None:
    """Take a waiting job out of the local queue of a cluster, which has a scheduling pass then."""
    queue.leave(by_reference(cluster_of(local, m, 0)), j)
    note_change(g, local, m, now)


# --- how much there is on a cluster ---------------------------------------------------------------


@inline
def waiting(g: GridArrays, local: NodeClusters, m: int) -> int:
    """Waiting jobs of a cluster."""
    return int(local.real.state[m, 0]["waiting"])


@noinline
def idle(g: GridArrays, local: NodeClusters, m: int) -> int:
    """Idle cores of the nodes that take jobs."""
    a = by_reference(cluster_of(local, m, 0))
    cores = 0
    for n in range(len(a.nodes)):
        if not is_closed(a, n):
            cores += a.nodes[n]["free_cores"]
    return cores


@noinline
def held(g: GridArrays, local: NodeClusters, m: int) -> int:
    """Cores that jobs hold; 1 where `capacity` is none, so that such a cluster is full."""
    a = by_reference(cluster_of(local, m, 0))
    cores = 0
    for n in range(len(a.nodes)):
        cores += a.nodes[n]["cores"] - a.nodes[n]["free_cores"]
    return max(cores, int(_cores_up(a) == 0))


@inline
def _cores_up(a: NodeArrays) -> int:
    """Cores of the nodes that take jobs, and those that jobs hold on others."""
    cores = 0
    for n in range(len(a.nodes)):
        cores += a.nodes[n]["cores"]
        if is_closed(a, n):
            cores -= a.nodes[n]["free_cores"]
    return cores


@noinline
def capacity(g: GridArrays, local: NodeClusters, m: int) -> int:
    """Cores of the nodes that take jobs, and those that jobs hold on others; at least 1."""
    return max(1, _cores_up(by_reference(cluster_of(local, m, 0))))


@noinline
def work_left(g: GridArrays, local: NodeClusters, m: int, now: int, overrun: int) -> int:
    """Core-seconds that the jobs on a cluster, running and waiting, are expected to take still."""
    a = by_reference(cluster_of(local, m, 0))
    work = 0
    for n in range(len(a.nodes)):
        c = a.nodes[n]["change"]
        while c >= 0:
            piece = a.pieces[c >> 1]
            if c & 1 and piece["job"] >= 0 and a.jobs[piece["job"]]["start"] >= 0:
                work += piece["cores"] * (a.changes[c]["time"] - now)
            c = a.changes[c]["next"]
    for k in range(a.state[0]["waiting"]):
        work += queue.cores_of(a, a.waiting[k]) * a.jobs[a.waiting[k]]["estimate"]
    return work


@inline
def load(g: GridArrays, local: NodeClusters, m: int, now: int, overrun: int) -> float:
    """Seconds that the work on a cluster keeps its cores busy that are up; half of for ever if none is."""
    if _cores_up(by_reference(cluster_of(local, m, 0))) == 0:
        return float(FOREVER // 2)
    return work_left(g, local, m, now, overrun) / capacity(g, local, m)


# --- predicted starts -----------------------------------------------------------------------------


@inline
def _spare_pieces(local: NodeClusters, s: NodeArrays, more: int) -> None:
    """Let a copy have free pieces for plans of all its jobs, beside old ones, and of so many pieces more.

    Jobs that run may wait again: known maintenance kills them.
    """
    store, first = s.store[0], len(local.real.pieces)
    count = len(s.nodes) + 2 * more
    for k in range(s.state[0]["waiting"]):
        count += 2 * min(s.jobs[s.waiting[k]]["units"], len(s.nodes))
    for k in range(store["ending"]):
        count += 2 * min(s.jobs[s.ending[k]["job"]]["units"], len(s.nodes))
    for p in range(first, first + count):
        s.pieces[p]["next"] = p + 1 if p + 1 < first + count else -1
    store["free_piece"] = first
    store["free_pieces"] = count


@inline
def _copy_job(a: NodeArrays, s: NodeArrays, j: int) -> None:
    """Copy a job, such that it is as long as it is expected to be."""
    s.jobs[j] = a.jobs[j]
    s.jobs[j]["work"] = a.jobs[j]["guess"]
    s.jobs[j]["run"] = a.jobs[j]["estimate"]


@inline
def _copy_nodes(a: NodeArrays, s: NodeArrays) -> None:
    """Copy nodes with all that is known of them, and the jobs that run there."""
    for n in range(len(a.nodes)):
        s.nodes[n] = a.nodes[n]
        s.fragments[n] = a.fragments[n]
        c = a.nodes[n]["change"]
        while c >= 0:
            p = c >> 1
            s.changes[c] = a.changes[c]
            s.pieces[p] = a.pieces[p]
            # what is executed in the copy is forgotten after each pass
            s.pieces[p]["execution"] = 0
            j = a.pieces[p]["job"]
            # each job is copied with its first piece
            if c & 1 and j >= 0 and a.jobs[j]["piece"] == p and a.jobs[j]["start"] >= 0:
                _copy_job(a, s, j)
                s.jobs[j]["end"] = a.jobs[j]["expected"]
                s.store[0]["ending"] = heap.push(s.ending, s.store[0]["ending"], s.jobs[j]["end"], j)
            c = a.changes[c]["next"]
    for d in range(len(a.devices)):
        s.devices[d] = a.devices[d]
    for k in range(len(a.limits)):
        s.limits[k] = a.limits[k]


@inline
def _copy_closings(local: NodeClusters, s: NodeArrays, m: int, now: int) -> None:
    """Let nothing happen in the copy but known maintenance windows, which are to begin or to end."""
    site = local.sites[m]
    count = 0
    while site["over"] < site["closings"] and local.closings[site["closing"] + site["over"]]["time"] <= now:
        site["over"] += 1
    for k in range(site["over"], site["closings"]):
        closing = local.closings[site["closing"] + k]
        if s.windows[closing["window"]]["piece"] >= 0:
            s.events[count] = closing
            count += 1
    for k in range(count, len(s.events)):
        s.events[k]["time"] = FOREVER


@noinline
def _copy_cluster(g: GridArrays, local: NodeClusters, j: int, m: int, now: int) -> None:
    """Copy a cluster, with a job that enters there."""
    a, s = by_reference(cluster_of(local, m, 0)), by_reference(cluster_of(local, m, 1))
    state, store = s.state[0], s.store[0]
    s.state[0] = a.state[0]
    state["event"] = 0
    state["freed"] = local.clock[0]["stamp"] + 1
    store["ending"] = 0
    store["short"] = 0
    _copy_nodes(a, s)
    for k in range(a.state[0]["waiting"]):
        s.waiting[k] = a.waiting[k]
        _copy_job(a, s, a.waiting[k])
    describe(g, local, j, m, 1)
    _spare_pieces(local, s, min(s.jobs[j]["units"], len(s.nodes)))
    _copy_closings(local, s, m, now)


@inline
def _take_as_expected(s: NodeArrays) -> None:
    """Let jobs of the copy that were killed run again as long as it is expected."""
    for k in range(s.state[0]["waiting"]):
        job = s.jobs[s.waiting[k]]
        job["work"] = job["guess"]
        job["run"] = job["estimate"]


@noinline
def _simulated_start(
    g: GridArrays,
    local: NodeClusters,
    j: int,
    m: int,
    now: int,
    latest: int,
    overrun: int,
    score: Any,
) -> int:
    """When a job would start if it entered now, by simulating a copy of the cluster until then."""
    _copy_cluster(g, local, j, m, now)
    s, rules = by_reference(cluster_of(local, m, 1)), rules_of(g, local, m, overrun, 1)
    state, store = s.state[0], s.store[0]
    queue.enter(s, j)
    start = FOREVER
    while now <= latest and start == FOREVER:
        store["executions"] = 0
        store["expecting"] = 0
        scheduling_pass(s, now, rules, score)
        if s.jobs[j]["start"] >= 0:
            start = now
        else:
            now = next_on_nodes(s)
            if now == FOREVER:
                start = NEVER
            else:
                process_on_nodes(s, now, rules)
                _take_as_expected(s)
    local.clock[0]["stamp"] = state["freed"]
    return start


@noinline
def _planned_start(
    g: GridArrays, local: NodeClusters, j: int, m: int, now: int, overrun: int, score: Any
) -> int:
    """Earliest place that a plan of all who wait, in queue order, leaves; it knows no limits of groups."""
    _copy_cluster(g, local, j, m, now)
    s, rules = by_reference(cluster_of(local, m, 1)), rules_of(g, local, m, overrun, 1)
    state, store = s.state[0], s.store[0]
    store["executions"] = 0
    for k in range(state["waiting"]):
        planned = s.waiting[k]
        if s.jobs[planned]["plan"] < FOREVER:
            forget_plan(s, planned)
            free_pieces_of(s, planned)
    size = list_candidates(s, state["waiting"], now, rules, score)
    while size > 0:
        reserve(s, s.waiting[s.candidates[0]["job"]], now, FOREVER, rules)
        size = heap.pop(s.candidates, size)
    start = earliest(s, j, now, FOREVER)
    local.clock[0]["stamp"] = state["freed"]
    return start if start < FOREVER else NEVER


@noinline
def predicted_start(
    g: GridArrays, local: NodeClusters, j: int, m: int, now: int, latest: int, options: Any, score: Any
) -> int:
    """When a job would start if it entered the local queue of a cluster now, as far as it is known there.

    FOREVER if it is known to be after `latest` (a plan tells the time nevertheless), NEVER if it could not
    start as things are. The job must fit on the cluster.
    """
    if now > latest:
        return FOREVER
    a, rules = by_reference(cluster_of(local, m, 0)), rules_of(g, local, m, options.overrun, 0)
    describe(g, local, j, m, 0)
    alone = a.state[0]["waiting"] == 0
    if alone and queue.within_limits(a, j) and fits_now(a, j, now, rules):
        return now
    if now == latest and not could_fit(a, j):
        return FOREVER
    if options.predictions == PLAN:
        return _planned_start(g, local, j, m, now, options.overrun, score)
    if now == latest and alone:
        return FOREVER
    return _simulated_start(g, local, j, m, now, latest, options.overrun, score)


# --- events ---------------------------------------------------------------------------------------


@inline
def _next_node_event(local: NodeClusters, m: int) -> int:
    """When something happens to a node of a cluster next."""
    site, k = local.sites[m], local.real.state[m, 0]["event"]
    return local.real.events[site["event"] + k]["time"] if k < site["events"] else FOREVER


@noinline
def finish_due(g: GridArrays, local: NodeClusters, now: int, options: Any) -> None:
    """Ends, corrections and what happens to nodes that is due on any cluster."""
    anywhere = by_reference(cluster_of(local, 0, 0))
    store = anywhere.store[0]
    while queue.next_end(anywhere) == now:
        j = anywhere.ending[0]["job"]
        store["ending"] = heap.pop(anywhere.ending, store["ending"])
        m = g.cluster[j]
        finish(by_reference(cluster_of(local, m, 0)), j, now, rules_of(g, local, m, options.overrun, 0))
        note_change(g, local, m, now)
    while queue.next_expected_end(anywhere) == now:
        j = anywhere.expecting[0]["job"]
        store["expecting"] = heap.pop(anywhere.expecting, store["expecting"])
        m = g.cluster[j]
        queue.correct(
            by_reference(cluster_of(local, m, 0)), j, now, rules_of(g, local, m, options.overrun, 0)
        )
        note_change(g, local, m, now)
    for m in range(len(g.clusters)):
        while _next_node_event(local, m) == now:
            rules = rules_of(g, local, m, options.overrun, 0)
            process_node_event(by_reference(cluster_of(local, m, 0)), now, rules)
            note_change(g, local, m, now)
        if local.real.state[m, 0]["planned"] <= now:
            local.real.state[m, 0]["changed"] = True
            note_change(g, local, m, now)


@inline
def let_rest(g: GridArrays, local: NodeClusters, m: int) -> None:
    """Let a cluster on which nobody waits do nothing until something happens to its nodes."""
    local.real.state[m, 0]["planned"] = FOREVER
    local.real.state[m, 0]["changed"] = False
    g.dirty[m] = False
    due_times.put(g.due, m, _next_node_event(local, m))


@noinline
def pass_on(g: GridArrays, local: NodeClusters, m: int, now: int, options: Any, score: Any) -> None:
    """Scheduling pass of a cluster, if something changed there."""
    state = local.real.state[m, 0]
    if state["waiting"] == 0:
        let_rest(g, local, m)
        return
    if state["changed"]:
        rules = rules_of(g, local, m, options.overrun, 0)
        scheduling_pass(by_reference(cluster_of(local, m, 0)), now, rules, score)
        state["changed"] = False
        local.clock[0]["before"] = local.clock[0]["known"]
        local.clock[0]["known"] = local.real.store[0]["executions"]
    g.dirty[m] = False
    due_times.put(g.due, m, min(state["planned"], _next_node_event(local, m)))


@noinline
def pass_where_due(g: GridArrays, local: NodeClusters, now: int, options: Any, score: Any) -> None:
    """Scheduling passes of the clusters where something changed."""
    for m in range(len(g.clusters)):
        if due_times.of(g.due, m) <= now:
            pass_on(g, local, m, now, options, score)


@inline
def starts_to_see(g: GridArrays, local: NodeClusters, m: int) -> int:
    """Entries to look through for jobs that started in the last pass, see `start_seen`."""
    return int(local.clock[0]["known"] - local.clock[0]["before"])


@inline
def start_seen(g: GridArrays, local: NodeClusters, m: int, k: int, now: int) -> int:
    """Number in the order of entry of a job that has just started; -1 if it has not."""
    return int(local.real.executions[local.clock[0]["before"] + k]["job"])


@noinline
def first_due(g: GridArrays, local: NodeClusters) -> int:
    """Time of the next event on any cluster, as long as there are jobs."""
    if not more_arrive(g, local):
        return FOREVER
    anywhere = by_reference(cluster_of(local, 0, 0))
    return min(queue.next_end(anywhere), queue.next_expected_end(anywhere), due_times.first(g.due))


# --- who enters and who leaves --------------------------------------------------------------------


@inline
def next_arrival(g: GridArrays, local: NodeClusters) -> int:
    """When a job is submitted, becomes eligible, or is given up next."""
    return job_lifecycle.next_of_lifecycles(local.lifecycles)


@inline
def more_arrive(g: GridArrays, local: NodeClusters) -> bool:
    """Whether more jobs may enter."""
    state = local.lifecycles.state[0]
    return state["arrival"] < len(local.lifecycles.jobs) or state["alive"] > 0


@noinline
def live(g: GridArrays, local: NodeClusters, now: int) -> None:
    """Find out who becomes eligible now and whose users give up now."""
    clock, of_jobs = local.clock[0], local.lifecycles
    clock["entering"] = 0
    clock["entered"] = 0
    clock["leaving"] = 0
    while job_lifecycle.next_of_lifecycles(of_jobs) == now:
        clock["entering"] += job_lifecycle.let_enter(of_jobs, now, local.entering[clock["entering"] :])
        clock["leaving"] += job_lifecycle.let_give_up(of_jobs, now, local.leaving[clock["leaving"] :])


@noinline
def let_leave(g: GridArrays, local: NodeClusters, now: int) -> int:
    """Take jobs whose users give up now out of local queues; return how many there are."""
    clock = local.clock[0]
    for k in range(clock["leaving"]):
        first = local.leaving[k] * clock["requests"]
        for j in range(first, first + clock["requests"]):
            if g.entry[j] >= 0:
                withdraw(g, local, j, g.cluster[j], now)
            g.cluster[j] = NOWHERE
    return int(clock["leaving"])


@inline
def is_changing(local: NodeClusters) -> bool:
    """Whether anything happens to clusters besides jobs."""
    return True


@inline
def next_entering(g: GridArrays, local: NodeClusters, now: int, requests: int) -> int:
    """The next job that enters now, the first one of those of its user's; -1 if there is none."""
    clock = local.clock[0]
    while clock["entered"] < clock["entering"]:
        life = local.entering[clock["entered"]]
        clock["entered"] += 1
        if local.lifecycles.jobs[life]["fate"] == COMPLETED:
            return int(life * requests)
    return -1


@noinline
def has_room(g: GridArrays, local: NodeClusters, jobs: int, now: int) -> bool:
    """Whether there is room for whatever may happen now; `clock` says what there has to be room for."""
    real, clock, of_jobs = local.real, local.clock[0], local.lifecycles
    alive, pieces = of_jobs.state[0]["alive"], of_jobs.state[0]["weight"]
    life = of_jobs.state[0]["arrival"]
    while life < len(of_jobs.jobs) and of_jobs.jobs[life]["submit"] == now:
        alive += 1
        pieces += of_jobs.jobs[life]["weight"]
        life += 1
    clock["alive"] = alive * clock["requests"] + 1
    # a plan may be made beside the old one; and there is maintenance
    clock["pieces"] = 2 * pieces + len(real.windows) + len(local.copy.nodes)
    store = real.store[0]
    return (
        clock["alive"] <= len(real.later)
        and clock["pieces"] <= len(real.pieces)
        and store["executions"] + clock["pieces"] <= len(real.executions)
        and max(store["ending"], store["expecting"]) + clock["alive"] <= len(real.ending)
    )
