"""Draw utilisation and queue length over time for one workload."""

from gridsched.study.logging import logged
from gridsched.study.stages import draw_load

with logged(snakemake.log[0]):
    draw_load(snakemake.input[0], snakemake.wildcards.workload, snakemake.output.svg)
