# Multiclusters: rates of arrivals at workload levels, which studies share; jobs of every point, and every scheme
# on them, simulated, verified and measured; the worked example of MUSCLE.


CALIBRATIONS = {
    point.calibration_key: point.calibration()
    for study in STUDIES.values()
    if isinstance(study, MulticlusterStudy)
    for point in study.points
    if point.calibration_key
}
"""Workload levels of all studies by their short names."""


wildcard_constraints:
    calibration=r"[0-9a-f]{12}",
    point=r"[A-Za-z0-9][A-Za-z0-9._-]*",


rule calibrate_level:
    output:
        dataset=f"{RESULTS}/rates/{{calibration}}.nc",
        sidecar=f"{RESULTS}/rates/{{calibration}}.made.json",
    log:
        f"{RESULTS}/logs/rates/{{calibration}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/rates/{{calibration}}.tsv"
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=1000,
        runtime=60,
    params:
        calibration=lambda wildcards: CALIBRATIONS[wildcards.calibration],
        seed=CONFIG.seed,
    message:
        "looking for the rate of workload level {params.calibration[level]:g} ({wildcards.calibration})"
    script:
        "../scripts/calibrate_level.py"


rule prepare_point:
    input:
        rate=lambda wildcards: plan.rate_file(point_of(wildcards), RESULTS),
        log=lambda wildcards: plan.point_log(point_of(wildcards), RESULTS),
    output:
        dataset=f"{RESULTS}/{{study}}/jobs/{{point}}.nc",
        sidecar=f"{RESULTS}/{{study}}/jobs/{{point}}.made.json",
    log:
        f"{RESULTS}/logs/{{study}}/jobs/{{point}}.log",
    wildcard_constraints:
        study=names_of(MulticlusterStudy),
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=1000,
        runtime=15,
    params:
        own=checksums_of(lambda wildcards: plan.point_log(point_of(wildcards), RESULTS)),
        point=lambda wildcards: point_of(wildcards).model_dump(mode="json"),
        replicates=lambda wildcards: study_of(wildcards).replicates,
        seed=CONFIG.seed,
    message:
        "{wildcards.study}: drawing the jobs of {wildcards.point}"
    script:
        "../scripts/prepare_point.py"


rule simulate_point:
    input:
        jobs=f"{RESULTS}/{{study}}/jobs/{{point}}.nc",
    output:
        dataset=f"{RESULTS}/{{study}}/measures/{{point}}/{{chunk}}.nc",
        sidecar=f"{RESULTS}/{{study}}/measures/{{point}}/{{chunk}}.made.json",
    log:
        f"{RESULTS}/logs/{{study}}/measures/{{point}}/{{chunk}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/{{study}}/measures/{{point}}/{{chunk}}.tsv"
    wildcard_constraints:
        study=names_of(MulticlusterStudy),
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=1000,
        runtime=60,
    params:
        study=simulated_point,
        replicates=lambda wildcards: multicluster_chunks(wildcards)[wildcards.point][
            int(wildcards.chunk)
        ],
    message:
        "{wildcards.study}: simulating {wildcards.point}, chunk {wildcards.chunk}"
    script:
        "../scripts/simulate_point.py"


rule write_example:
    output:
        dataset=f"{RESULTS}/{{study}}/example.nc",
        sidecar=f"{RESULTS}/{{study}}/example.made.json",
    log:
        f"{RESULTS}/logs/{{study}}/example.log",
    wildcard_constraints:
        study=names_of(MulticlusterStudy),
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    message:
        "{wildcards.study}: scheduling the worked example"
    script:
        "../scripts/write_example.py"


rule aggregate_multicluster_study:
    input:
        measures=lambda wildcards: plan.point_measures(
            study_of(wildcards), CONFIG.chunk_size, RESULTS
        ),
        jobs=lambda wildcards: plan.point_jobs(study_of(wildcards), RESULTS),
        example=lambda wildcards: plan.example_file(study_of(wildcards), RESULTS),
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
        study=names_of(MulticlusterStudy),
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        study=study_values,
        chunks=lambda wildcards: {
            point: len(chunks)
            for point, chunks in multicluster_chunks(wildcards).items()
        },
        chunk_size=CONFIG.chunk_size,
        caption=plan.caption("multicluster_means"),
    message:
        "{wildcards.study}: putting all points together"
    script:
        "../scripts/aggregate_multicluster_study.py"


# Names of these figures fit draw_study too
ruleorder: draw_example > draw_study


rule draw_example:
    input:
        f"{RESULTS}/{{study}}/example.nc",
    output:
        svg=report(
            f"{RESULTS}/{{study}}/figures/{{figure}}.svg",
            caption="../../reports/caption.rst",
            category="{study}",
            subcategory="Worked example",
            labels={"figure": "{figure}"},
        ),
        png=f"{RESULTS}/{{study}}/figures/{{figure}}.png",
        csv=f"{RESULTS}/{{study}}/figures/{{figure}}.csv",
    log:
        f"{RESULTS}/logs/{{study}}/figures/{{figure}}.log",
    wildcard_constraints:
        study=names_of(MulticlusterStudy),
        figure="|".join(plan.EXAMPLE_FIGURES),
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
        "../scripts/draw_example.py"
