"""Files as they should not be: damaged, larger in memory than on disk, without end, changed while in use."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gridsched import results
from gridsched.errors import ConfigurationError, GridschedError
from gridsched.experiments import files
from gridsched.experiments.config import load_config
from gridsched.experiments.logging import logged
from gridsched.io import read_yaml, shown
from gridsched.traces import read_swf
from tests.support.traces import HEADER, job_line
from tests.support.workspace import bits

# --- YAML -----------------------------------------------------------------------------------------

LEVELS = 30


def nested(first: str, line: str) -> str:
    """References to references: every level stands for ten of the level before."""
    lines = [f"a0: &a0 {first}"]
    for level in range(1, LEVELS):
        lines.append(line.format(level=level, inner=", ".join([f"*a{level - 1}"] * 10)))
    return "\n".join(lines)


BOMBS = {
    "lists": nested("[x]", "a{level}: &a{level} [{inner}]"),
    "mappings": nested("{k: x}", "a{level}: &a{level} {{k: [{inner}]}}"),
    "merged": nested("{k: x}", "a{level}: &a{level} {{<<: [{inner}]}}"),
    "merged and own": nested("{k: x}", "a{level}: &a{level} {{<<: [{inner}], k{level}: x}}"),
    "in itself": "studies: &a [*a, *a]",
    "deep": "studies: " + "[" * 20_000,
    "number": "seed: 1" + ":1" * 400_000,
    "digits": "seed: " + "9" * 800_000,
    "keys": "\n".join(f"k{number}: 1" for number in range(20_000)),
}


def test_small_yaml_stays_small(tmp_path: Path) -> None:
    """In a process of its own: what goes wrong here takes all memory or never ends."""
    for name, text in BOMBS.items():
        (tmp_path / f"{name} as study.yaml").write_text(f"{text}\nname: tiny\n", encoding="utf-8")
        (tmp_path / f"{name} names.yaml").write_text(f"studies: [{name} as study.yaml]", encoding="utf-8")
        (tmp_path / f"{name} itself.yaml").write_text(text, encoding="utf-8")
    code = (
        "import pathlib, resource\n"
        "from gridsched.errors import ConfigurationError\n"
        "from gridsched.experiments.config import load_config\n"
        "resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30,) * 2)\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (120, 120))\n"
        "for path in [*pathlib.Path().glob('* itself.yaml'), *pathlib.Path().glob('* names.yaml')]:\n"
        "    try:\n"
        "        load_config(path)\n"
        "    except ConfigurationError as error:\n"
        "        print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    found = {line.partition(".yaml")[0] for line in done.stdout.splitlines()}
    assert found == {f"{name} {part}" for name in BOMBS for part in ("itself", "as study")}
    assert max(map(len, done.stdout.splitlines())) < 1500


def test_merged_keys_mean_what_yaml_says(tmp_path: Path) -> None:
    path = tmp_path / "merged.yaml"
    path.write_text("a: &a {x: 1, y: 1}\nb: &b {x: 2, z: 2}\nc: {<<: [*a, *b], y: 3}\n", encoding="utf-8")
    assert read_yaml(path)["c"] == {"x": 1, "y": 3, "z": 2}


def test_files_without_an_end(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        with pytest.raises(ConfigurationError, match="not an ordinary file"):
            read_yaml(path)
    large = tmp_path / "large.yaml"
    with large.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(ConfigurationError, match="1,099,511,627,776 bytes; at most"):
        read_yaml(large)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3) | st.tuples(inner, inner)
    ),
)


@given(VALUES)
def test_values_are_shown_as_python_shows_them(value: object) -> None:
    plain = repr(value) if isinstance(value, str | bool | int | float | list | dict) else str(value)
    assert shown(value) == (plain if len(plain) <= 80 else f"{plain[:80]}...")


@given(st.binary(max_size=300) | st.text(max_size=100).map(str.encode))
def test_no_content_of_a_configuration_makes_anything_but_our_errors(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "configuration.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError) as raised:
        load_config(path)
    assert all(line.startswith(str(path)) for line in str(raised.value).splitlines())


# --- logs -----------------------------------------------------------------------------------------

LOG = (HEADER + "\n".join(job_line(number=number) for number in range(1, 30)) + "\n").encode()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, len(LOG)), st.integers(0, 40), st.binary(max_size=20)), max_size=4))
def test_damaged_logs_are_read_or_refused(tmp_path: Path, changes: list[tuple[int, int, bytes]]) -> None:
    content = LOG
    for place, length, instead in changes:
        content = content[:place] + instead + content[place + length :]
    path = tmp_path / "some.swf"
    path.write_bytes(content)
    message = ""
    try:
        assert len(read_swf(path)) <= content.count(b"\n") + content.count(b"\r") + 1
    except GridschedError as error:
        message = str(error)
    assert "\n" not in message


# --- datasets -------------------------------------------------------------------------------------


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """A dataset with numbers, texts and attributes, and its sidecar."""
    made = xr.Dataset(
        {"x": ("job", np.arange(500)), "y": ((), 7), "word": ("scheme", ["easy", "fcfs and more"])},
        attrs={"title": "some runs", "verified": 1},
    )
    files.write(made, tmp_path / "some.nc")
    return tmp_path / "some.nc"


def test_every_wrong_bit_is_found(dataset: Path) -> None:
    content, rng = dataset.read_bytes(), random.Random(1)
    for _ in range(200):
        damaged = bytearray(content)
        damaged[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        dataset.write_bytes(damaged)
        with pytest.raises(GridschedError, match=r"some\.nc: not as it was written .* delete it"):
            results.read(dataset)


def test_wrong_bits_without_a_sidecar_make_our_errors_or_none(dataset: Path) -> None:
    whole = bits(results.read(dataset))
    files.sidecar(dataset).unlink()
    assert bits(results.read(dataset)) == whole
    content, rng = dataset.read_bytes(), random.Random(2)
    for _ in range(100):
        damaged = bytearray(content)
        damaged[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        dataset.write_bytes(damaged)
        with contextlib.suppress(GridschedError):
            results.read(dataset)


@pytest.mark.parametrize("text", ["", "[1]", '{"sha256"'])
def test_damaged_sidecar(dataset: Path, text: str) -> None:
    files.sidecar(dataset).write_text(text, encoding="utf-8")
    with pytest.raises(GridschedError, match=r"some\.made\.json: damaged; delete it and some\.nc"):
        results.read(dataset)


def test_sidecar_without_checksum_says_nothing(dataset: Path) -> None:
    files.sidecar(dataset).write_text(json.dumps({"time": "then"}), encoding="utf-8")
    assert results.read(dataset)["y"] == 7


def test_equal_datasets_are_equal_files(dataset: Path, tmp_path: Path) -> None:
    """So that a sidecar holds for the copy of another process too."""
    files.write(results.read(dataset), tmp_path / "again.nc")
    assert (tmp_path / "again.nc").read_bytes() == dataset.read_bytes()


def test_limited_size_of_files(dataset: Path, tmp_path: Path) -> None:
    code = (
        "import resource, sys\n"
        "from gridsched import results\n"
        "from gridsched.experiments import files\n"
        "from gridsched.experiments.logging import logged\n"
        "made = results.read(sys.argv[1])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000,) * 2)\n"
        "with logged('the.log'):\n"
        "    files.write(made, 'again.nc')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(dataset)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("gridsched: again.nc: cannot be written")
    assert {path.name for path in tmp_path.iterdir()} == {"some.nc", "some.made.json", "the.log"}


# --- inputs that change, and folders --------------------------------------------------------------


def rewritten(path: Path) -> None:
    path.write_text("other", encoding="utf-8")


def replaced(path: Path) -> None:
    other = path.with_name("other")
    shutil.copy2(path, other)
    other.replace(path)


def deleted(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("change", [rewritten, replaced, deleted], ids=lambda f: f.__name__)
def test_input_that_changes_while_in_use(tmp_path: Path, change: Callable[[Path], None]) -> None:
    path = tmp_path / "some.swf"
    path.write_text("some", encoding="utf-8")
    with files.unchanged(path):
        path.read_text(encoding="utf-8")
    with (
        pytest.raises(GridschedError, match=r"some\.swf: changed while it was in use"),
        files.unchanged(path),
    ):
        change(path)


def test_errors_of_the_system_are_one_line_with_a_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "logs" / "some.log"
    with pytest.raises(SystemExit) as ended, logged(log):
        raise OSError(28, "No space left on device", "some.nc")
    assert ended.value.code == "gridsched: some.nc: no space left on device; free some space and run again"
    assert log.read_text(encoding="utf-8") == f"error: {str(ended.value.code).removeprefix('gridsched: ')}\n"


def test_log_that_has_no_room(tmp_path: Path) -> None:
    """`/dev/full` takes nothing; the message must come through all the same."""
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    with pytest.raises(SystemExit) as ended, logged("/dev/full"):
        raise ConfigurationError("what went wrong")
    assert ended.value.code == "gridsched: what went wrong"
    with pytest.raises(SystemExit) as ended, logged("/dev/full"):
        print("all is well")
    assert str(ended.value.code).startswith("gridsched: no space left on device")


def test_folder_of_results(tmp_path: Path) -> None:
    files.check_folder(tmp_path / "not" / "yet")
    assert not (tmp_path / "not").exists()
    (tmp_path / "file").write_text("", encoding="utf-8")
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    for place in ("file", "file/results", "nowhere"):
        with pytest.raises(ConfigurationError, match="is no folder"):
            files.check_folder(tmp_path / place)


# --- compiled kernels -----------------------------------------------------------------------------


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "emptied": lambda content: b"",
    "cut": lambda content: content[: len(content) // 2],
    "wrong": lambda content: content[: len(content) // 2] + b"\xff" + content[len(content) // 2 + 1 :],
}
"""What happens to the kernel of that name."""

KERNELS = "from gridsched.engine.jit import jit\n" + "".join(
    f"@jit\ndef {name}(x):\n    return {number} * x\n" for number, name in enumerate(DAMAGES)
)


def run_kernels(folder: Path) -> list[str]:
    """Misses of the cache and result of every kernel, in a process of its own."""
    shown = "print(sum(kernel.stats.cache_misses.values()), result)\n"
    (folder / "kernels.py").write_text(
        f"{KERNELS}for kernel in ({', '.join(DAMAGES)}):\n    result = kernel(2)\n    {shown}",
        encoding="utf-8",
    )
    environment = {**os.environ, "GRIDSCHED_CACHE": str(folder / "cache")}
    command = [sys.executable, str(folder / "kernels.py")]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout.splitlines()


def test_damaged_kernels_are_compiled_anew(tmp_path: Path) -> None:
    assert run_kernels(tmp_path) == ["1 0", "1 2", "1 4"]
    assert run_kernels(tmp_path) == ["0 0", "0 2", "0 4"]
    for suffix in ("nbi", "nbc"):
        for name, damage in DAMAGES.items():
            (path,) = (tmp_path / "cache").rglob(f"*.{name}-*.{suffix}")
            path.write_bytes(damage(path.read_bytes()))
        assert run_kernels(tmp_path) == ["1 0", "1 2", "1 4"], suffix
    assert run_kernels(tmp_path) == ["0 0", "0 2", "0 4"]
