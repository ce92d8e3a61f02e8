"""What holds for the package as a whole: who imports whom, no JIT, bounds, what is shipped."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from docs.architecture import KINDS_OF_STUDIES, LAYERS

REPOSITORY = Path(__file__).parent.parent
PACKAGE = REPOSITORY / "gridsched"

UPPER = ("study", "figures", "figures.py", "findings.py", "report.py")
"""Parts of a room that may use experiments, figures and the report."""

SHARED = (
    "base",
    "deciding",
    "registry",
    "cluster_records",
    "capabilities",
    "differences",
    "job_outcomes",
    "node_records",
    "grids",
    "node_grids",
    "request",
)
"""Modules of `systems` that are no room."""

NAMES_SYSTEMS = {"__init__.py", "conformance/running.py"}
"""What may import a room from outside: the interface, and the cases that are written for a system."""


def imports(module: Path) -> set[str]:
    """Modules of gridsched that a module imports."""
    found = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gridsched"):
            parent = (node.module or "").removeprefix("gridsched").removeprefix(".")
            found |= {parent} if parent else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {
                alias.name.removeprefix("gridsched.")
                for alias in node.names
                if alias.name.startswith("gridsched.")
            }
    return found


def room_of(module: str) -> str | None:
    """The system that a module belongs to; none of what systems share."""
    parts = module.split(".")
    inside = parts[0] == "systems" and len(parts) > 1 and parts[1] not in SHARED
    return parts[1] if inside else None


def part_of(module: str) -> str:
    """The part of the package that a module belongs to, as layers know it."""
    parts = module.split(".")
    upper = room_of(module) and len(parts) > 2 and (parts[2] in UPPER or f"{parts[2]}.py" in UPPER)
    kind_of_study = parts[0] == "experiments" and parts[1:2] in (
        ["arena"],
        ["models"],
        ["kinds"],
    )
    return KINDS_OF_STUDIES if upper or kind_of_study else parts[0]


def name_of(path: Path) -> str:
    """Name of a module, without that of the package."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


MODULES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.parent != PACKAGE or path.stem[0] != "_"]


@pytest.mark.parametrize("depth", range(len(LAYERS)))
def test_imports_run_one_way(depth: int) -> None:
    allowed = {part for layer in LAYERS[: depth + 1] for part in layer}
    modules = [path for path in MODULES if part_of(name_of(path)) in LAYERS[depth]]
    assert modules
    for path in modules:
        assert {part_of(module) for module in imports(path)} <= allowed, path


def test_every_part_has_a_layer() -> None:
    assert {part_of(name_of(path)) for path in MODULES} == {part for layer in LAYERS for part in layer}


def test_only_inference_computes_intervals() -> None:
    quantiles = {
        name_of(path)
        for path in MODULES
        if {"stdtr", "stdtrit", "ndtri"} & set(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    }
    assert {name.partition(".")[0] for name in quantiles} == {"inference"}


def test_no_system_imports_another_and_nothing_else_names_one() -> None:
    for path in sorted(PACKAGE.rglob("*.py")):
        of_kind = path.is_relative_to(PACKAGE / "experiments" / "kinds")  # the studies of a system's paper
        if str(path.relative_to(PACKAGE)) not in NAMES_SYSTEMS and not of_kind:
            rooms = {room_of(module) for module in imports(path)} - {None}
            assert rooms <= {room_of(name_of(path))}, path


def test_the_sixth_system_is_one_room() -> None:
    """The cost of a system: files that name it, besides tests that take it from the registry."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    ).stdout.split()
    if not listed:
        pytest.skip("not a checkout")
    own = [name for name in listed if "multiple_requests" in name or "multiple-requests" in name]
    code = [name for name in own if not name.startswith("tests/") and not name.endswith("__init__.py")]
    assert len(code) <= 8
    lines = sum(len((REPOSITORY / name).read_text(encoding="utf-8").splitlines()) for name in code)
    assert lines <= 700


def test_a_class_name_is_there_once() -> None:
    """One name for one thing: no two modules define a public class of the same name."""
    homes: dict[str, set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, set()).add(name_of(path))
    assert not {name: modules for name, modules in homes.items() if len(modules) > 1}


def test_import_is_light() -> None:
    """`import gridsched` alone loads neither Numba nor xarray."""
    code = (
        "import sys, gridsched; print(sorted({'numba', 'xarray', 'pandas', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_all_names_of_the_interface_exist() -> None:
    import gridsched

    for name in gridsched.__all__:
        assert getattr(gridsched, name) is not None
    assert set(gridsched.__all__) <= set(dir(gridsched))


def test_wheel_and_sdist_hold_what_they_need(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(tmp_path), str(REPOSITORY)],
        capture_output=True,
        check=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for needed in (
        "gridsched/py.typed",
        "gridsched/protocols/gridsched.h",
        "gridsched/_data/resources/archive.yaml",
        "gridsched/_data/reports/page.html.j2",
        "gridsched/_data/resources/conformance/cases.yaml",
    ):
        assert needed in names
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        files = {name.split("/", 1)[-1] for name in archive.getnames()}
    assert {
        "Snakefile",
        "config/demo.yaml",
        "workflow/rules/tasks.smk",
        "tests/oracles/local.py",
    } <= files
    assert {"workflow/Snakefile", "docs/README.md", "CHANGELOG.md", "CITATION.cff"} <= files


@pytest.mark.parametrize("package", ["gridsched", "gridsched.traces", "gridsched.workloads"])
def test_lazy_names_are_not_hidden_by_modules(package: str) -> None:
    """A module of the same name would take the place of a function as soon as it is imported."""
    offered = importlib.import_module(package)
    names = {name for name in offered.__all__ if not isinstance(getattr(offered, name), ModuleType)}
    folder = REPOSITORY / package.replace(".", "/")
    assert not names & {path.stem for path in folder.iterdir()}
