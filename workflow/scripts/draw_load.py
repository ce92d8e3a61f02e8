"""Draw utilisation and queue length over time for one workload."""

from gridsched.study.drawing import draw_load
from gridsched.study.logging import logged

with logged(snakemake.log[0]):
    draw_load(snakemake.input[0], snakemake.wildcards.workload, snakemake.output.svg)
