# make reproduce    run the whole notebook graph (PROFILE=tiny|smoke|study|..., SET="grpo.steps=10")
# make test         package tests, the smoke graph, and the committed notebooks through nbval
# make lab          JupyterLab on the notebooks
# make policy       train the base policy anew
# make figures      the tables and figures of PROFILE=study (or study-g1), copied to figures/
# make notebooks    execute the notebooks with the smoke profile and keep their outputs
# Each of them first makes .venv when it is missing or when its requirements changed.

PROFILE ?= tiny
CORES ?= 2
SET ?=
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTHON ?= $(shell command -v python3.11 || command -v python3 || echo python3)
REPRODUCE = $(BIN)/workbench reproduce --cores $(CORES) $(foreach s,$(SET),--set '$(s)')

export OMP_NUM_THREADS := 1
export MKL_NUM_THREADS := 1
export TOKENIZERS_PARALLELISM := false
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help install reproduce report test test-package test-graph nbval lab policy figures \
        notebooks lint clean

help:
	@sed -n 's/^# \{0,1\}//p;/^$$/q' Makefile

install: $(STAMP)

# torch first: without its pin pip may choose a newer build that brings several GB of CUDA.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Python 3.11 or newer is needed; '$(PYTHON)' is not. Say which: make PYTHON=/path/to/python3.11 ..." >&2; \
	  exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

reproduce: $(STAMP)
	$(REPRODUCE) --profile $(PROFILE)

report: $(STAMP)
	$(BIN)/workbench report --profile $(PROFILE)

# Two single-threaded streams side by side: two cores, no thread of one slowing the other.
test: $(STAMP)
	$(MAKE) --jobs=2 --output-sync=line test-package test-graph

test-package: $(STAMP)
	$(BIN)/python -m pytest tests

test-graph: $(STAMP)
	$(BIN)/workbench reproduce --profile smoke --cores 1
	$(MAKE) nbval

nbval: $(STAMP)
	$(BIN)/workbench check-notebooks

lab: $(STAMP)
	$(BIN)/jupyter lab --notebook-dir=.

policy: $(STAMP)
	$(REPRODUCE) --profile $(PROFILE) --stage policy
	$(BIN)/workbench publish policy --profile $(PROFILE)

figures: PROFILE = study
figures: $(STAMP)
	$(REPRODUCE) --profile $(PROFILE)
	$(BIN)/workbench publish report --profile $(PROFILE)

notebooks: $(STAMP)
	$(BIN)/workbench reproduce --profile smoke --cores $(CORES)
	$(BIN)/workbench notebooks

lint: $(STAMP)
	$(BIN)/ruff check src tests

clean:
	rm -rf build runs .snakemake
