# Two commands do everything: `make demo` and `make test`. Nothing is written outside this folder and the user's cache.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check install --quiet --constraint constraints.txt

.PHONY: demo test test-slow bench results results-paper docs format clean

ORDER := "min cost > max reward"

demo: $(VENV)/.base  ## install, solve GridNav exactly, train LPPO and LDQN on CartSafe, and say where to look
	$(BIN)/lexrl solve grid-nav --map-seed 22 --order $(ORDER) --out demo/exact
	$(BIN)/lexrl train lppo cart-safe --total-timesteps 2e6 --out demo/lppo
	$(BIN)/lexrl video demo/lppo
	$(BIN)/lexrl train ldqn cart-safe --total-timesteps 3e5 --out demo/ldqn
	$(BIN)/lexrl video demo/ldqn
	$(BIN)/lexrl report demo

# A test file stays on one worker, because its tests share compiled programs; tests/conftest.py puts the long files first,
# and says what the two parts are. Compiled programs are kept in the user's cache, so that a fresh clone finds those of
# the last one.
PYTEST := $(BIN)/python -m pytest -m "not slow" --numprocesses auto --dist loadfile --no-loadscope-reorder

test: $(VENV)/.test  ## everything the project checks
	$(BIN)/ruff format --check src tests benchmarks examples docs
	$(BIN)/ruff check src tests benchmarks examples docs
	$(BIN)/basedpyright
	$(BIN)/lint-imports
	$(PYTEST) --quick-compile
	$(PYTEST) --as-shipped

test-slow: $(VENV)/.test  ## the long versions of the theory tests
	$(BIN)/python -m pytest -m slow

bench: $(VENV)/.bench  ## speed, as ratios within one run
	$(BIN)/python benchmarks/tabular.py
	$(BIN)/python benchmarks/exact.py
	$(BIN)/python benchmarks/deep.py
	$(BIN)/python benchmarks/host.py
	$(BIN)/python benchmarks/intersection.py

RESULTS := experiments/laptop
PAPER := experiments/paper

results: $(VENV)/.intersection  ## the paper's experiments at laptop size, as docs/results shows them: half an hour on two cores
	$(BIN)/lexrl experiment all --size laptop --out $(RESULTS)
	mkdir -p docs/results
	$(BIN)/lexrl report $(RESULTS) --out docs/results/report.html
	for each in $(RESULTS)/*/experiment.json; do sh docs/results/copy.sh "$$(dirname $$each)" docs/results; done

results-paper: $(VENV)/.intersection  ## what docs/results/paper shows: tabular scaling, and CartSafe with all the steps of our settings
	$(BIN)/lexrl experiment scaling --size paper --only "*q-learning*" "*sarsa*" "*double-q*" --out $(PAPER)
	$(BIN)/lexrl experiment safety --size paper --only "cart-safe/tuned/*" --out $(PAPER)
	$(BIN)/lexrl report $(PAPER) --out $(PAPER)/report.html
	for each in scaling safety; do sh docs/results/copy.sh "$(PAPER)/$$each" docs/results/paper; done

docs: $(VENV)/.docs  ## the documentation as HTML, in docs/_build
	$(BIN)/sphinx-build --fail-on-warning --quiet docs docs/_build

format: $(VENV)/.test
	$(BIN)/ruff format src tests benchmarks examples docs
	$(BIN)/ruff check --fix src tests benchmarks examples docs

clean:
	rm -rf $(VENV) benchmarks/.venv-peers docs/_build .pytest_cache .ruff_cache .hypothesis

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "lexrl needs Python 3.11 or newer; $(PYTHON) is older: say which with 'make PYTHON=python3.12 ...'"; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.base: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable .
	@touch $@

$(VENV)/.test $(VENV)/.bench $(VENV)/.docs $(VENV)/.intersection: $(VENV)/.%: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[$*]'
	@touch $@
