"""Studies of calibration: layers of a present policy, fitted on one half of a log and judged on both."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from pydantic import Field, model_validator

from gridsched import results
from gridsched.calibration import ceiling
from gridsched.calibration.composition import composition
from gridsched.calibration.fitting import (
    USUAL,
    Fitted,
    Trial,
    all_fitted,
    band,
    chosen,
    tried,
    tried_next,
)
from gridsched.calibration.layers import (
    LAYERS,
    Calibration,
    judged,
    layer_of,
    layers_in,
    simulated_waits,
    verify_waits,
    without_layer,
)
from gridsched.calibration.measures import LEAST_CORRELATION, RATIOS, UNKNOWN, Explained
from gridsched.calibration.null import null_waits
from gridsched.calibration.site import LoggedSite, from_dataset, site_of
from gridsched.calibration.words import described
from gridsched.experiments import files
from gridsched.experiments.collection import attrs_of, collected
from gridsched.experiments.config import TABLES, VARYING, Study
from gridsched.experiments.inputs import expected_jobs, log_of, plain
from gridsched.experiments.parts import LogConfig, WorkloadConfig
from gridsched.experiments.prepare import make_workload
from gridsched.experiments.specification import Specification
from gridsched.experiments.tasks import Experiment, StudyTable, Task
from gridsched.measures import measure
from gridsched.presentation.findings import NOTHING
from gridsched.presentation.sentences import count, listed, name
from gridsched.presentation.tables import PageTable
from gridsched.validation import Count, Different

LayerName = Literal[
    "queues",
    "shares",
    "outages",
    "holds",
    "idle waits",
    "fair share",
    "processors",
    "order",
]

HALVES = ("first half", "second half")
"""Groups of jobs: a half is fitted and the other one judged."""

PLAIN, ALL = "EASY", "calibrated"
ALONE, WITHOUT, ALTERNATIVE = "EASY with ", "calibrated without ", "calibrated, alternative "
MEAN, NULL = "mean of shaken replays", "null model"
SWAPPED = "calibrated on the second half"

EXPLAINED = ("wait_ratio", "wait_correlation", "near_share")
"""Measures of simulated waits, in the order of `gridsched.calibration.measures.Explained`."""

RECORDED = (
    "prompt_share",
    "idle_wait_share",
    "top_user_wait_share",
    "start_after_own_share",
    "start_after_any_share",
)
"""Measures of recorded waits, in the order of `gridsched.calibration.composition.Composition`."""

BESIDE = (
    "calibrated, restarted every day",
    "calibrated, restarted every week",
    "self-agreement, run times shaken",
    "self-agreement, first day left out",
    "recorded, waits to 1 min equal",
)
"""What shows how far a calibration is right, and how far it could be."""

_HALVES = ("first", "second")
"""Halves as `gridsched.calibration` names them."""

_HERE = "gridsched.experiments.kinds.calibration"

_SEEN = 0.005
"""Smallest change of a rank correlation that is stated."""


class CalibrationStudy(Study):
    """A study of calibration: layers of a present policy, fitted on one half of logs, judged on the other."""

    refuses = dict.fromkeys(
        VARYING, "layers are fitted to the waits that were recorded, which other submissions do not have"
    )

    kind: Literal["calibration"]
    """What is studied."""
    workloads: Annotated[tuple[LogConfig, ...], Field(min_length=1), Different]
    """The logs."""
    layers: Annotated[tuple[LayerName, ...], Field(min_length=1), Different] = get_args(LayerName)
    """Layers that are tried, each alone, and then one after the other."""
    batches: Annotated[Count, Field(le=64)] = 2
    """Tasks among which the layers of each round are divided."""
    reverse: bool = True
    """Whether the second half is fitted too, and judged on the first: does a fit carry over either way?"""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for workload in self.workloads:
            if workload.nodes or workload.failures is not None:
                raise ValueError(
                    f"workloads: {workload.name}: nodes and failures are not fitted; leave them out"
                )
        return self

    @property
    def policies(self) -> list[str]:
        """Labels of what is judged, but for calibrations that fit about as well as the best."""
        return [
            PLAIN,
            *(f"{ALONE}{layer}" for layer in self.layers),
            ALL,
            *(f"{WITHOUT}{layer}" for layer in self.layers),
            *([SWAPPED] if self.reverse else []),
            MEAN,
            NULL,
            *BESIDE,
        ]

    # --- what is made ---------------------------------------------------------------------------------

    def experiment(self, seed: int) -> Experiment:
        """Tasks, figures and tables of the study; candidates are drawn from the seed."""
        return self.collected(
            {
                "judged": {workload.name: self._judged(workload, seed) for workload in self.workloads},
                "schedulers": self.policies,
                "attributes": self.described(seed=seed),
            },
            f"{_HERE}:collect_calibrations",
            tables=[*TABLES, StudyTable("parameters", f"{_HERE}:parameters_table", "calibration_parameters")],
        )

    def _judged(self, workload: WorkloadConfig, seed: int) -> Task:
        """What the layers of a log explain, alone and together."""
        size = expected_jobs(workload) / 100_000
        site = Task(
            stage="prepare",
            study=self.name,
            name=f"site {workload.name}",
            function=f"{_HERE}:prepare_site",
            arguments={"workload": plain(workload), "log": log_of(workload)},
            cost=1 + 2 * size,
        )
        halves = _HALVES if self.reverse else _HALVES[:1]
        fitted = {half: self._rounds(workload, site, half, seed, size) for half in halves}
        return Task(
            stage="simulate",
            study=self.name,
            name=f"{workload.name}, judged",
            function=f"{_HERE}:judge",
            arguments={"site": site, "fitted": fitted, "seed": seed},
            labels={"scenario": workload.name, "layers": "judged"},
            cost=2 + 40 * size,
        )

    def _rounds(
        self, workload: WorkloadConfig, site: Task, half: str, seed: int, size: float
    ) -> list[list[Task]]:
        """Tasks of each round of a fit."""
        rounds: list[list[Task]] = []
        for number in range(USUAL.rounds):
            rounds.append(
                [
                    Task(
                        stage="simulate",
                        study=self.name,
                        name=f"{workload.name}, {half} half, round {number}, batch {batch}",
                        function=f"{_HERE}:fit_round",
                        arguments={
                            "site": site,
                            "layers": list(self.layers),
                            "half": half,
                            "batch": batch,
                            "batches": self.batches,
                            "seed": seed,
                            "before": list(rounds),
                        },
                        labels={"scenario": workload.name, "half": half, "round": number, "batch": batch},
                        cost=1 + (100 if number == 0 else 40) / self.batches * size,
                    )
                    for batch in range(self.batches)
                ]
            )
        return rounds

    # --- what is shown --------------------------------------------------------------------------------

    @property
    def specifications(self) -> list[Specification]:
        """All logs before and after, every layer of each log, and what recorded waits consist of."""
        agreement: dict[str, Any] = {
            "form": "ranking",
            "measures": ("wait_correlation", "wait_ratio"),
            "lines": {"wait_correlation": (LEAST_CORRELATION,), "wait_ratio": RATIOS},
            "reference": "",
        }
        return [
            Specification(
                name="overview",
                title="Recorded waits that a calibrated policy explains",
                **agreement,
                hue="scenario",
                facets="group",
                lanes="scheduler",
                where={"group": HALVES[1], "scheduler": [PLAIN, ALL, MEAN, NULL]},
                caption=f"The second half of each log, which was not fitted. {_LINES}",
                finding=f"{_HERE}:explained_logs",
            ),
            Specification(
                name="recorded-waits",
                form="ranking",
                title="What recorded waits consist of",
                measures=RECORDED,
                hue="scenario",
                facets="",
                lanes="group",
                where={"group": list(HALVES)},
                reference="",
                caption="Free processors: at least those that the job asked for. One user: the one who "
                "waited most. Starts: jobs that waited more than ten minutes and started within five after "
                "one of the same user, or any, ended.",
            ),
            *(
                Specification(
                    name=f"layers-{workload.name}",
                    title=f"Layers of a present policy: {workload.name}",
                    **agreement,
                    lanes="group",
                    where={"scenario": workload.name, "group": list(HALVES), "scheduler": self.policies},
                    caption=f"The first half was fitted, unless stated otherwise. {_LINES}",
                    finding=f"{_HERE}:explained_by_layers",
                )
                for workload in self.workloads
            ),
        ]

    def conventions(self, dataset: xr.Dataset) -> list[str]:
        """How policies were fitted and judged: a sentence each."""
        return [
            "The first half of each log was fitted and the second half judged; calibrated on the second half "
            "it is the other way round.",
            "Near: the simulated wait is within five minutes or a factor of two of the recorded one.",
            "Null model: waits are drawn from the history of similar jobs, given the recorded waits up to "
            "each submission; a simulation is given none of them.",
            f"Mean of shaken replays: the mean wait of each job over {ceiling.REPLAYS} replays of the "
            "calibrated policy with shaken run times.",
            "Restarted: each period begins with the recorded state, which other replays do not know.",
            "Self-agreement: the calibrated policy compared with its own replay of shaken input; a correct "
            "policy agrees with the log no better than that.",
            "Waits to 1 min equal: recorded waits, and the same with those of up to a minute made equal.",
            "Outages are those of the whole log, as an operator would know them.",
        ]

    def cautions(self, dataset: xr.Dataset) -> list[str]:
        """What the numbers do not say."""
        return ["Each half of a log is judged once: no difference between policies is tested."]

    def page_tables(self, dataset: xr.Dataset) -> list[PageTable]:
        """The second halves of all logs, every row of each log with its parameters in words, the layers."""
        return [
            _overview_table(dataset),
            *(_log_table(dataset.sel(scenario=each.name), self.policies) for each in self.workloads),
            PageTable(
                "Layers of a present policy",
                ["layer", "what it describes"],
                [[layer, LAYERS[layer].text] for layer in self.layers],
                in_words=True,
            ),
        ]


_LINES = (
    f"Thin lines: waits count as explained from a rank correlation of {LEAST_CORRELATION:g} on, with a ratio "
    f"from {RATIOS[0]:g} to {RATIOS[1]:g}."
)


# --- what figures and tables state ----------------------------------------------------------------


def explained_logs(
    numbers: pd.DataFrame, specification: Specification, attributes: Mapping[str, Any]
) -> list[str]:
    """On how many logs waits count as explained, the ranges before and after, where the null model leads."""
    by_log = {
        key: part.pivot_table(index="scenario", columns="scheduler", values="value", sort=False)
        for key, part in numbers.groupby("measure")
    }
    found = by_log.get("wait_correlation", pd.DataFrame())
    if not {PLAIN, ALL, NULL} <= set(found):
        return NOTHING
    ranked = found.index[found[ALL] >= LEAST_CORRELATION]
    good = int(by_log["wait_ratio"][ALL].reindex(ranked).between(*RATIOS).sum())
    both = f", and a ratio of the mean waits from {RATIOS[0]:g} to {RATIOS[1]:g} besides on {_some(good)}"
    ahead = found.index[found[NULL] > found[ALL]]
    spans = [
        f"{found[policy].min():.2f} ({name(found[policy].idxmin())}) to {found[policy].max():.2f} "
        f"({name(found[policy].idxmax())})"
        for policy in (PLAIN, ALL)
    ]
    return [
        f"In this run, calibrated policies reach a rank correlation of {LEAST_CORRELATION:g} on the second "
        f"half of {_some(len(ranked))} of {count(len(found), 'log')}{both if len(ranked) else ''}.",
        f"Rank correlations range from {spans[0]} under {PLAIN}, and from {spans[1]} calibrated.",
        f"The null model, which is given recorded waits up to each submission, ranks jobs better on "
        f"{listed(ahead) if len(ahead) else 'no log'}.",
    ]


def explained_by_layers(
    numbers: pd.DataFrame, specification: Specification, attributes: Mapping[str, Any]
) -> list[str]:
    """What a log is explained by: before and after, the layer that alone does most, the one missed most."""
    own = numbers[numbers["group"] == HALVES[1]]
    found = own.pivot_table(index="scheduler", columns="measure", values="value", sort=False)
    if not {PLAIN, ALL} <= set(found.index) or "wait_correlation" not in found:
        return NOTHING
    correlation, ratio = found["wait_correlation"], found["wait_ratio"]
    lines = [
        f"In this run, the rank correlation on the second half is {correlation[PLAIN]:.2f} under {PLAIN} "
        f"and {correlation[ALL]:.2f} {ALL}; the ratio of the mean waits is {ratio[PLAIN]:.2f} and "
        f"{ratio[ALL]:.2f}."
    ]
    alone, without = (correlation[correlation.index.str.startswith(text)] for text in (ALONE, WITHOUT))
    if len(alone):
        lines.append(
            f"Of single layers, {str(alone.idxmax()).removeprefix(ALONE)} has the highest, {alone.max():.2f}."
        )
    if len(without):
        missed = correlation[ALL] - without.min()
        lines.append(
            f"Without {str(without.idxmin()).removeprefix(WITHOUT)} it falls by {missed:.2f}."
            if missed >= _SEEN
            else "Without any one of the selected layers it is as high."
        )
    return lines


def _some(number: int) -> str:
    return count(number) if number else "none"


def _cell(value: Any) -> str:
    return "" if np.isnan(value) else f"{float(value):.2f}"


def _overview_table(dataset: xr.Dataset) -> PageTable:
    """Rank correlation and ratio of the second half of each log."""
    shown = [PLAIN, ALL, MEAN, NULL]
    part = dataset.sel(group=HALVES[1], scheduler=shown)
    pairs = zip(part["wait_correlation"].values, part["wait_ratio"].values, strict=True)
    rows = [
        [scenario, *(f"{_cell(a)}, {_cell(b)}" for a, b in zip(*pair, strict=True))]
        for scenario, pair in zip(part["scenario"].values.tolist(), pairs, strict=True)
    ]
    return PageTable("Second halves: rank correlation, ratio of the mean waits", ["log", *shown], rows)


def _log_table(part: xr.Dataset, policies: Sequence[str]) -> PageTable:
    """Every policy of one log on both halves, with its parameters in words."""
    fitted = json.loads(part.attrs["calibrations"])[part["scenario"].item()]
    words = {"wait_correlation": "rank correlation", "wait_ratio": "ratio", "near_share": "near"}
    columns = [(key, half) for half in reversed(HALVES) for key in words]
    rows: list[list[str]] = []
    for policy in policies:
        cells = [_cell(part[key].sel(group=half, scheduler=policy)) for key, half in columns]
        if any(cells):
            same = policy.startswith(ALONE) and cells == rows[0][1:-1]
            rows.append([policy, *cells, "changes nothing in this log" if same else _said(policy, fitted)])
    jobs = int(part["jobs_submitted"].sum())
    return PageTable(
        f"{part['scenario'].item()}: {jobs:,} jobs in {float(part['days']):,.0f} days",
        ["policy", *(f"{words[key]}, {half}" for key, half in columns), "parameters"],
        rows,
        in_words=True,
    )


def _said(policy: str, fitted: Mapping[str, Calibration]) -> str:
    """Parameters of a policy in words; those without a layer are stated with all."""
    told = [] if policy.startswith(WITHOUT) else described(fitted.get(policy, {}))
    return "; ".join(text if policy.startswith(ALONE) else f"{layer}: {text}" for layer, text in told)


def parameters_table(whole: xr.Dataset) -> pd.DataFrame:
    """One row for each parameter of each calibration of each log."""
    rows = [
        (scenario, scheduler, layer_of(parameter), parameter, value)
        for scenario, calibrations in json.loads(whole.attrs["calibrations"]).items()
        for scheduler, given in calibrations.items()
        for parameter, value in given.items()
    ]
    return pd.DataFrame(rows, columns=["scenario", "scheduler", "layer", "parameter", "value"])


# --- tasks ----------------------------------------------------------------------------------------


def prepare_site(workload: Mapping[str, Any], log: str | Path, target: str | Path) -> None:
    """Read a log and look for outages; write the site, see `gridsched.calibration.site`.

    Parameters
    ----------
    workload : mapping
        Of the study.
    log : path
        The log.
    target : path
        Dataset to write.
    """
    made, cluster = make_workload(WorkloadConfig.model_validate(workload), 0, log)
    stored = site_of(made, cluster.processors).dataset()
    files.write(stored.assign_attrs(results.provenance()), target)


def fit_round(
    site: str | Path,
    layers: Sequence[str],
    half: str,
    batch: int,
    batches: int,
    seed: int,
    before: Sequence[Sequence[str | Path]],
    target: str | Path,
) -> None:
    """Try a share of the layers that are tried in a round, and write what was found.

    Parameters
    ----------
    site : path
        Result of `prepare_site`.
    layers : sequence of str
        Layers that are fitted.
    half : {"first", "second"}
        Half of the log that is fitted.
    batch, batches : int
        Which share, of how many.
    seed : int
        Of what is drawn.
    before : sequence of sequences of path
        Results of all batches of each round before.
    target : path
        Dataset to write.
    """
    place, rounds = from_dataset(results.read(site)), _rounds(before)
    names = tried_next(layers, rounds, USUAL)[batch::batches]
    base = chosen(place, rounds, half) if names else None
    steps = [] if base is None else [tried(place, each, base, USUAL, half=half, seed=seed) for each in names]
    found = xr.Dataset(
        {"gain": ("layer", np.array([each.gain for each in steps], np.float64), {"units": "1"})},
        attrs={"steps": json.dumps([each._asdict() for each in steps]), **results.provenance()},
    )
    files.write(found, target)


def judge(
    site: str | Path,
    fitted: Mapping[str, Sequence[Sequence[str | Path]]],
    seed: int,
    target: str | Path,
) -> None:
    """Judge layers alone and together, and what stands beside them, on both halves of a site.

    Parameters
    ----------
    site : path
        Result of `prepare_site`.
    fitted : mapping of half to sequence of sequences of path
        Results of `fit_round`, by the half that was fitted and the round.
    seed : int
        Of the null model and of shaken run times.
    target : path
        Dataset to write: measures on `scheduler` and `group`, those of recorded waits on `group` alone.
    """
    place = from_dataset(results.read(site))
    rounds = {half: _rounds(paths) for half, paths in fitted.items()}
    alike = {half: band(all_fitted(place, each, half)) for half, each in rounds.items()}
    best, *others = [each.calibration for each in alike["first"]]
    sets: dict[str, Calibration] = {
        PLAIN: {},
        **{
            f"{ALONE}{one.layer}": one.fitted[0].calibration if one.fitted else {}
            for one in rounds["first"][0]
        },
        ALL: best,
        **{f"{WITHOUT}{layer}": without_layer(best, layer) for layer in layers_in(best)},
        **{f"{ALTERNATIVE}{number}": each for number, each in enumerate(others, 2)},
    }
    rows = {label: _judged(place, each) for label, each in sets.items()}
    if "second" in alike:
        sets[SWAPPED] = alike["second"][0].calibration
        rows[SWAPPED] = _judged(place, sets[SWAPPED], "second")
    restarted = [ceiling.restarted_waits(place, best, period) for period in (ceiling.DAY, ceiling.WEEK)]
    beside = [
        *([UNKNOWN, judged(place, waits, "second")] for waits in restarted),
        *(
            [ceiling.shaken(place, best, shake, half, seed=seed) for half in _HALVES]
            for shake in ("run times", "first day")
        ),
        [ceiling.granular(place, half) for half in _HALVES],
    ]
    rows |= {
        MEAN: _of_both(place, ceiling.mean_of_shaken(place, best, seed=seed)),
        NULL: _of_both(place, null_waits(place, seed=seed)),
        **dict(zip(BESIDE, beside, strict=True)),
    }
    cells = np.array(list(rows.values()), np.float64)
    mine = [~place.second, place.second]
    recorded = np.transpose([composition(place, half) for half in _HALVES])
    variables = {
        **{key: (("scheduler", "group"), cells[:, :, column]) for column, key in enumerate(EXPLAINED)},
        **{key: ("group", values) for key, values in zip(RECORDED, recorded, strict=True)},
        "recorded_wait_mean": ("group", [place.recorded[place.known & each].mean() for each in mine]),
        "jobs_submitted": ("group", [float(each.sum()) for each in mine]),
    }
    whole = xr.Dataset(
        {key: (*each, attrs_of(measure(key).words, measure(key).unit)) for key, each in variables.items()},
        {"scheduler": list(rows), "group": list(HALVES)},
        {
            "calibrations": json.dumps({label: dict(each) for label, each in sets.items()}),
            "days": float((place.submit[-1] - place.submit[0]) / ceiling.DAY),
            **results.provenance(),
        },
    )
    files.write(whole, target)


def _judged(site: LoggedSite, calibration: Calibration, half: str = "first") -> list[Explained]:
    """Measures on both halves of a calibration that takes its history from one of them; it is verified."""
    history = site.learnt(half)
    waits = simulated_waits(site, calibration, history=history)
    verify_waits(site, calibration, waits, history)
    return _of_both(site, waits)


def _of_both(site: LoggedSite, waits: NDArray[Any]) -> list[Explained]:
    """Measures on both halves of some waits."""
    return [judged(site, waits, half) for half in _HALVES]


def _rounds(before: Sequence[Sequence[str | Path]]) -> list[list[Trial]]:
    """What was found in each round, of those in which anything was tried."""
    read = [
        [each for path in paths for each in json.loads(results.read(path).attrs["steps"])] for paths in before
    ]
    return [
        [
            Trial(
                each["layer"],
                each["gain"],
                [Fitted(tuple(losses), given) for losses, given in each["fitted"]],
            )
            for each in steps
        ]
        for steps in read
        if steps
    ]


def collect_calibrations(
    judged: Mapping[str, str | Path],
    schedulers: Sequence[str],
    attributes: Mapping[str, Any],
    target: str | Path,
) -> None:
    """Put what was judged of all logs into the dataset of the study.

    Parameters
    ----------
    judged : mapping of scenario to path
        Results of `judge`.
    schedulers : sequence of str
        Labels of the policies in the order of the study; alternatives follow.
    attributes : mapping
        Of the dataset, beside `calibrations`: parameters by scenario and scheduler, as JSON.
    target : path
        The dataset: measures on `scenario`, `scheduler` and `group`, NaN for layers that a calibration does
        without.
    """
    parts = {scenario: results.read(path) for scenario, path in judged.items()}
    labels = dict.fromkeys(chain(schedulers, *(part["scheduler"].values.tolist() for part in parts.values())))
    whole = collected(
        [part.assign_coords(scenario=scenario) for scenario, part in parts.items()],
        {"scenario": list(parts)},
        {"scheduler": list(labels), "group": list(HALVES)},
    )
    days = {"long_name": "time from the first submission to the last", "units": "d"}
    whole = whole.assign_coords(days=("scenario", [part.attrs["days"] for part in parts.values()], days))
    fitted = {scenario: json.loads(part.attrs["calibrations"]) for scenario, part in parts.items()}
    facts = {**attributes, "calibrations": json.dumps(fitted), "verified": 1, **results.provenance()}
    files.write(whole.assign_attrs(facts), target)
