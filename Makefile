# Every verb sets up what it needs. `make run` and `make test` are all a newcomer has to know.
PYTHON ?= $(shell for each in python3 python3.13 python3.12 python3.11 python3.14; do \
	$$each -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$each && break; done)
VENV  ?= .venv
BENCH ?= ../shared/bench/issues
OUT   ?= reprise-runs/bench
ARGS  ?=
BIN   := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help run serve test lint fmt bench bench-minimize bench-webhook docs base base-version clean

help:  ## show the verbs
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile

$(VENV)/.run: pyproject.toml
	@test -n "$(PYTHON)" || { echo "Reprise needs Python 3.11 or newer; none was found. Install one, or: make PYTHON=/path/to/python3"; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { \
		echo "Python cannot make virtual environments here. On Debian and Ubuntu: apt install python3-venv"; exit 2; }
	@echo "Installing Reprise into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	@echo "Installing the workshop's tools into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev
	@touch $@

run: $(VENV)/.run  ## reproduce the bundled issue
	@$(BIN)/reprise reproduce example $(ARGS)

serve: $(VENV)/.run  ## serve the App from this process alone; without credentials, its setup page
	@$(BIN)/reprise serve --embedded $(ARGS)

test: $(VENV)/.dev  ## run the tests that this machine can run
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest $(ARGS)

lint: $(VENV)/.dev  ## style, types, layers, and a README that is up to date
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/cog --check README.md

fmt: $(VENV)/.dev  ## write the style that lint asks for
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.dev  ## write the command-line help into the README
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/cog -r README.md

bench: $(VENV)/.dev  ## run a folder of real issues against their keys (BENCH=folder OUT=folder ARGS=...)
	@$(BIN)/reprise bench issues $(BENCH) --out $(OUT) $(ARGS)

tests/node/node_modules/.package-lock.json: tests/node/package-lock.json
	@npm ci --prefix tests/node --no-audit --no-fund --loglevel=error
	@touch $@

bench-minimize: $(VENV)/.dev  ## make failing training scripts small beside lithium with the same oracle (ARGS=...)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check lithium-reducer
	@$(BIN)/reprise bench minimize $(ARGS)

bench-webhook: $(VENV)/.dev tests/node/node_modules/.package-lock.json  ## load the webhook with signed deliveries beside probot (node 20, npm, redis-server; ARGS=...)
	@$(BIN)/reprise bench webhook $(ARGS)

base:  ## build the image that the Docker sandbox runs in (root, debootstrap, a Docker daemon)
	sh deploy/base/build.sh

base-version:
	@echo "trixie-$$(cat deploy/base/packages.txt deploy/base/finish.sh | sha256sum | cut -c1-12)"

clean:  ## remove what the verbs made here
	rm -rf $(VENV) dist build reprise-runs .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .coverage coverage.xml
