# What people look at: figures (SVG for the report, PNG for slides, CSV with the numbers drawn, TXT with what they show)
# and tables of a study; claims of the papers, set against what the studies measured; one self-contained page.
# `snakemake --report` carries the same figures and tables, but for the measures, which may have 500,000 rows.


rule draw:
    input:
        lambda wildcards: WORK.shown(wildcards.study),
        dataset=f"{RESULTS}/{{study}}/study.nc",
    output:
        record=f"{RESULTS}/{{study}}/shown.sha256",
        runs=f"{RESULTS}/{{study}}/runs.csv",
        figures=report(
            directory(f"{RESULTS}/{{study}}/figures"),
            patterns=["{name}.svg"],
            caption="../../reports/caption.rst",
            category="{study}",
            subcategory=part_shown,
            labels=labels_shown,
        ),
        tables=report(
            directory(f"{RESULTS}/{{study}}/tables"),
            patterns=["{name,(?!measures[.]).+}.csv"],
            caption="../../reports/caption.rst",
            category="{study}",
            subcategory="Numbers",
            labels={"figure": "table", "of": "{name}"},
        ),
    log:
        f"{RESULTS}/logs/{{study}}/figures.log",
    benchmark:
        f"{RESULTS}/benchmarks/{{study}}/figures.tsv"
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=2500,
        runtime=30,
    params:
        figures=drawn,
        tables=tables,
        runs=lambda wildcards: WORK.experiments[wildcards.study].runs(),
        captions=captions,
    message:
        "{wildcards.study}: drawing figures and writing tables"
    script:
        "../scripts/draw_study.py"


rule claims:
    input:
        [f"{RESULTS}/{study}/study.nc" for study in STUDIES],
    output:
        record=f"{RESULTS}/claims.sha256",
        table=report(
            f"{RESULTS}/claims.csv",
            caption="../../reports/caption.rst",
            category="Overview",
            labels={"content": "claims of the papers"},
        ),
    log:
        f"{RESULTS}/logs/claims.log",
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        studies=[study.values() for study in STUDIES.values()],
        captions=Captions({"": "claims"}),
    message:
        "setting the claims of the papers against the results"
    script:
        "../scripts/evaluate_claims.py"


rule report:
    input:
        [
            f"{RESULTS}/{study}/{part}"
            for study in STUDIES
            for part in ("figures", "tables", "shown.sha256")
        ],
        [
            task.path(RESULTS)
            for each in WORK.experiments.values()
            for task in each.datasets
        ],
        f"{RESULTS}/claims.sha256",
        claims=f"{RESULTS}/claims.csv",
    output:
        record=f"{RESULTS}/report.sha256",
        page=report(
            f"{RESULTS}/report.html",
            caption="../../reports/caption.rst",
            category="Overview",
            labels={"content": "report of all studies"},
        ),
    log:
        f"{RESULTS}/logs/report.log",
    conda:
        "../envs/gridsched.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        studies=[study.values() for study in STUDIES.values()],
        captions=Captions({"": "report"}),
    message:
        "building the report"
    script:
        "../scripts/build_report.py"
