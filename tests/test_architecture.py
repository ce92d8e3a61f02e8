"""What holds for the package as a whole: who imports whom, no JIT, bounds, what is shipped."""

from __future__ import annotations

import ast
import importlib
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent
PACKAGE = REPOSITORY / "gridsched"

# each layer may import those before it
LAYERS = (
    ("errors", "io", "lazy"),
    ("engine",),
    ("workloads",),
    ("traces",),
    ("platforms", "prediction"),
    ("schedulers",),
    ("metrics", "results", "verification", "replication"),
    ("simulation",),
    ("centres",),
    ("arena",),
    ("comparison", "explanation"),
    ("conformance",),
    ("claims",),
    ("figures",),
    ("study",),
    ("report",),
    ("diagnosis",),
    ("cli",),
)


def imported(module: Path) -> set[str]:
    """Parts of gridsched that a module imports."""
    names = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gridsched"):
            path = (node.module or "").split(".")
            names |= {path[1]} if len(path) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("gridsched.")}
    return names


@pytest.mark.parametrize("depth", range(len(LAYERS)))
def test_imports_run_one_way(depth: int) -> None:
    allowed = {part for layer in LAYERS[: depth + 1] for part in layer}
    for part in LAYERS[depth]:
        modules = (
            [PACKAGE / f"{part}.py"]
            if (PACKAGE / f"{part}.py").exists()
            else [*(PACKAGE / part).rglob("*.py")]
        )
        assert modules
        for module in modules:
            assert imported(module) <= allowed, module


def test_every_part_has_a_layer() -> None:
    parts = {
        path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert parts - {"__init__", "__main__"} == {part for layer in LAYERS for part in layer}


@pytest.mark.parametrize("switch", ["NUMBA_DISABLE_JIT", "NUMBA_BOUNDSCHECK"])
def test_kernels_run_without_jit_and_within_bounds(switch: str, tmp_path: Path) -> None:
    """The conformance cases and a crowded machine, interpreted, and compiled with bounds checks."""
    names = ("conformance", "test_structures.py", "test_local.py", "test_superscheduler.py", "test_ideal.py")
    tests = [f"tests/{name}" for name in names]
    chosen = " or ".join(
        ["conformance", "structures", "crowded", "corrections", "user_group", "room", "interrupt"]
    )
    environment = {**os.environ, switch: "1", "GRIDSCHED_CACHE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "-q", "-p", "no:cacheprovider", *tests, "-k", chosen],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]


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
        "gridsched/_data/resources/archive.yaml",
        "gridsched/_data/reports/page.html.j2",
        "gridsched/_data/resources/conformance/cases.yaml",
    ):
        assert needed in names
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        files = {name.split("/", 1)[-1] for name in archive.getnames()}
    assert {"Snakefile", "config/demo.yaml", "workflow/rules/simulation.smk", "tests/naive.py"} <= files
    assert {"workflow/Snakefile", "docs/README.md", "CHANGELOG.md", "CITATION.cff"} <= files


@pytest.mark.parametrize("package", ["gridsched", "gridsched.traces", "gridsched.workloads"])
def test_lazy_names_are_not_hidden_by_modules(package: str) -> None:
    """A module of the same name would take the place of a function as soon as it is imported."""
    names = set(importlib.import_module(package).__all__)
    folder = REPOSITORY / package.replace(".", "/")
    assert not names & {path.stem for path in folder.iterdir()}
