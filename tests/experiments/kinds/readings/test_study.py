"""Studies of readings: files, what values change, one judge, shared runs, figures, tables, page."""

from __future__ import annotations

import contextlib
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
import yaml
from scipy import stats

from gridsched.errors import ConfigurationError
from gridsched.experiments.claims import OrderClaim, evaluate, load_claims
from gridsched.experiments.config import load_study
from gridsched.experiments.kinds.readings import findings
from gridsched.experiments.kinds.readings.choices import (
    ClaimLabels,
    PaperReadings,
    belongs,
    can_matter,
    draw_design,
    load_readings,
    on_what_is_kept,
    read_as,
    together,
    with_changes,
)
from gridsched.experiments.kinds.readings.config import ReadingsStudy
from gridsched.experiments.kinds.readings.stages import CODES
from gridsched.io import read_yaml, resource
from gridsched.presentation.sections import study_section
from gridsched.results import read
from tests.conftest import REPOSITORY
from tests.support.errors import refused
from tests.support.fields import assert_fields
from tests.support.studies import changed, run_study, study_in

BASE: dict[str, Any] = {
    "name": "base",
    "title": "Base",
    "scenarios": [
        {
            "name": "morning",
            "processors": 4,
            "jobs": [[0, 50, 90, 3], [5, 80, 100, 4], [10, 30, 40, 1], [20, 30, 45, 1], [25, 90, 100, 2]],
        }
    ],
    "schedulers": ["fcfs", "easy", "sjf"],
    "estimates": ["requested", "actual"],
}
READINGS: dict[str, Any] = {
    "paper": "tiny",
    "choices": [
        {
            "name": "size",
            "question": "How many processors?",
            "where": "section 1",
            "silence": "Nothing.",
            "default": "four",
            "values": [
                {"name": "four"},
                {"name": "five", "changes": {"base": {"scenarios[morning].processors": 5}}},
                {"name": "eight", "changes": {"base": {"scenarios[*].processors": 8}}},
            ],
        },
        {
            "name": "estimates",
            "question": "What is known?",
            "where": "section 2",
            "silence": "Nothing.",
            "default": "requested",
            "values": [
                {"name": "requested"},
                {"name": "actual", "claims": {"instead": {"estimates": {"requested": "actual"}}}},
            ],
        },
        {
            "name": "jobs that count",
            "question": "Which?",
            "where": "section 2",
            "silence": "Nothing.",
            "default": "both",
            "values": [
                {"name": "both", "drawn": False},
                {"name": "all", "claims": {"without": {"group": ["short narrow"]}}},
                {"name": "narrow", "claims": {"without": {"group": ["all jobs"]}}},
            ],
        },
    ],
}
OURS: dict[str, Any] = {
    "study": "base",
    "variable": "wait_time_mean",
    "select": {"scenario": "morning", "estimates": "requested", "group": ["all jobs", "short narrow"]},
}
WAIT: dict[str, Any] = {
    **OURS,
    "select": {"scenario": "morning", "estimates": "requested", "scheduler": "fcfs"},
}
CLAIMS: dict[str, Any] = {
    "paper": "tiny",
    "citation": "Nobody",
    "claims": [
        {
            "id": "easy-waits-less",
            "kind": "order",
            "where": "Table 1",
            "statement": "Less",
            "ours": OURS,
            "chain": [{"scheduler": "easy"}, {"scheduler": "fcfs"}],
        },
        {
            "id": "wait",
            "kind": "value",
            "where": "Table 2",
            "statement": "Wait",
            "each": "group",
            "paper_value": {"all jobs": 76, "short narrow": 1},
            "ours": WAIT,
            "tolerance": {"relative": 0.2},
        },
        {
            "id": "easy-waits",
            "kind": "value",
            "where": "Table 3",
            "statement": "Wait of EASY",
            "paper_value": 42,
            "ours": {**OURS, "select": {**WAIT["select"], "scheduler": "easy", "group": "all jobs"}},
            "tolerance": {"relative": 0.02},
        },
        {
            "id": "never",
            "kind": "bound",
            "where": "Table 2",
            "statement": "Long waits",
            "bound": "above",
            "paper_value": 1e9,
            "ours": {**WAIT, "select": {**WAIT["select"], "group": "all jobs"}},
        },
        {
            "id": "always",
            "kind": "value",
            "where": "Table 3",
            "statement": "Some wait",
            "paper_value": 50,
            "tolerance": {"relative": 1},
            "ours": {**WAIT, "select": {**WAIT["select"], "group": "all jobs"}},
        },
        {"id": "given", "kind": "input", "where": "Table 2", "statement": "Jobs", "paper_value": 5},
        {
            "id": "elsewhere",
            "kind": "bound",
            "where": "Table 3",
            "statement": "Of another study",
            "bound": "above",
            "paper_value": 0,
            "ours": {"study": "other", "variable": "x"},
        },
    ],
}
NAMES = ["easy-waits-less", "wait-all", "wait-short-narrow", "easy-waits", "never", "always"]
"""Claims with a value of ours."""

STUDY: dict[str, Any] = {
    "name": "tiny",
    "kind": "readings",
    "title": "Tiny",
    "readings": "readings.yaml",
    "claims": "claims.yaml",
    "studies": [{"study": "base.yaml", "keep": {"schedulers": ["fcfs", "easy"]}}],
    "runs": 60,
}


def write_files(folder: Path, **other: Any) -> None:
    """Files of the study, of which some may be others."""
    for name, content in {"base": BASE, "readings": READINGS, "claims": CLAIMS, **other}.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


def study_of(**changes: Any) -> ReadingsStudy:
    return ReadingsStudy.model_validate({**STUDY, **changes})


def claims_in(folder: Path) -> list[Any]:
    """Claims of the study."""
    return list(load_claims([folder / "claims.yaml"]))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working directory with the study made."""
    folder = tmp_path_factory.mktemp("readings")
    write_files(folder)
    return study_in(folder, study_of, 1, shown=True).parent


@pytest.fixture(scope="module")
def dataset(place: Path) -> xr.Dataset:
    return read(place / "results" / "tiny" / "study.nc")


# --- files ----------------------------------------------------------------------------------------


FIVE = "choices.0.values.1.changes"


@pytest.mark.parametrize(
    ("path", "value", "study", "expected"),
    [
        (
            "choices.0.default",
            "six",
            {},
            ["choices[size]: default: found 'six'; known are four, five, eight"],
        ),
        ("choices.0.values.0.changes", {"base": {"title": "x"}}, {}, ["values[four]: changes something"]),
        (FIVE, {}, {}, ["values[five]: changes nothing"]),
        ("choices.0.values.1.name", "four", {}, ["values: 'four' is there twice"]),
        ("choices.1.name", "size", {}, ["choices: 'size' is there twice"]),
        ("choices.0.values.1.meanin", "x", {}, ["meanin: unknown key; did you mean meaning?"]),
        ("choices.0.values", [{"name": "four"}], {}, ["write at least 2"]),
        # changes that lead nowhere
        *(
            (FIVE, {"base": changes}, {}, [text, "choices[size].values[five].changes.base"])
            for changes, text in (
                ({"scenarios[noon].processors": 1}, "there is no [noon]; known are morning"),
                ({"scenarios.7.processors": 1}, "there is no '7' in a list of 1"),
                ({"title[x]": 1}, "[x] stands for members of a list"),
                ({"scenarios[morning]processors]": 1}, "write a path"),
                ({"scenarios[morning].processor": 1}, "unknown key; did you mean processors?"),
            )
        ),
        (FIVE, {"bass": {"title": "x"}}, {}, ["found 'bass'; did you mean base"]),
        # studies that do not fit
        *(
            ("paper", "tiny", study, [text])
            for study, text in (
                ({"readings": "nothing.yaml"}, "readings: found 'nothing.yaml'; there is no such file"),
                (
                    {"studies": [{"study": "base.yaml", "keep": {"schedulers": ["fast"]}}]},
                    "keep.schedulers: found",
                ),
                (
                    {"studies": [{"study": "base.yaml", "keep": {"title": ["x"]}}]},
                    "title: the study has no such list",
                ),
                (
                    {"studies": [{"study": "base.yaml", "changes": {"estimate": []}}]},
                    "estimate: unknown key",
                ),
            )
        ),
    ],
)
def test_mistakes_are_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    value: Any,
    study: dict[str, Any],
    expected: list[str],
) -> None:
    """Of readings with a value at a path, in a study with changes."""
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, readings=changed(READINGS, path, value))
    with refused(*expected, error=ConfigurationError):
        study_of(**study).check_files()


def test_smaller_studies_leave_claims_out_and_judge_others_by_other_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    base = {**STUDY["studies"][0], "claims": {"instead": {"group": {"short narrow": "all jobs"}}}}
    study = study_of(studies=[base], leave_out=["wait-short-narrow", "never"])
    assert [claim.id for claims in study.judged.values() for claim in claims] == [
        "easy-waits-less",
        "wait-all",
        "easy-waits",
        "always",
    ]
    kept = study_of(leave_out=["wait", "never"]).judged[("base",)]
    assert [claim.id for claim in kept] == ["easy-waits-less", "easy-waits", "always"]
    judgements = [task for task in study.experiment(1).tasks if task.function.endswith(":judge_claims")]
    for task in judgements:
        assert task.arguments["labels"]["instead"]["group"] == {"short narrow": "all jobs"}
    with pytest.raises(ConfigurationError, match="leave_out: found 'wai'"):
        _ = study_of(leave_out=["wai"]).judged


def test_paths_reach_members_by_name_value_place_and_all_of_them() -> None:
    values = {"schedulers": ["easy", {"name": "a", "scheduler": "easy"}, {"scheduler": "sjf"}], "k": {"b": 1}}
    made = with_changes(
        values,
        {"schedulers[scheduler=easy].reservations": 2, "schedulers.2.x.y": 3, "k.c": 4, "schedulers[*].z": 5},
        "file",
    )
    assert_fields(
        made,
        schedulers=[
            {"name": "easy", "scheduler": "easy", "reservations": 2, "z": 5},
            {"name": "a", "scheduler": "easy", "reservations": 2, "z": 5},
            {"scheduler": "sjf", "x": {"y": 3}, "z": 5},
        ],
        k={"b": 1, "c": 4},
    )
    assert values["k"] == {"b": 1}, "what is changed is a copy"


def test_claims_are_about_the_labels_that_a_reading_means(tmp_path: Path) -> None:
    write_files(tmp_path)
    order, of_all, of_narrow = claims_in(tmp_path)[:3]
    labels = ClaimLabels(without={"group": ("short narrow",)}, instead={"estimates": {"requested": "actual"}})
    source = read_as(order, labels).source
    assert source is not None
    assert source.select == {"scenario": "morning", "estimates": "actual", "group": ("all jobs",)}
    assert [belongs(claim, labels) for claim in (order, of_all, of_narrow)] == [True, True, False]
    assert read_as(order, ClaimLabels()) == order


def test_changes_of_labels_are_made_one_after_the_other() -> None:
    one_policy = {"case": {"easy": "default", "easy, ring": "ring"}}
    one_graph = {"case": {"ring": "default", "easy, ring": "easy"}, "variable": {"wait": "slowdown"}}
    found = together([ClaimLabels(instead=one_policy), ClaimLabels(instead=one_graph)])
    assert found.instead == {
        "case": {"easy": "default", "easy, ring": "default", "ring": "default"},
        "variable": {"wait": "slowdown"},
    }
    assert together([ClaimLabels(instead=one_graph)]).instead == one_graph


def test_another_variable_may_be_meant(tmp_path: Path) -> None:
    relative = {**WAIT, "relative_to": {"variable": "wait_time_mean"}, "form": "ratio"}
    claim = {**CLAIMS["claims"][2], "ours": {**relative, "variable": "wait_time_p95"}}
    write_files(tmp_path, claims={**CLAIMS, "claims": [CLAIMS["claims"][0], claim]})
    order, bound = claims_in(tmp_path)
    labels = ClaimLabels(
        instead={
            "variable": {"wait_time_mean": "response_time_mean"},
            "group": {"short narrow": "all jobs"},
        }
    )
    ours, other = read_as(order, labels).source, read_as(bound, labels).source
    assert ours is not None
    assert other is not None
    assert ours.variable == "response_time_mean"
    assert ours.select["group"] == ("all jobs",), "two labels that became one are one"
    assert (other.variable, other.relative_to) == ("wait_time_p95", {"variable": "response_time_mean"})


def test_choices_matter_only_for_what_they_can_change(tmp_path: Path) -> None:
    write_files(tmp_path)
    paper = load_readings(tmp_path / "readings.yaml")
    order, of_all, *_, elsewhere = claims_in(tmp_path)
    assert [can_matter(choice, order) for choice in paper.choices] == [True, True, True]
    assert [can_matter(choice, of_all) for choice in paper.choices] == [True, True, False]
    assert [can_matter(choice, elsewhere) for choice in paper.choices] == [False, False, False]


@pytest.mark.parametrize(
    ("select", "chain", "kept", "expected"),
    [
        (["a", "b", "c"], ["x", "y"], {"point": "ac", "scheme": "xy"}, (("a", "c"), ["x", "y"], "a, c")),
        (["a"], ["x", "y", "z"], {"point": "ab", "scheme": "xz"}, (("a",), ["x", "z"], "x, z")),
        (["a"], ["x", ["y", "z"]], {"point": "a", "scheme": "xz"}, (("a",), ["x", ("z",)], "z")),
        (["a", "b"], ["x", "y"], {"point": "ab", "scheme": "xy"}, (("a", "b"), ["x", "y"], "")),
        (["a"], ["x", "y"], {"point": "a", "scheme": "x"}, (("a",), ["x", "y"], "")),
        (["a"], ["x", "y"], {"point": "b", "scheme": "xy"}, (("a",), ["x", "y"], "")),
    ],
    ids=[
        "some points",
        "fewer members",
        "fewer in a member",
        "all there",
        "no comparison left",
        "none there",
    ],
)
def test_claims_about_several_labels_on_those_that_are_kept(
    tmp_path: Path, select: Any, chain: list[Any], kept: dict[str, str], expected: tuple[Any, list[Any], str]
) -> None:
    claims = {
        "paper": "tiny",
        "citation": "Nobody",
        "claims": [
            {
                "id": "one",
                "kind": "order",
                "where": "here",
                "statement": "Less",
                "ours": {"study": "base", "variable": "v", "select": {"point": select}},
                "chain": [{"scheme": member} for member in chain],
            }
        ],
    }
    write_files(tmp_path, claims=claims)
    (claim,) = claims_in(tmp_path)
    known = {"base": {name: set(labels) for name, labels in kept.items()}}
    found, text = on_what_is_kept(claim, known)
    assert isinstance(found, OrderClaim)
    assert (found.ours.select["point"], [member["scheme"] for member in found.chain], text) == expected
    assert on_what_is_kept(claim, {"other": {}}) == (claim, "")


# --- designs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("runs", [2, 7, 24, 100])
def test_values_are_as_frequent_as_others_and_the_default_comes_first(runs: int) -> None:
    paper = PaperReadings.model_validate(READINGS)
    design = draw_design(paper, runs, seed=4)
    assert design[0] == [0, 0, 0]
    assert len(design) == runs + 1
    for choice, column in zip(paper.choices, np.array(design[1:]).T, strict=True):
        counts = np.bincount(column, minlength=len(choice.values))
        assert np.ptp(counts[choice.drawn]) <= 1
        assert counts.sum() == counts[choice.drawn].sum()
    assert draw_design(paper, runs, seed=4) == design
    assert draw_design(paper, max(runs, 7), seed=5) != draw_design(paper, max(runs, 7), seed=4)


def test_a_larger_design_contains_the_smaller_one() -> None:
    """Each hundred readings are a Latin hypercube of their own."""
    paper = PaperReadings.model_validate(READINGS)
    design = draw_design(paper, 250, seed=4)
    assert design[:201] == draw_design(paper, 200, seed=4)
    assert len({str(design[1 + first : 101 + first]) for first in (0, 100)}) == 2
    for choice, column in zip(paper.choices, np.array(design[1:]).T, strict=True):
        for part in (column[:100], column[100:200], column[200:]):
            assert np.ptp(np.bincount(part, minlength=len(choice.values))[choice.drawn]) <= 1


# --- runs -----------------------------------------------------------------------------------------


def test_what_is_alike_is_made_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    experiment = study_of().experiment(1)
    runs = [task for task in experiment.tasks if task.study == "base" and task.labels]
    assert len(runs) == 3 * 2 * 2, "three sizes, two schedulers, two estimates, however many readings"
    own = {task.key for task in load_study("base.yaml").experiment(1).tasks if task.labels}
    assert len(own & {task.key for task in runs}) == 4, "those of the default reading are those of the study"
    variations = [task for task in experiment.tasks if task.name == "a variation of base"]
    assert len(variations) == 3
    more = {task.key for task in study_of(runs=90).experiment(1).tasks}
    assert {task.key for task in experiment.tasks} <= more, "a larger design makes what is new only"


def test_verdicts_are_those_of_the_ledger(place: Path, dataset: xr.Dataset) -> None:
    """The default reading is the study as it is, judged by the ledger's code."""
    claims = {claim.id: claim for claim in load_claims([place / "claims.yaml"])}
    with contextlib.chdir(place):
        own = run_study(load_study("base.yaml"), place / "base-results", 1)
    assert dataset["claim"].values.tolist() == NAMES
    for name in dataset["claim"].values.tolist():
        (verdict,) = evaluate([claims[name]], {"base": own})
        found = dataset.sel(claim=name, reading=0)
        assert int(found["outcome"]) == CODES[verdict.verdict]
        np.testing.assert_equal(float(found["our_value"]), verdict.our_value)


def test_a_row_is_told_apart_from_readings_that_mean_another(dataset: xr.Dataset) -> None:
    meant = dataset["value"].sel(choice="jobs that count").values
    for label, word in (("wait-all", "all"), ("wait-short-narrow", "narrow")):
        mine = dataset["belongs"].sel(claim=label).values == 1
        np.testing.assert_array_equal(mine, (meant == word) | (meant == "both"))


def test_shares_have_the_interval_of_wilson(dataset: xr.Dataset) -> None:
    outcome = dataset["outcome"].sel(reading=slice(1, None))
    for variable, least in (("share", 2), ("partly_share", 1)):
        for name in NAMES:
            met = int((outcome.sel(claim=name) >= least).sum())
            found = dataset.sel(claim=name)
            wilson = stats.binomtest(met, 60).proportion_ci(method="wilson")
            assert float(found[variable]) == pytest.approx(met / 60)
            assert float(found[f"{variable}_low"]) == pytest.approx(wilson.low, abs=1e-12)
            assert float(found[f"{variable}_high"]) == pytest.approx(wilson.high, abs=1e-12)


def test_claims_are_called_by_their_share(dataset: xr.Dataset) -> None:
    assert dict(zip(NAMES, dataset["robustness"].values.tolist(), strict=True)) == {
        "easy-waits-less": "contradicted",
        "wait-all": "contingent",
        "wait-short-narrow": "contradicted",
        "easy-waits": "contingent",
        "never": "contradicted",
        "always": "robust",
    }
    assert_fields(
        dataset["condition"].to_series(), never="Our value ranges from 9 to 76; the closest is 76.", always=""
    )


def test_conditions_name_the_values_that_decide(dataset: xr.Dataset) -> None:
    """One claim holds for one size; another one besides only with estimates that are requested."""
    value = dataset["value"].sel(reading=slice(1, None))
    is_four = (value.sel(choice="size") == "four").values
    is_requested = (value.sel(choice="estimates") == "requested").values
    text = dataset["condition"].to_series()
    for name, met, where in (
        ("wait-all", is_four, "size is four"),
        ("easy-waits", is_four & is_requested, "size is four and estimates is requested"),
    ):
        outcome = dataset["outcome"].sel(claim=name, reading=slice(1, None)).values
        np.testing.assert_array_equal(outcome == 2, met)
        held_out = met[1::2]
        assert text[name].startswith(
            f"Holds if and only if {where}: in {held_out.sum()} of {held_out.sum()} such interpretations "
            f"and 0 of {(~held_out).sum()} others (held out). Largest importance: size, "
        )


def test_choices_that_decide_have_a_significant_importance(dataset: xr.Dataset) -> None:
    low = dataset["importance_low"].transpose("claim", "choice").to_dataframe()["importance_low"].unstack()
    assert (low.loc["wait-all"] > 0).to_dict() == {
        "size": True,
        "estimates": False,
        "jobs that count": False,
    }
    assert (low.loc["easy-waits"] > 0)[["size", "estimates"]].all()
    others = dataset["importance"].drop_sel(claim=["wait-all", "easy-waits"])
    assert others.isnull().all(), "others are not contingent"


def test_claims_are_counted_by_table_and_choice(dataset: xr.Dataset) -> None:
    where, called = dataset["where"].values, dataset["robustness"].values
    missed = dataset["outcome"].sel(reading=0).values == 0
    assert missed.sum() == 2
    for table, name in product(dataset["table"].values, dataset["robustness_class"].values):
        found = dataset.sel(table=table, robustness_class=name)
        own = (where == table) & (called == name)
        assert (int(found["claims"]), int(found["claims_missed"])) == (own.sum(), (own & missed).sum())
    effects = dataset["claims_decided"]
    assert effects.sel(choice="size").values.tolist() == [2, 0, 0]
    assert effects.sel(choice="estimates").values.tolist() == [0, 1, 1]
    assert dataset.attrs["most_important"] == (
        "2 of 2 contingent claims depend significantly on a choice: 2 most on size."
    )


def test_another_value_of_what_matters_changes_ours(dataset: xr.Dataset) -> None:
    ours = dataset["our_value"].sel(claim="wait-all").values
    size = dataset["value"].sel(choice="size").values
    assert len({ours[size == name].mean() for name in ("four", "five", "eight")}) == 3
    for name in ("four", "five", "eight"):
        assert np.ptp(ours[size == name]) == 0, "first come, first served looks at no estimate"


def test_a_part_of_a_claim_is_judged_only_where_it_is_said(tmp_path: Path) -> None:
    """The study keeps two of the schedulers that a claim is about."""
    about_three = {**CLAIMS["claims"][0], "chain": [{"scheduler": ["easy", "sjf"]}, {"scheduler": "fcfs"}]}
    write_files(tmp_path, claims=changed(CLAIMS, "claims.0", about_three))
    with contextlib.chdir(tmp_path):
        whole, part = (
            run_study(study_of(runs=6, partial=partial), tmp_path / f"results-{partial}", 1)
            for partial in (False, True)
        )
    assert whole.attrs["claims_left_out"] == part.attrs["claims_left_out"] + 1
    assert "easy-waits-less" not in whole["claim"].values
    assert part["condition"].sel(claim="easy-waits-less").item().startswith("Judged for easy only.")
    assert not part["condition"].sel(claim="never").item().startswith("Judged")


# --- what is shown --------------------------------------------------------------------------------


@pytest.fixture
def shown(place: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(place)
    return study_section(study_of(), place / "results" / "tiny")


def test_nothing_contingent_has_sentences(dataset: xr.Dataset) -> None:
    assert findings.most_important({"size": 0}, 0) == "No claim is contingent, so no choice decides any."
    assert findings.most_important({"size": 0}, 2) == (
        "None of the 2 contingent claims depends significantly on a choice."
    )
    largest = {"a": 1, "b": 4, "c": 0, "d": 2, "e": 3}
    assert findings.most_important(largest, 12) == (
        "10 of 12 contingent claims depend significantly on a choice: "
        "4 most on b, 3 on e, 2 on d and 1 on others."
    )
    first, *_ = study_of().specifications
    numbers = pd.DataFrame({"measure": ["claims"], "robustness_class": ["robust"], "value": [0.0]})
    assert findings.robust_claims(numbers, first, dataset.attrs) == ["No run has a value."]
    outcomes = pd.DataFrame({"default": ["not"], "robustness": ["robust"], "value": [1.0]})
    assert findings.outcomes(outcomes, first, {}) == ["The default interpretation reproduces no claim."]


# --- what comes with gridsched --------------------------------------------------------------------

SHIPPED = sorted(resource("resources", "readings").glob("*.yaml"))


@pytest.mark.parametrize("path", SHIPPED, ids=[path.stem for path in SHIPPED])
def test_readings_that_come_with_gridsched_fit_their_study(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(REPOSITORY)
    studies = [
        study
        for file in sorted((REPOSITORY / "config" / "studies").glob("*.yaml"))
        if read_yaml(file).get("kind") == "readings"
        and isinstance(study := load_study(file), ReadingsStudy)
        and study.readings == path.stem
    ]
    assert studies
    for study in studies:
        study.check_files()
        assert study.readings_file == path
        assert study.paper.paper == path.stem
        assert study.judged
