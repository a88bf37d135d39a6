# Needs python3 (3.11 or newer, with venv) and make; everything else is set up here, once.
PYTHON ?= python3
BIN    := .venv/bin
PIP    := -m pip --disable-pip-version-check -qq
READY  := .venv/.ready

.PHONY: demo test check bench lock clean
.DEFAULT_GOAL := demo

demo: $(READY)  ## zero-shot transfer in four-rooms: a table here, the picture on disk
	@$(BIN)/ggpi run four-rooms-transfer --preset cpu --out results/four-rooms-transfer

test: $(READY)
	@$(BIN)/pytest -q -n 2 $(ARGS)

check: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet . || { echo "run: $(BIN)/ruff format ."; exit 1; }
	@$(BIN)/basedpyright --pythonpath $(BIN)/python
	@$(BIN)/lint-imports --no-logo

bench: .venv/.bench
	@for script in benchmarks/*.py; do echo "$$script"; $(BIN)/python $$script || exit 1; done

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("ggpi needs Python 3.11 or newer; set PYTHON=…")'
	@echo "Setting up .venv (once, about a minute) …"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python $(PIP) install -r requirements.lock
	@$(BIN)/python $(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

.venv/.bench: $(READY) requirements-bench.lock
	@$(BIN)/python $(PIP) install -r requirements-bench.lock
	@touch $@

lock:  ## remake both lock files from pyproject.toml
	@rm -rf .venv-lock && $(PYTHON) -m venv .venv-lock
	@.venv-lock/bin/python $(PIP) install ".[ant,data,dev,maze]"
	@.venv-lock/bin/python -m pip --disable-pip-version-check freeze --exclude ggpi > requirements.lock
	@.venv-lock/bin/python $(PIP) install -c requirements.lock ".[bench]"
	@.venv-lock/bin/python -m pip --disable-pip-version-check freeze --exclude ggpi \
		| grep -vxFf requirements.lock > requirements-bench.lock
	@rm -rf .venv-lock

clean:
	@rm -rf .venv .venv-lock .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist
