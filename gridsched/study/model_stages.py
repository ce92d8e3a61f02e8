"""The stage of a study of workload models."""

from __future__ import annotations

from pathlib import Path

from gridsched import results
from gridsched.study import files
from gridsched.study.config import ModelStudy
from gridsched.study.prepare import selected_jobs
from gridsched.workloads import load_machines
from gridsched.workloads.model_comparison import models_dataset, table_four


def aggregate_model_study(
    study: ModelStudy, log: str | Path, target: str | Path, *, table: str | Path
) -> None:
    """Fit the log of a study by size classes and set it beside the published models of its machine.

    Parameters
    ----------
    study : ModelStudy
        The study.
    log : path
        The SWF file. Jobs that cannot be replayed, for want of a run time for instance, count as arrivals
        all the same.
    target, table : path
        The dataset of the study; its parameters beside the published ones, as CSV.
    """
    made = selected_jobs(study.workload, log)
    whole = models_dataset(made, load_machines(), study.machine)
    whole.attrs.update(
        title=study.title,
        study=study.name,
        description=study.description,
        configuration_hash=study.checksum(),
        workload_checksum=made.checksum,
        acknowledgement=made.acknowledgement,
        **results.provenance(),
    )
    files.write_table(table_four(whole), table)
    files.write(whole, target)
