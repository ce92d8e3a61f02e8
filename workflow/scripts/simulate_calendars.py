"""Simulate and measure one chunk of runs of a case under imprecise calendars and local policies."""

from gridsched.study.calendar_runs import CalendarRun
from gridsched.study.calendar_stages import simulate_calendar_chunk
from gridsched.study.config import CalendarStudy
from gridsched.study.logging import logged

with logged(snakemake.log[0]):
    simulate_calendar_chunk(
        CalendarStudy.model_validate(snakemake.params.study),
        [CalendarRun(**run) for run in snakemake.params.runs],
        snakemake.params.seed,
        snakemake.input[0],
        snakemake.output.dataset,
        largest_share=snakemake.params.largest_share,
    )
