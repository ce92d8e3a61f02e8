"""The stage of a study of workload models."""

from __future__ import annotations

from pathlib import Path

from gridsched import results
from gridsched.experiments import files
from gridsched.experiments.models.config import ModelStudy
from gridsched.experiments.prepare import selected_jobs
from gridsched.workloads import load_machines
from gridsched.workloads.model_comparison import models_dataset


def aggregate_model_study(study: ModelStudy, log: str | Path, target: str | Path) -> None:
    """Fit the log of a study by size classes and set it beside the published models of its machine.

    Parameters
    ----------
    study : ModelStudy
        The study.
    log : path
        The SWF file. Jobs that cannot be replayed, for want of a run time for instance, count as arrivals
        all the same.
    target : path
        The dataset of the study.
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
    files.write(whole, target)
