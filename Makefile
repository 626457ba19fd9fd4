# Set-up and daily commands. Everything comes from PyPI; nothing outside .venv is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: setup test lint bench reproduce clean

setup: $(VENV)/.dev

$(VENV)/.core: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	touch $@

$(VENV)/.plot: $(VENV)/.core
	$(PIP) --editable ".[plot]"
	touch $@

$(VENV)/.dev: $(VENV)/.core
	$(PIP) --editable ".[dev]"
	touch $@

test: $(VENV)/.dev
	$(BIN)/python -m pytest

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Ten times the daily number of random models, drawn anew, everything marked slow, and a model of a million states.
bench: $(VENV)/.dev
	PRUDENT_EXAMPLES=10 $(BIN)/python -m pytest -m "slow or not slow"
	$(BIN)/python benchmarks/large_model.py

# TRAFFIC=FILE takes the paper's traffic data for Autonomous Navigation.
reproduce: $(VENV)/.plot
	$(BIN)/prudent reproduce --out report $(if $(TRAFFIC),--traffic $(TRAFFIC))

clean:
	rm -rf $(VENV) build dist report .pytest_cache .mypy_cache .ruff_cache .hypothesis
