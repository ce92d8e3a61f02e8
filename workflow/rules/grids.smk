# Grids: machines with their workloads, replicate by replicate; every scheme on them, simulated, verified and
# measured.


rule prepare_grids:
    input:
        lambda wildcards: list(scenario_logs(wildcards).values()),
    output:
        dataset=f"{RESULTS}/{{study}}/grids/{{scenario}}/{{chunk}}.nc",
        sidecar=f"{RESULTS}/{{study}}/grids/{{scenario}}/{{chunk}}.made.json",
    log:
        f"{RESULTS}/logs/{{study}}/grids/{{scenario}}/{{chunk}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/{{study}}/grids/{{scenario}}/{{chunk}}.tsv"
    wildcard_constraints:
        study=names_of(GridStudy),
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=1500,
        runtime=15,
    params:
        own=checksums_of(lambda wildcards: scenario_logs(wildcards).values()),
        scenario=scenario_values,
        replicates=chunk_replicates,
        seed=scenario_seed,
        machines=lambda wildcards: list(scenario_logs(wildcards)),
    message:
        "{wildcards.study}: preparing {wildcards.scenario}, chunk {wildcards.chunk}"
    script:
        "../scripts/prepare_grids.py"


rule simulate_grids:
    input:
        grids=f"{RESULTS}/{{study}}/grids/{{scenario}}/{{chunk}}.nc",
        scores=lambda wildcards: plan.score_files(study_of(wildcards)),
    output:
        dataset=f"{RESULTS}/{{study}}/measures/{{scenario}}/{{chunk}}.nc",
        sidecar=f"{RESULTS}/{{study}}/measures/{{scenario}}/{{chunk}}.made.json",
        schedules=f"{RESULTS}/{{study}}/schedules/{{scenario}}/{{chunk}}.nc",
        schedules_sidecar=f"{RESULTS}/{{study}}/schedules/{{scenario}}/{{chunk}}.made.json",
    log:
        f"{RESULTS}/logs/{{study}}/measures/{{scenario}}/{{chunk}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/{{study}}/measures/{{scenario}}/{{chunk}}.tsv"
    wildcard_constraints:
        study=names_of(GridStudy),
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=3000,
        runtime=120,
    params:
        own=checksums_of(lambda wildcards: plan.score_files(study_of(wildcards))),
        study=simulated_values,
    message:
        "{wildcards.study}: simulating {wildcards.scenario}, chunk {wildcards.chunk}"
    script:
        "../scripts/simulate_grids.py"


rule aggregate_grid_study:
    input:
        measures=lambda wildcards: scenario_chunks(wildcards, "measures"),
        grids=lambda wildcards: scenario_chunks(wildcards, "grids"),
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
        study=names_of(GridStudy),
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        study=study_values,
        chunk_size=CONFIG.chunk_size,
        caption=plan.caption("grid_means"),
    message:
        "{wildcards.study}: putting all scenarios together"
    script:
        "../scripts/aggregate_grid_study.py"
