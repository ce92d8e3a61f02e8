# Logs of the Parallel Workloads Archive, verified by checksum; then the tasks of all studies, stage by stage. Results
# of tasks are stored by key and are no outputs, since Snakemake deletes outputs of a job that begins: a batch that was
# interrupted goes on where it was. Its output says that everything is there.


rule fetch:
    output:
        f"{RESULTS}/archive/{{file}}.swf.gz",
    log:
        f"{RESULTS}/logs/archive/{{file}}.log",
    retries: 1
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=500,
        runtime=30,
    message:
        "fetching {wildcards.file}"
    script:
        "../scripts/fetch_log.py"


rule prepare:
    input:
        needed("prepare"),
    output:
        stamp=f"{RESULTS}/batches/{{study}}/prepare/{{batch}}.json",
    log:
        f"{RESULTS}/logs/{{study}}/prepare/{{batch}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/{{study}}/prepare/{{batch}}.tsv"
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=memory("prepare"),
        runtime=minutes("prepare"),
    params:
        tasks=calls("prepare"),
        title=title("prepare"),
    message:
        "{wildcards.study}: preparing {params.title}"
    script:
        "../scripts/run_tasks.py"


use rule prepare as predict with:
    input:
        needed("predict"),
    output:
        stamp=f"{RESULTS}/batches/{{study}}/predict/{{batch}}.json",
    log:
        f"{RESULTS}/logs/{{study}}/predict/{{batch}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/{{study}}/predict/{{batch}}.tsv"
    resources:
        mem_mb=memory("predict"),
        runtime=minutes("predict"),
    params:
        tasks=calls("predict"),
        title=title("predict"),
    message:
        "{wildcards.study}: predicting run times, {params.title}"


use rule prepare as simulate with:
    input:
        needed("simulate"),
    output:
        stamp=f"{RESULTS}/batches/{{study}}/simulate/{{batch}}.json",
    log:
        f"{RESULTS}/logs/{{study}}/simulate/{{batch}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/{{study}}/simulate/{{batch}}.tsv"
    resources:
        mem_mb=memory("simulate"),
        runtime=minutes("simulate"),
    params:
        tasks=calls("simulate"),
        title=title("simulate"),
    message:
        "{wildcards.study}: simulating {params.title}"


rule collect:
    input:
        lambda wildcards: WORK.needed(WORK.dataset(wildcards)),
    output:
        dataset=f"{RESULTS}/{{study}}/{{dataset}}.nc",
        sidecar=f"{RESULTS}/{{study}}/{{dataset}}.made.json",
    log:
        f"{RESULTS}/logs/{{study}}/{{dataset}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/{{study}}/{{dataset}}.tsv"
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=lambda wildcards: WORK.dataset(wildcards).memory,
        runtime=30,
    params:
        tasks=lambda wildcards: [WORK.dataset(wildcards).call(RESULTS)],
        key=lambda wildcards: WORK.dataset(wildcards).key,
    message:
        "{wildcards.study}: putting all of {wildcards.dataset} together"
    script:
        "../scripts/run_tasks.py"
