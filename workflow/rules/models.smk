# Workload models: a log fitted by size classes, beside the published fit of its machine.


rule compare_models:
    input:
        lambda wildcards: plan.log_file(study_of(wildcards).workload, RESULTS),
    output:
        dataset=f"{RESULTS}/{{study}}/study.nc",
        sidecar=f"{RESULTS}/{{study}}/study.made.json",
        table=report(
            f"{RESULTS}/{{study}}/table_four.csv",
            caption="../../reports/caption.rst",
            category="{study}",
            subcategory="Numbers",
            labels={"content": "parameters, log and paper"},
        ),
    log:
        f"{RESULTS}/logs/{{study}}/study.log",
    wildcard_constraints:
        study=names_of(ModelStudy),
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=1000,
        runtime=15,
    params:
        own=checksums_of(
            lambda wildcards: plan.log_file(study_of(wildcards).workload, RESULTS)
        ),
        study=study_values,
        caption=plan.caption("table_four"),
    message:
        "{wildcards.study}: fitting {wildcards.study}"
    script:
        "../scripts/compare_models.py"
