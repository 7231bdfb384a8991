# Every target makes .venv when it is missing, and installs again when pyproject.toml or constraints.txt has changed.
#
#   make install     .venv with anyfill (editable) and everything needed to work on it
#   make demo        train three models for a minute, write demo/index.html
#   make check       ruff, formatting, types, direction of imports
#   make test        the tests that take a minute or so
#   make test-all    those, and the slow statistical and training tests
#   make bench       every benchmark; each writes results/NAME.json
#   make docs        the site in site/, strictly: a broken link fails
#
# `make PYTHON=/path/to/python3.12 install` chooses the interpreter .venv is made from.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := install

PYTHON ?=
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
BENCHMARKS := $(filter-out __init__ common before_after peers_apart studio_browser %_laws %_peers,$(basename $(notdir $(sort $(wildcard benchmarks/*.py)))))

# Matplotlib must not look for a screen, and pyright must not look for a newer pyright.
export MPLBACKEND := Agg
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.PHONY: install demo check test test-all bench docs

install: $(STAMP)

demo: $(STAMP)
	@$(BIN)/anyfill demo -o demo

check: $(STAMP)
	@failed=0; \
	for tool in "ruff check" "ruff format --check" "pyright" "lint-imports"; do \
	  echo "== $$tool"; $(BIN)/$$tool || failed=1; \
	done; \
	exit $$failed

test: $(STAMP)
	@$(BIN)/python -m pytest -n auto -q -m "not slow"

test-all: $(STAMP)
	@$(BIN)/python -m pytest -n auto -q

bench: $(STAMP)
	@for name in $(BENCHMARKS); do echo "== $$name"; $(BIN)/python -m "benchmarks.$$name"; done

docs: $(STAMP)
	@$(BIN)/python -c "import mkdocs, mkdocstrings" 2>/dev/null || \
	  $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e ".[docs]"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet && echo "site/index.html"

# The stamp is older than the files it depends on, or missing: then (and only then) pip runs.
$(STAMP): pyproject.toml constraints.txt
	@if ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
	  found=""; \
	  for candidate in $(PYTHON) python3.11 python3.12 python3.13 python3 python; do \
	    if "$$candidate" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	      found="$$candidate"; break; \
	    fi; \
	  done; \
	  if [ -z "$$found" ]; then \
	    echo "make: no Python 3.11 or newer with venv and pip was found; install one, or name it: make PYTHON=/path/to/python3.11" >&2; \
	    exit 1; \
	  fi; \
	  echo "making $(VENV) with $$($$found --version)"; \
	  "$$found" -m venv $(VENV); \
	fi
	@echo "installing anyfill and its tools into $(VENV) (a few minutes the first time)"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@
