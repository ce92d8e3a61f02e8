# Figures: SVG for the report, PNG for slides, CSV with the numbers drawn.


rule draw_study:
    input:
        f"{RESULTS}/{{study}}/study.nc",
    output:
        svg=report(
            f"{RESULTS}/{{study}}/figures/{{figure}}.svg",
            caption="../../reports/caption.rst",
            category="{study}",
            subcategory="Policies",
            labels={"figure": "{figure}"},
        ),
        png=f"{RESULTS}/{{study}}/figures/{{figure}}.png",
        csv=f"{RESULTS}/{{study}}/figures/{{figure}}.csv",
    log:
        f"{RESULTS}/logs/{{study}}/figures/{{figure}}.log",
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        caption=lambda wildcards: plan.caption(wildcards.figure),
    message:
        "{wildcards.study}: drawing {wildcards.figure}"
    script:
        "../scripts/draw_study.py"


# Names of these figures fit draw_study too
ruleorder: draw_prediction > draw_study


rule draw_prediction:
    input:
        f"{RESULTS}/{{study}}/prediction.nc",
    output:
        svg=report(
            f"{RESULTS}/{{study}}/figures/{{figure}}.svg",
            caption="../../reports/caption.rst",
            category="{study}",
            subcategory="Predictions",
            labels={"figure": "{figure}"},
        ),
        png=f"{RESULTS}/{{study}}/figures/{{figure}}.png",
        csv=f"{RESULTS}/{{study}}/figures/{{figure}}.csv",
    log:
        f"{RESULTS}/logs/{{study}}/figures/{{figure}}.log",
    wildcard_constraints:
        study=names_of(SelfSchedulingStudy),
        figure="|".join(plan.PREDICTION_FIGURES),
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        caption=lambda wildcards: plan.caption(wildcards.figure),
    message:
        "{wildcards.study}: drawing {wildcards.figure}"
    script:
        "../scripts/draw_prediction.py"


rule draw_scenario:
    input:
        f"{RESULTS}/{{study}}/study.nc",
    output:
        svg=report(
            f"{RESULTS}/{{study}}/figures/{{figure}}-{{scenario}}.svg",
            caption="../../reports/caption.rst",
            category="{study}",
            subcategory="Scenarios",
            labels={"figure": "{figure}", "scenario": "{scenario}"},
        ),
        png=f"{RESULTS}/{{study}}/figures/{{figure}}-{{scenario}}.png",
        csv=f"{RESULTS}/{{study}}/figures/{{figure}}-{{scenario}}.csv",
    log:
        f"{RESULTS}/logs/{{study}}/figures/{{figure}}-{{scenario}}.log",
    wildcard_constraints:
        study=names_of(GridStudy),
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        caption=lambda wildcards: plan.caption(wildcards.figure),
    message:
        "{wildcards.study}: drawing {wildcards.figure} of {wildcards.scenario}"
    script:
        "../scripts/draw_scenario.py"


rule draw_load:
    input:
        f"{RESULTS}/{{study}}/study.nc",
    output:
        svg=report(
            f"{RESULTS}/{{study}}/figures/load-{{workload}}.svg",
            caption="../../reports/caption.rst",
            category="{study}",
            subcategory="Load over time",
            labels={"figure": "{workload}"},
        ),
        png=f"{RESULTS}/{{study}}/figures/load-{{workload}}.png",
        csv=f"{RESULTS}/{{study}}/figures/load-{{workload}}.csv",
    log:
        f"{RESULTS}/logs/{{study}}/figures/load-{{workload}}.log",
    wildcard_constraints:
        study=names_of(LocalStudy),
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        caption=plan.caption("load"),
    message:
        "{wildcards.study}: drawing the load of {wildcards.workload}"
    script:
        "../scripts/draw_load.py"


rule draw_workload:
    input:
        f"{RESULTS}/{{study}}/characterisation/{{workload}}.nc",
    output:
        svg=report(
            f"{RESULTS}/{{study}}/figures/workload-{{workload}}.svg",
            caption="../../reports/caption.rst",
            category="{study}",
            subcategory="Workloads",
            labels={"figure": "{workload}"},
        ),
        png=f"{RESULTS}/{{study}}/figures/workload-{{workload}}.png",
        csv=f"{RESULTS}/{{study}}/figures/workload-{{workload}}.csv",
    log:
        f"{RESULTS}/logs/{{study}}/figures/workload-{{workload}}.log",
    wildcard_constraints:
        study=names_of(LocalStudy),
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        caption=plan.caption("workload"),
    message:
        "{wildcards.study}: drawing workload {wildcards.workload}"
    script:
        "../scripts/draw_workload.py"


rule draw_gantt:
    input:
        lambda wildcards: plan.chunk_of_run(
            study_of(wildcards), wildcards.run, CONFIG.chunk_size, RESULTS
        ),
    output:
        svg=report(
            f"{RESULTS}/{{study}}/figures/gantt-{{run}}.svg",
            caption="../../reports/caption.rst",
            category="{study}",
            subcategory="Schedules",
            labels=lambda wildcards: plan.run_labels(
                study_of(wildcards), wildcards.run
            ),
        ),
        png=f"{RESULTS}/{{study}}/figures/gantt-{{run}}.png",
        csv=f"{RESULTS}/{{study}}/figures/gantt-{{run}}.csv",
    log:
        f"{RESULTS}/logs/{{study}}/figures/gantt-{{run}}.log",
    wildcard_constraints:
        study=names_of(LocalStudy),
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        caption=plan.caption("gantt"),
    message:
        "{wildcards.study}: drawing schedule {wildcards.run}"
    script:
        "../scripts/draw_gantt.py"
