# Aggregation: metrics of all runs of a workload, then of a study.


rule summarise_workload:
    input:
        lambda wildcards: plan.chunk_files(
            study_of(wildcards), wildcards.workload, CONFIG.chunk_size, RESULTS
        ),
    output:
        dataset=f"{RESULTS}/{{study}}/summaries/{{workload}}.nc",
        sidecar=f"{RESULTS}/{{study}}/summaries/{{workload}}.made.json",
    log:
        f"{RESULTS}/logs/{{study}}/summaries/{{workload}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/{{study}}/summaries/{{workload}}.tsv"
    wildcard_constraints:
        study=names_of(LocalStudy),
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=1500,
        runtime=30,
    params:
        study=measured_values,
    message:
        "{wildcards.study}: measuring the runs of {wildcards.workload}"
    script:
        "../scripts/summarise_workload.py"


rule aggregate_study:
    input:
        summaries=lambda wildcards: plan.workload_files(
            study_of(wildcards), "summaries", RESULTS
        ),
        workloads=lambda wildcards: plan.workload_files(
            study_of(wildcards), "workloads", RESULTS
        ),
    output:
        dataset=f"{RESULTS}/{{study}}/study.nc",
        sidecar=f"{RESULTS}/{{study}}/study.made.json",
        runs=f"{RESULTS}/{{study}}/runs.csv",
        means=report(
            f"{RESULTS}/{{study}}/means.csv",
            caption="../../reports/caption.rst",
            category="{study}",
            subcategory="Numbers",
            labels={"content": "means and intervals"},
        ),
    log:
        f"{RESULTS}/logs/{{study}}/study.log",
    wildcard_constraints:
        study=names_of(LocalStudy),
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        study=study_values,
        chunk_size=CONFIG.chunk_size,
        caption=plan.caption("means"),
    message:
        "{wildcards.study}: putting all workloads together"
    script:
        "../scripts/aggregate_study.py"
