# The report: one self-contained page for all studies. `snakemake --report` carries the same figures.


rule build_report:
    input:
        [plan.study_results(study, RESULTS) for study in STUDIES.values()],
        claims=f"{RESULTS}/claims.csv",
    output:
        report(
            f"{RESULTS}/report.html",
            caption="../../reports/caption.rst",
            category="Overview",
            labels={"content": "report of all studies"},
        ),
    log:
        f"{RESULTS}/logs/report.log",
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        studies=[study.model_dump(mode="json") for study in STUDIES.values()],
        caption=plan.caption("report"),
    message:
        "building the report"
    script:
        "../scripts/build_report.py"
