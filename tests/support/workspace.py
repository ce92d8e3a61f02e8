"""A working directory with a tiny configuration, and the real snakemake command to run it."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import xarray as xr
import yaml

from gridsched import results
from gridsched.experiments import tasks
from gridsched.experiments.batches import Work
from gridsched.experiments.config import load_config
from tests.conftest import REPOSITORY

SNAKEMAKE = Path(sys.executable).with_name("snakemake")
TARGET = "results/tiny/study.nc"
AGAIN = "tiny: putting all of study together"
"""Message of the job that makes the target."""
POLL = 0.02
"""Seconds between two looks at whether a file is there."""

STUDY: dict[str, Any] = {
    "name": "tiny",
    "title": "Tiny",
    "scenarios": [
        {
            "name": "listed",
            "processors": 4,
            "jobs": [[0, 100, 200, 2], [10, 50, 60, 4], [20, 30, 30, 1], [30, 100, 300, 2]],
        },
        {"name": "own", "file": "logs/own.swf"},
    ],
    "schedulers": ["easy", {"name": "widest", "scheduler": "easy", "order": "scores.py:widest"}],
    "metrics": {"bins": 10, "classes": {"long": 60, "wide": 2}},
}
SCORES = "def widest(processors):\n    return processors\n"


def log_lines(jobs: int = 60) -> list[str]:
    """A small SWF log of a cluster of eight processors."""
    rng = random.Random(1)
    lines = ["; MaxProcs: 8", "; UnixStartTime: 0", "; TimeZoneString: Europe/Stockholm"]
    submit = 0
    for number in range(1, jobs + 1):
        submit += rng.randint(0, 60)
        run, size = rng.randint(1, 200), rng.choice([1, 2, 4, 8])
        requested = run + rng.randint(0, 100)
        lines.append(
            f"{number} {submit} {rng.randint(0, 99)} {run} {size} -1 -1 {size} {requested} "
            "-1 1 1 1 1 1 1 -1 -1"
        )
    return lines


@dataclass
class Workspace:
    """A working directory with a configuration, `config.yaml`, and its study, `studies/tiny.yaml`."""

    folder: Path
    cache: Path
    study: dict[str, Any] = field(default_factory=lambda: STUDY)
    config: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    prefix: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.folder / "studies").mkdir(parents=True)
        (self.folder / "logs").mkdir()
        self.log.write_text("\n".join(log_lines()) + "\n", encoding="utf-8")
        (self.folder / "scores.py").write_text(SCORES, encoding="utf-8")
        self.write()

    @property
    def log(self) -> Path:
        """The SWF file of the study."""
        return self.folder / "logs" / "own.swf"

    @property
    def results(self) -> Path:
        """Folder of results."""
        return self.folder / "results"

    def write(self, *, study: dict[str, Any] | None = None, **config: Any) -> None:
        """Write study and configuration anew, with changes of their keys."""
        self.study = {**self.study, **(study or {})}
        self.config = {"studies": ["studies/tiny.yaml"], **self.config, **config}
        for name, content in (("studies/tiny.yaml", self.study), ("config.yaml", self.config)):
            text = yaml.safe_dump(content, sort_keys=False)
            (self.folder / name).write_text(text, encoding="utf-8")

    def start(self, *arguments: str, cores: int = 2) -> subprocess.Popen[str]:
        """Start snakemake in a process group of its own; it is called from outside the working directory."""
        command = [*self.prefix, str(SNAKEMAKE), "--snakefile", str(REPOSITORY / "Snakefile")]
        command += ["--directory", str(self.folder), "--configfile", str(self.folder / "config.yaml")]
        command += ["--cores", str(cores), *arguments]
        removed = {"GRIDSCHED_MIRRORS", "SNAKEMAKE_PROFILE"}
        return subprocess.Popen(
            command,
            cwd=self.folder.parent,
            env={
                **{name: value for name, value in os.environ.items() if name not in removed},
                "GRIDSCHED_CACHE": str(self.cache),
                **self.environment,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            # A shell lets what it starts in the background ignore interrupts
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def run(self, *arguments: str, cores: int = 2, fails: bool = False) -> str:
        """Output of a finished snakemake, which must succeed unless it should fail."""
        process = self.start(*arguments, cores=cores)
        output, _ = process.communicate(timeout=900)
        assert (process.returncode != 0) == fails, output
        return output

    def run_until(self, pattern: str, *arguments: str) -> None:
        """Run until a file of the working directory matches, then kill the whole process group at once."""
        process = self.start(*arguments)
        before = set(self.folder.glob(pattern))
        while not set(self.folder.glob(pattern)) - before:
            assert ended_within(process, POLL) is None, f"ended before there was {pattern}"
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def planned(self, *arguments: str) -> set[str]:
        """What snakemake would do and why it would not stop: messages of the jobs of a dry run."""
        output = self.run("--dry-run", *arguments)
        return set(re.findall(r"^Job \d+: (.+)$", output, re.MULTILINE))

    def missing(self) -> set[str]:
        """Names of the tasks that the configuration asks for and whose results are not there."""
        tasks._content.cache_clear()
        with contextlib.chdir(self.folder):
            config, studies = load_config("config.yaml")
            wanted = [task for batch in Work(config, studies).batches.values() for task in batch.tasks]
            return {
                task.name
                for task in wanted
                if not all(Path(output).exists() for output in task.call(config.results)["outputs"])
            }


def ended_within(process: subprocess.Popen[str], seconds: float) -> int | None:
    """Exit code of a process that ends within some seconds."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


# --- bits -----------------------------------------------------------------------------------------

Bits = dict[str, Any]
"""Everything that a dataset holds, by name."""


def bits(dataset: xr.Dataset) -> Bits:
    """Variables, coordinates and attributes, bit by bit."""
    found: Bits = {f"attribute {name}": repr(value) for name, value in dataset.attrs.items()}
    for name, variable in dataset.variables.items():
        values = variable.values
        content = values.tolist() if values.dtype.kind in "OUT" else values.tobytes()
        attributes = {key: repr(value) for key, value in variable.attrs.items()}
        kind = "text" if values.dtype.kind in "OUT" else str(values.dtype)
        found[f"variable {name}"] = (variable.dims, variable.shape, kind, attributes, content)
    return found


def bits_of_runs(folder: Path) -> dict[str, Bits]:
    """Bits of every schedule of local policies in a folder of results, by file."""
    found: dict[str, Bits] = {}
    for path in folder.glob("*/runs/[0-9a-f]*.nc"):
        run = results.read(path)
        if "segment_job" in run:
            found[path.name] = bits(run)
    return found


def bits_of_files(folder: Path) -> dict[str, Bits]:
    """Bits of all datasets in a folder of results; hidden files are what a killed process began."""
    return {
        path.relative_to(folder).as_posix(): bits(results.read(path))
        for path in folder.rglob("*.nc")
        if not path.name.startswith(".")
    }


def temporary_files(folder: Path) -> list[Path]:
    """Files that were begun and not finished; Snakemake marks folders that it made with a file of its own."""
    return [path for path in folder.rglob(".*") if path.name != ".snakemake_timestamp"]
