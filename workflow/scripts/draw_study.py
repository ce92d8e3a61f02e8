"""Draw the figures of a study and write its tables."""

from gridsched.experiments.logging import logged

with logged(snakemake.log[0]):
    from gridsched.experiments.files import seal
    from gridsched.presentation.showing import show

    show(
        snakemake.params.figures,
        snakemake.params.tables,
        snakemake.params.runs,
        snakemake.input.dataset,
        figures_in=snakemake.output.figures,
        tables_in=snakemake.output.tables,
        runs_in=snakemake.output.runs,
    )
    shown = (snakemake.output.figures, snakemake.output.tables, snakemake.output.runs)
    seal(snakemake.output.record, shown)
