# Self-scheduling: every log on its own centre, with predictions of run times from what finishes there; all logs
# fused to one stream; and runs of this stream on the single resources, simulated, verified and measured.


rule simulate_original:
    input:
        f"{RESULTS}/{{study}}/workloads/{{centre}}.nc",
    output:
        dataset=f"{RESULTS}/{{study}}/originals/{{factor}}/{{centre}}.nc",
        sidecar=f"{RESULTS}/{{study}}/originals/{{factor}}/{{centre}}.made.json",
    log:
        f"{RESULTS}/logs/{{study}}/originals/{{factor}}/{{centre}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/{{study}}/originals/{{factor}}/{{centre}}.tsv"
    wildcard_constraints:
        study=names_of(SelfSchedulingStudy),
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=1000,
        runtime=15,
    params:
        study=original_values,
        machines=lambda wildcards: study_of(wildcards).machines(wildcards.centre),
    message:
        "{wildcards.study}: simulating {wildcards.centre} on its own, factor {wildcards.factor}"
    script:
        "../scripts/simulate_original.py"


rule fuse_stream:
    input:
        workloads=lambda wildcards: centre_files(wildcards, "workloads"),
        originals=lambda wildcards: centre_files(
            wildcards, f"originals/{wildcards.factor}"
        ),
    output:
        dataset=f"{RESULTS}/{{study}}/streams/{{factor}}.nc",
        sidecar=f"{RESULTS}/{{study}}/streams/{{factor}}.made.json",
    log:
        f"{RESULTS}/logs/{{study}}/streams/{{factor}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/{{study}}/streams/{{factor}}.tsv"
    wildcard_constraints:
        study=names_of(SelfSchedulingStudy),
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=1500,
        runtime=10,
    params:
        study=fused_values,
        machines=lambda wildcards: study_of(wildcards).machines(),
    message:
        "{wildcards.study}: fusing all logs, factor {wildcards.factor}"
    script:
        "../scripts/fuse_stream.py"


rule simulate_self_scheduling:
    input:
        stream=f"{RESULTS}/{{study}}/streams/{{factor}}.nc",
        workloads=learning_workloads,
    output:
        dataset=f"{RESULTS}/{{study}}/measures/{{factor}}/{{chunk}}.nc",
        sidecar=f"{RESULTS}/{{study}}/measures/{{factor}}/{{chunk}}.made.json",
    log:
        f"{RESULTS}/logs/{{study}}/measures/{{factor}}/{{chunk}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/{{study}}/measures/{{factor}}/{{chunk}}.tsv"
    wildcard_constraints:
        study=names_of(SelfSchedulingStudy),
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=2500,
        runtime=60,
    params:
        study=self_scheduling_values,
        machines=lambda wildcards: study_of(wildcards).machines(),
        runs=lambda wildcards: [run.values() for run in self_scheduling_runs(wildcards)],
        seed=CONFIG.seed,
    message:
        "{wildcards.study}: simulating factor {wildcards.factor}, chunk {wildcards.chunk}"
    script:
        "../scripts/simulate_self_scheduling.py"


rule aggregate_self_scheduling_study:
    input:
        measures=lambda wildcards: plan.self_scheduling_files(
            study_of(wildcards), CONFIG.chunk_size, RESULTS
        ),
        streams=lambda wildcards: plan.stream_files(study_of(wildcards), RESULTS),
        workloads=lambda wildcards: centre_files(wildcards, "workloads"),
    output:
        dataset=f"{RESULTS}/{{study}}/study.nc",
        sidecar=f"{RESULTS}/{{study}}/study.made.json",
        runs=f"{RESULTS}/{{study}}/runs.csv",
        means=f"{RESULTS}/{{study}}/means.csv",
        table_two=report(
            f"{RESULTS}/{{study}}/table_two.csv",
            caption="../../reports/caption.rst",
            category="{study}",
            subcategory="Numbers",
            labels={"content": "original scenario, here and in the paper"},
        ),
    log:
        f"{RESULTS}/logs/{{study}}/study.log",
    wildcard_constraints:
        study=names_of(SelfSchedulingStudy),
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=2000,
        runtime=15,
    params:
        study=study_values,
        platform=lambda wildcards: study_of(wildcards).checksum(),
        seed=CONFIG.seed,
        chunk_size=CONFIG.chunk_size,
        caption=plan.caption("table_two"),
    message:
        "{wildcards.study}: putting all runs together"
    script:
        "../scripts/aggregate_self_scheduling_study.py"


rule evaluate_prediction:
    input:
        workload=f"{RESULTS}/{{study}}/workloads/{{centre}}.nc",
        original=original_of,
    output:
        dataset=f"{RESULTS}/{{study}}/predictions/{{centre}}.nc",
        sidecar=f"{RESULTS}/{{study}}/predictions/{{centre}}.made.json",
    log:
        f"{RESULTS}/logs/{{study}}/predictions/{{centre}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/{{study}}/predictions/{{centre}}.tsv"
    wildcard_constraints:
        study=names_of(SelfSchedulingStudy),
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=1000,
        runtime=15,
    params:
        study=original_values,
    message:
        "{wildcards.study}: comparing predictions of {wildcards.centre}"
    script:
        "../scripts/evaluate_prediction.py"


rule stack_predictions:
    input:
        lambda wildcards: centre_files(wildcards, "predictions"),
    output:
        dataset=f"{RESULTS}/{{study}}/prediction.nc",
        sidecar=f"{RESULTS}/{{study}}/prediction.made.json",
    log:
        f"{RESULTS}/logs/{{study}}/prediction.log",
    wildcard_constraints:
        study=names_of(SelfSchedulingStudy),
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    message:
        "{wildcards.study}: putting the comparisons of predictions together"
    script:
        "../scripts/stack_predictions.py"
