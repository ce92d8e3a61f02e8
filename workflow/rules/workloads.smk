# Workloads: logs cut and cleaned, or synthetic ones drawn, with the cluster that replays them.


rule prepare_workload:
    input:
        workload_log,
    output:
        dataset=f"{RESULTS}/{{study}}/workloads/{{workload}}.nc",
        sidecar=f"{RESULTS}/{{study}}/workloads/{{workload}}.made.json",
    log:
        f"{RESULTS}/logs/{{study}}/workloads/{{workload}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/{{study}}/workloads/{{workload}}.tsv"
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=1000,
        runtime=15,
    params:
        own=checksums_of(workload_log),
        workload=workload_values,
        seed=workload_seed,
    message:
        "{wildcards.study}: preparing workload {wildcards.workload}"
    script:
        "../scripts/prepare_workload.py"


rule characterise_workload:
    input:
        f"{RESULTS}/{{study}}/workloads/{{workload}}.nc",
    output:
        dataset=f"{RESULTS}/{{study}}/characterisation/{{workload}}.nc",
        sidecar=f"{RESULTS}/{{study}}/characterisation/{{workload}}.made.json",
    log:
        f"{RESULTS}/logs/{{study}}/characterisation/{{workload}}.log",
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    message:
        "{wildcards.study}: characterising workload {wildcards.workload}"
    script:
        "../scripts/characterise_workload.py"
