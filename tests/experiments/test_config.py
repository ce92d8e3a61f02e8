"""Configuration: every mistake has a line that names file, key, what was found and what is allowed."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from gridsched.errors import ConfigurationError
from gridsched.experiments.config import Config, load_config, load_study
from gridsched.experiments.kinds.local_policies import LocalStudy
from tests.conftest import REPOSITORY
from tests.support.errors import each_refused, refused, says

STUDY: dict[str, Any] = {
    "name": "tiny",
    "title": "Tiny",
    "scenarios": [
        {"name": "listed", "processors": 8, "jobs": [[0, 10, 20, 1], [5, 10, 20, 8]]},
        {"name": "log", "archive": "KTH-SP2-1996", "window": {"month": "1996-10"}},
        {"name": "drawn", "synthetic": {"machine": "M3", "jobs": 10, "requested_times": {"model": "modal"}}},
    ],
    "schedulers": [
        "fcfs",
        "easy",
        {"name": "mine", "scheduler": "local", "order": "shortest", "backfilling": "easy"},
    ],
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
    """The study with the value at a path such as scenarios.0.name replaced; None takes the key away."""
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
    assert study.labels == ["fcfs", "easy", "mine"]


MISTAKES: list[tuple[str, Any, list[str]]] = [
    # unknown keys, at each level
    ("titel", "x", ["titel: unknown key", "did you mean title?", "scenarios"]),
    ("scenarios.0.nmae", "x", ["scenarios[listed].nmae: unknown key", "did you mean name?", "archive"]),
    ("scenarios.0.cpus", 4, ["scenarios[listed].cpus: unknown key", "processors_per_node"]),
    ("scenarios.1.window.day", 4, ["[log].window.day: unknown key", "month, months, interval, jobs"]),
    ("scenarios.2.synthetic.seed", 4, ["scenarios[drawn].synthetic.seed: unknown key", "load_scale"]),
    ("scenarios.2.synthetic.sizes.shape", 4, ["synthetic.sizes.shape: unknown key", "weighting"]),
    (
        "scenarios.2.synthetic.requested_times.g",
        4,
        ["requested_times.g: unknown key", "max_estimate"],
    ),
    (
        "schedulers.2.backfill",
        "easy",
        ["schedulers[mine].backfill: unknown key", "did you mean backfilling?"],
    ),
    ("metrics.warmup", 0.1, ["metrics.warmup: unknown key", "did you mean warm_up?"]),
    ("metrics.a\nb", 1, ["metrics.'a\\nb': unknown key"]),
    ("metrics", {3: 1}, ["metrics"]),
    ("metrics.classes.short", 1, ["metrics.classes.short: unknown key", "long, wide"]),
    # missing keys
    ("name", None, ["name: missing"]),
    ("title", None, ["title: missing"]),
    ("schedulers", None, ["schedulers: missing"]),
    ("scenarios.0.name", None, ["scenarios[item 1].name: missing"]),
    ("schedulers.2.name", None, ["schedulers[item 3].name: missing"]),
    ("scenarios.1.window.interval", [5], ["scenarios[log].window.interval[item 2]: missing"]),
    # wrong types
    ("name", 2024, ["name: found 2024", "write text, in quotes"]),
    ("title", ["a"], ["title: found ['a']", "write text"]),
    ("kill", "yes please", ["kill: found 'yes please'", "true or false"]),
    ("kill", 1, ["kill: found 1", "true or false"]),
    ("schedulers", "easy", ["schedulers: found 'easy'", "a list, such as [a, b]"]),
    ("schedulers.0", 7, ["schedulers[item 1]: found 7", "write text"]),
    ("schedulers.0", ["easy"], ["schedulers[item 1]: found ['easy']", "write text"]),
    ("scenarios", {"name": "x"}, ["scenarios: ", "a list, such as [a, b]"]),
    ("scenarios.0", "listed", ["scenarios[item 1]: found 'listed'", "key: value lines"]),
    ("scenarios.0.processors", "8", ["scenarios[listed].processors: found '8'", "a whole number"]),
    ("scenarios.0.processors", 8.5, ["scenarios[listed].processors: found 8.5", "a whole number"]),
    ("scenarios.0.processors", True, ["scenarios[listed].processors: found True", "a whole number"]),
    ("scenarios.0.speed", "1e3", ["scenarios[listed].speed: found '1e3'", "a number", "1.0e+5"]),
    ("scenarios.0.node_exclusive", "no", ["node_exclusive: found 'no'", "true or false"]),
    ("scenarios.0.jobs.1.2", "x", ["scenarios[listed].jobs[item 2][item 3]: found 'x'", "a whole number"]),
    ("scenarios.1.window", "1996-10", ["scenarios[log].window: found '1996-10'", "key: value lines"]),
    ("metrics.classes", 3, ["metrics.classes: found 3", "key: value lines"]),
    # unknown names
    ("kind", "gird", ["kind: found 'gird'", "did you mean grid?", "local-policies"]),
    ("kind", 3, ["kind: found 3", "local-policies"]),
    ("schedulers.0", "esay", ["schedulers[item 1]: found 'esay'", "did you mean easy?", "conservative"]),
    ("schedulers.0", "EASY", ["schedulers[item 1]: found 'EASY'", "unknown scheduler"]),
    ("schedulers.0", "easy(0)", ["'easy(0)'"]),
    (
        "schedulers.2.backfilling",
        "aggressive",
        ["schedulers[mine].backfilling: found 'aggressive'", "'easy'"],
    ),
    ("schedulers.2.order", "longest", ["schedulers[mine].order: found 'longest'", "smallest_area"]),
    (
        "schedulers.2.backfill_order",
        "lxf",
        ["schedulers[mine]", "backfill_order is 'lxf'", "change with time"],
    ),
    ("schedulers.2.order", "no/such.py:f", ["schedulers[mine]", "'no/such.py:f'", "there is no file"]),
    ("schedulers.2.order", "x.py:", ["schedulers[mine]", "'x.py:'", "path/to/file.py:function"]),
    ("estimates", ["predicted"], ["estimates[item 1]: found 'predicted'", "'requested'", "'actual'"]),
    ("overrun", "triple", ["overrun: found 'triple'", "'doubling' or 'increments'"]),
    ("passes", "often", ["passes: found 'often'", "'event' or 'arrivals-first'"]),
    ("reference", "sjf", ["reference: found 'sjf'", "known are fcfs, easy, mine"]),
    ("scenarios.1.archive", "KTH-SP-1996", ["scenarios[log].archive", "did you mean KTH-SP2-1996"]),
    ("scenarios.2.synthetic.machine", "M9", ["synthetic.machine: found 'M9'", "unknown machine", "M6"]),
    (
        "scenarios.2.synthetic.requested_times.model",
        "mode",
        ["requested_times.model: found 'mode'", "'modal'"],
    ),
    ("scenarios.2.synthetic.sizes.fill", "all", ["sizes.fill: found 'all'", "'powers'"]),
    # names that are there twice, or would be one file
    ("schedulers.1", "fcfs", ["schedulers: 'fcfs' is there twice"]),
    ("schedulers.2.name", "easy", ["schedulers: 'easy' is there twice"]),
    ("schedulers.2.name", "recorded", ["schedulers: ", "'recorded'", "choose another"]),
    ("estimates", ["actual", "actual"], ["estimates: 'actual' is there twice"]),
    ("scenarios.1.name", "listed", ["scenarios: 'listed' is there twice"]),
    ("scenarios.1.name", "Listed", ["scenarios: 'listed' and 'Listed'", "one file"]),
    ("name", "logs", ["name: found 'logs'", "taken"]),
    ("name", "Archive", ["name: found 'Archive'", "taken"]),
    ("name", "report.html", ["name: found 'report.html'", "taken"]),
    # names that cannot be file names or labels
    ("name", "a/b", ["name: found 'a/b'", "letters, digits"]),
    ("name", "..", ["name: found '..'", "letters, digits"]),
    ("name", "", ["name: found ''", "letters, digits"]),
    ("name", "x" * 61, ["name: found 'xxx", "at most 60 characters"]),
    ("scenarios.0.name", "KTH {1}", ["found 'KTH {1}'", "letters, digits"]),
    ("title", "", ["title: found ''", "at least 1 character"]),
    ("title", "two\nlines", ["title: found 'two\\nlines'", "one line"]),
    ("schedulers.2.name", " mine", ["found ' mine'", "without blanks at the ends"]),
    ("description", "a\x07b", ["description: found", "'\\x07' is not allowed"]),
    # sources
    ("scenarios.0.file", "x.swf", ["scenarios[listed]: give exactly one of archive, file", "file, jobs"]),
    ("scenarios.1.archive", None, ["scenarios[log]: give exactly one of", "found none"]),
    ("scenarios.1.window.jobs", [0, 5], ["scenarios[log].window: give exactly one of", "month, jobs"]),
    ("scenarios.1.window", {}, ["scenarios[log].window: give exactly one of month, months, interval, jobs"]),
    ("scenarios.2.synthetic.jobs", None, ["scenarios[drawn].synthetic: give exactly one of jobs, duration"]),
    ("scenarios.2.window", {"jobs": [0, 5]}, ["scenarios[drawn]: window: only a log"]),
    ("scenarios.0.leave_out_queue", [1], ["scenarios[listed]: leave_out_queue: only a log"]),
    ("scenarios.0.processors", None, ["scenarios[listed]: processors: missing"]),
    (
        "scenarios.0.processors_per_node",
        3,
        ["scenarios[listed]: processors: 8 are not", "nodes of 3"],
    ),
    ("scenarios.2.processors", 9, ["scenarios[drawn]: processors: 9 are not", "nodes of 8"]),
    # windows
    ("scenarios.1.window.month", "1996-13", ["window.month: found '1996-13'", "like 1996-10"]),
    ("scenarios.1.window.month", "October", ["window.month: found 'October'", "like 1996-10"]),
    ("scenarios.1.window", {"first_months": 0}, ["window.first_months: found 0", "equal to 1"]),
    ("scenarios.1.window", {"first_months": 1, "month": "1996-10"}, ["found month, first_months"]),
    ("scenarios.1.window", {"interval": [9, 9]}, ["window: interval: the end must come after"]),
    ("scenarios.1.window", {"jobs": [-1, 5]}, ["window.jobs[item 1]: found -1", "equal to 0"]),
    ("scenarios.1.window", {"jobs": [0, 0]}, ["window.jobs[item 2]: found 0", "equal to 1"]),
    # negative, zero, huge and broken numbers
    ("scenarios.0.jobs.0.0", -1, ["jobs[item 1][item 1]: found -1", "equal to 0"]),
    ("scenarios.0.jobs.0.1", -1, ["jobs[item 1][item 2]: found -1", "equal to 0"]),
    ("scenarios.0.jobs.0.3", 0, ["jobs[item 1][item 4]: found 0", "equal to 1"]),
    ("scenarios.0.jobs.0.2", 10**12, ["jobs[item 1][item 3]: found 1000000000000", "less than"]),
    ("scenarios.0.jobs.0", [1, 2, 3], ["jobs[item 1][item 4]: missing"]),
    ("scenarios.0.jobs.0", [1, 2, 3, 4, 5], ["jobs[item 1]: found [1, 2, 3, 4, 5]", "at most 4"]),
    ("scenarios.0.processors", 0, ["scenarios[listed].processors: found 0", "equal to 1"]),
    ("scenarios.0.processors", 2**40, ["scenarios[listed].processors: found 1099511627776", "less than"]),
    ("scenarios.0.speed", 0, ["scenarios[listed].speed: found 0", "equal to 0.001"]),
    ("scenarios.0.speed", -1.5, ["scenarios[listed].speed: found -1.5", "equal to 0.001"]),
    ("scenarios.0.speed", float("inf"), ["scenarios[listed].speed: found inf", "finite number"]),
    ("scenarios.0.speed", float("nan"), ["scenarios[listed].speed: found nan", "finite number"]),
    ("scenarios.1.leave_out_status", [7], ["leave_out_status[item 1]: found 7", "equal to 5"]),
    ("scenarios.2.synthetic.jobs", 10**15, ["synthetic.jobs: found 1000000000000000", "less than"]),
    ("scenarios.2.synthetic.load_scale", -1, ["synthetic.load_scale: found -1", "equal to 0.001"]),
    ("scenarios.2.synthetic.sizes", {"exponent": 500}, ["sizes.exponent: found 500", "equal to 30"]),
    ("scenarios.2.synthetic.requested_times", {"f": -0.5}, ["requested_times.f: found -0.5", "equal to 0"]),
    (
        "scenarios.2.synthetic.requested_times",
        {"model": "multiple", "f": 0.5},
        ["requested_times: f: at least 1"],
    ),
    ("schedulers.2.reservations", 0, ["schedulers[mine]: ", "reservations is 0", "at least 1"]),
    (
        "schedulers.2",
        {"name": "a", "scheduler": "fcfs", "reservations": 2},
        ["schedulers[a]: ", "reservations is 2", "'easy'"],
    ),
    ("metrics.warm_up", 0.5, ["metrics.warm_up: found 0.5", "less than 0.5"]),
    ("metrics.cool_down", -0.1, ["metrics.cool_down: found -0.1", "equal to 0"]),
    ("metrics.bins", 0, ["metrics.bins: found 0", "equal to 1"]),
    ("metrics.bins", 10**9, ["metrics.bins: found 1000000000", "equal to 100000"]),
    ("metrics.classes.wide", 0, ["metrics.classes.wide: found 0", "equal to 1"]),
    # empty lists
    ("scenarios", [], ["scenarios: found []", "at least 1"]),
    ("schedulers", [], ["schedulers: found []", "at least 1"]),
    ("estimates", [], ["estimates: found []", "at least 1"]),
    ("scenarios.0.jobs", [], ["scenarios[listed].jobs: found []", "at least 1"]),
]


@pytest.mark.parametrize(("path", "value", "expected"), MISTAKES, ids=lambda value: str(value)[:40])
def test_mistake_in_a_study(tmp_path: Path, path: str, value: Any, expected: list[str]) -> None:
    says(message_of(tmp_path, changed(path, value)), *expected)


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
    says(message_of(tmp_path, text), *expected)


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
    message = message_of(tmp_path, changed("scenarios", [workload]))
    assert "did you mean KTH-SP2-1996" in message
    assert "\n" not in message


def test_file_that_cannot_be_read(tmp_path: Path) -> None:
    each_refused(
        (ConfigurationError, r"nowhere\.yaml: no such file", lambda: load_study(tmp_path / "nowhere.yaml")),
        (ConfigurationError, "cannot be read", lambda: load_study(tmp_path)),
    )
    (tmp_path / "latin.yaml").write_bytes(b"title: caf\xe9\n")
    with pytest.raises(ConfigurationError, match=r"latin\.yaml: not UTF-8 text"):
        load_study(tmp_path / "latin.yaml")


def test_log_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    message = message_of(tmp_path, changed("scenarios.1", {"name": "own", "file": "logs/own.swf"}))
    assert "scenarios[own].file: found 'logs/own.swf'; there is no such file" in message
    assert str(tmp_path) in message
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "own.swf").write_text("", encoding="utf-8")
    workloads = {each.name: each for each in load_study(tmp_path / "study.yaml").all_workloads}
    assert workloads["own"].file == "logs/own.swf"


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
    message = message_of(tmp_path, changed("schedulers.2.order", f"{tmp_path}/scores.py:{function}"))
    says(message, "schedulers[mine]", expected)


def test_score_file_that_does_not_load(tmp_path: Path) -> None:
    (tmp_path / "scores.py").write_text("def f(:\n", encoding="utf-8")
    says(
        message_of(tmp_path, changed("schedulers.2.order", f"{tmp_path}/scores.py:f")),
        "fails to load",
        "SyntaxError",
    )


def test_score_that_is_good(tmp_path: Path) -> None:
    (tmp_path / "scores.py").write_text(SCORES, encoding="utf-8")
    study = LocalStudy.model_validate(changed("schedulers.2.order", f"{tmp_path}/scores.py:widest"))
    assert study.labels[-1] == "mine"


def test_example_scores_are_good() -> None:
    scores = REPOSITORY / "config" / "scores" / "example.py"
    for function in ("patient_shortest", "largest_area"):
        LocalStudy.model_validate(changed("schedulers.2.order", f"{scores}:{function}"))


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
    says(message, *expected)


@pytest.mark.parametrize("names", [("tiny", "tiny"), ("tiny", "TINY")], ids=str)
def test_studies_that_would_share_a_folder(tmp_path: Path, names: tuple[str, str]) -> None:
    files = [tmp_path / "first.yaml", tmp_path / "second.yaml"]
    for file, name in zip(files, names, strict=True):
        file.write_text(yaml.safe_dump(changed("name", name)), encoding="utf-8")
    with refused(f"{files[1]}: name: found {names[1]!r}; the study of {files[0]}", error=ConfigurationError):
        load_config({"studies": [str(file) for file in files]})


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


def runs_of_listed(study: LocalStudy) -> set[str]:
    """Keys of the runs of the listed workload."""
    return {task.key for task in study.experiment(1).tasks if task.labels.get("scenario") == "listed"}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("title", "Another"),
        ("description", "Another"),
        ("reference", "easy"),
        ("scenarios.1.window.month", "1996-11"),
        ("scenarios.2", {"name": "other", "archive": "CTC-SP2-1996"}),
    ],
    ids=str,
)
def test_runs_do_not_depend_on_the_rest_of_the_study(path: str, value: Any) -> None:
    before = LocalStudy.model_validate(STUDY)
    after = LocalStudy.model_validate(changed(path, value))
    assert before.checksum() != after.checksum()
    assert runs_of_listed(before) == runs_of_listed(after)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("schedulers.0", "sjf"),
        ("schedulers.2.order", "smallest"),
        ("estimates", ["actual"]),
        ("kill", True),
        ("overrun", "increments"),
        ("passes", "event"),
        ("scenarios.0.processors", 16),
        ("metrics.warm_up", 0.2),
    ],
    ids=str,
)
def test_runs_depend_on_what_is_simulated_and_measured(path: str, value: Any) -> None:
    before = LocalStudy.model_validate(STUDY)
    assert runs_of_listed(before) != runs_of_listed(LocalStudy.model_validate(changed(path, value)))
