# Every verb sets up what it needs. `make run` and `make test` are all a newcomer has to know.
PYTHON ?= $(shell for name in python3 python3.13 python3.12 python3.11 python3.14; do \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$name && break; done)
VENV  ?= .venv
BENCH ?= ../shared/bench/issues
OUT   ?= reprise-runs/bench
ARGS  ?=
JOBS  ?= 4
BIN   := $(VENV)/bin
SYNC   = UV_PROJECT_ENVIRONMENT=$(CURDIR)/$(VENV) VIRTUAL_ENV= $(BIN)/uv sync --quiet --locked

# Without it every process that a test starts would compile all that it imports, again and again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run serve test test-unit lint fmt bench site bench-minimize bench-webhook docs base base-version clean

help:  ## show the verbs
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile

$(BIN)/uv:
	@test -n "$(PYTHON)" || { echo "Reprise needs Python 3.11 or newer. Install it, or run: make PYTHON=/path/to/python3"; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { \
		echo "This Python cannot make virtual environments. On Debian and Ubuntu: apt install python3-venv"; exit 2; }
	@echo "Installing Reprise into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(sed -n 's/^ *"\(uv>=[^"]*\)",/\1/p' pyproject.toml)"

$(VENV)/.run: $(BIN)/uv pyproject.toml uv.lock
	@$(SYNC) --inexact --no-dev
	@touch $@

$(VENV)/.dev: $(BIN)/uv pyproject.toml uv.lock
	@echo "Installing the development tools into $(VENV)"
	@$(SYNC) --inexact
	@touch $@ $(VENV)/.run

run: $(VENV)/.run  ## reproduce the bundled issue
	@$(BIN)/reprise reproduce example $(ARGS)

serve: $(VENV)/.run  ## serve the App in one process; without credentials, serve its setup page
	@$(BIN)/reprise serve --embedded $(ARGS)

test: $(VENV)/.dev  ## run every test that this machine can run, except the slow ones
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not slow and not nightly" $(ARGS)

test-unit: $(VENV)/.dev  ## run the unit tests: about three minutes on two cores, no services
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -n auto --maxprocesses $(JOBS) -m "not slow" tests/unit $(ARGS)

lint: $(VENV)/.dev  ## check style, types, layers and generated documentation
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy -n 2
	$(BIN)/vermin -q -t=3.8- --violations --exclude sys.monitoring sandbox/probe
	$(BIN)/lint-imports --no-logo
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/cog --check README.md docs/*.md

fmt: $(VENV)/.dev  ## apply the style that lint checks
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.dev  ## regenerate the tables and help pages in docs/
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/cog -r README.md docs/*.md

site: $(BIN)/uv  ## build the documentation site into site/; fails for a link that leads nowhere
	@$(BIN)/uv tool run --quiet --from zensical==0.0.73 zensical build --clean --strict

bench: $(VENV)/.dev  ## run a folder of issues against their keys (BENCH=folder OUT=folder ARGS=...)
	@$(BIN)/python -m benchmarks issues $(BENCH) --out $(OUT) $(ARGS)

bench-minimize: $(VENV)/.dev  ## minimize failing training scripts beside lithium, with one oracle (ARGS=...)
	@$(BIN)/uv pip install --quiet --python $(BIN)/python lithium-reducer
	@$(BIN)/python -m benchmarks minimize $(ARGS)

bench-webhook: $(VENV)/.dev  ## load the webhook with signed deliveries beside the disk's own write (ARGS=...)
	@$(BIN)/python -m benchmarks webhook $(ARGS)

base:  ## build the image that the Docker sandbox uses (needs root, debootstrap and a Docker daemon)
	sh deploy/base/build.sh

base-version:
	@echo "trixie-$$(cat deploy/base/packages.txt deploy/base/finish.sh | sha256sum | cut -c1-12)"

clean:  ## remove what the verbs made here
	rm -rf $(VENV) dist build site .cache reprise-runs .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .coverage coverage.xml
