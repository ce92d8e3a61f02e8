"""Put all scenarios and replicates of one study together."""

from gridsched.study.config import GridStudy
from gridsched.study.grid_stages import aggregate_grid_study
from gridsched.study.logging import logged

with logged(snakemake.log[0]):
    aggregate_grid_study(
        GridStudy.model_validate(snakemake.params.study),
        list(snakemake.input.measures),
        list(snakemake.input.grids),
        snakemake.params.chunk_size,
        snakemake.output.dataset,
        means=snakemake.output.means,
        runs=snakemake.output.runs,
    )
