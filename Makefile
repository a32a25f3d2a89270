# Each target sets everything up by itself, in .venv; nothing else of the machine is touched.
SHELL := /bin/bash
PYTHON ?= python3
JOBS ?= 3
BIN := .venv/bin
STAMP := .venv/.installed
# Sphinx and its theme; nothing else needs them.
DOCS := .venv-docs
# Where it is set, every process of every cluster and test compiles the sources again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup compiled demo test docs test-docs lint house clients slices seeds simulate oracle differences suites programs fuzz chaos verdicts bench bench-check bench-compare bench-attacks bench-pipeline standalone dist image modules lock clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

demo: setup ## launch a cluster, drive a load, show who was refused and why
	@rm -rf out/demo
	@$(BIN)/turnstile demo --data-dir out/demo

# Costly fixtures are shared in groups and timed tests run alone: tests/conftest.py.
test: setup ## every test, in random order; three processes, as tests wait most of their time (JOBS=n for others); ARGS="..." go to pytest
	$(BIN)/pytest -n $(JOBS) --dist loadgroup --no-loadscope-reorder $(ARGS)

docs: setup $(DOCS)/.installed ## the documents as a site in site; every link and anchor is followed
	@$(BIN)/python scripts/docs/stage.py build/docs
	@rm -rf site build/doctrees
	@$(DOCS)/bin/sphinx-build --quiet --fail-on-warning --keep-going -j $(JOBS) -c scripts/docs -d build/doctrees build/docs site
	@$(BIN)/python scripts/docs/links.py site

$(DOCS)/.installed: scripts/docs/requirements.lock
	@echo "Setting up $(DOCS) (once; half a minute)"
	@[ -x $(DOCS)/bin/python ] || $(PYTHON) -m venv $(DOCS)
	@$(DOCS)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

test-docs: setup ## the blocks of README and docs pasted into a shell, those that take minutes, too
	TURNSTILE_ALL_BLOCKS=1 $(BIN)/pytest -n $(JOBS) --dist loadgroup --no-loadscope-reorder --timeout 3600 -o faulthandler_timeout=3590 \
	  tests/docs $(ARGS)

lint: setup ## style, types and import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

house: setup ## the tree by the measures of a house in good order: ARGS="--list MEASURE" says where
	@$(BIN)/python scripts/house.py $(ARGS)

setup: $(STAMP) ## what the others need, in .venv

compiled: setup ## compiles what pyproject.toml lists anew where its sources have changed (else they are run as they are)
	@$(BIN)/python scripts/compile_modules.py

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	  || { echo "Turnstile needs python 3.11 or later: apt-get install python3 python3-venv (or PYTHON=/path/to/python3 make ...)"; exit 1; }
	@v=$$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p'); [ "$${v:-0}" -ge 17 ] \
	  || echo "No JDK 17 or later: audit, report and plan, and their tests, are left out (apt-get install openjdk-17-jdk-headless)"
	@echo "Setting up .venv (once; a minute or two)"
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv .venv
	@set -o pipefail; $(BIN)/pip install --disable-pip-version-check --require-hashes -r requirements.lock \
	  | awk -v "all=$$(grep -c == requirements.lock)" '/^Collecting/ && ++n % 10 == 0 {print "  " n " of " all " libraries found"; fflush()} \
	      /^Installing/ {print "  installing them"; fflush()}'
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@echo "  making the class archive, by which Spark jobs start sooner"
	@$(BIN)/python -m turnstile.pipeline.class_archive
	@touch $@

slices: setup ## every tampered journal in 1, 2, 7 and 40 slices of time, in one process and on Spark (make test has each in some of these numbers, and a sample on Spark)
	TURNSTILE_ALL_SLICES=1 $(BIN)/pytest -n 0 tests/turnstile/pipeline/test_slices.py tests/turnstile/pipeline/test_slices_on_spark.py $(ARGS)

seeds: setup ## what make test does with some seeds, with all: hasty clients, planted violations and generated logs
	TURNSTILE_ALL_SEEDS=1 $(BIN)/pytest -n $(JOBS) --dist loadgroup --no-loadscope-reorder tests/broker/serve/test_hasty_clients.py \
	  tests/turnstile/pipeline/test_many_seeds.py tests/turnstile/pipeline/test_formats.py $(ARGS)

simulate: setup ## ten thousand schedules of the simulation, and a thousand of client quotas and of each limit of a whole cluster
	$(BIN)/python tests/simulation/run.py --schedules 10000
	@for kind in quotas cluster-cap cluster-rate; do \
	  $(BIN)/python tests/simulation/run.py --of $$kind --schedules 1000 || exit; done

oracle: setup ## replay beside Kafka 4.3's own classes (needs Maven)
	$(BIN)/python tests/oracle/compare.py

differences: setup ## every API and version beside Kafka 4.3.1 itself, recorded for make test (needs Maven)
	$(BIN)/python tests/differences/run.py --record

suites: setup ## the clients' own integration suites, beside Kafka 4.3 (Maven, Go, npm, a C compiler): ARGS="--suite NAME --peer NAME --write"
	$(BIN)/python scripts/suites/run.py $(ARGS)

programs: setup ## programs that stand on clients, through quotas, caps and kills (Maven, PyPI, Debian's packages)
	TURNSTILE_ALL_PROGRAMS=1 $(BIN)/pytest -n 0 tests/programs $(ARGS)

FRAMES ?= 1000000
SEED ?= 0
fuzz: setup ## FRAMES=n frames of SEED=n, of every API and version, right and wrong, against a cluster
	$(BIN)/python tests/fuzz/run.py --frames $(FRAMES) --seed $(SEED)

chaos: setup ## a cluster under kills, stops, cut links and a full disk, judged by the audit
	$(BIN)/python tests/chaos/run.py

verdicts: setup ## clients that misbehave, each in its own way, judged: ARGS="--seeds 10 --jobs 3"
	$(BIN)/python tests/turnstile/verdict/run.py $(ARGS)

bench: compiled ## the table of docs/internals/benchmarks.md
	$(BIN)/python scripts/bench/run.py

bench-check: compiled ## fails if a figure has fallen beside its peers, below scripts/bench/guard.json
	$(BIN)/python scripts/bench/run.py --check

BEFORE ?= ../before
bench-compare: compiled ## each row of the benchmarks in the checkout BEFORE=... and here, in pairs of runs
	$(BIN)/python scripts/bench/compare.py $(BEFORE)

bench-attacks: setup ## what hostile clients cost the others
	$(BIN)/python scripts/bench/attacks/run.py $(ARGS)

bench-pipeline: setup ## audit and plan at millions of connections, and a load through Spark
	$(BIN)/python scripts/bench_pipeline.py
	$(BIN)/python scripts/bench_pipeline.py --only growth

standalone: setup ## the Spark jobs and a load on a master whose workers see nothing of this machine (root)
	$(BIN)/python scripts/standalone.py

dist: setup ## wheel and sdist in dist/, installed and tried in two empty environments
	$(BIN)/python scripts/dist.py

image: setup ## the container image, built and tried with what is here: BASE=NAME (or debian, without a registry), VARIANT=spark
	@$(BIN)/python scripts/image.py

modules: setup ## the tests of modules/ in each language, as a process and as a container (ONLY=go,java): which it was is said
	@$(BIN)/python scripts/modules.py

clients: setup ## the clients of the admin API in modules/, and its table in docs/api.md, from its routes
	@$(BIN)/python scripts/clients/make.py

# The lock has hashes and no index address, so it installs from any mirror.
lock: ## requirements.lock and that of the site, from pyproject.toml (needs uv)
	uv pip compile pyproject.toml --all-extras --group dev --generate-hashes --no-emit-index-url --no-header \
	  --universal --python-version 3.11 -o requirements.lock
	uv pip compile --group docs --generate-hashes --no-emit-index-url --no-header \
	  --universal --python-version 3.11 -o scripts/docs/requirements.lock

clean: ## remove what these targets made
	rm -rf .venv $(DOCS) build site dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	rm -rf examples/java/target examples/node/node_modules modules/.venv modules/java/target modules/node/node_modules
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
