"""Set the claims of the papers against the results."""

from gridsched.experiments.logging import logged

with logged(snakemake.log[0]):
    from gridsched.experiments.claim_stages import evaluate_claims
    from gridsched.experiments.config import study_from
    from gridsched.experiments.files import seal

    studies = [study_from(study) for study in snakemake.params.studies]
    evaluate_claims(studies, list(snakemake.input), snakemake.output.table)
    seal(snakemake.output.record, [snakemake.output.table])
