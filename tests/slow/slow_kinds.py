"""One study of each kind through the real workflow, on logs of the user's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from gridsched import results
from gridsched.calibration.fitting import USUAL
from tests.experiments.kinds import test_calendars as calendars
from tests.experiments.kinds import test_calibration as calibration
from tests.experiments.kinds import test_dynamic_grid as dynamic_grid
from tests.experiments.kinds import test_jscheduler as jscheduler
from tests.experiments.kinds import test_placements as placements
from tests.support.studies import changed
from tests.support.workspace import Workspace, temporary_files
from tests.systems.multicluster import test_study as multicluster


@dataclass(frozen=True)
class Kind:
    """A study of a kind, what it gives, and what changes of it lead to."""

    study: dict[str, Any]
    figures: set[str]
    tables: set[str]
    changes: dict[str, tuple[dict[str, Any], set[str]]]
    """By name: changed keys, and the tasks that follow."""
    inputs: Callable[[Path], object] | None = None
    """Writes its logs into a folder."""
    seeded: set[str] = field(default_factory=set)
    """Tasks that follow from another seed."""


def _grid() -> Kind:
    own = {"name": "own", "file": "logs/own.swf", "speed": 900}
    schemes, policies = ("local", "s-i", "ideal-srpt"), ("easy", "widest")
    return Kind(
        {
            "kind": "grid",
            "title": "A grid",
            "scenarios": [
                {
                    "name": "both",
                    "clusters": [{"name": "drawn", "synthetic": {"machine": "M4", "jobs": 40}}, own],
                }
            ],
            "schedulers": [*schemes],
            "policies": ["easy", {"name": "widest", "scheduler": "easy", "order": "scores.py:widest"}],
            "replicates": 3,
        },
        {
            *("ranking", "effects", "means", "messages", "users", "utilisation"),
            *("flows-1", "flows-2"),
        },
        {"measures.csv"},
        {
            "words": ({"title": "Another"}, set()),
            "scheduler": (
                {"schedulers": ["local", "r-i"]},
                {f"both, {policy}, r-i, requested run times" for policy in policies},
            ),
            "replicate": (
                {"replicates": 4, "schedulers": ["local"], "policies": ["easy"]},
                {"both, replicates 0 to 3", "both, local, requested run times"},
            ),
        },
    )


def _models() -> Kind:
    workload = {"name": "own", "file": "logs/own.swf", "window": {"month": "1970-01"}}
    return Kind(
        {"kind": "workload-models", "title": "Models", "workload": workload},
        {
            "classes",
            "distances",
            "interarrival_distribution",
            "service_distribution",
            "offered_load",
            "sizes",
        },
        {"table_four.csv"},
        {"words": ({"title": "Another"}, set())},
    )


def _placements() -> Kind:
    further = [*placements.STUDY["placements"], "spread"]
    orders = ("nodes in random order", "nodes by name")
    return Kind(
        placements.STUDY,
        {"ranking", "node-orders", "waiting"},
        {"measures.csv"},
        {
            "words": ({"title": "Another"}, set()),
            "placement": (
                {"placements": further},
                {f"{order}, spread, replicate {number}" for order in orders for number in range(3)},
            ),
            "replicate": (
                {"replicates": 4, "placements": ["packed"], "node_orders": ["name"]},
                {"nodes by name, packed, replicate 3"},
            ),
        },
        placements.write_tables,
    )


def _calibration() -> Kind:
    logs = ("own", "other")
    rounds = {
        f"{log}, {half} half, round {number}, batch {batch}"
        for log in logs
        for half in ("first", "second")
        for number in range(USUAL.rounds)
        for batch in range(2)
    }
    judged = {f"{log}, judged" for log in logs}
    return Kind(
        calibration.STUDY,
        {"overview", "recorded-waits", *(f"layers-{log}" for log in logs)},
        {"measures.csv", "parameters.csv"},
        {
            "words": ({"title": "Another"}, set()),
            "layer": (
                {"layers": [*calibration.STUDY["layers"], "holds"]},
                {*judged, *rounds},
            ),
        },
        calibration.write_logs,
        {
            *judged,
            *rounds,
        },
    )


def _calendars() -> Kind:
    whole = calendars.STUDY
    schedulers = [whole["schedulers"][0], whole["schedulers"][1], whole["schedulers"][7]]
    study = {**whole, "schedulers": schedulers, "reservations": {}, "estimates": ["actual"]}
    runs = {f"parts, {name}, actual run times" for name in ("alone", "together", "easy")}
    bumped = changed(study, "schedulers.1.levels.0.bump", 600)["schedulers"]
    alike = changed(study, "scenarios.1.partitions.alike", "users")["scenarios"]
    return Kind(
        study,
        {"ranking", "averages", "classes", "users", "trade", "utilisation"},
        {"measures.csv"},
        {
            "words": ({"title": "Another"}, set()),
            "parameter": (
                {"schedulers": bumped},
                {f"{scenario}, together, actual run times" for scenario in ("pair", "parts")},
            ),
            "partitions": ({"scenarios": alike}, {"partitions of parts", *runs}),
        },
        calendars.write_logs,
    )


def _dynamic_grid() -> Kind:
    whole = dynamic_grid.STUDY
    scenario = whole["scenarios"][0]
    sweep = {"name": "overhead", "factor": "overhead"}
    return Kind(
        {
            **whole,
            "scenarios": [
                {**scenario, "clusters": scenario["clusters"][:2], "graphs": [], "graph": "complete"}
            ],
            "schedulers": [{"name": "default", "scheduler": "dynamic-grid", "policy": "fcfs"}],
            "sweeps": [{**sweep, "values": [1.0, 2.0]}],
        },
        {"users", "ranking", "response-overhead", "making-place", "map", "departure"},
        {"measures.csv"},
        {
            "words": ({"title": "Another"}, set()),
            "departure": ({"departure": {**whole["departure"], "absence": 5000}}, set()),
            "sweep": ({"sweeps": [{**sweep, "values": [1.0, 3.0]}]}, {"sites, overhead 3"}),
        },
        dynamic_grid.write_inputs,
    )


def _self_scheduling() -> Kind:
    plan = jscheduler.PLAN
    scenarios = [
        {"name": "logged", "factor": "none", "schedulers": ["plan"]},
        {"name": "exact", "factor": "none", "schedulers": ["exact"], "estimates": ["predicted"]},
    ]
    schedulers = [
        {"name": "plan", **plan, "k": {"from": 1, "to": 2}},
        {"name": "exact", "scheduler": "jscheduler", "k": 2},
    ]
    other = {"name": "other", **plan, "metric": "slowdown", "k": 1}
    further = {"name": "further", "factor": "none", "schedulers": ["other"], "estimates": ["predicted"]}
    simulated = {
        f"logged, wait, k {k}, {estimates} run times"
        for estimates in ("predicted", "retrained")
        for k in (1, 2)
    } | {"logged, wait, exact, k 2, predicted run times"}
    return Kind(
        {
            **jscheduler.STUDY,
            "scenarios": scenarios,
            "schedulers": schedulers,
            "estimates": ["predicted", "retrained"],
        },
        {
            *("ranking", "estimates", "centres", "utilisation", "offered-load"),
            *("prediction-quality", "prediction-intervals"),
        },
        {"measures.csv"},
        {
            "words": ({"title": "Another", "evaluate": False}, set()),
            "scenario": (
                {"schedulers": [*schedulers, other], "scenarios": [*scenarios, further]},
                {"logged, slowdown, k 1, predicted run times"},
            ),
        },
        jscheduler.write_inputs,
        simulated,
    )


def _multicluster() -> Kind:
    loaded = {"name": "loaded"}
    level = {"name": "level", "jobs": {"load": None, "level": 3}}
    log = {
        "name": "log",
        "stream": {"name": "own", "file": "logs/own.swf"},
        "jobs": {"load": None},
        "classes": [{"name": "gold", "high": 1}, {"name": "silver", "low": 1}],
    }
    parts = ("jobs of loaded, ", "loaded, muscle, ", "loaded, dll, ")
    return Kind(
        {
            "kind": "multicluster",
            "title": "Clusters",
            "replicates": 3,
            "worked_example": True,
            "schedulers": [
                {"name": "muscle", "scheduler": "muscle", "titan": multicluster.QUICK},
                {"name": "dll", "scheduler": "dll", "local": "easy"},
            ],
            "common": {
                "clusters": [
                    {"name": "C1", "processors": 8},
                    {"name": "C2", "processors": 5, "speed": 1.3},
                ],
                "jobs": {"count": 60, "load": 0.8, "largest": 5, "unit": 10},
            },
            "scenarios": [loaded, level, log],
        },
        {"ranking", "deadlines", "waits", "example_handed_over", "example_improved"},
        {"measures.csv"},
        {
            "words": ({"title": "Another", "scenarios": [log, loaded, level]}, set()),
            "deadlines": (
                {"scenarios": [{**loaded, "classes": [{"high": 2}]}, level, log]},
                {f"{part}replicate {number}" for number in range(3) for part in parts},
            ),
            "replicate": (
                {"replicates": 4, "scenarios": [loaded]},
                {f"{part}replicate 3" for part in parts},
            ),
        },
    )


KINDS = {
    "own-grid": _grid(),
    "own-models": _models(),
    "own-placements": _placements(),
    "own-calibration": _calibration(),
    "own-calendars": _calendars(),
    "own-dynamic-grid": _dynamic_grid(),
    "own-self-scheduling": _self_scheduling(),
    "own-multicluster": _multicluster(),
}


def _inside(value: Any, folder: Path, name: str) -> Any:
    """A study, with the files that its folder has named from outside of it."""
    if isinstance(value, dict):
        return {key: _inside(part, folder, name) for key, part in value.items()}
    if isinstance(value, list):
        return [_inside(part, folder, name) for part in value]
    return f"{name}/{value}" if isinstance(value, str) and (folder / name / value).is_file() else value


class AllKinds(Workspace):
    """A working directory whose configuration has a study of each kind."""

    def write(self, *, kind: str = "", study: dict[str, Any] | None = None, **config: Any) -> None:
        """Write studies and configuration anew, with changed keys of the study of one kind."""
        super().write(**{"studies": [f"studies/{name}.yaml" for name in KINDS], **config})
        for name, described in KINDS.items():
            folder = self.folder / name
            if described.inputs is not None and not folder.exists():
                folder.mkdir()
                described.inputs(folder)
                self.platform(jscheduler.PLATFORM)
            changes = study or {} if name == kind else {}
            content = _inside({**described.study, **changes, "name": name}, self.folder, name)
            text = yaml.safe_dump(content, sort_keys=False)
            (self.folder / "studies" / f"{name}.yaml").write_text(text, encoding="utf-8")

    def platform(self, content: dict[str, Any]) -> None:
        """Write the platform of self-scheduling anew."""
        name = "own-self-scheduling"
        file = self.folder / name / "platform.yaml"
        if file.parent.exists():
            text = yaml.safe_dump(_inside(content, self.folder, name), sort_keys=False)
            file.write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, kernel_cache: Path) -> AllKinds:
    workspace = AllKinds(tmp_path_factory.mktemp("kinds"), kernel_cache)
    workspace.run()
    return workspace


@pytest.mark.parametrize("kind", KINDS)
def test_everything_is_there(kind: str, finished: AllKinds) -> None:
    folder = finished.results / kind
    assert {path.stem for path in (folder / "figures").glob("*.svg")} == KINDS[kind].figures
    assert {path.name for path in (folder / "tables").glob("*.csv")} == KINDS[kind].tables


@pytest.mark.parametrize("kind", KINDS)
def test_every_variable_says_what_it_is(kind: str, finished: AllKinds) -> None:
    study = results.read(finished.results / kind / "study.nc")
    assert study.data_vars
    numbers = {name: each for name, each in study.data_vars.items() if each.dtype.kind in "iuf"}
    assert not [name for name, each in numbers.items() if not each.attrs.get("long_name")]
    assert not [
        name for name, each in numbers.items() if each.dtype.kind == "f" and "units" not in each.attrs
    ]


def test_nothing_is_left_and_no_log_has_an_error(finished: AllKinds) -> None:
    page = (finished.results / "report.html").read_text(encoding="utf-8")
    assert page.endswith("</html>")
    for text in ("tests what a paper states", "both, widest", "hyper-Erlang distribution"):
        assert text in page
    assert not temporary_files(finished.results), "temporary files are left"
    for log in (finished.results / "logs").rglob("*.log"):
        assert "rror" not in log.read_text(encoding="utf-8"), log


def test_claims_are_listed_whether_or_not_their_studies_were_run(finished: AllKinds) -> None:
    verdicts = pd.read_csv(finished.results / "claims.csv")["verdict"]
    assert set(verdicts) <= {"not run", "input", "not testable"}
    assert len(verdicts) > 50


def test_a_level_of_jobs_has_its_rate_searched_once(finished: AllKinds) -> None:
    assert len(list((finished.results / "rates" / "prepared").glob("*.nc"))) == 1


def test_repeated_run_does_nothing(finished: AllKinds) -> None:
    assert "Nothing to be done" in finished.run()


@pytest.mark.parametrize(
    ("kind", "change"), [(kind, change) for kind, described in KINDS.items() for change in described.changes]
)
def test_change_repeats_what_depends_on_it(kind: str, change: str, finished: AllKinds) -> None:
    study, expected = KINDS[kind].changes[change]
    finished.write(kind=kind, study=study)
    missing = finished.missing()
    finished.write()
    assert missing == expected


def test_words_alone_put_a_study_together_again(finished: AllKinds) -> None:
    finished.write(kind="own-calendars", study={"title": "Another"})
    planned = finished.planned("results/own-calendars/study.nc", "results/own-grid/study.nc")
    finished.write()
    assert planned == {"own-calendars: putting all of study together"}


@pytest.mark.parametrize("kind", [kind for kind, described in KINDS.items() if described.seeded])
def test_another_seed_repeats_what_is_drawn(kind: str, finished: AllKinds) -> None:
    finished.write(seed=2, studies=[f"studies/{kind}.yaml"])
    missing = finished.missing()
    finished.config.clear()
    finished.write()
    assert missing == KINDS[kind].seeded


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            ("centres.1.paper", {"wait_mean": 9, "wait_p95": 99, "slowdown_mean": 1.5, "slowdown_p95": 15}),
            set(),
        ),
        (
            ("centres.2.policy", "easy"),
            {
                "centres",
                "all logs, logged",
                *(f"logged, original, {kind} run times" for kind in ("requested", "predicted", "actual")),
                *KINDS["own-self-scheduling"].seeded,
            },
        ),
    ],
    ids=["words", "policy"],
)
def test_changed_platform(change: tuple[str, Any], expected: set[str], finished: AllKinds) -> None:
    finished.platform(changed(jscheduler.PLATFORM, *change))
    missing = finished.missing()
    finished.platform(jscheduler.PLATFORM)
    assert missing == expected
