# `make demo` and `make test` are all the set-up there is: each makes .venv first where it is missing or out of date.
#   PYTHON=python3.12   the interpreter to build .venv with (default: the first on PATH that is new enough);
#                       `make clean` first where .venv exists already
#   DOCS=folder         the documents of `make demo` and `make ui` (default: examples/docs); what they made of them is
#                       kept in .demo
#   QUESTION="…"        the question that `make demo` asks

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.complete
TESTS ?=
PARTS ?=

SAMPLE := examples/docs
DOCS ?= examples/docs
ifeq ($(value DOCS),$(SAMPLE))
QUESTION ?= How often is the sand filter changed?
endif
# To the shell as they are, whatever quotes and dollar signs they hold.
override DOCS := $(value DOCS)
override QUESTION := $(value QUESTION)
export DOCS QUESTION

NEW_ENOUGH := import sys; sys.exit(not (3, 10) <= sys.version_info[:2] < (3, 14))

.PHONY: help setup demo ui test test-long test-pythons bench bench-long lint types install-table clean

help:
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' Makefile

setup: $(STAMP) ## make .venv with everything in it

# pip is brought up to the pinned version first: the one that comes with an older Python knows no dependency groups.
$(STAMP): pyproject.toml constraints.txt
	@if ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
		python=""; for candidate in $(if $(PYTHON),$(PYTHON),python3 python3.13 python3.12 python3.11 python3.10); do \
			if "$$candidate" -c '$(NEW_ENOUGH)' 2>/dev/null; then python="$$candidate"; break; fi; \
		done; \
		if [ -z "$$python" ]; then echo "Python 3.10 to 3.13 is needed; say which with PYTHON=…" >&2; exit 1; fi; \
		echo "Making $(VENV) with $$("$$python" --version)"; \
		"$$python" -m venv --clear $(VENV); \
	fi
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --build-constraint constraints.txt \
		--editable '.[all]' --group dev
	@touch $@

demo: $(STAMP) ## ingest a folder, search it, ingest it again: nothing is embedded twice
	@mkdir -p .demo
	@db=".demo/$$(printf %s "$$DOCS" | cksum | cut -d ' ' -f 1).db"; \
	[ "$$DOCS" != "$(SAMPLE)" ] || rm -rf "$$db"*; \
	show='import shlex, sys; print("$$ qedge", shlex.join(sys.argv[1:]), flush=True)'; \
	qedge() { $(BIN)/python -c "$$show" "$$@"; $(BIN)/qedge "$$@"; echo; }; \
	qedge ingest --db "$$db" -- "$$DOCS"; \
	if [ -n "$$QUESTION" ]; then qedge search --db "$$db" --top 3 -- "$$QUESTION"; fi; \
	qedge ingest --db "$$db" -- "$$DOCS"; \
	[ -n "$$QUESTION" ] || echo 'Ask your documents something: make demo DOCS=… QUESTION="…"'

ui: $(STAMP) ## ingest a folder and show it in Dagster's web UI, until Ctrl-C
	@mkdir -p .demo
	@db=".demo/$$(printf %s "$$DOCS" | cksum | cut -d ' ' -f 1).db"; \
	$(BIN)/qedge ingest --db "$$db" -- "$$DOCS"; \
	exec $(BIN)/qedge ui --db "$$db"

test: $(STAMP) ## the test suite
	$(BIN)/python -m pytest -n 2 --dist loadfile $(TESTS)

test-long: $(STAMP) ## the tests that take minutes to hours
	$(BIN)/python -m pytest -m long $(TESTS)

test-pythons: ## the test suite on every interpreter from 3.10 to 3.13 that is found
	@found=0; for version in 3.10 3.11 3.12 3.13; do \
		for python in python$$version "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/$$version.*/bin/python; do \
			if "$$python" -c '$(NEW_ENOUGH)' 2>/dev/null; then \
				found=1; $(MAKE) --no-print-directory test VENV=.venv-$$version PYTHON="$$python"; break; \
			fi; \
		done; \
	done; \
	[ $$found = 1 ] || { echo "no interpreter from 3.10 to 3.13 was found" >&2; exit 1; }

bench: $(STAMP) ## speed and memory as ratios to this machine's own limits
	$(BIN)/python -m benchmarks $(PARTS)

bench-long: $(STAMP) ## the same with the full sizes, which take hours
	$(BIN)/python -m benchmarks --full $(PARTS)

lint: $(STAMP) ## style, format and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(STAMP) ## strict type check
	$(BIN)/pyright --pythonpath $(BIN)/python

install-table: $(STAMP) ## measure the extras and write the table of docs/install.md
	$(BIN)/python scripts/install_table.py

clean: ## remove everything that make made
	rm -rf .venv .venv-3.* .demo build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
