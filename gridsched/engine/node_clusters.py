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

from gridsched.engine import heap, job_lifecycle
from gridsched.engine.cluster_state import STATE as CLUSTER_STATE
from gridsched.engine.clusters import CLOCK as GRID_CLOCK
from gridsched.engine.clusters import (
    UNDECIDED,
    GridArrays,
    Order,
    StartPredictions,
    seconds_on,
    sort_key,
)
from gridsched.engine.clusters import estimate_on as guess_on
from gridsched.engine.jit import inline, noinline
from gridsched.engine.job_lifecycle import DEPENDENT, Fate, Lifecycles
from gridsched.engine.nodes import queue
from gridsched.engine.nodes.arrays import DEVICES, NodeArrays, NodeOptions, no_run_times
from gridsched.engine.nodes.events import finish, process_node_event
from gridsched.engine.nodes.passes import reserve, scheduling_pass
from gridsched.engine.nodes.placement import could_fit, fits_now, free_pieces_of
from gridsched.engine.nodes.plans import earliest, forget_plan
from gridsched.engine.nodes.records import (
    CHANGE,
    EVENT,
    EXECUTION,
    JOB,
    MAX_GPUS,
    PIECE,
    STATE,
    STORE,
    WHOLE,
    Requeue,
)
from gridsched.engine.nodes.resources import is_closed
from gridsched.engine.nodes.runtime_prediction import predict
from gridsched.engine.records import ENTRY, FOREVER, SCORED, Prediction
from gridsched.engine.reference import by_reference

_PLAN = int(StartPredictions.PLAN)
_SCORE = int(Order.SCORE)
_SHORTEST = int(Order.SHORTEST)
_ESTIMATE = int(Prediction.ESTIMATE)
_RECENT = int(Prediction.RECENT)
_COMPLETED = int(Fate.COMPLETED)
_LOST = int(Fate.LOST)
_LOSE = int(Requeue.LOST)

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

ASKED = np.dtype(
    [
        ("units", np.int64),
        ("cores", np.int64),
        ("memory", np.int64),
        ("gpus", np.int64),
        ("share", np.int64),
        ("most", np.int64),
        ("whole", np.int64),
        ("where", np.int64),
        ("affinity", np.int64),
        ("priority", np.float64),  # added to the keys of its queue
    ]
)
"""What a request is on clusters of a kind, see `gridsched.engine.nodes.records.JOB`."""

RULE = np.dtype([("group", np.int64), ("limit", np.int64)])
"""A limit for groups of jobs: a row of `group_of`, and the limit of its first group."""

CLOCK = np.dtype(
    [
        ("requests", np.int64),  # jobs of the grid that are one job of its user
        ("alive", np.int64),  # jobs that are submitted and not done with, at most
        ("wanted", np.int64),  # pieces that they may have, at most
        ("entering", np.int64),  # jobs that become eligible now
        ("entered", np.int64),  # of which so many have been taken
        ("leaving", np.int64),  # jobs whose users give up now
        ("notified", np.int64),  # executions whose start is known to those who wait for it
        ("before", np.int64),  # executions before the last scheduling pass
        ("stamp", np.int64),  # how often something became free in a copy
        ("known", np.int64),  # jobs whose submission is counted in `alive`
    ]
)
"""Scalars of clusters of nodes."""


class NodeClusters(NamedTuple):
    """What the local schedulers of m clusters of nodes, and the predictions, work on, for n jobs."""

    lifecycles: Lifecycles  # of jobs as users see them, each of which may be several jobs of the grid
    labels_of_requests: Any  # LABELS[n]
    users: Any  # int64[...], number of the user of each job of a user's
    recent: Any  # int64[m, users, 2], see `gridsched.engine.nodes.runtime_prediction`
    queue_key: Any  # float64[n], on the cluster that it was sent to
    order_key: Any  # float64[n], likewise
    request_of: Any  # int64[...], request of each job: jobs of one request ask for the same
    fits: Any  # int8[kinds, ...], 0 where clusters of a kind can hold a job
    asked: Any  # ASKED[kinds, requests]
    most_pieces: Any  # int64[requests], nodes that a request uses at once at most
    group_of: Any  # int64[..., ...], groups of jobs under each rule
    rules: Any  # RULE[...]
    sites: Any  # SITE[m]
    jobs: Any  # JOB[2, n]: as it is, and in the copy
    killed: Any  # int64[2, n]
    extra: Any  # int64[2, n]
    limited: Any  # int64[n, ...]
    nodes: Any  # NODE[...], of one cluster after the other, then of the copy; so are the next three
    devices: Any  # int64[...]
    fragments: Any  # float64[...]
    limits: Any  # LIMIT[...]
    allowed: Any  # bool[..., ...], rows of one cluster after the other
    overlap: Any  # bool[..., ...], likewise
    events: Any  # EVENT[...], of one cluster after the other; so are the next three
    closings: Any  # EVENT[...], begins and ends of maintenance windows
    windows: Any  # WINDOW[...]
    typical: Any  # TYPICAL[...]
    copied_events: Any  # EVENT[...], closings that are known in the copy
    largest: Any  # int64[m, 2]
    waiting: Any  # int64[m + 1, room]
    refused: Any  # int64[m + 1, requests]
    ending: Any  # ENTRY[...]
    expecting: Any  # ENTRY[...]
    pieces: Any  # PIECE[p]
    changes: Any  # CHANGE[2p]
    executions: Any  # EXECUTION[...]
    copied_ending: Any  # ENTRY[...]
    copied_expecting: Any  # ENTRY[...]
    copied_pieces: Any  # PIECE[...], those of the cluster at their places, then others
    copied_changes: Any  # CHANGE[...]
    copied_executions: Any  # EXECUTION[...], of the last pass
    candidates: Any  # SCORED[room + 1], scratch; so are the next
    later: Any  # int64[room]
    held: Any  # int64[...]
    level: Any  # int64[...]
    least: Any  # int64[...]
    fitting: Any  # int64[...]
    scores: Any  # float64[...]
    ranking: Any  # SCORED[...]
    turns: Any  # ENTRY[...]
    entering: Any  # int64[...], jobs that become eligible now
    leaving: Any  # int64[...], jobs whose users give up now
    dependents: Any  # DEPENDENT[0], since `job_lifecycle` knows who waits for whom
    first_dependent: Any  # int64[n + 1], zeros
    timers: Any  # ENTRY[0]
    stack: Any  # int64[1]
    state: Any  # STATE[m + 1, 1]
    store: Any  # STORE[2, 1], of all clusters, and of the copy
    clock: Any  # CLOCK[1]


class Sites(NamedTuple):
    """Clusters of nodes as they are before anything happens, see `NodeClusters`."""

    sites: Any
    users: Any
    request_of: Any
    fits: Any
    asked: Any
    group_of: Any
    rules: Any
    nodes: Any  # only what they have
    limits: Any
    allowed: Any
    overlap: Any
    events: Any
    closings: Any
    windows: Any
    typical: Any


def allocate(given: Sites, labels: Any, of_jobs: Lifecycles, requests: int, room: int) -> NodeClusters:
    """Arrays of idle clusters, with room for so many jobs that are alive; a job has so many requests."""
    sites, number = given.sites, len(labels)
    clusters, most = len(sites), int(sites["nodes"].max())
    largest = np.array(
        [
            [given.nodes[name][s["node"] : s["node"] + s["nodes"]].max() for name in ("cores", "gpus")]
            for s in sites
        ],
        np.int64,
    )
    nodes = np.concatenate([given.nodes, np.zeros(most, given.nodes.dtype)])
    # GPUs are numbered within a cluster
    nodes["free_cores"], nodes["free_memory"] = nodes["cores"], nodes["memory"]
    nodes["free_gpus"], nodes["free_share"] = nodes["gpus"], WHOLE * nodes["gpus"]
    nodes["largest_share"] = np.where(nodes["gpus"] > 0, WHOLE, 0)
    nodes["change"] = -1
    state = np.zeros((clusters + 1, 1), STATE)
    state["planned"] = FOREVER
    state["freed"] = 1
    store = np.zeros((2, 1), STORE)
    store["free_piece"] = -1
    clock = np.zeros(1, CLOCK)
    clock["requests"] = requests
    units = np.minimum(given.asked["units"], sites["nodes"].max())
    runtime_prediction = (sites["prediction"] == _RECENT).any()
    users = int(given.users.max(initial=-1)) + 1 if runtime_prediction else 0
    jobs = np.zeros((2, number), JOB)
    for name in ("entry", "piece", "start", "end"):
        jobs[name] = -1
    jobs["plan"] = FOREVER
    return with_room(
        NodeClusters(
            lifecycles=of_jobs,
            labels_of_requests=labels,
            users=given.users,
            recent=np.stack([no_run_times(users)] * clusters),
            queue_key=np.zeros(number),
            order_key=np.zeros(number),
            request_of=given.request_of,
            fits=given.fits,
            asked=given.asked,
            most_pieces=units.max(axis=0).astype(np.int64),
            group_of=given.group_of,
            rules=given.rules,
            sites=sites.copy(),
            jobs=jobs,
            killed=np.zeros((2, number), np.int64),
            extra=np.zeros((2, number), np.int64),
            limited=np.full((number, int(sites["rules"].max())), -1, np.int64),
            nodes=nodes,
            devices=np.full(int(sites["devices"].sum() + sites["devices"].max()), WHOLE, np.int64),
            fragments=np.full(len(nodes), -1.0),
            limits=np.concatenate([given.limits, np.zeros(sites["limits"].max(), given.limits.dtype)]),
            allowed=given.allowed,
            overlap=given.overlap,
            events=given.events,
            closings=given.closings,
            windows=given.windows,
            typical=given.typical,
            copied_events=np.empty(int(sites["closings"].max()), EVENT),
            largest=largest,
            waiting=np.empty((clusters + 1, 0), np.int64),
            refused=np.zeros((clusters + 1, given.asked.shape[1]), np.int64),
            ending=np.empty(0, ENTRY),
            expecting=np.empty(0, ENTRY),
            pieces=np.empty(0, PIECE),
            changes=np.empty(0, CHANGE),
            executions=np.empty(0, EXECUTION),
            copied_ending=np.empty(0, ENTRY),
            copied_expecting=np.empty(0, ENTRY),
            copied_pieces=np.empty(0, PIECE),
            copied_changes=np.empty(0, CHANGE),
            copied_executions=np.empty(0, EXECUTION),
            candidates=np.empty(0, SCORED),
            later=np.empty(0, np.int64),
            held=np.zeros(int(sites["rows"].max()), np.int64),
            level=np.zeros(DEVICES + MAX_GPUS, np.int64),
            least=np.zeros(DEVICES + MAX_GPUS, np.int64),
            fitting=np.zeros(most, np.int64),
            scores=np.empty(most),
            ranking=np.empty(most + 1, SCORED),
            turns=np.empty(most + 1, ENTRY),
            entering=np.empty(len(of_jobs.jobs), np.int64),
            leaving=np.empty(len(of_jobs.jobs), np.int64),
            dependents=np.empty(0, DEPENDENT),
            first_dependent=np.zeros(number + 1, np.int64),
            timers=np.empty(0, ENTRY),
            stack=np.zeros(1, np.int64),
            state=state,
            store=store,
            clock=clock,
        ),
        room,
    )


def grid_of(local: NodeClusters, requests: Any, home: Any, clusters: Any) -> GridArrays:
    """Jobs of the grid, and the clusters that they are sent to, as for numbers of processors."""
    sites, number = local.sites, len(requests)
    due = np.full(len(sites), FOREVER, np.int64)
    busy = sites["events"] > 0
    due[busy] = local.events["time"][sites["event"][busy]]
    return GridArrays(
        requests=requests,
        home=home,
        home_speed=np.append(clusters["speed"], 1.0),
        clusters=clusters,
        cluster=np.full(number, UNDECIDED, np.int64),
        entry=np.full(number, -1, np.int64),
        dirty=np.zeros(len(clusters), np.bool_),
        due=due,
        clock=np.zeros(1, GRID_CLOCK),
        state=np.zeros((1, 1), CLUSTER_STATE),
    )


def with_room(local: NodeClusters, room: int = 0) -> NodeClusters:
    """The same clusters with room for more jobs that are alive, and for what these may have and do."""
    clusters, most = len(local.sites), len(local.fitting)
    arriving, pieces = _arriving(local)
    alive = _enough(local.waiting.shape[1], max(room, int(local.clock["alive"][0]) + arriving + 1))
    wanted = _pieces(local, int(local.clock["wanted"][0]) + pieces)
    used = len(local.pieces)
    have = _enough(used, wanted)
    executions = int(local.store["executions"][0, 0]) + wanted
    waiting = np.empty((clusters + 1, alive), np.int64)
    waiting[:, : local.waiting.shape[1]] = local.waiting
    found = _longer(local.pieces, have)
    if have > used:
        found["next"][used:-1] = np.arange(used + 1, have)
        found["next"][-1] = local.store["free_piece"][0, 0]
        local.store["free_piece"][0] = used
        local.store["free_pieces"][0] += have - used
    return local._replace(
        waiting=waiting,
        candidates=np.empty(alive + 1, SCORED),
        later=np.empty(alive, np.int64),
        ending=_longer(local.ending, _enough(len(local.ending), _ends(local, "ending", alive))),
        expecting=_longer(local.expecting, _enough(len(local.expecting), _ends(local, "expecting", alive))),
        pieces=found,
        changes=_longer(local.changes, 2 * have),
        executions=_longer(local.executions, _enough(len(local.executions), executions)),
        copied_ending=np.empty(2 * alive + 2, ENTRY),
        copied_expecting=np.empty(2 * alive + 2, ENTRY),
        copied_pieces=np.empty(2 * have + most, PIECE),
        copied_changes=np.empty(2 * (2 * have + most), CHANGE),
        copied_executions=np.empty(have + most, EXECUTION),
    )


def _longer(column: Any, length: int) -> Any:
    """A column with room for more."""
    longer = np.zeros(length, column.dtype)
    longer[: len(column)] = column
    return longer


def _enough(have: int, wanted: int) -> int:
    """Room that is enough; twice as much where it was not, so that arrays are not copied time and again."""
    return have if have >= wanted else max(2 * have, wanted)


def _pieces(local: NodeClusters, wanted: int) -> int:
    """Pieces for jobs that may have so many: a plan may be made beside the old one; and for maintenance."""
    return 2 * wanted + len(local.windows) + len(local.fitting)


def _ends(local: NodeClusters, name: str, alive: int) -> int:
    """Entries of a heap of ends after one more instant."""
    return int(local.store[name][0, 0]) + alive


def _arriving(local: NodeClusters) -> tuple[int, int]:
    """Jobs that are submitted next, at one instant, and pieces that they may have."""
    jobs = local.lifecycles.jobs
    first = int(local.lifecycles.state["arrival"][0])
    if first == len(jobs):
        return 0, 0
    end = int(np.searchsorted(jobs["submit"], jobs["submit"][first], side="right"))
    requests = int(local.clock["requests"][0])
    pieces = local.most_pieces[local.request_of[first:end]]
    return requests * (end - first), requests * int(pieces.sum())


# --- a cluster ------------------------------------------------------------------------------------


@inline
def cluster_of(local: NodeClusters, m: int, copied: int) -> NodeArrays:
    """A cluster (0), or the copy of one (1), as the local scheduler of a single cluster knows it."""
    site = local.sites[m]
    row, node, device, limit = m, site["node"], site["device"], site["limit"]
    ending, expecting, executions = local.ending, local.expecting, local.executions
    pieces, changes = local.pieces, local.changes
    events = local.events[site["event"] : site["event"] + site["events"]]
    if copied == 1:
        row = len(local.sites)
        node = len(local.nodes) - len(local.fitting)
        last = local.sites[row - 1]
        device = last["device"] + last["devices"]
        limit = last["limit"] + last["limits"]
        ending, expecting, executions = local.copied_ending, local.copied_expecting, local.copied_executions
        pieces, changes = local.copied_pieces, local.copied_changes
        events = local.copied_events[:]
    rows = site["row"] + site["rows"]
    return NodeArrays(
        local.jobs[copied],
        local.labels_of_requests,
        local.recent[m],
        local.queue_key,
        local.order_key,
        local.nodes[node : node + site["nodes"]],
        local.devices[device : device + site["devices"]],
        local.allowed[site["row"] : rows],
        local.overlap[site["row"] : rows],
        local.held[: site["rows"]],
        local.waiting[row],
        local.candidates,
        local.later,
        ending,
        expecting,
        local.timers,
        pieces,
        changes,
        executions,
        local.level,
        local.least,
        local.refused[row],
        local.fitting[: site["nodes"]],
        local.scores,
        local.ranking,
        local.turns,
        events,
        local.windows[site["window"] : site["window"] + site["windows"]],
        local.dependents,
        local.first_dependent,
        local.limits[limit : limit + site["limits"]],
        local.limited,
        local.typical[site["typical"] : site["typical"] + site["typicals"]],
        local.fragments[node : node + site["nodes"]],
        local.largest[m],
        local.stack,
        local.killed[copied],
        local.extra[copied],
        local.state[row],
        local.store[copied],
    )


@inline
def rules_of(g: GridArrays, local: NodeClusters, m: int, overrun: int, copied: int) -> NodeOptions:
    """Options of the local scheduler of a cluster (0), or of the copy of one (1), which learns nothing."""
    cluster, site = g.clusters[m], local.sites[m]
    return NodeOptions(
        cluster["backfilling"],
        cluster["reservations"],
        overrun,
        _ESTIMATE if copied == 1 else site["prediction"],
        site["correction"],
        cluster["order"] == _SCORE,
        cluster["queue_as_order"] != 0,
        cluster["backfill_order"] == _SHORTEST,
        site["placement"],
        True,
        site["requeue"],
        site["interval"],
        site["cost"],
        site["seed"],
    )


# --- a job on a cluster ---------------------------------------------------------------------------


@inline
def _life(local: NodeClusters, j: int) -> int:
    """The job, as its user sees it, that a job of the grid belongs to."""
    return j // local.clock[0]["requests"]


@inline
def _with_checkpoints(local: NodeClusters, m: int, work: int) -> int:
    """Seconds that work takes on a cluster with its checkpoints; there is none at its end."""
    site = local.sites[m]
    if site["interval"] <= 0 or work <= 0:
        return work
    return work + site["cost"] * ((work - 1) // site["interval"])


@inline
def estimate_on(g: GridArrays, local: NodeClusters, j: int, m: int) -> int:
    """Estimated run time of a job on a cluster."""
    return _with_checkpoints(local, m, guess_on(g, j, m))


@inline
def fits(g: GridArrays, local: NodeClusters, j: int, m: int) -> bool:
    """Whether the empty nodes of a cluster can hold a job, as far as its partition and limits allow."""
    return local.fits[local.sites[m]["kind"], _life(local, j)] == 0


@noinline
def describe(g: GridArrays, local: NodeClusters, j: int, m: int, copied: int) -> None:
    """Write down a job as it is on a cluster, or on its copy."""
    site, cluster, job = local.sites[m], g.clusters[m], local.jobs[copied, j]
    life = _life(local, j)
    asked = local.asked[site["kind"], local.request_of[life]]
    job["submit"] = g.requests[j]["submit"]
    job["given"] = guess_on(g, j, m)
    job["guess"] = job["given"]
    job["user"] = local.users[life]
    job["work"] = seconds_on(g, g.requests[j]["run"], j, m)
    predict(local.jobs[copied], j, local.recent[m], site["prediction"])
    if copied == 1:
        job["work"] = job["guess"]
    job["run"] = _with_checkpoints(local, m, job["work"])
    job["estimate"] = _with_checkpoints(local, m, job["guess"])
    job["limit"] = _with_checkpoints(local, m, job["given"])
    job["units"] = asked["units"]
    job["cores"] = asked["cores"]
    job["memory"] = asked["memory"]
    job["gpus"] = asked["gpus"]
    job["share"] = asked["share"]
    job["most"] = asked["most"]
    job["whole"] = asked["whole"]
    job["where"] = asked["where"]
    job["affinity"] = asked["affinity"]
    job["shape"] = local.request_of[life]
    job["fate"] = _COMPLETED
    job["done"] = False
    job["entry"] = -1
    job["piece"] = -1
    job["start"] = -1
    job["end"] = -1
    job["plan"] = FOREVER
    estimate, processors = job["estimate"], job["units"] * job["cores"]
    # ties go by entry in all queues of nodes
    local.queue_key[j] = asked["priority"] + sort_key(cluster["order"], 0, estimate, processors)
    local.order_key[j] = asked["priority"] + sort_key(cluster["backfill_order"], 0, estimate, processors)
    if cluster["queue_as_order"]:
        local.order_key[j] = local.queue_key[j]
    for k in range(local.limited.shape[1]):
        local.limited[j, k] = -1
        if k < site["rules"]:
            rule = local.rules[site["rule"] + k]
            group = local.group_of[rule["group"], life]
            if group >= 0:
                local.limited[j, k] = rule["limit"] + group


@inline
def note_change(g: GridArrays, local: NodeClusters, m: int, now: int) -> None:
    """Let a cluster have a scheduling pass if something changed there."""
    if local.state[m, 0]["changed"]:
        g.dirty[m] = True
        g.due[m] = now


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
    return int(local.state[m, 0]["waiting"])


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
    store, first = s.store[0], len(local.pieces)
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
def _copy_closings(local: NodeClusters, s: NodeArrays, m: int, now: int) -> int:
    """List the begins and ends to come of the maintenance windows that are known; return how many."""
    site = local.sites[m]
    count = 0
    while site["over"] < site["closings"] and local.closings[site["closing"] + site["over"]]["time"] <= now:
        site["over"] += 1
    for k in range(site["over"], site["closings"]):
        closing = local.closings[site["closing"] + k]
        if s.windows[closing["window"]]["piece"] >= 0:
            local.copied_events[count] = closing
            count += 1
    return count


@noinline
def _copy_cluster(g: GridArrays, local: NodeClusters, j: int, m: int, now: int) -> int:
    """Copy a cluster, with a job that enters there; return how many closings are known."""
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
    return _copy_closings(local, s, m, now)


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
    closings = _copy_cluster(g, local, j, m, now)
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
            now = min(state["planned"], queue.next_end(s))
            if state["event"] < closings:
                now = min(now, s.events[state["event"]]["time"])
            if now == FOREVER:
                start = NEVER
            while queue.next_end(s) == now and start == FOREVER:
                ended = s.ending[0]["job"]
                store["ending"] = heap.pop(s.ending, store["ending"])
                finish(s, ended, now, rules)
            while state["event"] < closings and s.events[state["event"]]["time"] == now:
                process_node_event(s, now, rules)
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
    size = queue.list_candidates(s, 0, state["waiting"], now, rules, score)
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
    if options.predictions == _PLAN:
        return _planned_start(g, local, j, m, now, options.overrun, score)
    if now == latest and alone:
        return FOREVER
    return _simulated_start(g, local, j, m, now, latest, options.overrun, score)


# --- events ---------------------------------------------------------------------------------------


@inline
def _next_node_event(local: NodeClusters, m: int) -> int:
    """When something happens to a node of a cluster next."""
    site, k = local.sites[m], local.state[m, 0]["event"]
    return local.events[site["event"] + k]["time"] if k < site["events"] else FOREVER


@inline
def let_be_done(local: NodeClusters, life: int) -> None:
    """Let a job be done with."""
    clock = local.clock[0]
    clock["alive"] -= clock["requests"]
    clock["wanted"] -= clock["requests"] * local.most_pieces[local.request_of[life]]


@inline
def notify_end(local: NodeClusters, j: int, now: int) -> None:
    """Tell those who wait for a job that it has ended, or is lost."""
    life = _life(local, j)
    let_be_done(local, life)
    job_lifecycle.notify_end(local.lifecycles, life, now, True)


@noinline
def _notify_lost(g: GridArrays, local: NodeClusters, m: int, now: int) -> None:
    """Tell those who wait for jobs that have just been killed on a cluster and are lost."""
    for k in range(local.store[0, 0]["ending"]):
        j = local.ending[k]["job"]
        if local.jobs[0, j]["fate"] == _LOST and local.lifecycles.jobs[_life(local, j)]["fate"] == _COMPLETED:
            local.lifecycles.jobs[_life(local, j)]["fate"] = _LOST
            notify_end(local, j, now)


@noinline
def finish_due(g: GridArrays, local: NodeClusters, now: int, options: Any) -> None:
    """Ends, corrections and what happens to nodes that is due on any cluster."""
    anywhere = by_reference(cluster_of(local, 0, 0))
    store = local.store[0, 0]
    while queue.next_end(anywhere) == now:
        j = local.ending[0]["job"]
        store["ending"] = heap.pop(local.ending, store["ending"])
        m = g.cluster[j]
        finish(by_reference(cluster_of(local, m, 0)), j, now, rules_of(g, local, m, options.overrun, 0))
        notify_end(local, j, now)
        note_change(g, local, m, now)
    while queue.next_expected_end(anywhere) == now:
        j = local.expecting[0]["job"]
        store["expecting"] = heap.pop(local.expecting, store["expecting"])
        m = g.cluster[j]
        queue.correct(
            by_reference(cluster_of(local, m, 0)), j, now, rules_of(g, local, m, options.overrun, 0)
        )
        note_change(g, local, m, now)
    for m in range(len(g.clusters)):
        while _next_node_event(local, m) == now:
            rules = rules_of(g, local, m, options.overrun, 0)
            process_node_event(by_reference(cluster_of(local, m, 0)), now, rules)
            if rules.requeue == _LOSE:
                _notify_lost(g, local, m, now)
            note_change(g, local, m, now)
        if local.state[m, 0]["planned"] <= now:
            local.state[m, 0]["changed"] = True
            note_change(g, local, m, now)


@inline
def notify_starts(local: NodeClusters, now: int) -> None:
    """Tell those who wait for the jobs that have just started, and let no user give these up any more."""
    clock = local.clock[0]
    clock["before"] = clock["notified"]
    for k in range(clock["notified"], local.store[0, 0]["executions"]):
        life = _life(local, local.executions[k]["job"])
        if local.lifecycles.jobs[life]["started"] == 0:
            local.lifecycles.jobs[life]["started"] = 1
            job_lifecycle.notify_start(local.lifecycles, life, now)
    clock["notified"] = local.store[0, 0]["executions"]


@noinline
def pass_on(g: GridArrays, local: NodeClusters, m: int, now: int, options: Any, score: Any) -> None:
    """Scheduling pass of a cluster, if something changed there."""
    state = local.state[m, 0]
    if state["waiting"] == 0:
        state["planned"] = FOREVER
        state["changed"] = False
    if state["changed"]:
        rules = rules_of(g, local, m, options.overrun, 0)
        scheduling_pass(by_reference(cluster_of(local, m, 0)), now, rules, score)
        state["changed"] = False
        notify_starts(local, now)
    g.dirty[m] = False
    g.due[m] = min(state["planned"], _next_node_event(local, m))


@noinline
def pass_where_due(g: GridArrays, local: NodeClusters, now: int, options: Any, score: Any) -> None:
    """Scheduling passes of the clusters where something changed."""
    for m in range(len(g.clusters)):
        if g.due[m] <= now:
            pass_on(g, local, m, now, options, score)


@inline
def starts_to_see(g: GridArrays, local: NodeClusters, m: int) -> int:
    """Entries to look through for jobs that started in the last pass, see `start_seen`."""
    return int(local.clock[0]["notified"] - local.clock[0]["before"])


@inline
def start_seen(g: GridArrays, local: NodeClusters, m: int, k: int, now: int) -> int:
    """Number in the order of entry of a job that has just started; -1 if it has not."""
    return int(local.executions[local.clock[0]["before"] + k]["job"])


@noinline
def first_due(g: GridArrays, local: NodeClusters) -> int:
    """Time of the next event on any cluster, as long as there are jobs."""
    of_jobs = local.lifecycles
    if local.clock[0]["alive"] == 0 and of_jobs.state[0]["arrival"] == len(of_jobs.jobs):
        return FOREVER
    anywhere = by_reference(cluster_of(local, 0, 0))
    now = min(queue.next_end(anywhere), queue.next_expected_end(anywhere))
    for m in range(len(g.clusters)):
        now = min(now, g.due[m])
    return now


# --- who enters and who leaves --------------------------------------------------------------------


@inline
def next_arrival(g: GridArrays, local: NodeClusters) -> int:
    """When a job is submitted, becomes eligible, or is given up next."""
    return job_lifecycle.next_of_lifecycles(local.lifecycles)


@inline
def more_arrive(g: GridArrays, local: NodeClusters) -> bool:
    """Whether more jobs may enter."""
    return local.lifecycles.state[0]["arrival"] < len(local.lifecycles.jobs) or local.clock[0]["alive"] > 0


@noinline
def live(g: GridArrays, local: NodeClusters, now: int) -> None:
    """Find out who becomes eligible now and whose users give up now."""
    clock, of_jobs = local.clock[0], local.lifecycles
    clock["entering"] = 0
    clock["entered"] = 0
    clock["leaving"] = 0
    while job_lifecycle.next_of_lifecycles(of_jobs) == now:
        clock["entering"] += job_lifecycle.let_enter(of_jobs, now, local.entering[clock["entering"] :])
        for life in range(clock["known"], of_jobs.state[0]["arrival"]):
            if of_jobs.jobs[life]["fate"] == _COMPLETED:
                clock["alive"] += clock["requests"]
                clock["wanted"] += clock["requests"] * local.most_pieces[local.request_of[life]]
        clock["known"] = of_jobs.state[0]["arrival"]
        clock["leaving"] += job_lifecycle.let_give_up(of_jobs, now, local.leaving[clock["leaving"] :])
    for k in range(clock["leaving"]):
        let_be_done(local, local.leaving[k])


@inline
def leaving(g: GridArrays, local: NodeClusters) -> int:
    """How many jobs are given up now, see `leaving_job`."""
    return int(local.clock[0]["leaving"])


@inline
def leaving_job(g: GridArrays, local: NodeClusters, k: int) -> int:
    """A job that is given up now, the first one of those of its user's."""
    return int(local.leaving[k] * local.clock[0]["requests"])


@inline
def next_entering(g: GridArrays, local: NodeClusters, now: int, requests: int) -> int:
    """The next job that enters now, the first one of those of its user's; -1 if there is none."""
    clock = local.clock[0]
    while clock["entered"] < clock["entering"]:
        life = local.entering[clock["entered"]]
        clock["entered"] += 1
        if local.lifecycles.jobs[life]["fate"] == _COMPLETED:
            return int(life * requests)
    return -1


@noinline
def has_room(g: GridArrays, local: NodeClusters, jobs: int, now: int) -> bool:
    """Whether there is room for whatever may happen now."""
    clock, store, of_jobs = local.clock[0], local.store[0, 0], local.lifecycles
    alive, wanted = clock["alive"] + 1, clock["wanted"]
    life = of_jobs.state[0]["arrival"]
    while life < len(of_jobs.jobs) and of_jobs.jobs[life]["submit"] == now:
        alive += clock["requests"]
        wanted += clock["requests"] * local.most_pieces[local.request_of[life]]
        life += 1
    wanted = 2 * wanted + len(local.windows) + len(local.fitting)
    return (
        alive <= len(local.later)
        and wanted <= len(local.pieces)
        and store["executions"] + wanted <= len(local.executions)
        and store["ending"] + alive <= len(local.ending)
        and store["expecting"] + alive <= len(local.expecting)
    )
