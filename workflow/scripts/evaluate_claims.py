"""Set the claims of the papers against the results."""

from gridsched.study.claim_stages import evaluate_claims
from gridsched.study.config import study_from
from gridsched.study.logging import logged

with logged(snakemake.log[0]):
    studies = [study_from(study) for study in snakemake.params.studies]
    evaluate_claims(studies, list(snakemake.input), snakemake.output[0])
