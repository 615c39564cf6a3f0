# Every target brings .venv to what it needs first (tools/environment.py). Needs Python 3.11 or later, and make.
PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= 2
export OMP_NUM_THREADS ?= 1
unexport PYTHONDONTWRITEBYTECODE # without compiled modules every process compiles 300 of them, and pytest rewrites every test again: half a minute

.PHONY: reproduce test test-peers test-slow test-long lint format map figures experiments constructions models package site mutants bench clean

define need
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	  || { echo "error: Python 3.11 or later is needed, and $(PYTHON) is: $$("$(PYTHON)" --version 2>&1 || true). Name another: make $@ PYTHON=python3.11" >&2; exit 1; }
	@"$(PYTHON)" tools/environment.py $(1)
endef

reproduce:
	$(call need,run)
	@$(BIN)/python -m separatrix reproduce --out report $(ARGS)

test:
	$(call need,test)
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --few 1 $(ARGS)

test-peers:
	$(call need,peers)
	@$(BIN)/python -m pytest -n $(WORKERS) tests/peers $(ARGS)

test-slow:
	$(call need,test)
	@$(BIN)/python -m pytest -n $(WORKERS) -m slow $(ARGS)

test-long:
	$(call need,test)
	@$(BIN)/python -m pytest -n $(WORKERS) -m long $(ARGS)

lint:
	$(call need,lint)
	@$(BIN)/python -m ruff check .
	@$(BIN)/python -m ruff format --check .
	@$(BIN)/python -m pyright

format:
	$(call need,lint)
	@$(BIN)/python -m ruff check --fix .
	@$(BIN)/python -m ruff format .

map:
	@"$(PYTHON)" tools/floors.py

figures:
	$(call need,run)
	@$(BIN)/python tools/figures.py $(ARGS)

experiments:
	$(call need,run)
	@$(BIN)/python tools/experiments.py $(ARGS)

constructions:
	$(call need,run)
	@$(BIN)/python tools/constructions.py $(ARGS)

models:
	$(call need,run)
	@$(BIN)/python tools/models.py $(ARGS)

package:
	$(call need,run)
	@$(BIN)/python tools/package.py

site:
	$(call need,docs)
	@$(BIN)/python tools/explorer.py $(ARGS)
	@$(BIN)/python tools/website.py $(if $(EVIDENCE),--evidence $(EVIDENCE))

mutants:
	$(call need,lint)
	@$(BIN)/python tests/mutants.py --jobs $(WORKERS) $(ARGS)

bench:
	$(call need,test)
	@for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

clean:
	rm -rf .venv report
