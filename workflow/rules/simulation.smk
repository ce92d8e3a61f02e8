# Simulations: runs that share a workload, a chunk of them in one job; every schedule is verified.


rule simulate:
    input:
        workload=f"{RESULTS}/{{study}}/workloads/{{workload}}.nc",
        scores=lambda wildcards: plan.score_files(study_of(wildcards)),
    output:
        dataset=f"{RESULTS}/{{study}}/runs/{{workload}}/{{chunk}}.nc",
        sidecar=f"{RESULTS}/{{study}}/runs/{{workload}}/{{chunk}}.made.json",
    log:
        f"{RESULTS}/logs/{{study}}/runs/{{workload}}/{{chunk}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/{{study}}/runs/{{workload}}/{{chunk}}.tsv"
    wildcard_constraints:
        study=names_of(LocalStudy),
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        own=checksums_of(lambda wildcards: plan.score_files(study_of(wildcards))),
        study=simulated_values,
        chunk_size=CONFIG.chunk_size,
    message:
        "{wildcards.study}: simulating {wildcards.workload}, chunk {wildcards.chunk}"
    script:
        "../scripts/simulate.py"
