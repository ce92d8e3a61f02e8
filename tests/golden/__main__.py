"""Run demo and reduced studies, and hold them against the record: `python -m tests.golden run|check|write`.

`run` makes datasets, figures and tables of the demo (in results/demo) and of the studies of
tests/golden/config.yaml (in results/golden), from the start unless `--continue` is given; `check` compares
them with the record; `write` makes them the record. The reduced studies replay logs of the archive and are
left out where GRIDSCHED_MIRRORS does not say where these are.

Exit codes: 0; 1 where something differs or did not run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.golden.record import SHOWN, Record, differences, read_record, record_of, write_record

REPOSITORY = Path(__file__).parent.parent.parent
GOLDEN = Path("tests/golden")
SNAKEMAKE = Path(sys.executable).with_name("snakemake")


@dataclass(frozen=True)
class Part:
    """A configuration of the workflow whose results are recorded.

    Parameters
    ----------
    name : str
        Name in messages, and of the file of the record.
    config : path
        The configuration, from the repository on.
    needs_logs : bool
        Whether its studies replay logs of the archive.
    """

    name: str
    config: Path
    needs_logs: bool

    @property
    def file(self) -> Path:
        """File of the record."""
        return REPOSITORY / GOLDEN / f"{self.name}.json"

    @property
    def results(self) -> Path:
        """Folder of results, from the repository on."""
        return Path(_yaml(self.config)["results"])

    @property
    def studies(self) -> dict[str, list[str]]:
        """Names of its studies, each with the datasets that it makes."""
        studies = [_yaml(Path(path)) for path in _yaml(self.config)["studies"]]
        return {
            study["name"]: ["study.nc", *(["prediction.nc"] if study.get("evaluate") else [])]
            for study in studies
        }

    def targets(self, only: Sequence[str]) -> list[Path]:
        """What is made: datasets, figures and tables of the studies, and the claims where all of them run."""
        chosen = [
            self.results / study / name
            for study, names in self.studies.items()
            if not only or study in only
            for name in (*names, *SHOWN)
        ]
        return chosen if only else [*chosen, self.results / "claims.csv"]


PARTS = (
    Part("demo", Path("config/demo.yaml"), needs_logs=False),
    Part("reproduction", GOLDEN / "config.yaml", needs_logs=True),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments say."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("action", choices=["run", "check", "write"], help="what is done")
    parser.add_argument("--demo-only", action="store_true", help="leave out the reduced studies")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="STUDY", help="these studies, without claims"
    )
    parser.add_argument("--cores", default="all", help="cores that a run may use")
    parser.add_argument("--continue", dest="goes_on", action="store_true", help="keep what a run has made")
    options = parser.parse_args(arguments)
    unknown = set(options.only).difference(*(part.studies for part in PARTS))
    if unknown:
        parser.error(f"no such study: {', '.join(sorted(unknown))}")
    failed = False
    for part in _chosen(demo_only=options.demo_only, only=options.only):
        match options.action:
            case "run":
                failed |= not _run(part, options.only, cores=options.cores, goes_on=options.goes_on)
            case "check":
                failed |= not _check(part, options.only)
            case "write":
                failed |= not _write(part, options.only)
    return int(failed)


def _chosen(*, demo_only: bool, only: Sequence[str]) -> list[Part]:
    """Parts that are looked at; says which are not, and why."""
    chosen = []
    for part in PARTS:
        if only and not set(only) & set(part.studies):
            continue
        if part.needs_logs and demo_only:
            print(f"golden {part.name}: SKIPPED, only the demo is asked for")
        elif part.needs_logs and not os.environ.get("GRIDSCHED_MIRRORS"):
            print(
                f"golden {part.name}: SKIPPED, GRIDSCHED_MIRRORS does not say where logs of the archive are"
            )
        else:
            chosen.append(part)
    return chosen


def _run(part: Part, only: Sequence[str], *, cores: str, goes_on: bool) -> bool:
    """Make the targets with the code of this repository, not an installed one; whether all were made."""
    targets = part.targets(only)
    if not goes_on:
        # What an earlier run has left must not be taken for what this one makes
        for target in targets:
            path = REPOSITORY / target
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    command = [str(SNAKEMAKE), "--cores", cores, "--quiet", "progress", "rules"]
    command += ["--configfile", str(part.config), *([] if goes_on else ["--forceall"])]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    subprocess.run([*command, "--", *map(str, targets)], cwd=REPOSITORY, env=environment, check=False)
    absent = [target for target in targets if not (REPOSITORY / target).exists()]
    for target in absent:
        print(f"golden {part.name}: NOT made: {target}")
    print(f"golden {part.name}: {len(targets) - len(absent)} of {len(targets)} files made")
    return not absent


def _check(part: Part, only: Sequence[str]) -> bool:
    """Whether the results are those of the record; says what differs."""
    expected, found = read_record(part.file), _found(part, only)
    if only:
        expected = _restricted(expected, only)
    if expected.processor != found.processor:
        print(
            f"golden {part.name}: made on {expected.processor}, this is {found.processor}: "
            "compared to eight digits"
        )
    lines = differences(expected, found)
    for line in lines:
        print(f"golden {part.name}: {line}")
    variables = sum(map(len, found.datasets.values()))
    outcome = f"{len(lines)} differences" if lines else "as recorded"
    print(
        f"golden {part.name}: {variables} variables and columns, {len(found.findings)} findings, "
        f"{len(found.claims)} claims: {outcome}"
    )
    return not lines


def _write(part: Part, only: Sequence[str]) -> bool:
    """Make the results the record, unless they are not complete."""
    absent = [target for target in part.targets(only) if not (REPOSITORY / target).exists()]
    if absent:
        print(f"golden {part.name}: NOT written, there is no {', '.join(map(str, absent))}")
        return False
    found = _found(part, only)
    if only:
        before = read_record(part.file)
        others = _restricted(before, set(part.studies).difference(only))
        found = replace(
            before,
            datasets=others.datasets | found.datasets,
            findings=others.findings | found.findings,
            processor=found.processor,
        )
    write_record(found, part.file)
    print(f"golden {part.name}: {part.file.name} written")
    return True


def _found(part: Part, only: Sequence[str]) -> Record:
    studies = [study for study in part.studies if not only or study in only]
    return record_of(REPOSITORY / part.results, studies, claims=not only)


def _restricted(record: Record, studies: Collection[str]) -> Record:
    """What a record has of some studies, without claims."""

    def of_studies(files: dict[str, Any]) -> dict[str, Any]:
        return {name: content for name, content in files.items() if name.split("/")[0] in studies}

    return replace(
        record, datasets=of_studies(record.datasets), findings=of_studies(record.findings), claims={}
    )


@cache
def _yaml(path: Path) -> dict[str, Any]:
    content = yaml.safe_load((REPOSITORY / path).read_text(encoding="utf-8"))
    assert isinstance(content, dict)
    return content


if __name__ == "__main__":
    sys.exit(main())
