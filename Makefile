# Commands of the project. Each does its own set-up; the second run of any starts in seconds.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup demo test check serve docs bench conform clean

help: ## show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | sort | while IFS=$$'\t' read -r name text; do printf '  make %-9s %s\n' "$$name" "$$text"; done

setup: ## make .venv, the base image and the small model, and start a Docker engine where possible
	@scripts/setup.sh

demo: ## from nothing to a model that has learned, with a report to read (up to 15 minutes beside downloads)
	@scripts/with.sh sandboxes -- python scripts/demo.py $(ARGS)

test: ## run every test; ARGS="-k name tests/unit" picks some
	@scripts/with.sh sandboxes postgres browser -- scripts/test.sh $(ARGS)

check: ## lint, format, types, import arrows, spelling, dead code
	@scripts/with.sh -- scripts/check.sh

# The demonstration's registry where there is one, unless ENVSDK_REGISTRY names another.
serve: export ENVSDK_REGISTRY := $(or $(ENVSDK_REGISTRY),$(patsubst %,sqlite:///%,$(wildcard $(CURDIR)/demo/registry.sqlite)))
serve: ## open the demonstration's registry as a web site; PORT=8000
	@scripts/with.sh -- envsdk registry serve --port $(or $(PORT),8000)

docs: ## build the documentation into docs/_build/html
	@scripts/with.sh -- sphinx-build -W --keep-going -b html docs docs/_build/html

bench: ## list the benchmarks behind the headline figures; ARGS="NAME ..." runs one
	@scripts/with.sh sandboxes postgres -- scripts/bench.sh $(ARGS)

conform: ## run the case files under a folder: make conform CASES=DIR
	@test -n "$(CASES)" || { echo "usage: make conform CASES=DIR" >&2; exit 2; }
	@scripts/with.sh sandboxes -- envsdk conform "$(CASES)"

clean: ## stop what setup started and remove .venv, caches and the demonstration's files (not the data folder)
	@scripts/clean.sh
