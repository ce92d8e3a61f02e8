"""Whether an installation has what it needs: versions, compiler, caches, mirrors, disk, cores, clock."""

from __future__ import annotations

import contextlib
import importlib
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, url2pathname, urlopen
from zoneinfo import ZoneInfo

from gridsched.errors import GridschedError

State = Literal["ok", "warn", "fail"]

LEAST_DISK = 200_000_000
"""Free bytes below which writing may fail."""

_ENOUGH_DISK = 5_000_000_000
_OLDEST, _TOO_NEW = (3, 11), (3, 14)
_LIBRARIES = (
    "numpy",
    "numba",
    "xarray",
    "netCDF4",
    "pandas",
    "matplotlib",
    "seaborn",
    "scikit-learn",
    "snakemake",
)
_WORKFLOW_ONLY = "snakemake"
_TIMEOUT = 5
_SKEW = 5
_RELEASED = 1_760_000_000
"""A Unix time before the first release: a clock that shows an earlier one is wrong."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: what was found, and what to do where it is not right."""

    name: str
    state: State
    found: str
    remedy: str = ""


def diagnose() -> Iterator[Check]:
    """Look at one thing after another; nothing of the installation is changed."""
    for look in _LOOKS:
        try:
            yield from look()
        except (GridschedError, OSError, RuntimeError, ImportError, ValueError) as error:
            name = look.__name__.strip("_").replace("_", " ")
            yield Check(name, "fail", f"cannot be looked at: {error}", "fix what this says")


def _python() -> Iterator[Check]:
    found = f"{platform.python_version()} ({sys.executable})"
    good = _OLDEST <= sys.version_info[:2] < _TOO_NEW
    yield Check("Python", "ok" if good else "fail", found, "" if good else "use Python 3.11, 3.12 or 3.13")


def _packages() -> Iterator[Check]:
    yield Check("gridsched", "ok", f"{version('gridsched')} ({Path(__file__).parent})")
    for library in _LIBRARIES:
        try:
            yield Check(library, "ok", version(library))
        except PackageNotFoundError:
            optional = library == _WORKFLOW_ONLY
            remedy = "pip install 'gridsched[workflow]'" if optional else "reinstall gridsched"
            found = "not installed" + (": studies cannot be run" if optional else "")
            yield Check(library, "warn" if optional else "fail", found, remedy)


def _compiler() -> Iterator[Check]:
    import numba

    if numba.config.DISABLE_JIT:
        yield Check(
            "compiler", "warn", "switched off by NUMBA_DISABLE_JIT", "unset it: simulations take very long"
        )
        return
    answer = numba.njit(lambda number: 2 * number)(21)
    good = answer == 42
    yield Check(
        "compiler",
        "ok" if good else "fail",
        f"compiles for {numba.core.codegen.get_host_cpu_features().count('+')} features of this processor"
        if good
        else f"compiled code gives {answer} instead of 42",
        "" if good else "reinstall numba and llvmlite",
    )


def _figures() -> Iterator[Check]:
    importlib.import_module("gridsched.figures")
    from io import BytesIO

    from gridsched.figures import style

    figure = style.new_figure(1.0)
    figure.subplots().set_title("A")
    target = BytesIO()
    figure.savefig(target, format="svg")
    yield Check("figures", "ok", f"drawn ({len(target.getvalue()):,} bytes of SVG)")


def _datasets() -> Iterator[Check]:
    import xarray as xr

    from gridsched import results

    with tempfile.TemporaryDirectory(prefix="gridsched-doctor-") as folder:
        path = Path(folder) / "check.nc"
        results.write(xr.Dataset({"value": ("job", [1, 2, 3])}), path)
        good = results.read(path)["value"].values.tolist() == [1, 2, 3]
    yield Check(
        "datasets",
        "ok" if good else "fail",
        "written to netCDF and read back" if good else "netCDF does not return what was written",
        "" if good else "reinstall netCDF4 and xarray",
    )


def _kernel_cache() -> Iterator[Check]:
    from gridsched.engine.jit import cache_root

    yield _folder("kernel cache", cache_root(), "kernels are compiled again in every process")


def _logs() -> Iterator[Check]:
    from gridsched.traces import archive_folder

    folder = archive_folder()
    yield _folder("log cache", folder, "logs cannot be fetched")
    if folder.is_dir():
        yield _copies("fetched logs", folder, "delete these files and fetch them again")


def _folder(name: str, folder: Path, otherwise: str) -> Check:
    """Whether files can be written to a folder, or where it would be made."""
    remedy = "make it writable, or name another folder in GRIDSCHED_CACHE"
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not there.is_dir():
        return Check(name, "fail", f"{there} is no folder", remedy)
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        return Check(name, "warn", f"{folder}: not writable ({error.strerror}), so {otherwise}", remedy)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) if folder.exists() else 0
    return Check(name, "ok", f"{folder}, {size / 1e6:,.1f} MB")


def _copies(name: str, folder: Path, remedy: str) -> Check:
    """Whether the logs of the archive in a folder are what they should be."""
    from gridsched.traces.archive import is_good_copy, registry

    present = [log for log in registry().values() if (folder / log.file).is_file()]
    if not present:
        return Check(name, "warn", f"{folder}: no log of the archive", "gridsched fetch gets logs")
    verdicts = {log.file: is_good_copy(folder / log.file, log) for log in present}
    bad = [file for file, good in verdicts.items() if good is False]
    unknown = sum(good is None for good in verdicts.values())
    found = f"{folder}: {len(present)} logs of the archive"
    if bad:
        return Check(name, "fail", f"{found}, with a wrong checksum: {', '.join(bad)}", remedy)
    return Check(name, "ok", found + (f", {unknown} of unknown checksum" if unknown else ", checksums right"))


def _mirrors() -> Iterator[Check]:
    from gridsched.traces.archive import MIRRORS_VARIABLE

    places = [text.strip() for text in os.environ.get(MIRRORS_VARIABLE, "").split(",") if text.strip()]
    if not places:
        yield Check("mirrors", "ok", f"none named in {MIRRORS_VARIABLE}; logs come from the archive")
    for place in places:
        yield _mirror(place, f"fix {MIRRORS_VARIABLE}, or the place")


def _mirror(place: str, remedy: str) -> Check:
    scheme = urlsplit(place).scheme.lower() if "://" in place else ""
    if scheme in ("http", "https"):
        return _server(place, remedy)
    if scheme not in ("", "file"):
        return Check("mirror", "fail", f"{place}: {scheme}:// is not supported", remedy)
    folder = Path(url2pathname(urlsplit(place).path)) if scheme else Path(place).expanduser()
    if not folder.is_dir():
        return Check("mirror", "fail", f"{place}: no such folder", remedy)
    return _copies("mirror", folder, "copy these files again")


def _server(place: str, remedy: str) -> Check:
    """Whether a server answers at all; what it answers for a folder differs."""
    try:
        with contextlib.closing(urlopen(Request(place, method="HEAD"), timeout=_TIMEOUT)) as answer:
            return Check("mirror", "ok", f"{place}: answers ({answer.status})")
    except HTTPError as error:
        return Check("mirror", "ok", f"{place}: answers ({error.code})")
    except (URLError, OSError, ValueError) as error:
        return Check(
            "mirror", "warn", f"{place}: does not answer ({getattr(error, 'reason', error)})", remedy
        )


def _disk() -> Iterator[Check]:
    from gridsched.engine.jit import cache_root

    places = {"here": Path.cwd(), "cache": cache_root(), "temporary files": Path(tempfile.gettempdir())}
    for what, place in places.items():
        there = next(path for path in (place, *place.parents) if path.exists())
        free = shutil.disk_usage(there).free
        state: State = "fail" if free < LEAST_DISK else "warn" if free < _ENOUGH_DISK else "ok"
        remedy = (
            ""
            if state == "ok"
            else f"free some space; {_ENOUGH_DISK / 1e9:.0f} GB are enough for the studies"
        )
        yield Check(f"disk, {what}", state, f"{free / 1e9:,.1f} GB free at {there}", remedy)


def _cores() -> Iterator[Check]:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    try:
        memory = f", {os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9:,.1f} GB of memory"
    except (AttributeError, ValueError, OSError):
        memory = ""
    yield Check("cores", "ok", f"{usable} usable{load}{memory}")


def _clock() -> Iterator[Check]:
    now = time.time()
    shown = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))
    if now < _RELEASED:
        yield Check("clock", "fail", f"{shown}, before this program was made", "set the clock")
        return
    with tempfile.NamedTemporaryFile(prefix="gridsched-doctor-") as file:
        apart = abs(Path(file.name).stat().st_mtime - now)
    good = apart <= _SKEW
    found = shown if good else f"{shown}; files are dated {apart:,.0f} s apart from it"
    yield Check(
        "clock", "ok" if good else "warn", found, "" if good else "the workflow tells by dates what is new"
    )


def _time_zones() -> Iterator[Check]:
    ZoneInfo("Europe/Rome")
    yield Check("time zones", "ok", "known by name")


def _output() -> Iterator[Check]:
    encoding = (sys.stdout.encoding if sys.stdout is not None else None) or "none"
    good = encoding.lower().replace("-", "") == "utf8"
    remedy = "" if good else "set PYTHONUTF8=1 to see all names as they are"
    yield Check("terminal", "ok" if good else "warn", f"encoding {encoding}", remedy)


_LOOKS: tuple[Callable[[], Iterator[Check]], ...] = (
    _python,
    _packages,
    _compiler,
    _figures,
    _datasets,
    _kernel_cache,
    _logs,
    _mirrors,
    _disk,
    _cores,
    _clock,
    _time_zones,
    _output,
)
