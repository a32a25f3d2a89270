# `make demo` and `make test` set everything up by themselves, in .venv; nothing else is touched.
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: setup demo test lint simulate oracle chaos bench bench-attacks bench-pipeline lock clean

setup: $(STAMP)

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	  || { echo "Turnstile needs python 3.11 or later: apt-get install python3 python3-venv (or PYTHON=/path/to/python3 make ...)"; exit 1; }
	@v=$$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p'); [ "$${v:-0}" -ge 17 ] \
	  || { echo "Turnstile's reports run on Spark, which needs a JDK 17 or later: apt-get install openjdk-17-jdk-headless"; exit 1; }
	@echo "Setting up .venv (once; a minute or two)"
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: setup
	@$(BIN)/python scripts/demo.py

test: setup
	$(BIN)/pytest

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

simulate: setup
	$(BIN)/python tests/simulation/run.py --schedules 10000

oracle: setup
	$(BIN)/python tests/oracle/compare.py

chaos: setup
	$(BIN)/python tests/chaos/run.py

bench: setup
	$(BIN)/python scripts/bench/run.py

bench-attacks: setup
	$(BIN)/python scripts/bench/attacks.py

bench-pipeline: setup
	$(BIN)/python scripts/bench_pipeline.py

# Needs uv. The lock has hashes and no index address, so it installs from any mirror.
lock:
	uv pip compile pyproject.toml --group dev --generate-hashes --no-emit-index-url --no-header \
	  --universal --python-version 3.11 -o requirements.lock

clean:
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
