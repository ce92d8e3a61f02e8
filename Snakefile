# The workflow is workflow/Snakefile; this file makes `snakemake` find it, and profiles/default, without further words.


include: "workflow/Snakefile"


# an included file does not pass on its default target
workflow.default_target = "all"
