"""Draw what one workload looks like."""

from gridsched.study.logging import logged
from gridsched.study.stages import draw_workload

with logged(snakemake.log[0]):
    draw_workload(snakemake.input[0], snakemake.output.svg)
