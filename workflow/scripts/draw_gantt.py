"""Draw the schedule of one run."""

from gridsched.study.logging import logged
from gridsched.study.stages import draw_gantt

with logged(snakemake.log[0]):
    draw_gantt(snakemake.input[0], snakemake.wildcards.run, snakemake.output.svg)
