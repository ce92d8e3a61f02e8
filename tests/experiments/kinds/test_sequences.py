"""Studies of sequences: what the published simulator reads, what is measured, published numbers, page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from gridsched.errors import ConfigurationError
from gridsched.experiments.collection import ALL
from gridsched.experiments.config import load_config
from gridsched.experiments.kinds import sequences as stages
from gridsched.experiments.kinds.sequences import FOLDER, SequenceStudy
from gridsched.policies.local import OrderName
from gridsched.results import read
from gridsched.sequences import SequenceBackfilling, published_jobs
from gridsched.traces import read_swf
from tests.conftest import REPOSITORY
from tests.oracles.committed import Job, simulate
from tests.support.fields import assert_fields
from tests.support.studies import message_about, study_in

LOG = """; MaxProcs: 8
1 0 -1 10 4 -1 -1 4 20 -1 1 1 1 1 1 -1 -1 -1
2 3 -1 5 8 -1 -1 -1 5 -1 1 1 1 1 1 -1 -1 -1
3 4 -1 0 2 -1 -1 2 5 -1 0 1 1 1 1 -1 -1 -1
4 5 -1 6 2 -1 -1 4 -1 -1 1 2 1 1 1 -1 -1 -1
5 6 -1 -1 3 -1 -1 3 30 -1 1 2 1 1 1 -1 -1 -1
6 8 -1 3 1 -1 -1 1 4 -1 1 2 1 1 1 -1 -1 -1
7 30 -1 3 1 -1 -1 1 4 -1 1 2 1 1 1 -1 -1 -1
"""
LABELS = {"scenario": "own", "scheduler": "fcfs", "estimates": "requested"}
STUDY: dict[str, Any] = {
    "name": "tiny",
    "kind": "sequences",
    "title": "Tiny",
    "workloads": [{"name": "own", "file": "own.swf"}],
    "starts": [0, 1],
    "length": 4,
    "orders": ["fcfs", "wfp3"],
}


def study_of(**changes: Any) -> SequenceStudy:
    return SequenceStudy.model_validate({**STUDY, **changes})


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study and all that belongs to it, in a folder; its log is found through the environment."""
    place = tmp_path_factory.mktemp("sequences")
    elsewhere = tmp_path_factory.mktemp("logs")
    (elsewhere / "own.swf").write_text(LOG, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FOLDER, f"{place / 'nowhere'}, {elsewhere}")
        return study_in(place, study_of, 1, shown=True)


@pytest.fixture(scope="module")
def dataset(made: Path) -> xr.Dataset:
    return read(made / "tiny" / "study.nc")


def test_jobs_are_read_as_the_published_simulator_reads_them(tmp_path: Path) -> None:
    (tmp_path / "own.swf").write_text(LOG, encoding="utf-8")
    jobs = published_jobs(read_swf(tmp_path / "own.swf"))
    assert jobs.job_number.tolist() == [1, 2, 4, 5, 6, 7], "the job without run time is left out"
    assert jobs.processors.tolist() == [4, 8, 4, 3, 1, 1], "the larger of requested and allocated"
    assert_fields(jobs, run_time=[10, 5, 6, 10, 3, 3], requested_time=[20, 5, 6, 30, 4, 4])
    assert_fields(jobs, user=[1, 1, 2, 2, 2, 2], group=[1] * 6, queue=[1] * 6)
    assert jobs.left_out["without run time or size"] == 1
    assert jobs.repaired["unknown run time"] == 1


def test_measures_are_those_of_a_naive_simulation(dataset: xr.Dataset) -> None:
    jobs = [Job(0, 10, 20, 4), Job(3, 5, 5, 8), Job(5, 6, 6, 4), Job(6, 10, 30, 3), Job(8, 3, 4, 1)]
    for replicate, first in enumerate(STUDY["starts"]):
        part = jobs[first : first + STUDY["length"]]
        starts = simulate(part, 8, lambda job, _: job.submit, backfills=False, knows_time=True)
        waits = [start - job.submit for start, job in zip(starts, part, strict=True)]
        pairs = list(zip(waits, part, strict=True))
        slowdowns = [max(1, (wait + job.run) / max(job.run, 10)) for wait, job in pairs]
        found = dataset.sel(scenario="own", scheduler="fcfs, true waits", estimates="requested", group=ALL)
        assert found["bounded_slowdown_mean"][replicate] == pytest.approx(np.mean(slowdowns))
        work = sum(job.run * job.processors for job in part)
        assert found["utilisation_to_last_start"][replicate] == pytest.approx(
            work / (8 * (max(starts) - part[0].submit))
        )


def test_waits_matter_only_to_orders_that_look_at_them(dataset: xr.Dataset) -> None:
    own = dataset["bounded_slowdown_mean"]
    np.testing.assert_array_equal(own.sel(scheduler="fcfs, true waits"), own.sel(scheduler="fcfs"))


def test_orders_are_parameters_and_logs_with_backfilling_scenarios(made: Path, dataset: xr.Dataset) -> None:
    assert_fields(
        dataset,
        scenario=["own", "own, backfilling"],
        order=["fcfs", "wfp3"] * 2,
        waits=["unset"] * 2 + ["true"] * 2,
        replicates_are=["sequences"] * 2,
    )
    assert (made / "tiny" / "figures" / "slowdowns.svg").is_file()


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"workloads": [{"name": "own", "processors": 4, "jobs": [[0, 1, 1, 1]]}]}, "only a log"),
        ({"starts": [1, 1]}, "starts"),
        ({"orders": ["fastest"]}, "orders"),
        (
            {"workloads": [{"name": "own", "file": "own.swf", "leave_out_status": [1]}]},
            "own: leave_out_status has no effect",
        ),
        (
            {"workloads": [{"name": "own", "file": "own.swf", "preceding": True}]},
            "own: preceding has no effect",
        ),
    ],
)
def test_bad_keys_are_named(tmp_path: Path, changes: dict[str, Any], key: str) -> None:
    assert key in message_about(tmp_path, {**STUDY, **changes})


def test_a_log_that_is_not_there_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(FOLDER, raising=False)
    with pytest.raises(ConfigurationError, match=re.escape(FOLDER)):
        study_of().check_files()


def test_a_sequence_beyond_the_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "own.swf").write_text(LOG, encoding="utf-8")
    with pytest.raises(ConfigurationError, match="the log has 6"):
        stages.run_sequences(
            "own", None, [4], 4, "fcfs", "none", "true", tmp_path / "own.swf", LABELS, tmp_path / "run.nc"
        )


def test_published_baselines_come_out_to_the_printed_decimals(archive_mirror: Path, tmp_path: Path) -> None:
    """Two rows of the table of the paper; the study has all eighty cells."""
    log = archive_mirror / "HPC2N-2002-2.2-cln.swf.gz"
    starts = [1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085]
    rows: list[tuple[OrderName, SequenceBackfilling, float, float]] = [
        ("wfp3", "none", 426.99, 0.636),
        ("unicep", "shadow", 175.12, 0.638),
    ]
    for order, backfilling, slowdown, utilisation in rows:
        target = tmp_path / f"{order}.nc"
        stages.run_sequences("HPC2N", 240, starts, 1024, order, backfilling, "unset", log, LABELS, target)
        run = read(target)
        assert round(float(run["bounded_slowdown_mean"].mean()), 2) == slowdown
        assert round(float(run["utilisation_to_last_start"].mean()), 3) == utilisation


def test_the_configuration_of_the_repository(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("lublin_256-synthetic.swf.gz", "lublin_256_new2.swf.gz"):
        (tmp_path / name).write_bytes(b"")
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setenv(FOLDER, str(tmp_path))
    _, studies = load_config({"studies": ["config/studies/sequences.yaml"]})
    (study,) = studies.values()
    assert len(study.experiment(1).runs()) == 80
