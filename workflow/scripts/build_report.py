"""Build the report page of all studies."""

from gridsched.experiments.logging import logged

with logged(snakemake.log[0]):
    from gridsched.experiments.config import study_from
    from gridsched.experiments.files import seal
    from gridsched.presentation.page import build_report

    studies = [study_from(study) for study in snakemake.params.studies]
    build_report(studies, snakemake.output.page, claims=snakemake.input.claims)
    seal(snakemake.output.record, [snakemake.output.page])
