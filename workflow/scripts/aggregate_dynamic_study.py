"""Put all cases of one study of dynamic grids together."""

from gridsched.study.config import DynamicGridStudy
from gridsched.study.dynamic_aggregation import aggregate_dynamic_study
from gridsched.study.logging import logged

with logged(snakemake.log[0]):
    study = DynamicGridStudy.model_validate(snakemake.params.study)
    names = [workload.name for workload in study.all_workloads]
    aggregate_dynamic_study(
        study,
        snakemake.params.seed,
        list(snakemake.input.cases),
        dict(zip(study.policies, snakemake.input.alone, strict=True)),
        dict(zip(names, snakemake.input.workloads, strict=True)),
        next(iter(snakemake.input.departure), None),
        snakemake.params.chunk_size,
        snakemake.output.dataset,
        means=snakemake.output.means,
        runs=snakemake.output.runs,
    )
