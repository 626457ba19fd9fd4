# Set-up and daily commands. Everything comes from PyPI, into .venv (for the lowest versions, into build/lowest).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# Where bytecode may not be kept, each program that tests start would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup test warm suite test-lowest test-gpu lint bench bench-table bench-gpu fuzz reproduce serve docs linkcheck clean

setup: $(VENV)/.dev

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.%: pyproject.toml | $(BIN)/python
	$(PIP) --editable ".[$*]"
	touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(PIP) --editable ".[dev]"
	-$(PIP) "stormpy>=2"  # not for every machine; without it, what needs Storm is skipped
	touch $@

# What continuous integration runs: the linters while kernels compile, the suite, and then the documentation.
SUITE = $(BIN)/python -m pytest -n 2 --dist worksteal
test: $(VENV)/.dev
	$(MAKE) --jobs 2 lint warm
	$(SUITE)
	$(MAKE) docs

warm: $(VENV)/.dev
	$(BIN)/python tests/warm.py

suite: warm
	$(SUITE)

# The suite and the documentation with the lowest versions that pyproject.toml allows, in an environment of their own.
test-lowest:
	mkdir -p build
	python3.11 tests/lowest.py > build/lowest.txt
	PIP_CONSTRAINT=$(CURDIR)/build/lowest.txt NUMBA_CACHE_DIR=$(CURDIR)/build/numba \
	  $(MAKE) PYTHON=python3.11 VENV=build/lowest suite docs

# The suite for device="gpu" on a machine that has one, with the Python that has CuPy, Numba, SciPy, click, rich,
# safetensors and pytest: nothing is installed.
test-gpu:
	PRUDENT_GPU=1 PYTHONPATH=src $(PYTHON) -m pytest tests/gpu --confcutdir=tests/gpu

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python docs/prose.py

# Other packages to measure against; what cannot be installed here is a row of the table that says so.
$(VENV)/.peers: $(VENV)/.dev
	-for peer in quantecon mdpsolver; do $(PIP) "$$peer"; done
	touch $@

# The table: how fast, against what; QUICK=--quick for a few minutes of it, ONLY="--only paper" for a part.
bench-table: $(VENV)/.peers
	$(BIN)/python benchmarks/run.py $(QUICK) $(ONLY)

# The table; then ten times the daily number of random models, drawn anew, everything marked slow, a model of a million
# states, what slack buys on the paper's domains, what limits on CVaR take, how much a search meets, what building a
# large model takes, what sets of models take on the paper's domains, and whether their promises hold.
bench: bench-table
	PRUDENT_EXAMPLES=10 $(BIN)/python -m pytest -m "slow or not slow"
	$(BIN)/python benchmarks/large_model.py
	$(BIN)/python benchmarks/what_slack_buys.py
	$(BIN)/python benchmarks/what_limits_take.py
	$(BIN)/python benchmarks/what_search_meets.py
	$(BIN)/python benchmarks/what_building_takes.py
	$(BIN)/python benchmarks/against_nature.py
	$(BIN)/python benchmarks/simulated_worlds.py

# What a GPU gains, likewise: a table, also in benchmarks/results-gpu.md; QUICK=--quick leaves out the largest model.
bench-gpu:
	PYTHONPATH=src $(PYTHON) benchmarks/gpu.py $(QUICK)

# Files nobody should trust: RUNS inputs for each format, with atheris, which finds what comes next by coverage.
RUNS ?= 50000
FORMATS ?= json json.gz umb plan checkpoint traffic props study pddl log
fuzz: $(VENV)/.dev
	@$(BIN)/python -c "import atheris" 2>/dev/null || { \
	  echo "make fuzz needs atheris: $(BIN)/python -m pip install --editable '.[fuzz]'"; exit 1; }
	@for format in $(FORMATS); do $(BIN)/python tests/fuzz/fuzz.py $$format --runs $(RUNS) || exit 1; done

# Every page runs its own code; a warning, a broken link inside or a check that fails ends it.  TRAFFIC=FILE for the
# paper's traffic data, as below.
SPHINX = $(if $(TRAFFIC),PRUDENT_TRAFFIC=$(abspath $(TRAFFIC))) $(BIN)/python -m sphinx --fresh-env --fail-on-warning \
  --keep-going --jobs 2 --doctree-dir docs/_build/doctrees
docs: $(VENV)/.dev
	rm -rf docs/api docs/_build
	$(SPHINX) --builder html docs docs/_build/html

# Links to other places: needs the network, so it is asked for.
linkcheck: $(VENV)/.dev
	$(SPHINX) --builder linkcheck docs docs/_build/linkcheck

# TRAFFIC=FILE takes the paper's traffic data for Autonomous Navigation.
reproduce: $(VENV)/.plot
	$(BIN)/prudent reproduce --out report $(if $(TRAFFIC),--traffic $(TRAFFIC))

# The live page, on this machine alone; PORT=8080 for another port.
PORT ?= 8000
serve: $(VENV)/.web
	$(BIN)/prudent serve --port $(PORT)

clean:
	rm -rf $(VENV) build dist report docs/_build docs/api .pytest_cache .mypy_cache .ruff_cache .hypothesis
