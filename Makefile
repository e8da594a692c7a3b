# One verb, one way. Each target installs what it needs into .venv; nothing else is touched.
.PHONY: run test lint format dev bench clean
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The reference data beside the checkout is used where it is there (see docs/, CONTRIBUTING.md).
BENCH_DATA ?= $(if $(wildcard ../shared/data/full),../shared/data/full,data/sample)

run: $(VENV)/.assets
	$(BIN)/alpha-id index build --full
	@echo
	@echo "The demonstration list (data/sample/demo.txt):"
	@cat data/sample/demo.txt
	@echo
	$(BIN)/alpha-id suggest data/sample/demo.txt --mode a --table
	@echo
	@echo "Mode A answered with the built-in encoder, offline. A hub instead: see \"Modes and privacy\" in README.md"

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --dist loadfile

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

dev: $(VENV)/.assets
	bash -c '. ./alpha-id.env && unset DAGSTER_MODULE_NAME && exec dagster dev -w workspace.yaml'

bench: $(VENV)/.bench
	$(BIN)/python -m bench --data $(BENCH_DATA) $(if $(BENCH_VECTORS),--vectors $(BENCH_VECTORS))

clean:
	rm -rf $(VENV) build *.egg-info

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "alpha-id needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.assets: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[assets]'
	@touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(VENV)/.assets

$(VENV)/.bench: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@touch $@ $(VENV)/.dev $(VENV)/.assets
