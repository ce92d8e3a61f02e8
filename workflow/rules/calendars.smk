# Imprecise calendars: the clusters of a case with their workloads; every scheduler on them, simulated, verified and
# measured.


rule prepare_calendar_case:
    input:
        lambda wildcards: list(case_logs(wildcards).values()),
    output:
        dataset=f"{RESULTS}/{{study}}/cases/{{case}}.nc",
        sidecar=f"{RESULTS}/{{study}}/cases/{{case}}.made.json",
    log:
        f"{RESULTS}/logs/{{study}}/cases/{{case}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/{{study}}/cases/{{case}}.tsv"
    wildcard_constraints:
        study=names_of(CalendarStudy),
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=1000,
        runtime=15,
    params:
        own=checksums_of(lambda wildcards: case_logs(wildcards).values()),
        case=case_values,
        seed=case_seed,
        workloads=lambda wildcards: case_logs(wildcards),
    message:
        "{wildcards.study}: preparing {wildcards.case}"
    script:
        "../scripts/prepare_calendar_case.py"


rule simulate_calendars:
    input:
        f"{RESULTS}/{{study}}/cases/{{case}}.nc",
    output:
        dataset=f"{RESULTS}/{{study}}/measures/{{case}}/{{chunk}}.nc",
        sidecar=f"{RESULTS}/{{study}}/measures/{{case}}/{{chunk}}.made.json",
    log:
        f"{RESULTS}/logs/{{study}}/measures/{{case}}/{{chunk}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/{{study}}/measures/{{case}}/{{chunk}}.tsv"
    wildcard_constraints:
        study=names_of(CalendarStudy),
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=1000,
        runtime=30,
    params:
        study=calendar_values,
        runs=lambda wildcards: [run.values() for run in calendar_runs(wildcards)],
        seed=CONFIG.seed,
        largest_share=lambda wildcards: study_of(wildcards).largest_share,
    message:
        "{wildcards.study}: simulating {wildcards.case}, chunk {wildcards.chunk}"
    script:
        "../scripts/simulate_calendars.py"


rule aggregate_calendar_study:
    input:
        measures=lambda wildcards: plan.calendar_files(
            study_of(wildcards), CONFIG.chunk_size, RESULTS
        ),
        cases=lambda wildcards: plan.case_files(study_of(wildcards), RESULTS),
    output:
        dataset=f"{RESULTS}/{{study}}/study.nc",
        sidecar=f"{RESULTS}/{{study}}/study.made.json",
        runs=f"{RESULTS}/{{study}}/runs.csv",
        means=report(
            f"{RESULTS}/{{study}}/means.csv",
            caption="../../reports/caption.rst",
            category="{study}",
            subcategory="Numbers",
            labels={"content": "delays of all runs"},
        ),
        clusters=f"{RESULTS}/{{study}}/clusters.csv",
    log:
        f"{RESULTS}/logs/{{study}}/study.log",
    wildcard_constraints:
        study=names_of(CalendarStudy),
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        study=study_values,
        seed=CONFIG.seed,
        chunk_size=CONFIG.chunk_size,
        caption=plan.caption("calendar_means"),
    message:
        "{wildcards.study}: putting all runs together"
    script:
        "../scripts/aggregate_calendar_study.py"


rule draw_calendar_case:
    input:
        f"{RESULTS}/{{study}}/study.nc",
    output:
        svg=report(
            f"{RESULTS}/{{study}}/figures/{{figure}}-{{case}}.svg",
            caption="../../reports/caption.rst",
            category="{study}",
            subcategory="Cases",
            labels={"figure": "{figure}", "case": "{case}"},
        ),
        png=f"{RESULTS}/{{study}}/figures/{{figure}}-{{case}}.png",
        csv=f"{RESULTS}/{{study}}/figures/{{figure}}-{{case}}.csv",
    log:
        f"{RESULTS}/logs/{{study}}/figures/{{figure}}-{{case}}.log",
    wildcard_constraints:
        study=names_of(CalendarStudy),
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        caption=lambda wildcards: plan.caption(wildcards.figure),
    message:
        "{wildcards.study}: drawing {wildcards.figure} of {wildcards.case}"
    script:
        "../scripts/draw_calendar_case.py"
