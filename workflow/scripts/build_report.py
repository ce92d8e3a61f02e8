"""Build the report page of all studies."""

from gridsched.report import build_report
from gridsched.study.config import StudyConfig
from gridsched.study.logging import logged

with logged(snakemake.log[0]):
    build_report(
        [StudyConfig.model_validate(study) for study in snakemake.params.studies],
        snakemake.params.folder,
        snakemake.output[0],
    )
