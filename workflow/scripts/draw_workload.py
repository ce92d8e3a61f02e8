"""Draw what one workload looks like."""

from gridsched.study.drawing import draw_workload
from gridsched.study.logging import logged

with logged(snakemake.log[0]):
    draw_workload(snakemake.input[0], snakemake.output.svg)
