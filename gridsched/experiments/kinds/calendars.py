"""Studies of imprecise calendars: slots, managers and reservations beside local policies."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from pydantic import Field, model_validator

from gridsched import results
from gridsched.experiments import files
from gridsched.experiments.comparing import WITHOUT, ComparedRun, ComparisonStudy, Extension
from gridsched.experiments.inputs import event_files, expected_jobs, logs_of, plain, without_machine
from gridsched.experiments.measuring import Measuring, length_classes
from gridsched.experiments.parts import (
    ClusterConfig,
    LogConfig,
    ScenarioConfig,
    SizedCluster,
    WorkloadConfig,
    label_of,
)
from gridsched.experiments.prepare import derived_seed, selected_jobs
from gridsched.experiments.schedulers import scheduler_made
from gridsched.experiments.specification import Specification
from gridsched.experiments.study import FROM_SUBMISSION
from gridsched.experiments.tasks import Task
from gridsched.platform import Cluster
from gridsched.submission import AlignName
from gridsched.systems.base import Scheduler
from gridsched.systems.calendars.kernels.bookings import NOWHERE
from gridsched.systems.calendars.measures import DELAYS, HOUR, delays_of_groups, spread
from gridsched.systems.calendars.scheduler import Calendars
from gridsched.traces import clean, merge_workloads
from gridsched.validation import (
    ConfigModel,
    DifferentFiles,
    Duration,
    Number,
    Whole,
    check_known,
)
from gridsched.workloads import Workload
from gridsched.workloads.table import UNKNOWN, add_counts

Integers = NDArray[np.int64]
Pairs = Sequence[tuple[Workload, Cluster]]

BORDERS = (10, 100, 1000)
"""Run times [s] that divide jobs into the paper's classes."""

LENGTHS: tuple[str, ...] = tuple(length_classes(BORDERS))
"""The classes."""

OTHERS = "jobs without reservation"
"""Group of the jobs that ask for a reservation in no run of the study."""

HORIZON = 4_000_000
"""Seconds that 100,000 slots of 40 s cover, the finest calendar of the paper."""

NO_CPU_TIME = "no CPU time"
"""Why a job is left out, or has its wall-clock time as run time."""

_HERE = "gridsched.experiments.kinds.calendars"
_FINDINGS = "gridsched.presentation.calendars"

# --- what a study says ----------------------------------------------------------------------------


class ReservationsConfig(ConfigModel):
    """Which jobs ask for a reservation, drawn at random."""

    share: Annotated[Number, Field(ge=0, le=1)]
    """Share of the jobs. With a larger share the same jobs ask, and more."""
    lead: tuple[Duration, Duration] = (3600, 86400)
    """From how many to how many seconds after its submission a job is to start, all equally probable;
    rounded up to a multiple of the fundamental slot."""

    @model_validator(mode="after")
    def _rising(self) -> Self:
        if self.lead[0] > self.lead[1]:
            raise ValueError("lead: the second must not be less than the first")
        return self


class PartitionsConfig(ConfigModel):
    """A cluster divided into partitions: a job of its log goes to the smallest that can hold it."""

    workload: LogConfig
    """The log of the cluster."""
    clusters: Annotated[tuple[SizedCluster, ...], Field(min_length=1, max_length=1000), DifferentFiles]
    """The partitions, with their processors."""
    alike: Literal["turns", "users"] = "turns"
    """Which of several partitions of the same size a job goes to: they take turns, job by job or user by
    user."""
    run_time: Literal["wall", "cpu"] = "wall"
    """Run time of a job: its wall-clock time, or its average CPU time (field 6 of the format)."""
    unknown: Literal["leave-out", "wall"] = "leave-out"
    """What to do with a job whose CPU time is not known: leave it out, or take its wall-clock time."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.unknown != "leave-out" and self.run_time == "wall":
            raise ValueError("unknown: wall-clock times are always known; give it with run_time: cpu")
        if self.workload.asks_for:
            key = next(iter(self.workload.asks_for.values()))
            raise ValueError(f"workload.{key}: only for clusters with workloads of their own")
        if event_files(self.clusters):
            raise ValueError("clusters: failures.events: partitions begin at time 0; draw failures")
        return self


class CalendarScenario(ScenarioConfig):
    """Clusters with what their users submit."""

    clusters: Annotated[tuple[WorkloadConfig, ...], Field(max_length=1000), DifferentFiles] = ()
    """The clusters, each with its own workload. Jobs larger than their cluster are left out."""
    partitions: PartitionsConfig | None = None
    """Or partitions of one cluster, among which its log is divided by job size."""
    scale: Annotated[Whole, Field(ge=1, le=1_000_000)] = 1
    """How many times more processors clusters and jobs have than configured."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if bool(self.clusters) == (self.partitions is not None):
            raise ValueError(
                f"give exactly one of clusters, partitions (found {'both' if self.clusters else 'none'})"
            )
        for key in ("align", "resampling", "shaking"):
            if self.partitions is not None and getattr(self, key) not in ("start", None):
                raise ValueError(f"{key}: partitions keep the submit times of their log; leave it out")
        return self

    @property
    def machines(self) -> Sequence[ClusterConfig]:
        """The clusters, or the partitions."""
        return self.clusters if self.partitions is None else self.partitions.clusters

    @property
    def workloads(self) -> Sequence[WorkloadConfig]:
        """Workloads that are read or drawn."""
        return self.clusters if self.partitions is None else (self.partitions.workload,)


class CalendarStudy(ComparisonStudy):
    """A study of imprecise calendars: schedulers in scenarios, each a set of clusters with workloads."""

    refuses: ClassVar[Mapping[str, str]] = {"feedback": FROM_SUBMISSION}

    kind: Literal["calendars"]
    """What is studied."""
    scenarios: Annotated[tuple[CalendarScenario, ...], Field(min_length=1)]
    """The scenarios: clusters with what their users submit."""
    reservations: dict[str, ReservationsConfig] = Field({})
    """Which jobs ask for a reservation under a scheduler, by its name; none by default."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for name in self.reservations:
            check_known("reservations", name, self.labels)
            cannot = self._made[name].cannot
            if "reservations" in cannot:
                raise ValueError(f"reservations: {name!r} grants none; {cannot['reservations']}")
        return self

    @cached_property
    def _made(self) -> dict[str, Scheduler]:
        return {label: scheduler_made(self.scheduler(label)) for label in self.labels}

    @property
    def _calendars(self) -> dict[str, Calendars]:
        return {label: made for label, made in self._made.items() if isinstance(made, Calendars)}

    def _share(self, label: str) -> float:
        return self.reservations[label].share if label in self.reservations else 0.0

    # --- runs -----------------------------------------------------------------------------------------

    def conventions_of(self, run: ComparedRun) -> dict[str, Any]:
        """Keyword arguments of `gridsched.simulate` that say how a run is simulated."""
        given = super().conventions_of(run)
        return given if run.scenario.partitions is None else {**given, "align": "none"}

    def measuring(self, scenario: Any) -> Measuring:
        """How the runs of a scenario are measured."""
        how = super().measuring(scenario)
        further = "gridsched.systems.calendars.measures:delays_of_groups"
        return replace(how, borders=BORDERS, further=further, quantiles=False)

    def prepared(self, scenario: Any, seed: int) -> Task:
        """Task that prepares the clusters of a scenario with their workloads."""
        partitions: PartitionsConfig | None = scenario.partitions
        if partitions is None:
            return super().prepared(scenario, seed)
        clusters = tuple(map(without_machine, partitions.clusters))
        return Task(
            stage="prepare",
            study=self.name,
            name=f"partitions of {scenario.name}",
            function=f"{_HERE}:prepare_partitions",
            arguments={
                "scenario": scenario.name,
                "partitions": plain(partitions, clusters=clusters),
                "logs": logs_of([partitions.workload]),
            },
            cost=0.5 + expected_jobs(partitions.workload) / 50_000,
        )

    def extension_of(self, run: ComparedRun, seed: int) -> tuple[str, dict[str, Any]]:
        """Scale of the clusters, and which jobs ask for reservations."""
        label = label_of(run.scheduler)
        made, asking = self._made[label], self.reservations.get(label)
        given: dict[str, Any] = {}
        if self.reservations:
            drawn = derived_seed(seed, f"{self.name}\n{run.label}") >> 1
            given |= {"largest_share": max(map(self._share, self.labels)), "drawn": drawn}
        if run.scenario.scale != 1:
            given["scale"] = run.scenario.scale
        if asking is not None and isinstance(made, Calendars):
            given |= {"share": asking.share, "lead": list(asking.lead), "step": made.slots.fundamental}
        return f"{_HERE}:CalendarExtension", given

    def parameters_of(self, run: ComparedRun) -> dict[str, Any]:
        """Numbers and texts by which the scheduler of a run differs from others."""
        label = label_of(run.scheduler)
        made = self._made[label]
        if not isinstance(made, Calendars):
            return super().parameters_of(run)
        return {
            **super().parameters_of(run),
            "slots": str(made.slots),
            "slots_of_46_days": made.slots.slots_within(HORIZON),
            "manager_levels": 2 if made.levels is None else max(1, len(made.levels)),
            "low_water": made.low_water,
            "threshold": made.threshold,
            "period": longest_period(made),
            "reserved_share": self._share(label),
        }

    # --- figures --------------------------------------------------------------------------------------

    def _lines(self, key: str) -> dict[str, list[str]]:
        """Labels of calendars that differ in one of `_VARIED` alone, by the first of them."""
        found: dict[str, list[str]] = {}
        for label in self._calendars:
            same = {name: value for name, value in self._varied(label).items() if name != key}
            found.setdefault(json.dumps(same), []).append(label)
        several = [each for each in found.values() if len({self._varied(label)[key] for label in each}) > 1]
        return {each[0]: each for each in several}

    def _varied(self, label: str) -> dict[str, Any]:
        """What calendars of this kind of study are compared by."""
        made = self._calendars[label]
        levels = None if made.levels is None else [replace(each, period=0) for each in made.levels]
        return {
            "slots": str(made.slots),
            "levels": str(levels),
            "period": longest_period(made),
            "reserved_share": self._share(label),
            "threshold": made.threshold,
            "low_water": made.low_water,
        }

    @property
    def _plain(self) -> list[str]:
        """Schedulers whose jobs ask for no reservation: the others wait for the start they ask for."""
        return [label for label in self.labels if not self._share(label)]

    @property
    def coordinates(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Coordinates along scenarios and schedulers by which responses are drawn: values by label."""
        made = super().coordinates
        for key in ("slots", "period"):
            names = {label: first for first, labels in self._lines(key).items() for label in labels}
            if names:
                made["scheduler"][f"scheduler_{WITHOUT}_{key}"] = names
        return made

    @property
    def specifications(self) -> list[Specification]:
        """Figures of the whole study: the cost first where clusters grow, since delays do not change."""
        found = super().specifications
        scaled_up = any(each.scale > 1 for each in self.scenarios)
        return sorted(found, key=lambda each: each.name != "cost") if scaled_up else found

    @property
    def main_specification(self) -> Specification:
        """The figure that ranks the schedulers."""
        return Specification(
            name="ranking",
            form="ranking",
            title="Schedulers compared",
            measures=("delay_mean",),
            where={**self.usual, "scheduler": self._plain},
            caption="The normalised delay of a job is its response time over its run time.",
        )

    @property
    def effects_of_estimates(self) -> list[Specification]:
        """Other estimates against the first kind."""
        return [replace(each, measures=("delay_mean",)) for each in super().effects_of_estimates]

    @property
    def responses(self) -> list[Specification]:
        """Delays over the parameters of calendars that the study varies."""
        found = [replace(each, measures=("delay_mean",)) for each in super().responses]
        for key, x, title, measures in (
            ("slots", "slots_of_46_days", "Response to the slots", ("delay_mean", "touched_per_operation")),
            ("period", "period", "Response to old calendars", ("failed_share", "delay_mean")),
        ):
            labels = max(self._lines(key).values(), key=len, default=[])
            if len(labels) < FEWEST:
                continue
            shown = [
                each.name for each in self.scenarios if len({*labels} & {*self.labels_in(each)}) >= FEWEST
            ]
            found.append(
                Specification(
                    name=f"response-{key}",
                    form="response",
                    title=title,
                    measures=measures,
                    x=x,
                    hue=f"scheduler_{WITHOUT}_{key}",
                    where={**self.usual, "scenario": shown, "scheduler": labels},
                    reference="",
                )
            )
        return found

    @property
    def details(self) -> list[Specification]:
        """Other averages, classes of jobs, reservations, cost, and what clusters do for each other."""
        first = {**self.usual, "estimates": self.first_estimates, "scheduler": self._plain}
        found = [
            Specification(
                name="averages",
                form="ranking",
                title="Four averages of the delay",
                measures=tuple(DELAYS),
                facets="",
                lanes="scenario",
                where=first,
                caption="The paper does not say how it weights delays.",
                finding=f"{_FINDINGS}:averages",
            ),
            Specification(
                name="classes",
                form="ranking",
                title="Delay by run time",
                measures=("delay_mean",),
                lanes="group",
                where={**first, "group": list(LENGTHS)},
            ),
        ]
        return [*found, *self._of_reservations, *self._of_clusters, *self._cost]

    @property
    def _of_reservations(self) -> list[Specification]:
        asking = [label for label in self.labels if self._share(label)]
        if not asking:
            return []
        alike = next(
            (each for each in self._lines("reserved_share").values() if self.reference_label in each), []
        )
        granted = Specification(
            name="reservations",
            form="ranking",
            title="Reservations",
            measures=("acceptance", "postponement_mean"),
            where={**self.usual, "scheduler": asking},
            reference="",
            caption="Postponement: how much later a refused reservation could begin.",
        )
        others = Specification(
            name="others",
            form="ranking",
            title="Effect of reservations on other jobs",
            measures=("delay_mean",),
            where={**self.usual, "group": OTHERS, "scheduler": alike},
            caption="Jobs that ask for a reservation in no run.",
        )
        return [granted, *([others] if alike else [])]

    @property
    def _of_clusters(self) -> list[Specification]:
        """What clusters and their users have of managers, in the scenario with most clusters."""
        scenario = max(self.scenarios, key=lambda each: len(each.machines))
        names = [each.name for each in scenario.machines]
        known = [label for label in self.labels_in(scenario) if label in self._plain]
        trading = [label for label in known if label in self._calendars and self._calendars[label].levels]
        if len(names) < 2 or not trading:
            return []
        where = {"scenario": scenario.name, "estimates": self.estimates_in(scenario)[0]}
        users = {**where, "group": [f"users of {name}" for name in names]}
        clusters = {**where, "group": [f"cluster {name}" for name in names]}
        reference = [self.reference_label] if self.reference_label in known else []
        shown = list(dict.fromkeys([*reference, *trading, *known]))[:MOST_LANES]
        place = f": {scenario.name}" if len(self.scenarios) > 1 else ""
        rows: dict[str, Any] = {"form": "ranking", "hue": "group", "facets": "", "lanes": "scheduler"}
        gains = Specification(
            name="users",
            title=f"Delay by users{place}",
            measures=("delay_mean",),
            where={**users, "scheduler": shown},
            finding="gridsched.presentation.grids:of_users",
            **rows,
        )
        work = Specification(
            name="trade",
            form="composition",
            title=f"Work of clusters for their own users and for others{place}",
            measures=("local_work", "supplied"),
            hue="group",
            facets="scheduler",
            lanes="measure",
            where={**clusters, "scheduler": trading[:MOST_LANES]},
            reference="",
            finding=f"{_FINDINGS}:trade",
        )
        utilisation = Specification(
            name="utilisation",
            title=f"Utilisation by cluster{place}",
            measures=("utilisation",),
            where={**clusters, "scheduler": shown},
            reference="",
            **rows,
        )
        return [*([gains] if reference else []), work, utilisation]

    @property
    def _cost(self) -> list[Specification]:
        if len({each.slots for each in self._calendars.values()}) < 2:
            return []
        return [
            Specification(
                name="cost",
                form="ranking",
                title="Cost of calendars",
                measures=("slots_max", "touched_per_operation", "operations_per_job"),
                facets="",
                lanes="scenario",
                where={"estimates": self.first_estimates, "scheduler": list(self._calendars)},
                reference="",
                caption="Slots: the largest calendar. Operations: searches, changes and splits.",
            )
        ]

    def conventions(self, dataset: xr.Dataset) -> list[str]:
        """How runs were simulated and measured: a sentence each."""
        verified, *rest = super().conventions(dataset)
        kinds = [line for line in rest if any(each.name in line for each in self.scenarios)]
        return [
            verified,
            "The normalised delay is the time from submission to completion over the run time, both of at "
            "least 1 s.",
            "A job takes whole slots; when the first slots are split, waiting jobs move forward.",
            "Local policies, and calendars without managers, run every cluster by itself.",
            "Utilisation divides by the makespan of all clusters of a scenario together.",
            *(
                ["Jobs that ask for a reservation are drawn; with a larger share the same ask, and more."]
                if self.reservations
                else []
            ),
            *(
                ["A job that outruns its slots goes on where there is room, and is suspended elsewhere."]
                if "requested" in self.all_estimates
                else []
            ),
            *kinds,
        ]


FEWEST = 3
"""Values of a parameter of which a response is drawn."""

MOST_LANES = 5
"""Schedulers beside each other in a row of a figure of clusters."""


def longest_period(calendars: Calendars) -> int:
    """Longest time between updates of shadow calendars [s]."""
    return max((level.period for level in calendars.levels or ()), default=0)


# --- runs -----------------------------------------------------------------------------------------


class CalendarExtension(Extension):
    """Scaled clusters, jobs that ask for reservations, and measures by run time and by users.

    Parameters
    ----------
    largest_share : float
        Largest share of jobs with a reservation in any run of the study: the jobs that have none in any are
        those whose cost is compared.
    drawn : int
        Seed of the draw of these jobs, the same for all schedulers.
    scale : int
        How many times more processors clusters and jobs have.
    share : float
        Share of jobs that ask for a reservation here.
    lead : pair of int
        How many seconds after its submission a job is to start.
    step : int
        Starts are multiples of this [s].
    """

    def __init__(
        self,
        *,
        largest_share: float = 0.0,
        drawn: int = 0,
        scale: int = 1,
        share: float = 0.0,
        lead: Sequence[int] = (3600, 86400),
        step: int = 1,
    ) -> None:
        self.largest_share, self.drawn, self.scale = largest_share, drawn, scale
        self.share, self.lead, self.step = share, lead, step

    def loaded(self, pairs: Pairs, align: AlignName, replicate: int) -> Pairs:
        """Workloads and clusters with more processors, and with reservations."""
        scaled_pairs = [scaled(*pair, self.scale) for pair in pairs]
        if not self.share:
            return scaled_pairs
        jobs, home = merge_workloads([workload for workload, _ in scaled_pairs], align=align)
        whether, when = self._draws(len(jobs), replicate)
        first, last = self.lead
        lead = first + np.floor(when * (last - first + 1)).astype(np.int64)
        start = -(-(jobs.submit_time + lead) // self.step) * self.step
        asked = np.where(whether < self.share, start, NOWHERE)
        made = []
        for index, (workload, cluster) in enumerate(scaled_pairs):
            own = home == index
            shift = jobs.submit_time[own] - workload.submit_time
            reserved = np.where(asked[own] >= 0, asked[own] - shift, NOWHERE)
            made.append((replace(workload, reserved_start=reserved), cluster))
        return made

    def groups(self, run: xr.Dataset, replicate: int) -> dict[str, NDArray[np.bool_]]:
        """The jobs that ask for a reservation in no run of the study."""
        if not self.largest_share:
            return {}
        return {OTHERS: self._draws(run.sizes["job"], replicate)[0] >= self.largest_share}

    def _draws(self, jobs: int, replicate: int) -> NDArray[np.float64]:
        """Two numbers of each job: whether it asks for a reservation, and for when."""
        return np.asarray(np.random.default_rng((self.drawn, replicate)).random((2, jobs)))

    def summaries(self, run: xr.Dataset) -> Sequence[xr.Dataset]:
        """What is submitted, by run time and by users; delays of both, and how these differ by cluster."""
        home = run["home_cluster"].to_numpy() if run.sizes["cluster"] > 1 else np.zeros(run.sizes["job"], int)
        length = np.searchsorted(BORDERS, run["run_time"].to_numpy(), side="right")
        processors, names = run["processors"].to_numpy(), run["cluster"].to_numpy()
        work = processors * run["run_time"].to_numpy() / HOUR
        clusters = len(names)
        number = np.bincount(home, minlength=clusters)
        found = xr.Dataset(
            {
                "jobs_submitted": float(len(home)),
                "jobs_submitted_home": (
                    "job_class",
                    np.bincount(length, minlength=len(LENGTHS)).astype(np.float64),
                ),
                "processors_mean": processors.mean(),
                "processors_mean_home": (
                    "home",
                    np.bincount(home, processors, clusters) / np.where(number, number, np.nan),
                ),
                "work_submitted": work.sum(),
                "work_submitted_home": ("home", np.bincount(home, work, clusters)),
            },
            {"job_class": list(LENGTHS), "home": names},
        )
        return [found] if clusters == 1 else [found, *_by_users(run, home, length)]


def _by_users(run: xr.Dataset, home: Integers, length: Integers) -> list[xr.Dataset]:
    """Delays of the users of each cluster by run time, and how these differ from cluster to cluster."""
    names = [str(name) for name in run["cluster"].to_numpy()]
    submit = run["submit_time"].to_numpy()
    started = run["start_time"].to_numpy() >= 0
    values = {"response_time": np.where(started, run["end_time"].to_numpy() - submit, np.nan)}
    shape = (len(names), len(LENGTHS))
    members = {
        f"{user} {part}": np.flatnonzero((home == user) & (length == part))
        for user, part in np.ndindex(*shape)
    }
    everybody = {str(user): np.flatnonzero(home == user) for user in range(len(names))}
    parts, whole = delays_of_groups(run, values, members), delays_of_groups(run, values, everybody)
    made = {str(key): (("home", "job_class"), array.values.reshape(shape)) for key, array in parts.items()}
    jobs = [float(started[each].sum()) for each in members.values()]
    made["jobs"] = (("home", "job_class"), np.reshape(jobs, shape))
    spreads = {
        f"{key}_spread": (
            "job_class",
            [spread(whole[key].values), *(spread(column) for column in np.asarray(made[key][1]).T)],
        )
        for key in DELAYS
    }
    return [
        xr.Dataset(made, {"home": names, "job_class": list(LENGTHS)}),
        xr.Dataset(spreads, {"job_class": ["all", *LENGTHS]}),
    ]


def scaled(workload: Workload, cluster: Cluster, factor: int) -> tuple[Workload, Cluster]:
    """Workload and cluster with so many times more processors."""
    if factor == 1:
        return workload, cluster
    larger = {
        name: np.where(column > 0, column * factor, column)
        for name in ("requested_processors", "allocated_processors")
        for column in [getattr(workload, name)]
    }
    return workload.select(slice(None), **larger), replace(cluster, processors=cluster.processors * factor)


# --- partitions -----------------------------------------------------------------------------------


def prepare_partitions(
    scenario: str, partitions: PartitionsConfig, logs: Mapping[str, str | Path], target: str | Path
) -> None:
    """Divide a log among partitions, and write them with their jobs, the first of which comes at time 0.

    Parameters
    ----------
    scenario : str
        Name of the scenario.
    partitions : PartitionsConfig
        The partitions.
    logs : mapping of workload name to path
        SWF file of the log.
    target : path
        Dataset to write.
    """
    pairs = partition(partitions, logs[partitions.workload.name])
    first = min(int(workload.submit_time.min(initial=2**62)) for workload, _ in pairs)
    moved = [
        (workload.select(slice(None), submit_time=workload.submit_time - first), cluster)
        for workload, cluster in pairs
    ]
    whole = results.grids_dataset({0: moved})
    whole.attrs["scenario"] = scenario
    files.write(whole, target)


def partition(partitions: PartitionsConfig, log: str | Path) -> Pairs:
    """Divide the jobs of a log among partitions by their size.

    The workload of the first partition says what was left out or changed of the whole log.
    """
    sizes = np.array([cluster.size for cluster in partitions.clusters])
    made = selected_jobs(partitions.workload, log)
    if partitions.run_time == "cpu":
        made = _with_cpu_time(made, partitions.unknown)
    statuses = frozenset(partitions.workload.leave_out_status)
    made = clean(made, processors=int(sizes.max()), statuses=statuses)
    place = divide(made.processors, made.user, sizes, by_user=partitions.alike == "users")
    counted: dict[str, Any] = {"left_out": {}, "repaired": {}}
    return [
        (
            made.select(place == index, name=cluster.name, **(counted if index else {})),
            cluster.cluster(Cluster(processors=int(sizes[index]), name=cluster.name)),
        )
        for index, cluster in enumerate(partitions.clusters)
    ]


def _with_cpu_time(workload: Workload, unknown: str) -> Workload:
    """Workload whose run times are average CPU times."""
    cpu_time = workload.average_cpu_time
    known = cpu_time >= 0
    run_time = np.where(known, np.ceil(cpu_time), workload.run_time).astype(np.int64)
    count = {NO_CPU_TIME: int((~known).sum())}
    if unknown == "wall":
        repaired = add_counts(workload.repaired, count)
        return workload.select(slice(None), run_time=run_time, repaired=repaired)
    changed = workload.select(slice(None), run_time=np.where(known, run_time, UNKNOWN))
    return changed.select(known, left_out=add_counts(workload.left_out, count))


def divide(processors: Integers, user: Integers, sizes: Integers, *, by_user: bool) -> Integers:
    """Index of the partition of each job: the smallest that can hold it.

    Partitions of the same size take turns: job by job, or user by user in the order in which they come.

    Parameters
    ----------
    processors, user : int64[n]
        Of each job, in order of submission; none is larger than the largest partition.
    sizes : int64[m]
        Processors of each partition.
    by_user : bool
        Whether all jobs of a user go to the same one of several partitions of the same size.
    """
    place = np.empty(len(processors), np.int64)
    different = np.unique(sizes)
    needed = different[np.searchsorted(different, processors)]
    for size in different:
        alike = np.flatnonzero(sizes == size)
        jobs = np.flatnonzero(needed == size)
        turn = np.arange(len(jobs))
        if by_user:
            _, first, whose = np.unique(user[jobs], return_index=True, return_inverse=True)
            turn = np.argsort(np.argsort(first))[whose]
        place[jobs] = alike[turn % len(alike)]
    return place
