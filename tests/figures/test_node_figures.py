"""Figures of runs on nodes: they show what each node and GPU did, and what was out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import Rectangle
from matplotlib.text import Text

import gridsched as gs
from gridsched.errors import ConfigurationError
from gridsched.figures import runs as figures
from gridsched.figures.gantt_nodes import gantt_of_nodes
from gridsched.figures.style import save
from gridsched.metrics.nodes import fragmentation, resource_use
from gridsched.nodes import NodeEvent, NodeType
from tests.support.errors import each_refused, says
from tests.support.nodes import jobs_of, some_cluster, some_jobs


def drawn(seed: int = 1, jobs: int = 40) -> Any:
    rng = np.random.default_rng(seed)
    return gs.simulate(some_jobs(rng, jobs), some_cluster(rng), "easy")


@pytest.mark.random_cases(6)
def test_rectangles_are_the_pieces_and_never_overlap(seed: int) -> None:
    run = drawn(seed)
    _, table = gantt_of_nodes(run)
    segment = run["piece_segment"].values
    job, node = run["segment_job"].values[segment], run["piece_node"].values
    for name in ("cores", "gpus"):
        amount = run["piece_cores"].values
        if name == "gpus":
            amount = run["piece_share"].values * np.bitwise_count(run["piece_devices"].values)
        of = table[(table["resource"] == "cores") == (name == "cores")]
        shown = of.groupby(["node", "job_number", "start_time"])["amount"].sum()
        names, starts = run["node_name"].values[node], run["segment_start"].values[segment]
        had = zip(names, run["job_number"].values[job], starts, amount, strict=True)
        pieces = pd.DataFrame(had, columns=["node", "job_number", "start_time", "amount"])
        wanted = pieces[pieces["amount"] > 0].groupby(["node", "job_number", "start_time"])["amount"].sum()
        pd.testing.assert_series_equal(shown, wanted, check_index_type=False, check_dtype=False)
    sizes = dict(zip(run["node_name"].values.tolist(), run["node_cores"].values.tolist(), strict=True))
    for (where, resource), rows in table[table["start_time"] < table["end_time"]].groupby(
        ["node", "resource"]
    ):
        assert (rows["first"] + rows["amount"]).max() <= (sizes[where] if resource == "cores" else 1000)
        each = rows[["first", "amount", "start_time", "end_time"]].to_numpy().tolist()
        for k, (first, amount, start, end) in enumerate(each):
            for other, more, begin, back in each[:k]:
                apart = first + amount <= other or other + more <= first
                assert apart or end <= begin or back <= start


def test_nodes_are_rows_and_outages_are_hatched(tmp_path: Path) -> None:
    events = [
        NodeEvent(time=5, node="a1", kind="down"),
        NodeEvent(time=9, node="a1", kind="up"),
        NodeEvent(time=0, node="b0", kind="maintenance", start=10, end=20),
        NodeEvent(time=3, node="a0", kind="drain"),
    ]
    nodes = [NodeType(count=2, cores=4, gpus=2, name="a"), NodeType(cores=8, name="b")]
    jobs = jobs_of(
        submit_time=[0, 0, 1],
        run_time=[30, 8, 40],
        requested_time=[30, 8, 40],
        requested_processors=[4, 8, 99],
        gpu_share=[500, -1, -1],
    )
    run = gs.simulate(jobs, gs.Cluster(nodes=nodes, events=events), "easy")
    figure = gs.plot.gantt(run)
    texts = [text.get_text() for text in figure.findobj(Text)]
    assert {"a0", "a1", "b0", "1", "2", "drained", "maintenance", "down"} <= set(texts)
    hatched = [p for p in figure.axes[1].findobj(Rectangle) if p.get_hatch()]
    spans = sorted((p.get_x(), p.get_x() + p.get_width()) for p in hatched)
    assert spans == [(3, figure.axes[1].get_xlim()[1]), (5, 9), (10, 20)]
    assert len({p.get_hatch() for p in hatched}) == 3
    svg, *_ = save(*gantt_of_nodes(run), tmp_path / "nodes")
    says(svg.read_text(encoding="utf-8"), "50 % of GPU 0 of a0", "job 3: submitted at 1 s, is rejected")
    part, table = gantt_of_nodes(run, nodes=["b0"], until=100)
    assert table["node"].unique().tolist() == ["b0"]
    assert part.axes[1].get_xlim()[1] >= 100


def test_which_chart_is_drawn() -> None:
    run = drawn()
    assert "gpu0" in [text.get_text() for text in gs.plot.gantt(run).findobj(Text)]
    assert gs.plot.gantt(run, by="processors").axes[1].get_ylabel() == "processors"
    jobs = jobs_of(submit_time=[0], run_time=[5], requested_processors=[1], gives_up_time=[9])
    one = gs.simulate(jobs, gs.Cluster(processors=4), "easy")
    assert gs.plot.gantt(one).axes[1].get_ylabel() == "processors"
    plain = gs.simulate(jobs_of(submit_time=[0], run_time=[5], requested_processors=[1]), 4, "easy")
    large = gs.simulate(jobs, gs.Cluster(nodes=[NodeType(count=41, cores=1)]), "easy")
    each_refused(
        (ConfigurationError, "nodes", lambda: gs.plot.gantt(plain, by="nodes")),
        (ConfigurationError, "by is", lambda: gs.plot.gantt(run, by="jobs")),  # type: ignore[arg-type]
        (ConfigurationError, "gpu7", lambda: gs.plot.gantt(run, nodes=["gpu7"])),
        (ConfigurationError, "60 jobs", lambda: gantt_of_nodes(drawn(jobs=61))),
        (ConfigurationError, "40 nodes", lambda: gs.plot.gantt(large)),
    )
    assert gs.plot.gantt(large, nodes="node7") is not None


def test_use_over_time_is_that_of_the_measures() -> None:
    run = drawn(4)
    figure, table = figures.utilisation(run, 50)
    assert len(figure.axes) == table["resource"].nunique() == 4
    use = {**resource_use(run), "fragmentation": fragmentation(run)[1]}
    edges = np.append(table["bin_time"].unique(), run["end_time"].values.max())
    for name, rows in table.groupby("resource"):
        np.testing.assert_allclose(rows["share"], use[str(name)].share(edges))
    shown = table[table["resource"] != "fragmentation"]
    assert (shown["used"] <= shown["there"] + 1e-9).all()
    assert (shown["there"] < 1).any()


def test_use_of_runs_without_nodes() -> None:
    jobs = jobs_of(submit_time=[0, 0], run_time=[10, 20], requested_processors=[4, 2])
    _, table = figures.utilisation(gs.simulate(jobs, 8, "easy"), 2)
    assert table["share"].tolist() == [0.75, 0.25]
    assert len(gs.plot.utilisation(gs.simulate(jobs, 8, "easy")).axes) == 1
    each_refused(
        (ConfigurationError, "bins", lambda: gs.plot.utilisation(gs.simulate(jobs, 8, "easy"), bins=0)),
        (ConfigurationError, "started", lambda: gs.plot.utilisation(gs.simulate(jobs, 1, "easy"))),
    )
