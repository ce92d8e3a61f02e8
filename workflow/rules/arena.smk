# The arena: machines with their workloads; every contender on them, simulated and verified; and comparisons.


rule prepare_arena:
    input:
        lambda wildcards: list(scenario_logs(wildcards).values()),
    output:
        dataset=f"{RESULTS}/{{study}}/arena/{{scenario}}.nc",
        sidecar=f"{RESULTS}/{{study}}/arena/{{scenario}}.made.json",
    log:
        f"{RESULTS}/logs/{{study}}/arena/{{scenario}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/{{study}}/arena/{{scenario}}.tsv"
    wildcard_constraints:
        study=names_of(ArenaStudy),
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=1500,
        runtime=15,
    params:
        own=checksums_of(lambda wildcards: scenario_logs(wildcards).values()),
        scenario=scenario_values,
        replicates=lambda wildcards: list(
            range(study_of(wildcards).draws(wildcards.scenario))
        ),
        seed=scenario_seed,
        machines=lambda wildcards: list(scenario_logs(wildcards)),
    message:
        "{wildcards.study}: preparing {wildcards.scenario}"
    script:
        "../scripts/prepare_grids.py"


rule play_contender:
    input:
        grids=f"{RESULTS}/{{study}}/arena/{{scenario}}.nc",
        scores=lambda wildcards: plan.score_files(study_of(wildcards)),
    output:
        dataset=f"{RESULTS}/{{study}}/plays/{{scenario}}/{{contender}}.nc",
        sidecar=f"{RESULTS}/{{study}}/plays/{{scenario}}/{{contender}}.made.json",
    log:
        f"{RESULTS}/logs/{{study}}/plays/{{scenario}}/{{contender}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/{{study}}/plays/{{scenario}}/{{contender}}.tsv"
    wildcard_constraints:
        study=names_of(ArenaStudy),
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=3000,
        runtime=120,
    params:
        own=checksums_of(lambda wildcards: plan.score_files(study_of(wildcards))),
        study=played_values,
        seed=CONFIG.seed,
    message:
        "{wildcards.study}: contender {wildcards.contender} on {wildcards.scenario}"
    script:
        "../scripts/play_contender.py"


rule aggregate_arena_study:
    input:
        plays=lambda wildcards: sum(
            plan.play_files(study_of(wildcards), RESULTS).values(), []
        ),
        grids=lambda wildcards: list(
            plan.arena_files(study_of(wildcards), RESULTS).values()
        ),
    output:
        dataset=f"{RESULTS}/{{study}}/study.nc",
        sidecar=f"{RESULTS}/{{study}}/study.made.json",
        runs=f"{RESULTS}/{{study}}/runs.csv",
        comparisons=f"{RESULTS}/{{study}}/comparisons.csv",
        means=report(
            f"{RESULTS}/{{study}}/means.csv",
            caption="../../reports/caption.rst",
            category="{study}",
            subcategory="Numbers",
            labels={"content": "means and ratios to the reference"},
        ),
    log:
        f"{RESULTS}/logs/{{study}}/study.log",
    wildcard_constraints:
        study=names_of(ArenaStudy),
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=3000,
        runtime=20,
    params:
        study=study_values,
        plays=lambda wildcards: plan.play_files(study_of(wildcards), RESULTS),
        grids=lambda wildcards: plan.arena_files(study_of(wildcards), RESULTS),
        seed=CONFIG.seed,
        caption=plan.caption("arena_means"),
    message:
        "{wildcards.study}: putting all contenders together"
    script:
        "../scripts/aggregate_arena_study.py"
