# Everything a newcomer types. Each target does its own set-up; none asks anything.

# The first Python that is new enough and has its venv module; name another with PYTHON=...
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$python && break; done)
SETUP = $(or $(PYTHON),python3) deploy/install.py
HAVE_PYTHON = command -v $(or $(PYTHON),python3) >/dev/null \
	|| { echo "kiln: there is no python3: apt-get install python3 python3-venv" >&2; exit 2; }

PORT ?= 8000
HOST ?= 127.0.0.1
PYTEST ?=

BIN := .venv/bin

.PHONY: help demo test check format install install-dev clean

help:
	@echo "make demo     run Kiln here with two real models (PORT=8000)"
	@echo "make test     run the tests (PYTEST='-k name' for some)"
	@echo "make check    ruff, mypy --strict, import-linter, djlint"
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
	$(BIN)/djlint --check --lint --quiet templates

format: install-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/djlint --reformat --quiet --warn templates

install:
	@$(HAVE_PYTHON)
	@$(SETUP)

install-dev:
	@$(HAVE_PYTHON)
	@$(SETUP) --dev

clean:
	@if [ -x $(BIN)/python ]; then $(BIN)/python -m codegen_app.postgres remove; fi
	rm -rf var .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
