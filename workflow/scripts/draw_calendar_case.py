"""Draw one figure of one case."""

from gridsched.study.drawing import draw_calendar_case
from gridsched.study.logging import logged

with logged(snakemake.log[0]):
    draw_calendar_case(
        snakemake.wildcards.figure,
        snakemake.input[0],
        snakemake.wildcards.case,
        snakemake.output.svg,
    )
