"""Studies of workload models: a log fitted by size classes, beside the published fit of its machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import xarray as xr

from gridsched import results
from gridsched.experiments import files
from gridsched.experiments.config import VARYING, Study
from gridsched.experiments.inputs import expected_jobs, log_of
from gridsched.experiments.parts import LogConfig, MachineName, WorkloadConfig
from gridsched.experiments.prepare import selected_jobs, without
from gridsched.experiments.specification import Specification
from gridsched.experiments.tasks import Experiment, StudyTable
from gridsched.presentation.sentences import count, known_measure, name, percent
from gridsched.presentation.tables import PageTable
from gridsched.units import duration, number
from gridsched.workloads import load_machines
from gridsched.workloads.model_comparison import LOG, OBSERVED, PAPER, models_dataset, table_four

_HERE = "gridsched.experiments.kinds.workload_models"

_PUBLISHED = "published utilisation"

_NEAR = 1.25
"""Largest factor between numbers of log and paper that lie near each other."""


class ModelStudy(Study):
    """A study of workload models: a log fitted by size classes, beside the published fit of its machine."""

    simulates = False
    refuses = dict.fromkeys(VARYING, "the models are fitted to the log as it is")

    kind: Literal["workload-models"]
    """What is studied."""
    workload: LogConfig
    """The log."""
    machine: MachineName = "M3"
    """Machine of `resources/superscheduler.yaml` whose published models stand beside it."""

    @property
    def all_workloads(self) -> tuple[WorkloadConfig, ...]:
        """Every workload of the study."""
        return (self.workload,)

    def experiment(self, seed: int) -> Experiment:
        """Tasks, figures and tables of the study; nothing of it is drawn at random."""
        return self.collected(
            {
                "workload": self.workload.model_dump(mode="json", exclude_defaults=True),
                "machine": self.machine,
                "log": log_of(self.workload),
                "attributes": self.described(),
            },
            f"{_HERE}:collect",
            cost=5 + expected_jobs(self.workload) / 5_000,
            tables=[
                StudyTable("table_four", "gridsched.workloads.model_comparison:table_four", "table_four")
            ],
        )

    @property
    def specifications(self) -> list[Specification]:
        """Classes and their models, distributions of their times, and what the spread of sizes does."""
        by_class: dict[str, Any] = {"hue": "size_class", "lanes": "source", "facets": "", "reference": ""}
        return [
            Specification(
                name="classes",
                form="ranking",
                title="Size classes of the log and of the paper",
                measures=("share", "interarrival_mean", "service_mean"),
                **by_class,
                caption="Rows: job sizes in processors.",
                finding=f"{_HERE}:nearness",
            ),
            Specification(
                name="distances",
                form="ranking",
                title="Distance of the models from the log",
                measures=("interarrival_ks", "service_ks"),
                **by_class,
                caption="Kolmogorov-Smirnov distance: the largest vertical distance between distributions.",
                finding=f"{_HERE}:distances",
            ),
            *(
                Specification(
                    name=f"{kind}_distribution",
                    title=f"Distribution of {words}s by size class",
                    measures=(f"{kind}_quantile",),
                    form="distribution",
                    hue="source",
                    facets="size_class",
                    reference="",
                    caption="Both models have the first three moments of a log, which say little about short "
                    "times.",
                )
                for kind, words in (("interarrival", "interarrival time"), ("service", "run time"))
            ),
            Specification(
                name="offered_load",
                form="ranking",
                title="Offered load by the spread of sizes inside classes",
                measures=("offered_load",),
                hue="machine",
                lanes="spread",
                facets="",
                reference="",
                caption="The power law is calibrated to the utilisation of the cluster: they agree by "
                "construction. Observed: with the mean sizes of the log.",
                finding=f"{_HERE}:loads",
            ),
            Specification(
                name="sizes",
                form="response",
                title="Jobs that need at most so many nodes",
                measures=("size_cdf",),
                x="nodes",
                hue="spread",
                facets="",
                reference="",
                finding=f"{_HERE}:sizes",
            ),
        ]

    def conventions(self, dataset: xr.Dataset) -> list[str]:
        """How the models were fitted: a sentence each."""
        facts = dataset.attrs
        window = (
            f" from {facts['first_submission'][:10]} to {facts['last_submission'][:10]}"
            if "first_submission" in facts
            else ""
        )
        return [
            f"{facts['jobs']:,} jobs of {facts['workload']}{window}; {facts['jobs_in_no_class']:,} have the "
            "size of no class. Jobs without a run time count as arrivals only.",
            f"Published models are those of machine {facts['published']}; times of a class are fitted by a "
            "hyper-Erlang distribution of common order with their first three moments.",
            *(_over_all(dataset, kind) for kind in ("interarrival", "service")),
            f"Classes that the log itself would have: {facts['log_classes']}.",
            f"SHA-256 of the log: {facts['workload_checksum'][:12]}.",
        ]

    def page_tables(self, dataset: xr.Dataset) -> list[Any]:
        """Parameters of both models."""
        table = table_four(dataset)
        rows = [[_cell(value) for value in row] for row in table.itertuples(index=False)]
        header = [str(column) for column in table.rename(columns=_COLUMNS)]
        return [PageTable("Parameters of the models of the log and of the paper", header, rows)]


_COLUMNS = {
    "low": "processors from",
    "high": "to",
    "source": "model of",
    "percent_of_jobs": "% of the jobs",
} | {
    f"{kind}_{key}": f"{words}: {symbol}"
    for kind, words in (("interarrival", "interarrival times"), ("service", "run times"))
    for key, symbol in (
        ("n", "n"),
        ("lambda_1", "\N{GREEK SMALL LETTER LAMDA}\N{SUBSCRIPT ONE} [1/s]"),
        ("lambda_2", "\N{GREEK SMALL LETTER LAMDA}\N{SUBSCRIPT TWO} [1/s]"),
        ("rho", "\N{GREEK SMALL LETTER RHO}"),
    )
}
"""What columns of the table are called on the page."""


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if pd.isna(value) else f"{value:,}" if isinstance(value, int) else number(float(value))


def collect(
    workload: WorkloadConfig,
    machine: str,
    log: str | Path,
    attributes: Mapping[str, Any],
    target: str | Path,
) -> None:
    """Fit a log by size classes and set it beside the published models of its machine.

    Parameters
    ----------
    workload : WorkloadConfig
        What of the log is fitted.
    machine : str
        The published machine.
    log : path
        The SWF file. Jobs that cannot be replayed, for want of a run time for instance, count as arrivals
        all the same.
    attributes : mapping
        Of the dataset.
    target : path
        The dataset of the study.
    """
    made = without(selected_jobs(workload, log), "status", workload.leave_out_status)
    whole = models_dataset(made, load_machines(), machine)
    utilisation = whole["target_utilisation"].expand_dims(spread=[_PUBLISHED])
    loads = xr.concat([whole["offered_load"], utilisation.rename("offered_load")], "spread")
    whole = whole.reindex(spread=loads["spread"]).assign(offered_load=loads)
    whole.attrs |= {**attributes, "acknowledgement": made.acknowledgement, **results.provenance()}
    files.write(whole, target)


def _over_all(dataset: xr.Dataset, kind: str) -> str:
    """Mean times over the jobs of all classes."""
    log, paper = (duration(float(dataset[f"{kind}_mean_all"].sel(source=source))) for source in (LOG, PAPER))
    words = known_measure(f"{kind}_mean").words
    return f"Over all classes the {words} is {log} in the log and {paper} by the published models."


def nearness(numbers: pd.DataFrame, specification: Specification, attributes: Mapping[str, Any]) -> list[str]:
    """How many numbers of the classes are near those of the paper, and which is farthest."""
    table = numbers.pivot_table(
        index=["measure", "size_class"], columns="source", values="value", sort=False
    ).reindex(columns=[LOG, PAPER])
    both = table[(table > 0).all(axis=1)]
    if both.empty:
        return ["The log and the paper have no class in common."]
    ratio = both[LOG] / both[PAPER]
    factor = ratio.where(ratio > 1, 1 / ratio)
    near = int((factor <= _NEAR).sum())
    measure, size_class = map(str, both.index[int(factor.to_numpy().argmax())])
    return [
        f"{count(near).capitalize() if near else 'None'} of {count(len(factor), 'number')} of the log "
        f"{'lies' if near == 1 else 'lie'} within a factor of {_NEAR} of the paper's.",
        f"The {known_measure(measure).words} of jobs with {name(size_class)} processors differs most, by a "
        f"factor of {number(float(factor.max()))}.",
    ]


def distances(
    numbers: pd.DataFrame, specification: Specification, attributes: Mapping[str, Any]
) -> list[str]:
    """How far both models lie from the log, on average over the classes."""
    lines = []
    for measure, own in numbers.groupby("measure", sort=False):
        means = own.groupby("source", sort=False)["value"].mean()
        sides = " and ".join(f"{number(float(mean))} for {source}" for source, mean in means.items())
        lines.append(f"The mean {known_measure(str(measure)).words} over the size classes is {sides}.")
    return lines


def loads(numbers: pd.DataFrame, specification: Specification, attributes: Mapping[str, Any]) -> list[str]:
    """Where the assumed spread of sizes changes the offered load most."""
    drawn = numbers[~numbers["spread"].isin([OBSERVED, _PUBLISHED])]
    if drawn.empty:
        return ["No offered load is known."]
    grouped = drawn.groupby("machine", sort=False)["value"]
    machine = (grouped.max() / grouped.min()).idxmax()
    own = drawn[drawn["machine"] == machine].sort_values("value", kind="stable").iloc[[0, -1]]
    ends = [f"{number(row['value'])} with {row['spread']} sizes" for row in own.to_dict("records")]
    return [f"The spread of sizes matters most at {machine}: the offered load is {' and '.join(ends)}."]


def sizes(numbers: pd.DataFrame, specification: Specification, attributes: Mapping[str, Any]) -> list[str]:
    """How far each spread of sizes lies from the sizes of the log."""
    table = numbers.pivot_table(index="nodes", columns="spread", values="value", sort=False)
    if OBSERVED not in table:
        return ["No sizes of a log are known."]
    gaps = table.drop(columns=OBSERVED).sub(table[OBSERVED], axis=0).abs().max().sort_values(kind="stable")
    told = ", ".join(f"{spread} {percent(float(gap))}" for spread, gap in gaps.items())
    return [f"Largest distance from the distribution of sizes in the log: {told}."]
