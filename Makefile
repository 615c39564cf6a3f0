# Everything runs in .venv, made from constraints.txt when it is missing or out of date. Needs Python 3.11 or later and make.
PYTHON ?= python3
VENV := .venv
STAMP := $(VENV)/.stamp
BIN := $(VENV)/bin
WORKERS ?= 2
export OMP_NUM_THREADS ?= 1

.PHONY: setup reproduce test test-slow lint format bench clean

setup: $(STAMP)

$(STAMP): constraints.txt pyproject.toml
	@echo "setting up $(VENV) (once; a few minutes)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --constraint constraints.txt hatchling editables
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --constraint constraints.txt --no-build-isolation --editable '.[dev]'
	@touch $@

reproduce: $(STAMP)
	@$(BIN)/separatrix reproduce --out report $(ARGS)

test: $(STAMP)
	@$(BIN)/python -m pytest -n $(WORKERS) $(ARGS)

test-slow: $(STAMP)
	@$(BIN)/python -m pytest -n $(WORKERS) -m slow $(ARGS)

lint: $(STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright

format: $(STAMP)
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(STAMP)
	@for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

clean:
	rm -rf $(VENV) report
