"""Build the report page of all studies."""

from gridsched.report import build_report
from gridsched.study.config import StudyConfig
from gridsched.study.logging import logged

with logged(snakemake.log[0]):
    studies = [StudyConfig.model_validate(study) for study in snakemake.params.studies]
    build_report(studies, snakemake.output[0])
