"""Build the report page of all studies."""

from gridsched.report import build_report
from gridsched.study.config import study_from
from gridsched.study.logging import logged

with logged(snakemake.log[0]):
    studies = [study_from(study) for study in snakemake.params.studies]
    build_report(studies, snakemake.output[0], claims=snakemake.input.claims)
