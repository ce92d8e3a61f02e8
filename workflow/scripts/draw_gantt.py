"""Draw the schedule of one run."""

from gridsched.study.drawing import draw_gantt
from gridsched.study.logging import logged

with logged(snakemake.log[0]):
    draw_gantt(snakemake.input[0], snakemake.wildcards.run, snakemake.output.svg)
