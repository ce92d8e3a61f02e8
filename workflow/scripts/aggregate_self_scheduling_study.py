"""Put all runs of one study of self-scheduling together."""

from gridsched.study.config import SelfSchedulingStudy
from gridsched.study.logging import logged
from gridsched.study.self_scheduling_aggregation import aggregate_self_scheduling_study

with logged(snakemake.log[0]):
    study = SelfSchedulingStudy.model_validate(snakemake.params.study)
    names = [centre.name for centre in study.centres]
    aggregate_self_scheduling_study(
        study,
        snakemake.params.seed,
        list(snakemake.input.measures),
        dict(zip(study.factors, snakemake.input.streams, strict=True)),
        dict(zip(names, snakemake.input.workloads, strict=True)),
        snakemake.params.chunk_size,
        snakemake.output.dataset,
        means=snakemake.output.means,
        runs=snakemake.output.runs,
        table_two=snakemake.output.table_two,
    )
