"""Fuse all logs into one stream of submissions."""

from gridsched.study.config import SelfSchedulingStudy
from gridsched.study.logging import logged
from gridsched.study.self_scheduling_stages import fuse_stream

with logged(snakemake.log[0]):
    study = SelfSchedulingStudy.model_validate(snakemake.params.study)
    names = [centre.name for centre in study.centres]
    fuse_stream(
        study,
        snakemake.wildcards.factor,
        dict(zip(names, snakemake.input.workloads, strict=True)),
        dict(zip(names, snakemake.input.originals, strict=True)),
        snakemake.output.dataset,
    )
