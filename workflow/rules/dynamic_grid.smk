# Dynamic grids: every site on its own, which is what cases are compared with; cases in chunks, simulated,
# verified and measured; a site that leaves, looked at closely.


rule simulate_alone:
    input:
        dynamic_workloads,
    output:
        dataset=f"{RESULTS}/{{study}}/alone/{{policy}}.nc",
        sidecar=f"{RESULTS}/{{study}}/alone/{{policy}}.made.json",
    log:
        f"{RESULTS}/logs/{{study}}/alone/{{policy}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/{{study}}/alone/{{policy}}.tsv"
    wildcard_constraints:
        study=names_of(DynamicGridStudy),
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=1000,
        runtime=15,
    params:
        study=dynamic_values,
    message:
        "{wildcards.study}: simulating every site on its own under {wildcards.policy}"
    script:
        "../scripts/simulate_alone.py"


rule simulate_dynamic_grid:
    input:
        workloads=dynamic_workloads,
        alone=lambda wildcards: plan.alone_files(study_of(wildcards), RESULTS),
    output:
        dataset=f"{RESULTS}/{{study}}/cases/{{chunk}}.nc",
        sidecar=f"{RESULTS}/{{study}}/cases/{{chunk}}.made.json",
    log:
        f"{RESULTS}/logs/{{study}}/cases/{{chunk}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/{{study}}/cases/{{chunk}}.tsv"
    wildcard_constraints:
        study=names_of(DynamicGridStudy),
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=1500,
        runtime=60,
    params:
        study=dynamic_values,
        runs=dynamic_runs,
        policies=lambda wildcards: study_of(wildcards).policies,
        seed=CONFIG.seed,
    message:
        "{wildcards.study}: simulating chunk {wildcards.chunk}"
    script:
        "../scripts/simulate_dynamic_grid.py"


rule simulate_departure:
    input:
        dynamic_workloads,
    output:
        dataset=f"{RESULTS}/{{study}}/departure.nc",
        sidecar=f"{RESULTS}/{{study}}/departure.made.json",
    log:
        f"{RESULTS}/logs/{{study}}/departure.log",
    wildcard_constraints:
        study=names_of(DynamicGridStudy),
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=1500,
        runtime=15,
    params:
        study=departure_values,
        seed=CONFIG.seed,
    message:
        "{wildcards.study}: letting a site leave"
    script:
        "../scripts/simulate_departure.py"


rule aggregate_dynamic_study:
    input:
        cases=lambda wildcards: plan.dynamic_files(
            study_of(wildcards), CONFIG.chunk_size, RESULTS
        ),
        alone=lambda wildcards: plan.alone_files(study_of(wildcards), RESULTS),
        workloads=dynamic_workloads,
        departure=lambda wildcards: plan.departure_files(study_of(wildcards), RESULTS),
    output:
        dataset=f"{RESULTS}/{{study}}/study.nc",
        sidecar=f"{RESULTS}/{{study}}/study.made.json",
        runs=f"{RESULTS}/{{study}}/runs.csv",
        means=report(
            f"{RESULTS}/{{study}}/means.csv",
            caption="../../reports/caption.rst",
            category="{study}",
            subcategory="Numbers",
            labels={"content": "means, gains and intervals"},
        ),
    log:
        f"{RESULTS}/logs/{{study}}/study.log",
    wildcard_constraints:
        study=names_of(DynamicGridStudy),
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        study=study_values,
        seed=CONFIG.seed,
        chunk_size=CONFIG.chunk_size,
        caption=plan.caption("dynamic_means"),
    message:
        "{wildcards.study}: putting all cases together"
    script:
        "../scripts/aggregate_dynamic_study.py"
