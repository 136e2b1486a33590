# The five commands: make run, make test, make check, make bench, make venv. Each does nothing that is done.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
IS_PYTHON_NEW = $(shell { $(PYTHON) -c 'import sys; print("yes" if sys.version_info >= (3, 11) else "")'; } 2>/dev/null)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help venv run test test-slow check docs bench clean

help:
	@echo "make venv       install strop and everything CI needs into $(VENV)"
	@echo "make run        post-train a real small model on this machine; needs venv, fetches the model once"
	@echo "make test       the default tests: no network, about a minute"
	@echo "make test-slow  the tests marked slow"
	@echo "make check      format, lint, types, layers"
	@echo "make docs       write the generated pages of docs/reference anew"
	@echo "make bench      every script in benchmarks/"
	@echo "make clean      remove caches and $(VENV); runs/ and models stay"

venv: $(STAMP)

# torch first: under the constraint it takes the pinned build, before anything else can ask for another.
$(STAMP): pyproject.toml constraints.txt
	$(if $(IS_PYTHON_NEW),,$(error strop needs Python 3.11 or newer, `$(PYTHON)` is $(or $(shell { $(PYTHON) --version; } 2>/dev/null),missing or older); name another: make PYTHON=python3.11 $(MAKECMDGOALS)))
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing strop into $(VENV); a first time takes a few minutes, torch being about 200 MB"
	@$(PIP) install -c constraints.txt torch
	@$(PIP) install -c constraints.txt -e '.[dev]'
	@touch $@

run: $(STAMP)
	$(BIN)/strop model pull smollm2-135m
	$(BIN)/strop train examples/numbers/run.toml

# Two workers with one compute thread each: two teams of threads on two cores would wait for each other. Compiled
# files are written even where the environment says not to: both workers and every command they start read them.
test: $(STAMP)
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal

test-slow: $(STAMP)
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal --timeout 600 -m slow

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

docs: $(STAMP)
	$(BIN)/python -m strop.reference

bench: $(STAMP)
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find strop tests -name __pycache__ -type d -prune -exec rm -rf {} +
