"""What studies of the JScheduler are made of: readings of the platform, and how run times are predicted."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, Self, cast

import xarray as xr
from pydantic import Field, PrivateAttr, StrictBool, model_validator

from gridsched.derived import part_model
from gridsched.errors import GridschedError
from gridsched.experiments.comparing import written_out
from gridsched.experiments.config import VARYING
from gridsched.experiments.inputs import event_files, failure_seed, plain, prepared_workload
from gridsched.experiments.kinds.jscheduler.measuring import SlowdownOptions, Weights
from gridsched.experiments.kinds.jscheduler.platforms import PolicyName, Resources, load_platform
from gridsched.experiments.kinds.jscheduler.stages import ORIGINAL_ESTIMATES
from gridsched.experiments.measuring import BLOCKS
from gridsched.experiments.parts import (
    ClusterConfig,
    FailuresConfig,
    ScenarioChoice,
    Window,
    WorkloadConfig,
    label_of,
)
from gridsched.experiments.prepare import derived_seed
from gridsched.experiments.schedulers import Written, scheduler_made
from gridsched.experiments.specification import Specification
from gridsched.experiments.study import SchedulerStudy, function_files
from gridsched.experiments.tasks import Experiment, Figure, Task
from gridsched.prediction.options import PredictorOptions
from gridsched.systems.jscheduler.centres import Centre, CentrePlatform, Reading, check_size
from gridsched.systems.jscheduler.scheduler import JScheduler
from gridsched.validation import ConfigModel, Different, Factor, Label, PathText, Whole, suggestion

_HERE = "gridsched.experiments.kinds.jscheduler.stages"

ORIGINAL = "original"
"""Label of the original scenario among the schedulers."""

Run = tuple[str, str, str]
"""Labels in the dataset of the scenario, the scheduler and the estimates of a run."""

RuntimeEstimates = Annotated[
    tuple[Literal["predicted", "requested", "actual", "retrained"], ...], Field(min_length=1)
]
"""Runtime estimates of the schedulers."""


class ReadingConfig(ScenarioChoice):
    """The platform under one reading of its CPU factors, and what runs there."""

    factor: Reading = "multiply"
    """What a cluster's CPU factor does to run times: multiply or divide them, or nothing."""
    original_factor: Reading | None = None
    """The same in the original scenario; by default as on the grid."""
    failures: FailuresConfig | None = None
    """Failures of the nodes of all clusters; each of their processors is a node. The same nodes fail at the
    same times in the original scenario. Events of a file happen to each cluster, by a clock that shows 0 when
    the first jobs are submitted."""
    # Models are frozen, so a narrower type than the base's is safe; mypy takes fields for writable.
    estimates: RuntimeEstimates | None = None  # type: ignore[assignment]
    """Runtime estimates of the schedulers here; by default as the study says."""

    @model_validator(mode="after")
    def _nothing_is_lost(self) -> Self:
        if self.failures is not None and self.failures.requeue == "lost":
            raise ValueError(
                "failures.requeue: found 'lost'; runs are compared by jobs that end in all of them, use "
                "'place' or 'end'"
            )
        return self

    @property
    def machines(self) -> Sequence[ClusterConfig]:
        """What is configured of each cluster."""
        return (ClusterConfig(name="all", failures=self.failures),)

    @property
    def condition(self) -> tuple[Any, ...]:
        """What its platform is: scenarios that agree in it are one in the dataset, named after the first."""
        return self.factor, self.at_home, self.failures

    @property
    def at_home(self) -> Reading:
        """What a CPU factor does to run times in the original scenario."""
        return self.original_factor or self.factor


PredictorConfig: Any = part_model(PredictorOptions)
"""How run times are predicted."""

SlowdownConfig: Any = part_model(SlowdownOptions)
"""What slowdowns are relative to."""


class RowConfig(ConfigModel):
    """What is different of a centre."""

    resources: Resources | None = None
    """How many clusters, and processors of each; several pairs where they differ."""
    factor: Factor | None = None
    """CPU factor of all clusters."""
    policy: PolicyName | None = None
    """Local policy of all clusters, by name."""

    @model_validator(mode="after")
    def _not_too_large(self) -> Self:
        check_size(self.resources or ())
        return self


class JSchedulerStudy(SchedulerStudy):
    """A study of the JScheduler: jobs choose among clusters; against every log on its own centre."""

    refuses: ClassVar[Mapping[str, str]] = dict.fromkeys(
        VARYING,
        "trees learn from each log as it ends on its own centre, and jobs are compared with those there; "
        "use a study of kind arena, which runs jscheduler on clusters of any logs",
    )

    kind: Literal["self-scheduling"]
    """What is studied."""
    platform: PathText | None = None
    """Path of a platform file of one's own; by default the platform of `resources/jscheduler.yaml`."""
    rows: dict[Label, RowConfig] = Field({})
    """By name of a centre, what is different from its row in the platform."""
    logs: Annotated[tuple[str, ...], Field(min_length=1), Different] | None = None
    """Names of the centres whose logs are merged; by default all that have one."""
    align: Literal["start", "clock"] = "start"
    """Whether the first jobs of all logs are submitted at the same time, or each when its clock says."""
    leave_out_status: tuple[Annotated[Whole, Field(ge=-1, le=5)], ...] = ()
    """SWF status codes of jobs that are left out of all logs (0 failed, 5 cancelled)."""
    window: Window | None = Window(first_months=8)
    """Part of each log that is used; null for whole logs."""
    scenarios: Annotated[tuple[ReadingConfig, ...], Field(min_length=1)]
    """The scenarios: readings of the CPU factor, which may choose among schedulers and estimates."""
    # as above: models are frozen
    estimates: RuntimeEstimates = ("predicted",)  # type: ignore[assignment]
    """Runtime estimates of the schedulers: what a classification tree predicts, requested times, actual run
    times, or `retrained`, predictions of trees that learn from what finishes in the run itself. Otherwise
    they learn from each log on its own centre."""
    predictor: PredictorConfig = PredictorConfig()
    """How run times are predicted."""
    weights: Weights = "jobs"
    """How jobs count in means over all of them: all alike; so that each centre counts as
    much as the others; by processors x run time in the log; or alike, and those of overloaded centres not at
    all."""
    slowdowns: SlowdownConfig = SlowdownConfig()
    """What slowdowns are relative to."""
    evaluate: StrictBool = False
    """Whether predictions are compared with those of other methods, log by log, which takes long."""
    _platform: CentrePlatform = PrivateAttr()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        try:
            platform = load_platform(self.platform)
        except GridschedError as error:
            raise ValueError(f"platform: {error}") from None
        try:
            self._platform = platform.changed(
                {name: row.model_dump(exclude_none=True) for name, row in self.rows.items()}
            )
        except GridschedError as error:
            raise ValueError(f"rows: {error}") from None
        if self.align == "clock" and any(scenario.failures is not None for scenario in self.scenarios):
            raise ValueError(
                "align, failures: failures begin with the first job of all logs; use align: start"
            )
        self._check_logs()
        if ORIGINAL in self.labels:
            raise ValueError(
                f"schedulers: the name {ORIGINAL!r} stands for the original scenario; choose another"
            )
        resources = len(self._platform.resources("none")[0])
        for scheduler in self.schedulers:
            made = scheduler_made(scheduler)
            if not isinstance(made, JScheduler):
                raise ValueError(
                    f"schedulers: {label_of(scheduler)!r} lets no job choose; give the scheduler jscheduler"
                )
            if made.k > resources:
                raise ValueError(
                    f"schedulers[{label_of(scheduler)}].k: found {made.k}; the platform has {resources} "
                    f"resources, use 1 to {resources}"
                )
        return self

    def _check_logs(self) -> None:
        absent = {centre.name: centre.absent for centre in self._platform.centres}
        usable = [name for name, reason in absent.items() if not reason]
        if not usable:
            raise ValueError("platform: no centre has a log that can be used; give log or file to one")
        for name in self.logs or ():
            if name not in usable:
                raise ValueError(
                    f"logs: no log of {name!r} can be used: "
                    f"{absent.get(name, 'the platform has no such centre')}; {suggestion(name, usable)}"
                )

    @property
    def grid(self) -> CentrePlatform:
        """The platform."""
        return self._platform

    @property
    def centres(self) -> tuple[Centre, ...]:
        """Centres whose logs are used, in the order of the platform."""
        return tuple(
            centre
            for centre in self._platform.centres
            if not centre.absent and (self.logs is None or centre.name in self.logs)
        )

    @property
    def conditions(self) -> list[ReadingConfig]:
        """The first of the scenarios with each platform, after which all of them are named in the dataset."""
        return [each for each in self.scenarios if self._label_in(each) == each.name]

    def _label_in(self, scenario: ReadingConfig) -> str:
        return next(each.name for each in self.scenarios if each.condition == scenario.condition)

    @property
    def reference_label(self) -> str:
        """The original scenario, unless the study says otherwise."""
        return dict(zip(self.labels, self.shown_labels, strict=True)).get(self.reference or "", ORIGINAL)

    @property
    def shown_labels(self) -> list[str]:
        """Label of each scheduler in the dataset, which those that are the same have in common."""
        made = [scheduler_made(each) for each in self.schedulers]
        first = [made.index(each) for each in made]
        short = [
            "{variant}, k {k}".format(**own) for own in map(_parameters_of, self.schedulers, self.labels)
        ]
        number = Counter(short[i] for i in set(first))
        return [short[i] if number[short[i]] == 1 else self.labels[i] for i in first]

    @property
    def dataset_labels(self) -> list[str]:
        """Labels of the schedulers in the dataset."""
        return [ORIGINAL, *dict.fromkeys(self.shown_labels)]

    @property
    def all_workloads(self) -> tuple[WorkloadConfig, ...]:
        """Every log with all jobs that its own machine could hold, whatever its size on this platform.

        The header of a log of one's own may not say how large its machine is, so all jobs stay that the whole
        platform could hold.
        """
        everything = sum(each.processors for each in self._platform.centres)
        return tuple(
            WorkloadConfig(
                name=centre.name,
                archive=centre.log,
                file=centre.file,
                window=self.window,
                leave_out_status=self.leave_out_status,
                processors=everything if centre.file is not None else None,
            )
            for centre in self.centres
        )

    def place_of(self, workload: WorkloadConfig) -> str:
        """Where a workload is configured, for messages."""
        return f"{self.platform}: centres[{workload.name}]"

    def checksum(self) -> str:
        """SHA-256 of everything the study and its platform say."""
        return hashlib.sha256(f"{super().checksum()}\n{self._platform!r}".encode()).hexdigest()

    def machines(self, *names: str) -> dict[str, Any]:
        """The platform with all centres, or some: what simulations depend on of it, as plain values."""
        return {
            "centres": [
                {key: getattr(each, key) for key in ("name", "resources", "factor", "policy")}
                for each in self._platform.centres
                if not names or each.name in names
            ]
        }

    # --- what is made ---------------------------------------------------------------------------------

    def experiment(self, seed: int) -> Experiment:
        """Tasks, figures and tables of the study."""
        workloads = {each.name: prepared_workload(self.name, each, seed) for each in self.all_workloads}
        originals = {
            each.name: {name: self._original(each, name, task, seed) for name, task in workloads.items()}
            for each in self.conditions
        }
        streams = {
            each.name: self._stream(each, workloads, originals[each.name], seed) for each in self.conditions
        }
        runs = [
            self._measured((label, ORIGINAL, estimates), {"system": "local", "variant": ORIGINAL}, stream)
            for label, stream in streams.items()
            for estimates in ORIGINAL_ESTIMATES
        ]
        runs += [
            self._simulated(run, scheduler, streams[run[0]], workloads, seed)
            for run, scheduler in self.runs.items()
        ]
        predictions = [self._prediction(workloads, originals)] if self.evaluate else []
        figures = [
            Figure(name=each.name, dataset=dataset, specification=each.values(), part="Predictions")
            for dataset in predictions
            for each in PREDICTION_FIGURES
        ]
        return self.collected(
            {
                "runs": runs,
                "labels": {
                    "scenario": list(streams),
                    "scheduler": self.dataset_labels,
                    "estimates": list(dict.fromkeys([*self._estimates, *ORIGINAL_ESTIMATES])),
                },
                "attributes": self.facts(seed),
                "facts": [
                    Task(
                        stage="prepare",
                        study=self.name,
                        name="centres",
                        function=f"{_HERE}:describe_centres",
                        arguments={"platform": self.machines(), "workloads": workloads},
                    )
                ],
            },
            memory=2000,
            after=figures,
            further=predictions,
        )

    @property
    def runs(self) -> dict[Run, Written]:
        """Scheduler of every run, by the labels that it has in the dataset."""
        shown = dict(zip(self.labels, self.shown_labels, strict=True))
        return {
            (self._label_in(scenario), shown[label], estimates): self.scheduler(label)
            for scenario in self.scenarios
            for estimates in self.estimates_in(scenario)
            for label in self.labels_in(scenario)
        }

    @property
    def _estimates(self) -> list[str]:
        """Estimates of all runs."""
        return list(dict.fromkeys(estimates for *_, estimates in self.runs))

    def _simulating(self, scenario: ReadingConfig, seed: int, *centres: str) -> dict[str, Any]:
        """Centres with their failures and how jobs are estimated there, as arguments of tasks."""
        return {
            "platform": self.machines(*centres),
            "failures": scenario.failures and plain(scenario.failures),
            "seed": failure_seed(scenario.machines, seed).get("seed", 0),
            "predictor": plain(self.predictor),
            "overrun": self.overrun,
        }

    def _original(self, scenario: ReadingConfig, centre: str, workload: Task, seed: int) -> Task:
        """A log on its own centre."""
        return Task(
            stage="predict",
            study=self.name,
            name=f"{centre} on its own, {scenario.name}",
            function=f"{_HERE}:simulate_original",
            arguments={
                **self._simulating(scenario, seed, centre),
                "factor": scenario.at_home,
                "centre": centre,
                "workload": workload,
            },
            also={"files": event_files(scenario.machines)},
            cost=7 * workload.cost,
        )

    def _stream(
        self,
        scenario: ReadingConfig,
        workloads: Mapping[str, Task],
        originals: Mapping[str, Task],
        seed: int,
    ) -> Task:
        """All logs merged."""
        return Task(
            stage="predict",
            study=self.name,
            name=f"all logs, {scenario.name}",
            function=f"{_HERE}:fuse_stream",
            arguments={
                **self._simulating(scenario, seed),
                "factor": scenario.factor,
                "at_home": scenario.at_home,
                "align": self.align,
                "workloads": dict(workloads),
                "originals": dict(originals),
            },
            also={"files": event_files(scenario.machines)},
            cost=0.2 * sum(task.cost for task in workloads.values()),
            memory=1500,
        )

    def _measured(self, run: Run, parameters: dict[str, Any], stream: Task) -> Task:
        """The original scenario, measured; `_simulated` measures runs alike."""
        labels = dict(zip(("scenario", "scheduler", "estimates"), run, strict=True))
        scenario = self.scenario(labels["scenario"])
        return Task(
            stage="simulate",
            study=self.name,
            name=f"{', '.join(run)} run times",
            function=f"{_HERE}:measure_original",
            arguments={
                "stream": stream,
                "platform": self.machines(),
                "labels": {
                    **labels,
                    "scenario_parameters": {"factor": scenario.factor, "factor_at_home": scenario.at_home},
                    "scheduler_parameters": parameters,
                    "replicates_are": "blocks",
                },
                "weights": self.weights,
                "slowdowns": plain(self.slowdowns),
            },
            labels=labels,
            memory=1500,
        )

    def _simulated(
        self, run: Run, scheduler: Written, stream: Task, workloads: Mapping[str, Task], seed: int
    ) -> Task:
        """Simulation of one run: it takes longer the more clusters a job asks."""
        parameters = _parameters_of(scheduler, run[1])
        measured = self._measured(run, parameters, stream)
        scenario = self.scenario(run[0])
        slow = (
            (40 if run[2] == "retrained" else 1)
            * (1 if scenario.failures is None else 200 if parameters["predictions"] == "exact" else 10)
            # centres that are offered several times what they can do have queues of thousands of jobs
            * (30 if scenario.factor == "multiply" else 1)
        )
        return replace(
            measured,
            function=f"{_HERE}:simulate_run",
            arguments={
                **measured.arguments,
                **self._simulating(scenario, seed),
                "factor": scenario.factor,
                "scheduler": written_out(scheduler),
                "drawn": derived_seed(seed, self.name),
                "align": self.align,
                "workloads": dict(workloads),
            },
            also={"files": [*function_files(scheduler), *event_files(scenario.machines)]},
            cost=0.2 + slow * (1 + parameters["k"] / 60) * sum(task.cost for task in workloads.values()) / 9,
            memory=2500,
        )

    def _prediction(self, workloads: Mapping[str, Task], originals: Mapping[str, Mapping[str, Task]]) -> Task:
        """How good predictions are, log by log, on the first platform."""
        first = self.conditions[0]
        return Task(
            stage="collect",
            study=self.name,
            name="prediction",
            function=f"{_HERE}:stack_predictions",
            arguments={
                "predictions": [
                    Task(
                        stage="predict",
                        study=self.name,
                        name=f"predictions of {name}",
                        function=f"{_HERE}:evaluate_prediction",
                        arguments={
                            "platform": self.machines(name),
                            "factor": first.at_home,
                            "workload": workload,
                            "original": originals[first.name][name],
                            "predictor": plain(self.predictor),
                        },
                        cost=30 * workload.cost,
                    )
                    for name, workload in workloads.items()
                ]
            },
        )

    # --- figures --------------------------------------------------------------------------------------

    @property
    def specifications(self) -> list[Specification]:
        """The JScheduler against the original scenario: rankings, responses to k, users of centres."""
        first = self._estimates[0]
        families = self._families
        largest = [own[-1] for own in families.values()]
        reference = self.reference_label
        compared = dict.fromkeys((ORIGINAL, reference))
        ends = list({**compared, **dict.fromkeys(own[i] for own in families.values() for i in (0, -1))})
        # LWT-pred and LSLD-pred
        paper = [families[variant][-1] for variant in families if variant in ("wait", "slowdown")]
        users = [f"users of {centre.name}" for centre in self.centres]
        measures = ("bounded_slowdown_mean", "wait_time_mean")
        to = "the logs on their own centres" if reference == ORIGINAL else f"{reference!r}"
        against = f"Relative to {to}, under the same estimates. "
        response = Specification(
            name="response-k",
            form="response",
            title="Response to the number of clusters asked",
            measures=measures,
            x="k",
            hue="variant",
            where={"estimates": [first]},
            caption=against,
        )
        effect = Specification(
            name="estimates",
            form="ranking",
            title="Effect of the estimates of run times",
            measures=measures,
            where={"scheduler": [ORIGINAL, *paper]},
            reference="",
            caption="With the largest k.",
        )
        return [
            Specification(
                name="ranking",
                form="ranking",
                title="The JScheduler against the original scenario"
                if reference == ORIGINAL
                else "Schedulers compared",
                measures=("response_time_mean", "bounded_slowdown_mean"),
                where={"estimates": [first], "scheduler": ends},
                caption=against + "Of each metric the smallest and the largest k.",
            ),
            *([response] if any(len(own) > 2 for own in families.values()) else []),
            *([effect] if len(self._estimates) > 1 and paper else []),
            Specification(
                name="centres",
                form="ranking",
                title="Effect on the users of each centre",
                measures=measures,
                hue="group",
                lanes="scheduler",
                where={
                    "estimates": [first],
                    "scheduler": list({**compared, **dict.fromkeys(largest[:2])}),
                    "group": users,
                },
                finding="gridsched.presentation.grids:of_users",
                caption=against,
            ),
            Specification(
                name="utilisation",
                form="ranking",
                title="Utilisation of all centres",
                measures=("utilisation",),
                where={"estimates": [first], "scheduler": ends},
                reference="",
            ),
            Specification(
                name="offered-load",
                form="ranking",
                title="Load offered to each centre",
                measures=("offered_load",),
                hue="group",
                lanes="scheduler",
                where={"group": users},
                reference="",
                caption="Work of the centre's own jobs relative to what it can do; the queue grows above 1.",
            ),
        ]

    @property
    def _families(self) -> dict[str, list[str]]:
        """Schedulers that differ in k alone, in the order of k, by what they have in common."""
        own = {
            label: _parameters_of(scheduler, label)
            for scheduler, label in zip(self.schedulers, self.shown_labels, strict=True)
        }
        by_k = sorted(own, key=lambda label: own[label]["k"])
        return {
            variant: [label for label in by_k if own[label]["variant"] == variant]
            for variant in (each["variant"] for each in own.values())
        }

    def conventions(self, dataset: xr.Dataset) -> list[str]:
        """How runs were simulated and measured: a sentence each."""
        return [
            f"The logs of {len(self.centres)} centres are merged, "
            + ("each by its own clock." if self.align == "clock" else "their first jobs submitted together."),
            "Original scenario: each log on its own centre, whose clusters are one pool there.",
            "Run times by the CPU factor: "
            + "; ".join(f"{each.name}: {_FACTORS[each.factor]}" for each in self.conditions)
            + ".",
            "Measured are the jobs that run in the original scenario and fit a single cluster, "
            + _WEIGHTS[self.weights]
            + ".",
            "All runs draw the same clusters: with k, a job asks the first k of one sample.",
            "Jobs that outrun their estimate keep running; the estimate "
            + ("doubles." if self.overrun == "doubling" else "grows by fixed increments."),
            f"Replicates are up to {BLOCKS} blocks of consecutive jobs, joined where one depends on another.",
        ]


_FACTORS = {"multiply": "multiplied", "divide": "divided", "none": "as in the log"}

_WEIGHTS = {
    "jobs": "each with the same weight",
    "centres": "each centre with the same weight",
    "work": "by processors x run time",
    "light": "without those of overloaded centres",
}

PREDICTION_FIGURES = (
    Specification(
        name="prediction-quality",
        form="ranking",
        title="Accuracy of predicted run times",
        measures=("relative_error", "correlation", "under_predicted"),
        hue="predictor",
        facets="",
        lanes="",
        reference="",
        caption="Means over logs.",
    ),
    Specification(
        name="prediction-intervals",
        form="map",
        title="Predicted and actual run times",
        own="gridsched.experiments.kinds.jscheduler.drawing:prediction_intervals",
        finding="gridsched.experiments.kinds.jscheduler.drawing:interval_finding",
    ),
)
"""Figures of how good predictions are."""


def _parameters_of(written: Written, label: str) -> dict[str, Any]:
    """Parameters of a scheduler in the dataset, where it has a label."""
    made = cast(JScheduler, scheduler_made(written))
    metric = made.metric if isinstance(made.metric, str) else label
    return {
        "system": made.system,
        "predictions": made.predictions,
        "metric": metric,
        "k": int(made.k),
        "variant": metric if made.predictions == "plan" else f"{metric}, {made.predictions}",
    }
