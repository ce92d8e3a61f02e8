"""Draw the jobs of one point of a multicluster for all replicates."""

from gridsched.study.files import unchanged
from gridsched.study.logging import logged
from gridsched.study.multicluster_config import PointConfig
from gridsched.study.multicluster_stages import prepare_point

with logged(snakemake.log[0]), unchanged(*snakemake.input):
    prepare_point(
        PointConfig.model_validate(snakemake.params.point),
        snakemake.params.replicates,
        snakemake.params.seed,
        snakemake.output.dataset,
        rate=next(iter(snakemake.input.rate), None),
        log=next(iter(snakemake.input.log), None),
    )
