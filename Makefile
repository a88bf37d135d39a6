# Needs python3 (3.11 or newer, with venv) and make; everything else is set up here, once.
PYTHON ?= python3
BIN    := .venv/bin
PIP    := -m pip --disable-pip-version-check -qq
READY  := .venv/.ready
# Lock files hold every package for every platform and Python; PyTorch alone is left out, as its wheels differ.
LOCKED := $(PIP) install --no-deps --require-hashes
COMPILE = .venv-lock/bin/uv -q pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate
TORCH  := torch==2.13.0

.PHONY: demo test test-all test-pythons test-seeds test-sb3 fuzz fuzz-slice mutants check docs bench lock clean
.DEFAULT_GOAL := demo

demo: $(READY)  ## zero-shot transfer in four-rooms, then of the ant: tables here, pictures and a clip on disk
	@$(BIN)/ggpi run four-rooms-transfer --preset cpu --out results/four-rooms-transfer
	@if $(BIN)/python -c 'import mujoco' 2>/dev/null; then \
		$(BIN)/ggpi run ant-visualise --preset cpu --out results/ant; \
	else echo "the ant was left out: it needs MuJoCo (.venv/bin/pip install '.[ant]')"; fi

PYTEST = $(BIN)/pytest -q -n 2 --dist loadfile
# Quick tests compile longer than they compute, so LLVM does not optimise; slow ones run as users do.
QUICK  = XLA_FLAGS="--xla_backend_optimization_level=0 $$XLA_FLAGS" $(PYTEST)

test: $(READY)  ## the quick tests: ten minutes and 4 GB on two cores
	@$(QUICK) $(ARGS)

test-all: $(READY)  ## the slow tests too
	@$(QUICK) $(ARGS); quick=$$?; $(PYTEST) -m slow $(ARGS) && test $$quick = 0

test-pythons: $(READY)  ## what compiles, on the other Pythons of the metadata and with the newest JAX
	@$(BIN)/python tests/pythons.py

ROUNDING ?= --xla_cpu_max_isa=SSE4_2 --xla_cpu_multi_thread_eigen=false --xla_backend_optimization_level=0

test-seeds: $(READY)  ## all tests three times, each with other random numbers and other rounding or threads; hours
	@failed=; offset=0; for flag in $(ROUNDING); do offset=$$((offset + 1)); \
		GGPI_TEST_SEED_OFFSET=$$offset XLA_FLAGS=$$flag $(PYTEST) -m "" $(ARGS) || failed="$$failed $$offset:$$flag"; \
	done; test -z "$$failed" || { echo "failed with:$$failed"; exit 1; }

test-sb3: .venv/.sb3  ## policies of Stable-Baselines3 against the real thing, which brings PyTorch
	@$(BIN)/pytest -q -n 2 tests/unit/policies/sb3/test_live.py $(ARGS)

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
	@$(BIN)/python $(LOCKED) -r requirements.lock
	@$(BIN)/python $(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

.venv/.bench: $(READY) requirements-bench.lock
	@$(BIN)/python $(LOCKED) -r requirements-bench.lock
	@$(BIN)/python $(PIP) install --no-deps $(TORCH)
	@touch $@

.venv/.docs: $(READY) requirements-docs.lock
	@$(BIN)/python $(LOCKED) -r requirements-docs.lock
	@touch $@

.venv/.sb3: $(READY) requirements-sb3.lock
	@$(BIN)/python $(LOCKED) -r requirements-sb3.lock
	@$(BIN)/python $(PIP) install --no-deps $(TORCH)
	@touch $@

lock:  ## remake the lock files from pyproject.toml; ARGS=--upgrade takes the newest versions
	@rm -rf .venv-lock && $(PYTHON) -m venv .venv-lock && .venv-lock/bin/python $(PIP) install uv
	@$(COMPILE) $(ARGS) --extra ant --extra cluster --extra data --extra dev --extra maze --extra ogbench --extra studio -o requirements.lock pyproject.toml
	@for extra in docs sb3 bench; do \
		.venv-lock/bin/python -c 'import sys, tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
			print(*project["optional-dependencies"][sys.argv[1]], sep="\n")' $$extra \
		| $(COMPILE) $(ARGS) -c requirements.lock --no-emit-package torch -o requirements-$$extra.lock - || exit 1; \
	done
	@rm -rf .venv-lock

clean:
	@rm -rf .venv .venv-lock .venv-pythons .pytest_cache .ruff_cache .import_linter_cache .hypothesis .cache build dist site
	@rm -rf docs/reference docs/play
