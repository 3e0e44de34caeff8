# Everything a newcomer types. Each target does its own set-up; none asks anything.

# The first Python that is new enough and has its venv module; name another with PYTHON=...
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$python && break; done)
SETUP = $(or $(PYTHON),python3) deploy/install.py
HAVE_PYTHON = command -v $(or $(PYTHON),python3) >/dev/null \
	|| { echo "kiln: python3 is missing: apt-get install python3 python3-venv" >&2; exit 2; }

PORT ?= 8000
HOST ?= 127.0.0.1
PYTEST ?=
# Test processes; auto: one more than processors, as tests/conftest.py says.
PROCESSES ?= auto

BIN := .venv/bin

# Many images set it: each of the tests' and the demo's processes would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-all test-changed check screenshots lock sbom wheel release format install install-dev clean

help:
	@echo "make demo     run Kiln here with two real models (PORT=8000)"
	@echo "make test     run the quick tests (PYTEST='-k name' selects some)"
	@echo "make test-changed  run the tests that your change can break"
	@echo "make test-all run the quick and the slower tests, as CI does"
	@echo "make check    ruff, mypy --strict, import-linter, djlint, known vulnerabilities in packages"
	@echo "make screenshots  take screenshots of every page, in both themes, at three widths"
	@echo "make lock     update the lock files after a change of dependencies"
	@echo "make sbom     write the bill of materials to dist/kiln-sbom.json (CycloneDX)"
	@echo "make wheel    build the wheel and the sdist into dist"
	@echo "make release  build, commit and tag a release (VERSION=0.2.0)"
	@echo "make format   format the code"
	@echo "make clean    remove everything that demo and tests created, including the demo's data"

demo: install
	@exec $(BIN)/python manage.py demo --host $(HOST) --port $(PORT)

RUN_TESTS = @$(BIN)/python -m pytest -n $(PROCESSES) --dist worksteal

test: install-dev
	$(RUN_TESTS) --tier quick $(PYTEST)

test-all: install-dev
	$(RUN_TESTS) --tier full --dearest 40 $(PYTEST)

# Another commit than where main was left: SINCE=HEAD~3.
test-changed: install-dev
	@$(BIN)/python -m tests.changed $(if $(SINCE),--since $(SINCE)) $(PYTEST)

check: install-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/djlint --check --lint --quiet templates
	@$(BIN)/python deploy/check_holes.py

# Of a demo that runs already: SCREENSHOTS='--url http://127.0.0.1:8000'.
SCREENSHOTS ?=
screenshots: install-dev
	@$(BIN)/python -m tests.screenshots $(SCREENSHOTS)

# After a change of dependencies in pyproject.toml; LOCK=--upgrade for newer versions of all.
LOCK ?=
UV_COMPILE = $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 \
	--generate-hashes --no-header --quiet $(LOCK)

lock: install-dev
	$(UV_COMPILE) --extra dev --extra redis --extra cutedsl --extra objects --extra s3 --extra oidc --extra otel --output-file deploy/requirements-dev.txt
	echo uv | $(BIN)/uv pip compile - --universal --python-version 3.11 --generate-hashes --no-header --quiet --constraints deploy/requirements-dev.txt --output-file deploy/requirements-uv.txt
	$(UV_COMPILE) --constraints deploy/requirements-dev.txt --output-file deploy/requirements.txt
	$(UV_COMPILE) --constraints deploy/requirements-dev.txt --extra redis --extra s3 --extra oidc --extra otel --output-file deploy/requirements-site.txt
	$(UV_COMPILE) --constraints deploy/requirements-dev.txt --extra redis --extra s3 --extra oidc --extra otel --extra cutedsl --output-file deploy/requirements-nvidia.txt

sbom: install-dev
	@$(BIN)/python deploy/sbom.py dist/kiln-sbom.json

wheel: install-dev
	@$(BIN)/python -m hatchling build --directory dist

release: install-dev
	@$(BIN)/python deploy/release.py $(VERSION)

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
	@if [ -x $(BIN)/python ]; then $(BIN)/python -m codegen_app.platform.postgres remove; fi
	rm -rf var .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
