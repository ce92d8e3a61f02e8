"""The pages of docs/ do what they say: code runs, outputs, options, studies, defaults and links are right."""

from __future__ import annotations

import importlib
import re
import shlex
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from types import ModuleType

import pytest
import yaml

import gridsched
from gridsched.cli.program import _parser
from gridsched.experiments.config import load_study

REPOSITORY = Path(__file__).parent.parent
PAGES = sorted(path.name for path in (REPOSITORY / "docs").glob("*.md"))
FENCED = re.compile(r"^```(\w+)\n(.*?)^```\n(?:\n^```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
DEFAULTS = re.compile(r"^<!-- defaults: ([\w.]+):(\w+) -->\n\n((?:\|.*\n)+)", re.MULTILINE)


def text_of(page: str) -> str:
    return (REPOSITORY / "docs" / page).read_text(encoding="utf-8")


def blocks(page: str, language: str) -> list[tuple[str, str | None]]:
    """Blocks in a language, each with the output that is shown right below it."""
    return [
        (found[2], found[3])
        for found in FENCED.finditer(text_of(page))
        if found[1] == language and found[2].strip()
    ]


def pages_with(language: str) -> list[str]:
    return [page for page in PAGES if blocks(page, language)]


@pytest.mark.parametrize("page", pages_with("python"))
def test_python_blocks_run(
    page: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All blocks of a page in order and in one namespace; outputs that are shown are exact."""
    monkeypatch.chdir(REPOSITORY)
    names: dict[str, object] = {}
    for code, shown in blocks(page, "python"):
        exec(compile(code, page, "exec"), names)
        printed = capsys.readouterr().out
        if shown is not None:
            assert printed == shown, page


@pytest.mark.parametrize("page", pages_with("sh"))
def test_commands_exist(page: str) -> None:
    """Commands of gridsched are parsed with their options; make has the targets; studies are there."""
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    for code, _ in blocks(page, "sh"):
        for line in code.replace("\\\n", " ").splitlines():
            command, *arguments = shlex.split(line, comments=True) or [""]
            if command == "gridsched":
                _parser().parse_args(arguments)
            if command == "make":
                assert re.search(rf"^{arguments[0]}:", makefile, re.MULTILINE), line
            for name in re.findall(r"config/[\w./-]+\.yaml", line):
                assert (REPOSITORY / name).is_file(), line


@pytest.mark.parametrize("page", pages_with("yaml"))
def test_studies_are_valid(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What begins with a name is a study, and everything in it is allowed."""
    monkeypatch.chdir(REPOSITORY)
    studies = [code for code, _ in blocks(page, "yaml") if "title" in yaml.safe_load(code)]
    assert studies
    for number, code in enumerate(studies):
        path = tmp_path / f"{number}.yaml"
        path.write_text(code, encoding="utf-8")
        load_study(path)


def default_of(field: Field[object]) -> object:
    if field.default is not MISSING:
        return field.default
    assert field.default_factory is not MISSING, field.name
    return field.default_factory()


@pytest.mark.parametrize("page", PAGES)
def test_tables_of_defaults_are_those_of_the_code(page: str) -> None:
    """A table below a comment `defaults: module:Class` has every field that has a default, with it."""
    for module, name, table in DEFAULTS.findall(text_of(page)):
        described = getattr(importlib.import_module(module), name)
        assert is_dataclass(described)
        rows = dict(re.findall(r"^\| `(\w+)` \| `([^`]*)` \|", table, re.MULTILINE))
        optional = [
            f for f in fields(described) if f.default is not MISSING or f.default_factory is not MISSING
        ]
        plain = [f for f in optional if not (is_dataclass(default_of(f)) or isinstance(default_of(f), tuple))]
        # An empty text is shown with quotes
        assert rows == {f.name: f"{default_of(f)}" or "''" for f in plain}, (page, name)


@pytest.mark.parametrize("page", PAGES)
def test_links_and_files_exist(page: str) -> None:
    text = text_of(page)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    for link in re.findall(r"\]\(([\w./-]+)(?:#[\w-]+)?\)", prose):
        assert (REPOSITORY / "docs" / link).exists(), link
    for name in re.findall(r"`((?:config|gridsched|resources|tests|workflow)/[\w./-]+)`", text):
        assert (REPOSITORY / name).exists(), name
    for module in re.findall(r"`(gridsched(?:\.\w+)+)`", text):
        parent, _, last = module.rpartition(".")
        imported = importlib.import_module(parent)
        assert hasattr(imported, last) or importlib.import_module(module), module


def test_every_page_is_in_the_index_and_every_study_on_a_page() -> None:
    index = text_of("README.md")
    assert {f"({page})" for page in PAGES} - {"(README.md)"} <= set(re.findall(r"\([\w.-]+\)", index))
    together = "".join(map(text_of, PAGES))
    for study in (REPOSITORY / "config" / "studies").glob("*.yaml"):
        assert f"`{study.stem}`" in together, study.stem


def test_every_page_is_on_the_site() -> None:
    """Where a reader looks for it; the site of `make docs` has no page besides."""
    contents = yaml.safe_load((REPOSITORY / "docs" / "_toc.yml").read_text(encoding="utf-8"))
    listed = [entry["file"] for part in contents["subtrees"] for entry in part["entries"]]
    assert len(listed) == len(set(listed))
    assert {f"docs/{Path(page).stem}" for page in PAGES} <= set(listed)
    assert all((REPOSITORY / f"{name}.md").is_file() for name in listed)


def test_every_public_name_is_in_the_reference() -> None:
    reference = text_of("reference.md")
    modules = [name for name in gridsched.__all__ if isinstance(getattr(gridsched, name), ModuleType)]
    names = [f"gridsched.{name}" for name in gridsched.__all__ if name not in modules]
    names += [f"gridsched.plot.{name}" for name in gridsched.plot.__all__]
    described = re.findall(r"^\.\. auto\w+:: ([\w.]+)", reference, re.MULTILINE)
    assert set(names) <= set(described)
    assert len(described) == len(set(described))


def test_citation_and_catalogue() -> None:
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["cff-version"] == "1.2.0"
    catalogue = yaml.safe_load((REPOSITORY / ".snakemake-workflow-catalog.yml").read_text(encoding="utf-8"))
    assert set(catalogue["usage"]) == {"mandatory-flags", "software-stack-deployment"}
    assert (REPOSITORY / "workflow" / "Snakefile").is_file()
    version = citation["version"]
    for file, words in {
        "pyproject.toml": f'version = "{version}"',
        "workflow/envs/gridsched.yaml": f"gridsched =={version}",
        "CHANGELOG.md": f"\n## [{version}] - ",
    }.items():
        assert words in (REPOSITORY / file).read_text(encoding="utf-8"), file


INTERNAL = {
    "gallery.md": "gridsched.(experiments|presentation|metrics)",
    "readings.md": "gridsched.experiments",
}
"""Pages that show parts of the package which have no public name, and which these are."""


@pytest.mark.parametrize("page", pages_with("python"))
def test_one_import_is_enough(page: str) -> None:
    """What examples use is in `gridsched` itself."""
    code = "\n".join(code for code, _ in blocks(page, "python"))
    modules = re.findall(r"^\s*(?:from|import) (gridsched\.[\w.]+)", code, re.MULTILINE)
    assert all(re.match(INTERNAL.get(page, "none"), module) for module in modules), modules
