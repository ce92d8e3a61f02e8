"""Set the claims of the papers against the results."""

from gridsched.study.claim_stages import evaluate_claims
from gridsched.study.logging import logged

with logged(snakemake.log[0]):
    evaluate_claims(dict(zip(snakemake.params.studies, snakemake.input, strict=True)), snakemake.output[0])
