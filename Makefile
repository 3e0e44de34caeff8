# Everything a newcomer types. Each target does its own set-up; none asks anything.

# The newest Python that is here; name another with PYTHON=...
PYTHON ?= $(firstword $(foreach v,3.13 3.12 3.11,$(shell command -v python$(v))) $(shell command -v python3) python3)
PORT ?= 8000
HOST ?= 127.0.0.1
PYTEST ?=

BIN := .venv/bin

.PHONY: help demo test check format install install-dev clean

help:
	@echo "make demo     run Kiln here with two real models (PORT=8000)"
	@echo "make test     run the tests (PYTEST='-k name' for some)"
	@echo "make check    ruff, mypy --strict, import-linter"
	@echo "make format   format the code"
	@echo "make clean    remove what the demo and the tests made, the demo's data included"

demo: install
	@exec $(BIN)/python manage.py demo --host $(HOST) --port $(PORT)

test: install-dev
	@$(BIN)/python -m pytest -n 2 $(PYTEST)

check: install-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: install-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

install:
	@$(PYTHON) deploy/install.py

install-dev:
	@$(PYTHON) deploy/install.py --dev

clean:
	@if [ -x $(BIN)/python ]; then $(BIN)/python -m codegen_app.postgres remove; fi
	rm -rf var .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
