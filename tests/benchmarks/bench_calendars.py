"""Imprecise calendars: a month of one machine, ten clusters under a manager, and very many slots."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gridsched.platform import Cluster
from gridsched.simulation import simulate
from gridsched.submission import EstimateName
from gridsched.systems.calendars.kernels.bookings import NOWHERE, REQUEST
from gridsched.systems.calendars.planning import schedule_calendars
from gridsched.systems.calendars.scheduler import Calendars
from gridsched.systems.calendars.tree import Manager, SlotPlan
from gridsched.traces import clean, read_swf, select_window
from gridsched.workloads import Workload
from tests.benchmarks.measure import best_time
from tests.benchmarks.table import Table

FINE = SlotPlan(levels=[(None, 40)])
COARSE = SlotPlan(levels=[(32, 10), (8, 320), (None, 2560)])
"""Rows 1 and 6 of the paper's Figure 4."""

DAY = 86400
MAX_SECONDS_MONTH = 0.25
MAX_SECONDS_GRID = 1.0
MAX_NANOSECONDS_SLOT = 5.0


@pytest.mark.parametrize("slots", [FINE, COARSE], ids=["fine", "coarse"])
@pytest.mark.parametrize("estimates", ["actual", "requested"])
def test_a_month(slots: SlotPlan, estimates: EstimateName, kth: Workload, table: Table) -> None:
    month = select_window(kth, month="1996-11")
    cluster, options = Cluster(processors=100), Calendars(slots=slots)
    best = best_time(lambda: simulate([month], cluster, options, estimates=estimates))
    what = f"calendar {slots}, KTH November 1996, {estimates} run times"
    table.add(what, best, "s", digits=3, at_most=MAX_SECONDS_MONTH)


@pytest.mark.parametrize("period", [0, 600])
def test_ten_clusters(period: int, archive_mirror: Path, table: Table) -> None:
    whole = clean(read_swf(archive_mirror / "CTC-SP2-1996-3.1-cln.swf.gz"))
    windows = [select_window(whole, interval=(31 * DAY * k, (31 * k + 8) * DAY)) for k in range(10)]
    clusters = [Cluster(name=f"c{k}", processors=336) for k in range(10)]
    leaves = [
        Manager(name=cluster.name, children=[cluster], promote_processors=112, promote_duration=12 * 3600)
        for cluster in clusters
    ]
    root = Manager(name="grid", children=leaves, period=period)
    options = Calendars(slots=COARSE, managers=root)
    best = best_time(lambda: simulate(windows, clusters, options, estimates="actual"))
    what = f"calendars of ten clusters, CTC, 17,637 jobs, updates every {period} s"
    table.add(what, best, "s", digits=3, at_most=MAX_SECONDS_GRID)


def test_a_hundred_thousand_slots(table: Table) -> None:
    """A queue of 46 days in slots of 40 s: nothing is moved when slots are over, and a search is one pass."""
    random = np.random.default_rng(5)
    jobs = np.zeros(2_000, REQUEST)
    jobs["run"] = random.integers(1, 8 * 3600, len(jobs))
    jobs["estimate"] = jobs["run"]
    jobs["nodes"] = random.integers(1, 65, len(jobs))
    jobs["reserved"], jobs["speed"] = NOWHERE, 1
    cluster, options = Cluster(processors=100), Calendars(slots=FINE)
    done = schedule_calendars(jobs, cluster, options)
    slots, touched = done.counts["slots_max"], done.counts["slots_touched"]
    best = best_time(lambda: schedule_calendars(jobs, cluster, options))
    what = (
        f"calendar that grows to {slots:,} slots, {len(jobs):,} jobs in {best:.3f} s, time of a slot touched"
    )
    table.add(what, 1e9 * best / touched, "ns", digits=1, at_most=MAX_NANOSECONDS_SLOT)
