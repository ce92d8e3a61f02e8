"""Generated schemas and tables: up to date, complete, and of one mind with the Python validation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from docs import keys as document
from gridsched.errors import ConfigurationError
from gridsched.experiments.config import Config, load_config, load_study
from gridsched.experiments.registry import KINDS, study_kind
from gridsched.validation import ConfigModel
from tests.conftest import REPOSITORY
from tests.experiments.test_config import changed

CONFIGURATIONS = sorted((REPOSITORY / "config").glob("*.yaml"))
GENERATED = sorted(str(path.relative_to(REPOSITORY)) for path in document.documents(REPOSITORY))
STUDIES = sorted((REPOSITORY / "config" / "studies").glob("*.yaml"))


@cache
def validator(*models: type[ConfigModel]) -> jsonschema.Draft202012Validator:
    schema = document.schema(*models)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def models(model: type[ConfigModel]) -> Iterator[dict[str, Any]]:
    """Schemas of a model and of all models in it."""
    schema = document.schema(model)
    yield schema
    yield from schema.get("$defs", {}).values()


def test_generated_files_are_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert document.main([]) == 0, "run `make schemas`"
    assert capsys.readouterr().err == ""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Folder with the generated files."""
    for path in GENERATED:
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((REPOSITORY / path).read_bytes())
    return tmp_path


@pytest.mark.parametrize("path", GENERATED)
def test_drift_is_found_and_corrected(checkout: Path, path: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = checkout / path
    before = file.read_text(encoding="utf-8")
    file.write_text(before.replace("e", "a"), encoding="utf-8")
    assert document.main([], root=checkout) == 1
    assert capsys.readouterr().err == f"{path}: out of date; run `make schemas`\n"
    assert document.main(["--write"], root=checkout) == 0
    assert file.read_text(encoding="utf-8") == before


def test_every_key_has_a_row_with_its_default() -> None:
    tables = "\n".join(document.key_pages().values())
    for schema in [part for model in document.PAGES.values() for part in models(model)]:
        for key, value in schema["properties"].items():
            rows = re.findall(rf"^\| `{key}` \| (.+) \| (.*) \| (.+) \|$", tables, re.MULTILINE)
            assert rows, key
            if key in schema.get("required", []):
                expected = "required"
            elif value["default"] is None or isinstance(value["default"], dict):
                expected = ""
            else:
                expected = f"`{json.dumps(value['default'])}`"
            assert expected in [default for _, default, _ in rows], key


def test_links_of_the_pages_lead_to_sections() -> None:
    pages = document.key_pages()
    anchors = {
        f"{page}#{heading.lower()}"
        for page, text in pages.items()
        for heading in re.findall(r"^## (.+)$", text, re.MULTILINE)
    }
    links = {
        f"{target or page}#{anchor}"
        for page, text in pages.items()
        for target, anchor in re.findall(r"\]\(([\w.-]*)#(.+?)\)", text)
    }
    assert links
    assert links <= anchors
    assert {f"{page}.md" for page in document.PAGES} <= set(pages)


def test_examples_of_the_guide_are_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guide = (REPOSITORY / "config" / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\n# (\S+)\n(.+?)^```", guide, re.MULTILINE | re.DOTALL)
    for name, text in blocks:
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "ours.swf.gz").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    config, studies = load_config("my-config.yaml")
    assert config.results == "results/mine"
    assert list(studies) == ["my-study"]
    written = [name for name, text in blocks if text.startswith("name: ")]
    assert [f"{load_study(name).name}.yaml" for name in written] == written


@pytest.mark.parametrize("file", CONFIGURATIONS, ids=lambda file: file.name)
def test_shipped_configurations_follow_the_schema(file: Path) -> None:
    validator(Config).validate(yaml.safe_load(file.read_text(encoding="utf-8")))


@pytest.mark.parametrize("file", STUDIES, ids=lambda file: file.name)
def test_shipped_studies_follow_the_schema(file: Path) -> None:
    validator(*map(study_kind, KINDS)).validate(yaml.safe_load(file.read_text(encoding="utf-8")))
    load_study(file)


ALIKE: list[tuple[str, Any]] = [
    ("titel", "x"),
    ("name", None),
    ("name", "a/b"),
    ("name", "x" * 61),
    ("name", 2024),
    ("title", ""),
    ("kill", "yes"),
    ("kill", 1),
    ("kind", "grid"),
    ("schedulers", []),
    ("schedulers", "easy"),
    ("schedulers.0", 7),
    ("schedulers.2.backfilling", "aggressive"),
    ("schedulers.2.backfill", "easy"),
    ("estimates", ["predicted"]),
    ("overrun", "triple"),
    ("scenarios", []),
    ("scenarios.0", "listed"),
    ("scenarios.0.jobs", []),
    ("scenarios.0.jobs.0", [1, 2, 3]),
    ("scenarios.0.jobs.0", [1, 2, 3, 4, 5]),
    ("scenarios.0.jobs.0.0", -1),
    ("scenarios.0.file", "own.swf"),
    ("scenarios.0.cpus", 4),
    ("scenarios.0.processors", True),
    ("scenarios.0.processors", 8.5),
    ("scenarios.0.processors", 2**40),
    ("scenarios.0.speed", "1e3"),
    ("scenarios.1.archive", None),
    ("scenarios.1.window", {}),
    ("scenarios.1.window.month", "1996-13"),
    ("scenarios.1.window.jobs", [0, 5]),
    ("scenarios.1.window", {"jobs": [-1, 5]}),
    ("scenarios.1.leave_out_status", [7]),
    ("scenarios.2.synthetic.jobs", None),
    ("scenarios.2.synthetic.duration", 5.0),
    ("scenarios.2.synthetic.load_scale", 0),
    ("scenarios.2.synthetic.estimates.model", "mode"),
    ("metrics.warm_up", 0.5),
    ("metrics.bins", 0),
    ("metrics.classes", 3),
]


@pytest.mark.parametrize(("path", "value"), ALIKE, ids=str)
def test_schema_refuses_what_python_refuses(tmp_path: Path, path: str, value: Any) -> None:
    study = changed(path, value)
    assert not validator(*map(study_kind, KINDS)).is_valid(study)
    file = tmp_path / "study.yaml"
    file.write_text(yaml.safe_dump(study), encoding="utf-8")
    with pytest.raises(ConfigurationError):
        load_study(file)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("name", "tiny"),
        ("scenarios.1.window", {"interval": [0, 86400.5]}),
        ("scenarios.2.synthetic", {"duration": 86400}),
        ("metrics.bins", 2),
        ("reference", "mine"),
    ],
    ids=str,
)
def test_schema_takes_what_python_takes(tmp_path: Path, path: str, value: Any) -> None:
    study = changed(path, value)
    validator(*map(study_kind, KINDS)).validate(study)
    file = tmp_path / "study.yaml"
    file.write_text(yaml.safe_dump(study), encoding="utf-8")
    load_study(file)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"studies": []},
        {"studies": "a.yaml"},
        {"studies": ["a.yaml"], "chunksize": 3},
        {"studies": ["a.yaml"], "chunk_size": 0},
        {"studies": ["a.yaml"], "seed": -1},
        {"studies": ["a.yaml"], "results": "r/{x}"},
    ],
    ids=str,
)
def test_schema_of_the_configuration_refuses_what_python_refuses(values: dict[str, Any]) -> None:
    assert not validator(Config).is_valid(values)
    with pytest.raises(ConfigurationError):
        load_config(values)
