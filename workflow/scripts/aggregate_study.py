"""Put all workloads of one study together."""

from gridsched.study.config import LocalStudy
from gridsched.study.local_stages import aggregate_study
from gridsched.study.logging import logged

with logged(snakemake.log[0]):
    study = LocalStudy.model_validate(snakemake.params.study)
    names = [workload.name for workload in study.workloads]
    aggregate_study(
        study,
        dict(zip(names, snakemake.input.summaries, strict=True)),
        dict(zip(names, snakemake.input.workloads, strict=True)),
        snakemake.params.chunk_size,
        snakemake.output.dataset,
        means=snakemake.output.means,
        runs=snakemake.output.runs,
    )
