"""Configuration: every mistake has a line that names file, key, what was found and what is allowed."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gridsched.errors import ConfigurationError
from gridsched.study.config import Config, LocalStudy, load_config, load_study
from tests.conftest import REPOSITORY

STUDY: dict[str, Any] = {
    "name": "tiny",
    "title": "Tiny",
    "workloads": [
        {"name": "listed", "cluster": {"processors": 8}, "jobs": [[0, 10, 20, 1], [5, 10, 20, 8]]},
        {"name": "log", "archive": "KTH-SP2-1996", "window": {"month": "1996-10"}},
        {"name": "drawn", "synthetic": {"machine": "M3", "jobs": 10, "estimates": {"model": "modal"}}},
    ],
    "policies": ["fcfs", "easy", {"name": "mine", "order": "shortest", "backfilling": "easy"}],
    "metrics": {"warm_up": 0.1, "classes": {"long": 60}},
}

SCORES = """\
def widest(processors):
    return processors

def strange(colour):
    return colour

number = 3
"""


def changed(path: str, value: Any) -> dict[str, Any]:
    """The study with the value at a path such as workloads.0.name replaced; None takes the key away."""
    study = deepcopy(STUDY)
    *parents, last = path.split(".")
    inside: Any = study
    for part in parents:
        inside = inside[int(part)] if part.isdigit() else inside.setdefault(part, {})
    if value is None:
        del inside[last]
    else:
        inside[int(last) if last.isdigit() else last] = value
    return study


def message_of(folder: Path, study: Any) -> str:
    """The message about a study file, each line of which begins with its name."""
    file = folder / "study.yaml"
    file.write_text(study if isinstance(study, str) else yaml.safe_dump(study), encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_study(file)
    lines = str(caught.value).split("\n")
    for line in lines:
        assert line.startswith(f"{file}:")
        assert len(line) < 600
    return "\n".join(line.removeprefix(f"{file}") for line in lines)


def test_the_study_of_these_tests_is_good(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(yaml.safe_dump(STUDY), encoding="utf-8")
    study = load_study(file)
    assert isinstance(study, LocalStudy)
    assert study.schemes == ["fcfs", "easy", "mine"]


MISTAKES: list[tuple[str, Any, list[str]]] = [
    # unknown keys, at each level
    ("titel", "x", ["titel: unknown key", "did you mean title?", "workloads"]),
    ("workloads.0.nmae", "x", ["workloads[listed].nmae: unknown key", "did you mean name?", "archive"]),
    ("workloads.0.cluster.cpus", 4, ["workloads[listed].cluster.cpus: unknown key", "processors_per_node"]),
    ("workloads.1.window.day", 4, ["[log].window.day: unknown key", "month, months, interval, jobs"]),
    ("workloads.2.synthetic.seed", 4, ["workloads[drawn].synthetic.seed: unknown key", "load_scale"]),
    ("workloads.2.synthetic.sizes.shape", 4, ["synthetic.sizes.shape: unknown key", "weighting"]),
    ("workloads.2.synthetic.estimates.g", 4, ["synthetic.estimates.g: unknown key", "max_estimate"]),
    ("policies.2.backfill", "easy", ["policies[mine].backfill: unknown key", "did you mean backfilling?"]),
    ("metrics.warmup", 0.1, ["metrics.warmup: unknown key", "did you mean warm_up?"]),
    ("metrics.a\nb", 1, ["metrics.'a\\nb': unknown key"]),
    ("metrics", {3: 1}, ["metrics"]),
    ("metrics.classes.short", 1, ["metrics.classes.short: unknown key", "long, wide"]),
    # missing keys
    ("name", None, ["name: missing"]),
    ("title", None, ["title: missing"]),
    ("policies", None, ["policies: missing"]),
    ("workloads.0.name", None, ["workloads[item 1].name: missing"]),
    ("policies.2.name", None, ["policies[item 3].name: missing"]),
    ("workloads.1.window.interval", [5], ["workloads[log].window.interval[item 2]: missing"]),
    # wrong types
    ("name", 2024, ["name: found 2024", "write text, in quotes"]),
    ("title", ["a"], ["title: found ['a']", "write text"]),
    ("kill", "yes please", ["kill: found 'yes please'", "true or false"]),
    ("kill", 1, ["kill: found 1", "true or false"]),
    ("policies", "easy", ["policies: found 'easy'", "a list, such as [a, b]"]),
    ("policies.0", 7, ["policies[item 1]: found 7", "write text"]),
    ("policies.0", ["easy"], ["policies[item 1]: found ['easy']", "write text"]),
    ("workloads", {"name": "x"}, ["workloads: ", "a list, such as [a, b]"]),
    ("workloads.0", "listed", ["workloads[item 1]: found 'listed'", "key: value lines"]),
    ("workloads.0.cluster.processors", "8", ["cluster.processors: found '8'", "a whole number"]),
    ("workloads.0.cluster.processors", 8.5, ["cluster.processors: found 8.5", "a whole number"]),
    ("workloads.0.cluster.processors", True, ["cluster.processors: found True", "a whole number"]),
    ("workloads.0.cluster.speed", "1e3", ["cluster.speed: found '1e3'", "a number", "1.0e+5"]),
    ("workloads.0.cluster.node_exclusive", "no", ["node_exclusive: found 'no'", "true or false"]),
    ("workloads.0.jobs.1.2", "x", ["workloads[listed].jobs[item 2][item 3]: found 'x'", "a whole number"]),
    ("workloads.1.window", "1996-10", ["workloads[log].window: found '1996-10'", "key: value lines"]),
    ("metrics.classes", 3, ["metrics.classes: found 3", "key: value lines"]),
    # unknown names
    ("kind", "gird", ["kind: found 'gird'", "did you mean grid?", "local-policies"]),
    ("kind", 3, ["kind: found 3", "local-policies"]),
    ("policies.0", "esay", ["policies[item 1]: found 'esay'", "did you mean easy?", "conservative"]),
    ("policies.0", "EASY", ["policies[item 1]: found 'EASY'", "unknown policy"]),
    ("policies.0", "easy(0)", ["'easy(0)'"]),
    ("policies.2.backfilling", "aggressive", ["policies[mine].backfilling: found 'aggressive'", "'easy'"]),
    ("policies.2.order", "longest", ["policies[mine]", "order is 'longest'", "smallest_area"]),
    ("policies.2.backfill_order", "lxf", ["policies[mine]", "backfill_order is 'lxf'", "change with time"]),
    ("policies.2.order", "no/such.py:f", ["policies[mine]", "'no/such.py:f'", "there is no file"]),
    ("policies.2.order", "x.py:", ["policies[mine]", "'x.py:'", "path/to/file.py:function"]),
    ("estimates", ["predicted"], ["estimates[item 1]: found 'predicted'", "'requested'", "'actual'"]),
    ("overrun", "triple", ["overrun: found 'triple'", "'doubling' or 'increments'"]),
    ("passes", "often", ["passes: found 'often'", "'instant' or 'event'"]),
    ("reference", "sjf", ["reference: 'sjf' is not one of fcfs, easy, mine"]),
    ("workloads.1.archive", "KTH-SP-1996", ["workloads[log].archive", "did you mean KTH-SP2-1996"]),
    ("workloads.2.synthetic.machine", "M9", ["synthetic.machine: found 'M9'", "unknown machine", "M6"]),
    ("workloads.2.synthetic.estimates.model", "mode", ["estimates.model: found 'mode'", "'modal'"]),
    ("workloads.2.synthetic.sizes.fill", "all", ["sizes.fill: found 'all'", "'powers'"]),
    # names that are there twice, or would be one file
    ("policies.1", "fcfs", ["policies: 'fcfs' is there twice"]),
    ("policies.2.name", "easy", ["policies: 'easy' is there twice"]),
    ("policies.2.name", "recorded", ["policies: ", "'recorded'", "choose another"]),
    ("estimates", ["actual", "actual"], ["estimates: 'actual' is there twice"]),
    ("workloads.1.name", "listed", ["workloads: 'listed' is there twice"]),
    ("workloads.1.name", "Listed", ["workloads: 'listed' and 'Listed'", "one file"]),
    ("name", "logs", ["name: found 'logs'", "taken"]),
    ("name", "Archive", ["name: found 'Archive'", "taken"]),
    ("name", "report.html", ["name: found 'report.html'", "taken"]),
    # names that cannot be file names or labels
    ("name", "a/b", ["name: found 'a/b'", "letters, digits"]),
    ("name", "..", ["name: found '..'", "letters, digits"]),
    ("name", "", ["name: found ''", "letters, digits"]),
    ("name", "x" * 61, ["name: found 'xxx", "at most 60 characters"]),
    ("workloads.0.name", "KTH {1}", ["found 'KTH {1}'", "letters, digits"]),
    ("title", "", ["title: found ''", "at least 1 character"]),
    ("title", "two\nlines", ["title: found 'two\\nlines'", "one line"]),
    ("policies.2.name", " mine", ["found ' mine'", "without blanks at the ends"]),
    ("description", "a\x07b", ["description: found", "'\\x07' is not allowed"]),
    # sources
    ("workloads.0.file", "x.swf", ["workloads[listed]: give exactly one of archive, file", "file, jobs"]),
    ("workloads.1.archive", None, ["workloads[log]: give exactly one of", "found none"]),
    ("workloads.1.window.jobs", [0, 5], ["workloads[log].window: give exactly one of", "month, jobs"]),
    ("workloads.1.window", {}, ["workloads[log].window: give exactly one of month, months, interval, jobs"]),
    ("workloads.2.synthetic.jobs", None, ["workloads[drawn].synthetic: give exactly one of jobs, duration"]),
    ("workloads.2.window", {"jobs": [0, 5]}, ["workloads[drawn]: window: only a log"]),
    ("workloads.0.leave_out_queue", [1], ["workloads[listed]: leave_out_queue: only a log"]),
    ("workloads.0.cluster", {}, ["workloads[listed]: cluster: give the processors"]),
    (
        "workloads.0.cluster.processors_per_node",
        3,
        ["workloads[listed]: cluster: 8 processors", "nodes of 3"],
    ),
    ("workloads.2.cluster", {"processors": 9}, ["workloads[drawn]: cluster: 9 processors", "nodes of 8"]),
    # windows
    ("workloads.1.window.month", "1996-13", ["window.month: found '1996-13'", "like 1996-10"]),
    ("workloads.1.window.month", "October", ["window.month: found 'October'", "like 1996-10"]),
    ("workloads.1.window", {"first_months": 0}, ["window.first_months: found 0", "equal to 1"]),
    ("workloads.1.window", {"first_months": 1, "month": "1996-10"}, ["found month, first_months"]),
    ("workloads.1.window", {"interval": [9, 9]}, ["window: interval: the end must come after"]),
    ("workloads.1.window", {"jobs": [-1, 5]}, ["window.jobs[item 1]: found -1", "equal to 0"]),
    ("workloads.1.window", {"jobs": [0, 0]}, ["window.jobs[item 2]: found 0", "equal to 1"]),
    # negative, zero, huge and broken numbers
    ("workloads.0.jobs.0.0", -1, ["jobs[item 1][item 1]: found -1", "equal to 0"]),
    ("workloads.0.jobs.0.1", -1, ["jobs[item 1][item 2]: found -1", "equal to 0"]),
    ("workloads.0.jobs.0.3", 0, ["jobs[item 1][item 4]: found 0", "equal to 1"]),
    ("workloads.0.jobs.0.2", 10**12, ["jobs[item 1][item 3]: found 1000000000000", "less than"]),
    ("workloads.0.jobs.0", [1, 2, 3], ["jobs[item 1][item 4]: missing"]),
    ("workloads.0.jobs.0", [1, 2, 3, 4, 5], ["jobs[item 1]: found [1, 2, 3, 4, 5]", "at most 4"]),
    ("workloads.0.cluster.processors", 0, ["cluster.processors: found 0", "equal to 1"]),
    ("workloads.0.cluster.processors", 2**40, ["cluster.processors: found 1099511627776", "less than"]),
    ("workloads.0.cluster.speed", 0, ["cluster.speed: found 0", "equal to 0.001"]),
    ("workloads.0.cluster.speed", -1.5, ["cluster.speed: found -1.5", "equal to 0.001"]),
    ("workloads.0.cluster.speed", float("inf"), ["cluster.speed: found inf", "finite number"]),
    ("workloads.0.cluster.speed", float("nan"), ["cluster.speed: found nan", "finite number"]),
    ("workloads.1.leave_out_status", [7], ["leave_out_status[item 1]: found 7", "equal to 5"]),
    ("workloads.2.synthetic.jobs", 10**15, ["synthetic.jobs: found 1000000000000000", "less than"]),
    ("workloads.2.synthetic.load_scale", -1, ["synthetic.load_scale: found -1", "equal to 0.001"]),
    ("workloads.2.synthetic.sizes", {"exponent": 500}, ["sizes.exponent: found 500", "equal to 30"]),
    ("workloads.2.synthetic.estimates", {"f": -0.5}, ["estimates.f: found -0.5", "equal to 0"]),
    ("workloads.2.synthetic.estimates", {"model": "multiple", "f": 0.5}, ["estimates: f: at least 1"]),
    ("policies.2.reservations", 0, ["policies[mine].reservations: found 0", "equal to 1"]),
    ("policies.2", {"name": "a", "reservations": 2}, ["policies[a]: ", "reservations is 2", "'easy'"]),
    ("metrics.warm_up", 0.5, ["metrics.warm_up: found 0.5", "less than 0.5"]),
    ("metrics.cool_down", -0.1, ["metrics.cool_down: found -0.1", "equal to 0"]),
    ("metrics.batches", 1, ["metrics.batches: found 1", "equal to 2"]),
    ("metrics.bins", 10**9, ["metrics.bins: found 1000000000", "equal to 100000"]),
    ("metrics.classes.wide", 0, ["metrics.classes.wide: found 0", "equal to 1"]),
    # empty lists
    ("workloads", [], ["workloads: found []", "at least 1"]),
    ("policies", [], ["policies: found []", "at least 1"]),
    ("estimates", [], ["estimates: found []", "at least 1"]),
    ("workloads.0.jobs", [], ["workloads[listed].jobs: found []", "at least 1"]),
]


@pytest.mark.parametrize(("path", "value", "expected"), MISTAKES, ids=lambda value: str(value)[:40])
def test_mistake_in_a_study(tmp_path: Path, path: str, value: Any, expected: list[str]) -> None:
    message = message_of(tmp_path, changed(path, value))
    for part in expected:
        assert part in message


DOCUMENTS: list[tuple[str, list[str]]] = [
    ("", [": nothing in it", "key: value lines"]),
    ("# only a comment\n", [": nothing in it"]),
    ("just text", [": found 'just text'", "key: value lines"]),
    ("- a\n- b\n", [": found ['a', 'b']", "key: value lines"]),
    ("3", [": found 3"]),
    ("name: a\ntitle: [b\nkill: true\n", [":3: not YAML"]),
    ("name: a\n\ttitle: b\n", [":2: not YAML"]),
    ("name: a\nname: b\n", [":2: not YAML", "the key 'name' is there twice"]),
    ("metrics:\n  bins: 3\n  bins: 4\n", [":3: not YAML", "the key 'bins' is there twice"]),
    ("name: a\n---\nname: b\n", [": not YAML"]),
    ("name: !!python/object:os.system x\n", [":1: not YAML"]),
    ("name: a\ntitle: \x07\n", [":2: not YAML"]),
    ("name: *nowhere\n", [":1: not YAML", "nowhere"]),
    ("window: { month: 1996-13-45 }\n", [": a value that YAML cannot hold", "month"]),
    ("seed: " + "9" * 5000, [": a value that YAML cannot hold"]),
    ("a: " + "[" * 5000, [": "]),
    ("title: {}\n".format("x" * 10_000), [": "]),
]


@pytest.mark.parametrize(("text", "expected"), DOCUMENTS, ids=lambda value: str(value)[:30])
def test_document_that_is_no_study(tmp_path: Path, text: str, expected: list[str]) -> None:
    message = message_of(tmp_path, text)
    for part in expected:
        assert part in message


def test_several_mistakes_have_a_line_each_and_misprinted_keys_come_first(tmp_path: Path) -> None:
    study = changed("titel", "x")
    del study["title"]
    study["kill"] = "maybe"
    first, *others = message_of(tmp_path, study).split("\n")
    assert first.startswith(": titel: unknown key; did you mean title?")
    assert sorted(line.split(":")[1] for line in others) == [" kill", " title"]


def test_many_mistakes_are_counted(tmp_path: Path) -> None:
    study = changed("seed", 1)
    study |= {f"key{i}": i for i in range(30)}
    lines = message_of(tmp_path, study).split("\n")
    assert len(lines) == 11
    assert lines[-1] == ": and 21 more"


def test_list_is_not_too_short_for_a_mistake_in_it(tmp_path: Path) -> None:
    workload = {"name": "one", "archive": "KTH-SP3-1996"}
    message = message_of(tmp_path, changed("workloads", [workload]))
    assert "did you mean KTH-SP2-1996" in message
    assert "\n" not in message


def test_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere\.yaml: no such file"):
        load_study(tmp_path / "nowhere.yaml")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_study(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"title: caf\xe9\n")
    with pytest.raises(ConfigurationError, match=r"latin\.yaml: not UTF-8 text"):
        load_study(tmp_path / "latin.yaml")


def test_log_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    study = changed("workloads.1", {"name": "own", "file": "logs/own.swf"})
    message = message_of(tmp_path, study)
    assert "workloads[own].file: found 'logs/own.swf'; there is no such file" in message
    assert str(tmp_path) in message
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "own.swf").write_text("", encoding="utf-8")
    assert load_study(tmp_path / "study.yaml").find_workload("own").file == "logs/own.swf"


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("missing", "has no function missing"),
        ("number", "has no function number"),
        ("strange", "unknown parameter 'colour'"),
    ],
)
def test_score_that_is_no_score(tmp_path: Path, function: str, expected: str) -> None:
    (tmp_path / "scores.py").write_text(SCORES, encoding="utf-8")
    message = message_of(tmp_path, changed("policies.2.order", f"{tmp_path}/scores.py:{function}"))
    assert "policies[mine]" in message
    assert expected in message


def test_score_file_that_does_not_load(tmp_path: Path) -> None:
    (tmp_path / "scores.py").write_text("def f(:\n", encoding="utf-8")
    message = message_of(tmp_path, changed("policies.2.order", f"{tmp_path}/scores.py:f"))
    assert "fails to load" in message
    assert "SyntaxError" in message


def test_score_that_is_good(tmp_path: Path) -> None:
    (tmp_path / "scores.py").write_text(SCORES, encoding="utf-8")
    study = LocalStudy.model_validate(changed("policies.2.order", f"{tmp_path}/scores.py:widest"))
    assert study.schemes[-1] == "mine"


def test_example_scores_are_good() -> None:
    scores = REPOSITORY / "config" / "scores" / "example.py"
    for function in ("patient_shortest", "largest_area"):
        LocalStudy.model_validate(changed("policies.2.order", f"{scores}:{function}"))


# --- the configuration that names the studies -----------------------------------------------------


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, ["studies: missing"]),
        ({"studies": []}, ["studies: found []", "at least 1"]),
        ({"studies": "a.yaml"}, ["studies: found 'a.yaml'", "a list, such as [a, b]"]),
        ({"studies": [3]}, ["studies[item 1]: found 3", "write text"]),
        ({"studies": ["nowhere.yaml"]}, ["nowhere.yaml: no such file"]),
        ({"studies": ["a.yaml"], "chunksize": 3}, ["chunksize: unknown key", "did you mean chunk_size?"]),
        ({"studies": ["a.yaml"], "chunk_size": 0}, ["chunk_size: found 0", "equal to 1"]),
        ({"studies": ["a.yaml"], "chunk_size": "many"}, ["chunk_size: found 'many'", "a whole number"]),
        ({"studies": ["a.yaml"], "seed": -1}, ["seed: found -1", "equal to 0"]),
        ({"studies": ["a.yaml"], "seed": 10**30}, ["seed: found 1000", "less than"]),
        ({"studies": ["a.yaml"], "seed": 1.5}, ["seed: found 1.5", "a whole number"]),
        ({"studies": ["a.yaml"], "results": ""}, ["results: found ''", "not empty"]),
        ({"studies": ["a.yaml"], "results": "r/{x}"}, ["results: found 'r/{x}'", "no braces"]),
        ({"studies": ["a.yaml"], "mirrors": "/logs"}, ["mirrors: found '/logs'", "a list, such as [a, b]"]),
    ],
    ids=str,
)
def test_mistake_in_the_configuration(values: dict[str, Any], expected: list[str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_config(values, where="my.yaml")
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(("my.yaml: ", "nowhere.yaml: "))
    for part in expected:
        assert part in message


@pytest.mark.parametrize("names", [("tiny", "tiny"), ("tiny", "TINY")], ids=str)
def test_studies_that_would_share_a_folder(tmp_path: Path, names: tuple[str, str]) -> None:
    files = [tmp_path / "first.yaml", tmp_path / "second.yaml"]
    for file, name in zip(files, names, strict=True):
        file.write_text(yaml.safe_dump(changed("name", name)), encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_config({"studies": [str(file) for file in files]})
    message = str(caught.value)
    assert message.startswith(f"{files[1]}: name: found {names[1]!r}; the study of {files[0]}")


def test_configuration_of_a_file(tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(yaml.safe_dump(STUDY), encoding="utf-8")
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump({"studies": [str(study)], "seed": 3}), encoding="utf-8")
    config, studies = load_config(file)
    assert config == Config(studies=(str(study),), seed=3)
    assert list(studies) == ["tiny"]


@pytest.mark.parametrize("file", sorted((REPOSITORY / "config").glob("*.yaml")), ids=lambda file: file.name)
def test_shipped_configurations_are_good(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    assert load_config(file)[1]


# --- what follows from a study --------------------------------------------------------------------


def test_plain_values_give_the_study_back() -> None:
    study = LocalStudy.model_validate(STUDY)
    again = LocalStudy.model_validate(study.model_dump(mode="json"))
    assert again == study
    assert again.checksum() == study.checksum()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("title", "Another"),
        ("description", "Another"),
        ("reference", "easy"),
        ("metrics.warm_up", 0.2),
        ("workloads.1.window.month", "1996-11"),
        ("workloads.2", {"name": "other", "archive": "CTC-SP2-1996"}),
    ],
    ids=str,
)
def test_runs_do_not_depend_on_the_rest_of_the_study(path: str, value: Any) -> None:
    before = LocalStudy.model_validate(STUDY)
    after = LocalStudy.model_validate(changed(path, value))
    assert before.checksum() != after.checksum()
    assert before.simulated("listed") == after.simulated("listed")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("policies.0", "sjf"),
        ("policies.2.order", "smallest"),
        ("estimates", ["actual"]),
        ("kill", True),
        ("overrun", "increments"),
        ("passes", "event"),
        ("workloads.0.cluster.processors", 16),
    ],
    ids=str,
)
def test_runs_depend_on_what_is_simulated(path: str, value: Any) -> None:
    before = LocalStudy.model_validate(STUDY)
    after = LocalStudy.model_validate(changed(path, value))
    assert before.simulated("listed").checksum() != after.simulated("listed").checksum()


def test_metrics_depend_on_how_they_are_measured() -> None:
    before = LocalStudy.model_validate(STUDY)
    after = LocalStudy.model_validate(changed("metrics.warm_up", 0.2))
    assert before.measured("listed") != after.measured("listed")


def outcome(file: Path) -> str | None:
    """The message about a study file; None for a good one."""
    try:
        load_study(file)
    except ConfigurationError as error:
        return str(error)
    return None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
KEYS = ["name", "title", "workloads", "policies", "estimates", "reference", "metrics", "kill", "kind"]
PARTS = [("workloads", 0, "jobs"), ("workloads", 0, "name"), ("workloads", 1, "window"), ("policies", 2)]


@given(st.sampled_from([*((key,) for key in KEYS), *PARTS]), JSON)
def test_nothing_but_a_configuration_error_comes_out(
    tmp_path_factory: pytest.TempPathFactory, path: tuple[Any, ...], value: Any
) -> None:
    study = deepcopy(STUDY)
    inside: Any = study
    for part in path[:-1]:
        inside = inside[part]
    inside[path[-1]] = value
    file = tmp_path_factory.getbasetemp() / "any.yaml"
    file.write_bytes(yaml.safe_dump(study, encoding="utf-8", allow_unicode=False))
    message = outcome(file)
    assert message is None or all(line.startswith(str(file)) for line in message.split("\n"))
