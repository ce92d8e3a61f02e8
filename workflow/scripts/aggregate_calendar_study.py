"""Put all runs of one study of imprecise calendars together."""

from gridsched.study.calendar_aggregation import aggregate_calendar_study
from gridsched.study.config import CalendarStudy
from gridsched.study.logging import logged

with logged(snakemake.log[0]):
    study = CalendarStudy.model_validate(snakemake.params.study)
    names = [case.name for case in study.cases]
    aggregate_calendar_study(
        study,
        snakemake.params.seed,
        list(snakemake.input.measures),
        dict(zip(names, snakemake.input.cases, strict=True)),
        snakemake.params.chunk_size,
        snakemake.output.dataset,
        means=snakemake.output.means,
        runs=snakemake.output.runs,
        clusters=snakemake.output.clusters,
    )
