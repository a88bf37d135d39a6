# Needs python3 (3.11 or newer, with venv) and make; everything else is set up here, once.
PYTHON ?= python3
BIN    := .venv/bin
PIP    := -m pip --disable-pip-version-check -qq
READY  := .venv/.ready

.PHONY: demo test test-sb3 fuzz fuzz-slice mutants check docs bench lock clean
.DEFAULT_GOAL := demo

demo: $(READY)  ## zero-shot transfer in four-rooms, then of the ant: tables here, pictures and a clip on disk
	@$(BIN)/ggpi run four-rooms-transfer --preset cpu --out results/four-rooms-transfer
	@if $(BIN)/python -c 'import mujoco' 2>/dev/null; then \
		$(BIN)/ggpi run ant-visualise --preset cpu --out results/ant; \
	else echo "the ant was left out: it needs MuJoCo (.venv/bin/pip install '.[ant]')"; fi

test: $(READY)
	@$(BIN)/pytest -q -n 2 --dist loadfile $(ARGS)

test-sb3: .venv/.sb3  ## policies of Stable-Baselines3 against the real thing, which brings PyTorch
	@$(BIN)/pytest -q -n 2 tests/unit/policies/test_sb3_live.py $(ARGS)

CAMPAIGNS = $(filter-out %/campaign.py,$(sort $(wildcard tests/fuzz/*.py)))

fuzz: $(READY)  ## every campaign in full, up to three hours; a part of it with e.g. ARGS="--seconds 60"
	@failed=0; for script in $(CAMPAIGNS); do $(BIN)/python $$script $(ARGS) || failed=1; done; exit $$failed

fuzz-slice: $(READY)  ## two minutes of all campaigns together
	@$(MAKE) --no-print-directory fuzz ARGS="--seconds $$((120 / $(words $(CAMPAIGNS))))"

check: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet . || { echo "run: $(BIN)/ruff format ."; exit 1; }
	@$(BIN)/basedpyright --pythonpath $(BIN)/python
	@$(BIN)/lint-imports --no-logo

docs: .venv/.docs  ## this documentation as pages in site/; a broken link is an error
	@$(BIN)/python docs/generate.py
	@$(BIN)/zensical build --strict --clean

mutants: $(READY)  ## do the tests notice mistakes? hand-listed mutants of tests/mutants/*.toml, on scratch copies
	@$(BIN)/python tests/mutants/run.py -n 2 $(ARGS)

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

.venv/.docs: $(READY) requirements-docs.lock
	@$(BIN)/python $(PIP) install -r requirements-docs.lock
	@touch $@

.venv/.sb3: $(READY) requirements-sb3.lock
	@$(BIN)/python $(PIP) install -r requirements-sb3.lock
	@touch $@

lock:  ## remake all lock files from pyproject.toml
	@rm -rf .venv-lock && $(PYTHON) -m venv .venv-lock
	@.venv-lock/bin/python $(PIP) install ".[ant,data,dev,maze]"
	@.venv-lock/bin/python -m pip --disable-pip-version-check freeze --exclude ggpi > requirements.lock
	@.venv-lock/bin/python $(PIP) install -c requirements.lock ".[docs]"
	@.venv-lock/bin/python -m pip --disable-pip-version-check freeze --exclude ggpi \
		| grep -vxFf requirements.lock > requirements-docs.lock
	@.venv-lock/bin/python $(PIP) uninstall -y -r requirements-docs.lock
	@.venv-lock/bin/python $(PIP) install -c requirements.lock ".[sb3]"
	@.venv-lock/bin/python -m pip --disable-pip-version-check freeze --exclude ggpi \
		| grep -vxFf requirements.lock | sed 's/+cpu$$//' > requirements-sb3.lock
	@.venv-lock/bin/python $(PIP) install -c requirements.lock ".[bench]"
	@.venv-lock/bin/python -m pip --disable-pip-version-check freeze --exclude ggpi \
		| grep -vxFf requirements.lock | grep -v stable_baselines3 | sed 's/+cpu$$//' > requirements-bench.lock
	@rm -rf .venv-lock

clean:
	@rm -rf .venv .venv-lock .pytest_cache .ruff_cache .import_linter_cache .hypothesis .cache build dist site
	@rm -rf docs/reference
