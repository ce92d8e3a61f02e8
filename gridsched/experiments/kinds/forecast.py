"""Studies of forecasts: when waiting jobs will start, and how often that is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
import pandas as pd
import xarray as xr
from pydantic import Field, model_validator

from gridsched import results
from gridsched.experiments import files
from gridsched.experiments.collection import ALL, labelled, table_of_runs
from gridsched.experiments.config import VARYING, Study
from gridsched.experiments.inputs import prepared_workload
from gridsched.experiments.measuring import BLOCKS
from gridsched.experiments.parts import WorkloadConfig
from gridsched.experiments.specification import Specification
from gridsched.experiments.tasks import Experiment, Task
from gridsched.forecasting.calibrated import CALIBRATED, calibrate
from gridsched.forecasting.history import COMPARED, METHODS, NULL, MethodName, make_forecasts
from gridsched.forecasting.judging import CORRECTION_LABELS, CORRECTIONS, RANGES, judge
from gridsched.forecasting.snapshot import recorded_timeline, timeline_of_run
from gridsched.policies.local import POLICIES, Conventions, named_policy
from gridsched.presentation.sentences import count, percent
from gridsched.simulation import simulate
from gridsched.validation import Count, Different, check_known
from gridsched.verification import verify

TruthName = Literal["simulated", "recorded"]

_HERE = "gridsched.experiments.kinds.forecast"

_COMBINATIONS = [
    pair
    for pair in product(METHODS, CORRECTIONS)
    if pair not in (("combined", CORRECTIONS[0]), ("learned", CORRECTIONS[1]))
]
"""Predictors with their corrections; combined forecasts are weighted, which is a correction, and learned ones
are always learned anew."""

_SHOWN = ("learned", "futures", "combined", NULL, "estimates")
"""Predictors that have a panel."""

_GOAL = (0.77, 0.83)
"""What an interval of 80 % may cover."""

_OF_PARTS = {
    "forecasts": "jobs",
    "coverage": "coverage",
    "low_misses": "low_misses",
    "high_misses": "high_misses",
    "width": "interval_width_mean",
    "score": "interval_score_mean",
    "early": "early",
}
"""Measures of each part of the time, by column of `gridsched.forecasting.judge`."""

_OF_ALL = {"median_width": "interval_width_median", "error": "error_median"}
"""Measures of all forecasts together: medians are no means of those of parts."""


class ForecastStudy(Study):
    """A study of forecasts: how many jobs start in the interval that was told, and how wide it is."""

    refuses = dict.fromkeys(
        VARYING, "forecasts are judged by the starts of the jobs of a log, or of a replay of it as it is"
    )

    kind: Literal["forecast"]
    """What is studied."""
    workloads: Annotated[tuple[WorkloadConfig, ...], Field(min_length=1), Different]
    """The logs."""
    truths: Annotated[tuple[TruthName, ...], Field(min_length=1), Different] = ("simulated", "recorded")
    """What is forecast: the simulation of the log under the policy, or the starts that the log has recorded,
    of whose policy nothing is known."""
    policy: str = "easy"
    """Local policy of the futures, and of simulated truth."""
    calibrate: bool = False
    """Whether the futures of recorded starts go on under a present policy that is fitted to the first half of
    each log, see docs/calibration.md, in place of `policy`."""
    predictors: Annotated[tuple[MethodName, ...], Different] = COMPARED
    """How starts are forecast, see docs/forecast-reference.md; the null model is among them."""
    instants: Annotated[Count, Field(ge=20)] = 300
    """Times at which jobs that wait are forecast, drawn evenly over the time in which somebody waits."""
    jobs: Count = 8
    """Most jobs that are forecast at one time, drawn among those that wait."""
    futures: Annotated[Count, Field(ge=9)] = 100
    """Simulated futures of each forecast."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if NULL not in self.predictors:
            raise ValueError(f"predictors: add {NULL}, with which the others are compared")
        check_known("policy", self.policy, POLICIES)
        if self.calibrate and self.truths != ("recorded",):
            raise ValueError("calibrate: only recorded starts have a policy to be fitted; truths: [recorded]")
        for workload in self.workloads:
            if workload.nodes or workload.failures is not None:
                raise ValueError(f"workloads: {workload.name}: forecasts are without nodes and failures")
            if "recorded" in self.truths and not workload.is_log:
                raise ValueError(f"workloads: {workload.name}: only a log has recorded starts")
        return self

    # --- what is made ---------------------------------------------------------------------------------

    def experiment(self, seed: int) -> Experiment:
        """Tasks, figures and tables of the study."""
        workloads = {each.name: prepared_workload(self.name, each, seed) for each in self.workloads}
        runs = [
            Task(
                stage="simulate",
                study=self.name,
                name=f"{name}, {truth} starts",
                function=f"{_HERE}:run_forecasts",
                arguments={
                    "name": name,
                    "workload": workload,
                    "truth": truth,
                    "policy": self.policy,
                    "calibrated": self.calibrate,
                    "predictors": list(self.predictors),
                    "instants": self.instants,
                    "jobs": self.jobs,
                    "futures": self.futures,
                    "seed": seed,
                },
                labels={"scenario": f"{name}, {truth} starts"},
                cost=(5 if self.calibrate else 1) * self.instants * self.futures / 2000,
            )
            for (name, workload), truth in product(workloads.items(), self.truths)
        ]
        return self.collected(
            {
                "runs": runs,
                "attributes": self.described(
                    reference=scheduler_of(NULL, CORRECTIONS[-1]),
                    seed=seed,
                    policy=CALIBRATED if self.calibrate else self.policy,
                ),
            },
            f"{_HERE}:collect_forecasts",
        )

    @property
    def specifications(self) -> list[Specification]:
        """Coverage by log, predictors compared by their interval score, coverage by horizon."""
        # Predictors that are corrected online have no correction in their label
        shown = [name for name in _SHOWN if name in self.predictors]
        return [
            Specification(
                name="coverage",
                form="ranking",
                title="Coverage of intervals of 80 %",
                measures=("coverage",),
                hue="scenario",
                facets="predictor",
                lanes="correction",
                where={
                    "scheduler": [
                        scheduler_of(method, correction)
                        for method, correction in _COMBINATIONS
                        if method in shown and correction != CORRECTIONS[1]
                    ]
                },
                reference="",
                caption="Corrected online: by the outcomes known at the time of each forecast.",
                finding=f"{_HERE}:covered",
            ),
            Specification(
                name="ranking",
                form="ranking",
                title="Predictors compared by their interval score",
                measures=("interval_score_mean",),
                where={"scheduler": [name for name in METHODS if name in self.predictors]},
                caption="The score is the width plus ten times the distance of starts outside: lower is "
                "better.",
            ),
            Specification(
                name="horizons",
                form="ranking",
                title="Coverage by median forecast of the wait that is left",
                measures=("coverage",),
                hue="group",
                lanes="predictor",
                where={"scheduler": shown, "group": list(RANGES[1:])},
                reference="",
            ),
        ]

    def conventions(self, dataset: xr.Dataset) -> list[str]:
        """How forecasts were made and judged: a sentence each."""
        made = zip(dataset["scenario"].values, dataset["forecasts_made"].values, strict=True)
        return [
            f"Futures continue under {dataset.attrs['policy']}; the second half of each log is judged.",
            f"Replicates are up to {BLOCKS} consecutive parts of the forecasts that are judged, joined where "
            "they depend on each other.",
            "A correction moves each quantile such that earlier forecasts whose outcome was known would have "
            "been right as often as its level says.",
            "Groups are ranges of the median forecast of the time until the start.",
            f"Forecasts: {'; '.join(f'{scenario} {int(number):,}' for scenario, number in made)}.",
        ]


def scheduler_of(method: str, correction: str) -> str:
    """Label of a predictor with its correction; none is named where it is corrected online."""
    return method if correction == CORRECTIONS[-1] else f"{method}, {CORRECTION_LABELS[correction]}"


def covered(numbers: pd.DataFrame, specification: Specification, attributes: Mapping[str, Any]) -> list[str]:
    """On how many logs intervals cover what they say, with and without correction."""
    lines = []
    told: tuple[tuple[MethodName, str], ...] = (
        ("learned", CORRECTIONS[-1]),
        ("combined", CORRECTIONS[-1]),
        ("futures", CORRECTIONS[0]),
    )
    for method, correction in told:
        own = numbers["value"][numbers["scheduler"] == scheduler_of(method, correction)]
        if len(own):
            inside = int(own.between(*_GOAL).sum())
            span = " to ".join(dict.fromkeys((percent(own.min()), percent(own.max()))))
            lines.append(
                f"{METHODS[method].capitalize()}, {CORRECTION_LABELS[correction]}: intervals of 80 % "
                f"hold {span} of the starts, and {percent(_GOAL[0])} to {percent(_GOAL[1])} in "
                f"{count(inside) if inside else 'none'} of {count(len(own), 'scenario')}."
            )
    return lines or ["No forecast was judged."]


# --- tasks ----------------------------------------------------------------------------------------


def run_forecasts(
    name: str,
    workload: str | Path,
    truth: TruthName,
    policy: str,
    calibrated: bool,
    predictors: Sequence[str],
    instants: int,
    jobs: int,
    futures: int,
    seed: int,
    target: str | Path,
) -> None:
    """Forecast a log by several methods and judge the second half.

    Parameters
    ----------
    name : str
        Of the log.
    workload : path
        Result of `gridsched.experiments.prepare.prepare_workload`.
    truth : {"simulated", "recorded"}
        What is forecast.
    policy : str
        Name of the local policy.
    calibrated : bool
        Whether recorded starts are forecast under a policy that is fitted to the first half of the log.
    predictors : sequence of str
        Keys of `gridsched.forecasting.METHODS`.
    instants, jobs, futures : int
        How many, see `gridsched.forecasting.make_forecasts`.
    seed : int
        Of everything that is drawn.
    target : path
        Dataset to write: measures on `scheduler`, `replicate` (parts of the time) and `group` (ranges of the
        median forecast).
    """
    made, cluster = results.workload_from_dataset(results.read(workload))
    if truth == "simulated":
        run = simulate(made, cluster, policy)
        verify(run)
        timeline = timeline_of_run(run)
    else:
        timeline = recorded_timeline(made, cluster.processors)
    forecasts = make_forecasts(
        timeline,
        calibrate(made, cluster.processors, seed=seed) if calibrated else named_policy(policy),
        Conventions(),
        instants=instants,
        jobs=jobs,
        futures=futures,
        seed=seed,
        methods=predictors,
    )
    judged = ((judge(forecasts, parts=BLOCKS), _OF_PARTS), (judge(forecasts).assign(part=0), _OF_ALL))
    asked = [(method, correction) for method, correction in _COMBINATIONS if method in predictors]
    schedulers, groups = [scheduler_of(*each) for each in asked], [ALL, *RANGES[1:]]
    keys = ["scheduler", "replicate", "group"]
    index = pd.MultiIndex.from_product([schedulers, range(BLOCKS), groups], names=keys)
    columns = []
    for table, names in judged:
        own = table.assign(
            scheduler=list(map(scheduler_of, table["predictor"], table["correction"])),
            replicate=table["part"],
            group=table["range"].replace({RANGES[0]: ALL}),
        )
        columns.append(own.set_index(keys)[list(names)].rename(columns=names).reindex(index))
    whole = xr.Dataset.from_dataframe(pd.concat(columns, axis=1)).reindex(scheduler=schedulers, group=groups)
    facts = {
        "title": "forecasts that were judged",
        "verified": 1,
        "scenario": f"{name}, {truth} starts",
        "log": name,
        "starts": truth,
        "forecasts_made": len(forecasts.now),
        "instants": len(np.unique(forecasts.now)),
        "left_out": sum(timeline.left_out.values()),
        **results.provenance(),
    }
    files.write(whole.assign_attrs(facts), target)


def collect_forecasts(runs: Sequence[str | Path], attributes: Mapping[str, Any], target: str | Path) -> None:
    """Put all logs into the dataset of the study; predictors are its schedulers.

    Parameters
    ----------
    runs : sequence of paths
        Results of `run_forecasts`.
    attributes : mapping
        Of the dataset.
    target : path
        The dataset.
    """
    read = [results.read(path) for path in runs]
    judged = read[0]["scheduler"].values.tolist()
    asked = [each for each in _COMBINATIONS if scheduler_of(*each) in judged]
    parts = [
        labelled(
            each.sel(scheduler=scheduler_of(method, correction)),
            scenario=each.attrs["scenario"],
            scheduler=scheduler_of(method, correction),
            scenario_parameters={
                key: each.attrs[key] for key in ("log", "starts", "forecasts_made", "instants", "left_out")
            },
            scheduler_parameters={"predictor": method, "correction": CORRECTION_LABELS[correction]},
            replicates_are="blocks",
        )
        for each, (method, correction) in product(read, asked)
    ]
    whole = table_of_runs(
        parts,
        {
            "scenario": [each.attrs["scenario"] for each in read],
            "scheduler": judged,
            "estimates": ["requested"],
        },
    )
    files.write(whole.assign_attrs({**attributes, "verified": 1, **results.provenance()}), target)
