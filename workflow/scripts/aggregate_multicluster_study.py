"""Put all points and replicates of one study of a multicluster together."""

from gridsched.study.config import MulticlusterStudy
from gridsched.study.logging import logged
from gridsched.study.multicluster_aggregation import aggregate_multicluster_study

with logged(snakemake.log[0]):
    study = MulticlusterStudy.model_validate(snakemake.params.study)
    names = [point.name for point in study.points]
    measures = iter(snakemake.input.measures)
    chunks = snakemake.params.chunks
    aggregate_multicluster_study(
        study,
        {name: [next(measures) for _ in range(chunks[name])] for name in names},
        dict(zip(names, snakemake.input.jobs, strict=True)),
        snakemake.params.chunk_size,
        snakemake.output.dataset,
        means=snakemake.output.means,
        runs=snakemake.output.runs,
        example=next(iter(snakemake.input.example), None),
    )
