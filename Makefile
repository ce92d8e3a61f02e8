# Two commands do everything on a fresh machine with Python 3.11+ and make:
#   make demo    and    make test
# Each first creates the pinned environment in .venv (requirements.lock: versions and hashes).
# `make docs` adds to it what docs/requirements.lock has besides.

PYTHON ?= python3
CORES  ?= $(shell getconf _NPROCESSORS_ONLN)
KILLS  ?= 20
MINUTES ?= 30
SLURM  ?=
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
SNAKEMAKE := $(BIN)/snakemake --cores $(CORES)
RESOLVE := uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url --no-emit-find-links
SITE   := docs/_build/html

.PHONY: help coverage demo reproduce readings golden test hunt test-slow trust test-faults test-slurm what-if test-browser lint schemas docs bench clean lock dist
.DEFAULT_GOAL := help

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v < (3, 14) else "gridsched needs Python 3.11 to 3.13, found %d.%d: run make PYTHON=python3.12 ..." % v)'
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(STAMP)  ## run the demo studies on synthetic workloads, without network data, and build the report
	$(SNAKEMAKE) --configfile config/demo.yaml
	@$(SNAKEMAKE) --configfile config/demo.yaml --report results/demo/snakemake-report.html 2>/dev/null
	@echo "The report: results/demo/report.html (with provenance: results/demo/snakemake-report.html)"

reproduce: $(STAMP)  ## run the studies on archive traces (downloaded, or from the mirrors in GRIDSCHED_MIRRORS)
	$(SNAKEMAKE) --configfile config/reproduction.yaml
	@$(SNAKEMAKE) --configfile config/reproduction.yaml --report results/reproduction/snakemake-report.html 2>/dev/null
	@echo "The report: results/reproduction/report.html"

readings: $(STAMP)  ## judge the claims of papers under many interpretations of what these leave open
	$(SNAKEMAKE) --configfile config/readings.yaml
	@echo "The report: results/readings/report.html"

golden: $(STAMP)  ## run the demo and reduced studies, and compare variables, figures, tables and findings with tests/golden
	@status=0; for action in run check; do \
		$(BIN)/python -m tests.golden $$action --cores $(CORES) || status=1; done; exit $$status

lint: $(STAMP)  ## ruff, mypy, snakefmt and snakemake --lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --num-workers 2
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/snakemake --lint

test: lint  ## lint, then the whole test suite
	$(BIN)/pytest

hunt: $(STAMP)  ## search with fresh seeds for cases in which random tests fail (MINUTES=30), and store them as examples
	$(BIN)/python -m tests.hunting --minutes $(MINUTES)

test-slow: $(STAMP)  ## tests that take long: kernels interpreted and with bounds checks
	$(BIN)/pytest tests/slow -o python_files='slow_*.py'

coverage: $(STAMP)  ## measure how often intervals hold known truth, and write the table of docs/statistics.md (10 CPU minutes)
	$(BIN)/python -m tests.coverage --write

trust: $(STAMP)  ## measure how often answers of calibrated sites hold known truth, and write the table of docs/calibration-reference.md (20 minutes on two cores)
	$(BIN)/python -m tests.trust --write --cores $(CORES)

test-faults: $(STAMP)  ## kill the workflow at random moments (KILLS=20 of them), fill its disk, damage its files
	$(BIN)/pytest tests/faults -n 0 -o python_files='fault_*.py' --kills $(KILLS)

test-slurm: $(STAMP)  ## install and start Slurm, run the workflow and a schedule through it, remove it again (root on Debian)
	$(BIN)/python -m tests.slurm $(SLURM) $(BIN)/pytest tests/slurm -n 0 -o python_files='slurm_*.py'

what-if: $(STAMP)  ## changes of a configuration by a real controller, each recorded twice, beside what was predicted (root on Debian, 10 minutes)
	$(BIN)/python -m tests.slurm $(SLURM) $(BIN)/python -m tests.slurm.what_if

test-browser: $(STAMP)  ## look at the report page with Chromium, which is installed if need be (root on Debian)
	$(BIN)/pytest tests/browser -n 0 -o python_files='browser_*.py'

schemas: $(STAMP)  ## write the JSON schemas, the pages of keys in config/keys and the picture of the parts anew
	$(BIN)/python -m docs.keys --write

$(VENV)/.docs: docs/requirements.lock $(STAMP)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r docs/requirements.lock
	@touch $@

docs: $(VENV)/.docs  ## build the site, with its notebooks run: docs/_build/html/index.html
	rm -rf docs/_build
	$(BIN)/sphinx-build --builder html --conf-dir docs --doctree-dir docs/_build/doctrees --fail-on-warning \
		--keep-going --quiet . $(SITE)
	$(BIN)/pytest tests/site -n 0 -o python_files='site_*.py'
	@echo "The site: $(SITE)/index.html"

bench: $(STAMP)  ## speed of parser and engine, beside a C++ implementation where a compiler is present
	$(BIN)/pytest tests/benchmarks -n 0 --benchmark-enable -o python_files='bench_*.py'

dist: $(STAMP)  ## build wheel and sdist
	$(BIN)/python -m build --no-isolation

lock: pyproject.toml  ## resolve the dependencies anew (needs uv)
	$(RESOLVE) --extra workflow --extra cluster --extra dev --output-file requirements.lock
	$(RESOLVE) --extra docs --constraint requirements.lock --output-file docs/requirements.lock

clean:  ## remove results and caches, keep the environment
	rm -rf results docs/_build .snakemake .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks dist build
