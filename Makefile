# `make demo` and `make test` set up .venv by themselves; they need Python 3.11 to 3.13 with pip, and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-long check bench bench-accounting bench-accuracy bench-noise clean

demo: $(VENV)/demo.stamp
	$(BIN)/parco demo

test: $(VENV)/dev.stamp
	$(BIN)/pytest -n auto -m "not long" --durations 30

test-long: $(VENV)/dev.stamp
	$(BIN)/pytest -n auto

check: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/dev.stamp
	$(BIN)/python bench/release.py
	$(BIN)/python bench/ledger.py --write

bench-accounting: $(VENV)/dev.stamp
	$(BIN)/python bench/accounting.py --write

bench-accuracy: $(VENV)/dev.stamp
	$(BIN)/python bench/accuracy_first.py --demo --write

bench-noise: $(VENV)/dev.stamp
	$(BIN)/python bench/noise.py --write

clean:
	rm -rf $(VENV)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# A stamp says which extras are installed; it is made anew when the dependencies change.
$(VENV)/demo.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[demo]"
	touch $@

$(VENV)/dev.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[demo,examples,dev]"
	touch $@
