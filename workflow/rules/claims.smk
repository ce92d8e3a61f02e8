# Claims of the papers, set against what the studies measured.


rule evaluate_claims:
    input:
        [f"{RESULTS}/{study}/study.nc" for study in STUDIES],
    output:
        report(
            f"{RESULTS}/claims.csv",
            caption="../../reports/caption.rst",
            category="Overview",
            labels={"content": "claims of the papers"},
        ),
    log:
        f"{RESULTS}/logs/claims.log",
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        studies=[study.model_dump(mode="json") for study in STUDIES.values()],
        caption=plan.caption("claims"),
    message:
        "setting the claims of the papers against the results"
    script:
        "../scripts/evaluate_claims.py"
