"""Figures of runs: `gantt` of a small one, `load` and `utilisation` over time, `compare` of several.

Each gives a Matplotlib figure in the style of all figures of gridsched, whatever the settings. Notebooks
show them after `%matplotlib inline`; elsewhere they are saved with `savefig`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Literal

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from gridsched.errors import ConfigurationError, check_whole
from gridsched.figures import runs as figures
from gridsched.figures.gantt import gantt as _gantt
from gridsched.figures.gantt_nodes import gantt_of_nodes, has_nodes
from gridsched.runs import check_run, labelled_runs, listed_runs, name_of_run, names_clusters

__all__ = ["compare", "gantt", "load", "utilisation"]


def gantt(
    run: xr.Dataset, *, by: Literal["nodes", "processors"] | None = None, nodes: Sequence[str] = ()
) -> Figure:
    """Gantt chart of a small run: time to the right; nodes downwards, or processors upwards.

    A run says how many processors a job has, not which: each execution is drawn on the lowest that are free.
    A job that is preempted, migrates or spans clusters has several rectangles of the same colour and number.
    By nodes, each node is a row with a lane for each of its GPUs; when it is out is hatched. By processors,
    each cluster is a panel.

    Parameters
    ----------
    run : xarray.Dataset
        A run of `gridsched.simulate` with at most 60 jobs.
    by : {"nodes", "processors"}, optional
        By default nodes, where the run says which nodes jobs had and there are several, or some with GPUs.
    nodes : sequence of str
        Names of the nodes that are shown, at most 40; all by default.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ConfigurationError
        If the run has too many jobs or nodes, or does not say on which cluster, or nodes, jobs run.

    Examples
    --------
    >>> import gridsched as gs
    >>> run = gs.simulate(gs.synthesise("M3", jobs=30, seed=1), scheduler="easy")
    >>> gs.plot.gantt(run).savefig("gantt.png")
    """
    check_run(run)
    if by not in (None, "nodes", "processors"):
        raise ConfigurationError(f"by is {by!r}; use 'nodes' or 'processors', or leave it out")
    _check_clusters(run, " (ideal machines share all); use gridsched.plot.load or compare")
    named = [nodes] if isinstance(nodes, str) else [*nodes]
    if by == "processors" and named:
        raise ConfigurationError("nodes has no effect on processors; leave by= or nodes= out")
    if (by == "nodes" or named) and "piece_segment" not in run:
        raise ConfigurationError(
            f"{name_of_run(run)}: the run does not say on which nodes jobs run; leave by= and nodes= out, or "
            "simulate a cluster that has nodes"
        )
    if by == "nodes" or named or (by is None and has_nodes(run)):
        return gantt_of_nodes(run, nodes=named)[0]
    return _gantt(run)[0]


def load(run: xr.Dataset, *, clusters: bool | Sequence[str] = False, bins: int = 200) -> Figure:
    """Utilisation and number of waiting jobs over time.

    Parameters
    ----------
    run : xarray.Dataset
        A run of `gridsched.simulate`.
    clusters : bool or sequence of str
        A row for each cluster, or for each of those named, instead of all together. A job waits in the row of
        the cluster where it starts in the end.
    bins : int
        Averages are shown over so many equal parts of the time.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ConfigurationError
        If no job ran, a cluster is unknown, or there are too many for one figure.

    Examples
    --------
    >>> import gridsched as gs
    >>> run = gs.simulate(gs.synthesise("M3", jobs=500, seed=1), scheduler="easy")
    >>> gs.plot.load(run).savefig("load.png")
    """
    bins = _checked_bins(run, bins)
    known = [str(name) for name in run["cluster"].to_numpy()]
    named = [clusters] if isinstance(clusters, str) else clusters
    chosen = [*named] if not isinstance(named, bool) else known if named else []
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise ConfigurationError(
            f"{name_of_run(run)}: no cluster {unknown[0]!r}; there are {', '.join(known)}"
        )
    if chosen:
        _check_clusters(run, "; leave clusters= out")
    if len(chosen) > figures.MAX_CLUSTERS:
        raise ConfigurationError(
            f"{name_of_run(run)}: a figure shows at most {figures.MAX_CLUSTERS} clusters, these are "
            f"{len(chosen)}; name some: clusters={known[:2]}"
        )
    return figures.load(run, chosen, bins)[0]


def utilisation(run: xr.Dataset, *, bins: int = 200) -> Figure:
    """Use of each resource of the nodes over time, beside what is not out of it, and fragmentation.

    A run whose nodes are not known has a panel of its processors alone. What is of no use to typical jobs
    where it is free, see `gridsched.metrics.nodes`, is shown relative to all that is free.

    Parameters
    ----------
    run : xarray.Dataset
        A run of `gridsched.simulate`.
    bins : int
        Averages are shown over so many equal parts of the time.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ConfigurationError
        If no job ran, or the run does not say on which cluster jobs run.

    Examples
    --------
    >>> import gridsched as gs
    >>> run = gs.simulate(gs.synthesise("M3", jobs=500, seed=1), scheduler="easy")
    >>> gs.plot.utilisation(run).savefig("utilisation.png")
    """
    bins = _checked_bins(run, bins)
    _check_clusters(run, "; use gridsched.plot.load")
    return figures.utilisation(run, bins)[0]


def compare(runs: Iterable[xr.Dataset] | Mapping[str, xr.Dataset]) -> Figure:
    """Several runs of the same jobs: mean wait, response and bounded slowdown, and the distribution of waits.

    Means have 95% intervals where there are valid ones. Whether two runs differ does not follow from
    intervals that overlap, but from `gridsched.inference.difference` of both.

    Parameters
    ----------
    runs : sequence of xarray.Dataset or mapping of str to them
        Runs of `gridsched.simulate`, maybe with labels. By default the label is the scheme, with what else
        differs (policies, estimates ...) where schemes are the same. Jobs that not all runs started are left
        out.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ConfigurationError
        If the runs are not of the same jobs, too many, or cannot be distinguished.

    Examples
    --------
    >>> import gridsched as gs
    >>> jobs = gs.synthesise("M3", jobs=500, seed=1)
    >>> runs = [gs.simulate(jobs, scheduler=policy) for policy in ("fcfs", "easy")]
    >>> gs.plot.compare(runs).savefig("compare.png")
    """
    given = listed_runs(runs)
    if not given or len(given) > figures.MAX_RUNS:
        raise ConfigurationError(f"compare shows 1 to {figures.MAX_RUNS} runs, these are {len(given)}")
    first = given[0]
    # Run times may differ, as those of clusters of other speeds do
    for other, name in product(given[1:], ("job_number", "submit_time", "processors")):
        if name in first and name in other and not np.array_equal(first[name], other[name]):
            raise ConfigurationError(
                f"{name_of_run(first)} and {name_of_run(other)}: {name} differs; "
                "compare runs of the same jobs"
            )
    return figures.compare(labelled_runs(runs if isinstance(runs, Mapping) else given))[0]


def _checked_bins(run: xr.Dataset, bins: int) -> int:
    """Number of bins; what is no run is refused, and a figure without bins."""
    check_run(run)
    return check_whole("bins", bins, least=1)


def _check_clusters(run: xr.Dataset, remedy: str) -> None:
    """Refuse runs of an ideal machine, in which clusters are one."""
    if not names_clusters(run):
        raise ConfigurationError(
            f"{name_of_run(run)}: the run does not say on which clusters jobs run{remedy}"
        )
