# Logs of the Parallel Workloads Archive, verified by checksum.


rule fetch_log:
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
