# The commands a newcomer needs. `make demo` and `make test` set up what they need themselves.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# another environment, made by another Python: `make demo PYTHON=python3.13 VENV=.venv313`
VENV ?= .venv
BIN := "$(abspath $(VENV))/bin"
# tests run in so many processes, each module in one of them; one that dies ends the run
TEST_PROCESSES ?= 2
WORKERS ?= 1
SPREAD := -n $(TEST_PROCESSES) --dist loadfile --max-worker-restart 0
PY := $(BIN)/python

.PHONY: help demo test test-unit test-engine run check format services services-down up down kind-up kind-down bench performance faults nightly docs console verify-sources lock audit clean

help: ## List the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 16

setup-runtime:
	@scripts/setup.sh runtime

setup-dev:
	@scripts/setup.sh dev

demo: setup-runtime ## Run the main job on real input and print its result
	@$(PY) -m fetcher demo

run: setup-runtime ## Run everything in one process, with no service and no setting
	@$(PY) -m fetcher --role=all

test: setup-dev services ## Bring up what tests need, then run every test
	@cd engine && $(PY) -m pytest -q $(SPREAD)
	@$(PY) -m pytest -q $(SPREAD)
	@TEST_PROCESSES=$(TEST_PROCESSES) scripts/test_other_python.sh "$(PY)"

test-unit: setup-dev ## Run the tests that need no server
	@cd engine && $(PY) -m pytest -q
	@$(PY) -m pytest -q tests/unit

test-engine: setup-dev ## Run the Engine's suite alone
	@cd engine && $(PY) -m pytest -q

check: setup-dev ## Format, lint, types, layers, and the Engine's rule of no dependency
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/mypy engine/fetcher_engine engine/tests
	@$(BIN)/lint-imports
	@cd engine && $(PY) -m pytest -q tests/test_boundary.py

format: setup-dev ## Format and fix what can be fixed
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

services: setup-dev ## Bring up PostgreSQL, MariaDB, Redis, RabbitMQ, MongoDB and S3 for tests
	@$(PY) scripts/services.py up

services-down: ## Stop what `make services` started
	@if [ -x $(PY) ]; then $(PY) scripts/services.py down; else python3 scripts/services.py down; fi

up: ## Bring up the whole stack in containers (WORKERS=1), with secrets made once: docs/deployment.md
	@python3 scripts/stack_secrets.py config/compose/.env
	@docker compose -f config/compose/compose.yaml up --detach --build --scale fetcher-worker=$(WORKERS)

down: ## Stop the stack of `make up`; its data stays in its volumes
	@docker compose -f config/compose/compose.yaml down

kind-up: ## Make a local Kubernetes cluster with KEDA 2.16.0 and all that Fetcher needs, and run it there
	@config/kind/up.sh

kind-down: ## Delete the cluster of `make kind-up`
	@config/kind/down.sh

bench: setup-dev services ## Measure, each figure beside its peer in the same run (JSON lines, also in bench-results)
	@set -a; . .services/env; \
	FETCHER_BENCH_POSTGRES_DSN="$${FETCHER_BENCH_POSTGRES_DSN:-$$FETCHER_TEST_POSTGRES_DSN}" \
	FETCHER_BENCH_S3_ENDPOINT="$${FETCHER_BENCH_S3_ENDPOINT:-$$FETCHER_TEST_S3_ENDPOINT}" \
	$(PY) -m benchmarks $(PARTS)

performance: setup-dev ## Write docs/performance.md anew, with what `make bench` and others left in bench-results
	@$(PY) -m benchmarks.document $(wildcard bench-results/*.jsonl)

faults: setup-dev services ## Kill things and fail every link in every way while jobs run (FETCHER_TEST_SCALE, 10)
	@FETCHER_TEST_SCALE="$${FETCHER_TEST_SCALE:-10}" $(PY) -m pytest -q -o faulthandler_timeout=86400 tests/faults

# a test may take hours here; only its own deadlines hold
nightly: setup-dev services ## Look further where tests draw what they send (FETCHER_TEST_SCALE, 10)
	@FETCHER_TEST_SCALE="$${FETCHER_TEST_SCALE:-10}" $(PY) -m pytest -q $(SPREAD) -o faulthandler_timeout=86400 \
	tests/e2e/test_http_contract.py tests/canaries tests/fuzz tests/simulation tests/hygiene tests/unit/api/test_*_properties.py \
	tests/unit/crypto/test_mutations.py tests/unit/tenancy/test_*_properties.py tests/unit/domain/test_work_message.py \
	tests/unit/domain/test_json_text.py tests/integration/datasources/test_round_trips.py \
	tests/integration/datasources/test_rendered_alike.py tests/unit/adapters/redis/test_schema_values.py tests/unit/datasources/mongodb/test_bson_json.py

docs: setup-dev ## Write anew what is generated: types, settings and their examples, schemas, asyncapi.yaml, the broker's definitions
	@$(PY) -m scripts.types_document
	@$(PY) -m scripts.settings_document
	@$(PY) -m scripts.broker_definitions
	@$(PY) -m scripts.message_documents

console: setup-dev ## Build the console's page from console/ (needs npm)
	@cd console && npm ci --ignore-scripts --silent --no-audit --no-fund && npm run --silent types && npm run --silent build

verify-sources: export DSN := $(DSN)
verify-sources: setup-dev ## Check a connector against a server of yours: DSN=scheme://user@host:port/database
	@$(PY) -m tests.verify "$${DSN:-}"

lock: setup-dev ## Pin the dependencies anew
	@scripts/lock.sh --upgrade

audit: setup-dev ## Ask for known vulnerabilities of every pinned package (needs the network)
	@scripts/audit.sh "$(PY)"

clean: services-down ## Remove what the commands made
	@rm -rf .venv .venv-testserver .services .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
