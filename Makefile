# nearid: `make demo` and `make test` set up all they need on a fresh machine, in .venv, with pinned versions.
# Set-up is done again only when pyproject.toml or constraints.txt change.
#
#   PYTHON=python3.12   another Python to make .venv with
#   UV=                 install with pip alone (uv, where it can be had, is only the faster way)
#   ARGS="-k moments"   more arguments for pytest or for the demo

PYTHON ?= python3
VENV   ?= .venv
JOBS   ?= 2
ARGS   ?=
# uv from the PATH, or else one that pip puts into .venv.
UV     ?= $(or $(shell command -v uv 2>/dev/null),$(VENV)/bin/uv)

PY    := $(VENV)/bin/python
CORE  := $(VENV)/.nearid-core
TEST  := $(VENV)/.nearid-test
DOCS  := $(VENV)/.nearid-docs
SETUP := pyproject.toml constraints.txt

pip_install = $(PY) -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
uv_install  = "$(UV)" pip install --quiet --python $(PY) -c constraints.txt
# True when uv is wanted and can be had.
have_uv = { test -n "$(UV)" && { "$(UV)" --version || { test "$(UV)" = "$(VENV)/bin/uv" && $(pip_install) uv; }; }; } >/dev/null 2>&1

.PHONY: help demo test lint docs site package clean
.DEFAULT_GOAL := help

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

demo: $(CORE) ## set up the core and write the demo report
	@$(VENV)/bin/nearid demo $(ARGS)

# One BLAS thread for each of pytest's workers: more would only fight over the cores.
test: $(TEST) ## set up everything the tests need and run them
	@OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} OPENBLAS_NUM_THREADS=$${OPENBLAS_NUM_THREADS:-1} \
	MKL_NUM_THREADS=$${MKL_NUM_THREADS:-1} $(PY) -m pytest -n $(JOBS) $(ARGS)

lint: $(TEST) ## ruff check, ruff format --check, mypy
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(PY) -m mypy

# The examples of the gallery whose data are here are run and compared with their pages, as `make test` does too.
docs: $(DOCS) ## run the gallery, then make site
	@$(PY) docs/tools/gallery.py --check
	@$(MAKE) --no-print-directory site

# Warnings are errors: a missing page, link or anchor inside the site fails the build. Links to other hosts are not tried.
site: $(DOCS) ## build the site and check its links; docs/_build/html/index.html
	@start=$$(date +%s) && $(PY) -m sphinx -b html -W --keep-going -q -j $(JOBS) docs docs/_build/html \
	&& $(PY) docs/tools/links.py docs/_build/html \
	&& echo "nearid: the site is docs/_build/html/index.html, made in $$(($$(date +%s) - start)) s"

package: $(TEST) ## build wheel and sdist and try each in an empty environment
	@bash .ci/package

clean: ## remove .venv, caches and builds
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist docs/_build docs/reference/generated
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(PY):
	@command -v "$(PYTHON)" >/dev/null || { \
	  echo "nearid needs Python 3.11 or newer, and '$(PYTHON)' is not found. Name one: make PYTHON=/path/to/python3.12 ..." >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "nearid needs Python 3.11 or newer, and '$(PYTHON)' is $$("$(PYTHON)" -V 2>&1). Name a newer one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@"$(PYTHON)" -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "'$(PYTHON)' cannot make virtual environments: its venv module is missing. On Debian or Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@echo "nearid: making $(VENV) ..."
	@"$(PYTHON)" -m venv "$(VENV)" || { rm -rf "$(VENV)"; exit 1; }

$(CORE): $(SETUP) | $(PY)
	@echo "nearid: installing the core, pinned ..."
	@if $(have_uv) && $(uv_install) -e .; then :; else echo "nearid: without uv, with pip"; $(pip_install) -e .; fi
	@touch $@

# torch goes through pip alone: pip takes the CPU build where the machine offers one (find-links, an index of its
# own), uv would not see it and load gigabytes of CUDA. So uv brings the rest, and pip completes and checks it.
$(TEST): $(SETUP) $(CORE) | $(PY)
	@echo "nearid: installing what the tests need, pinned (torch takes a while) ..."
	@if $(have_uv); then $(uv_install) -e '.[dev,distributed,remote,boost,anndata]' || true; fi
	@$(pip_install) -e '.[dev,distributed,remote,boost,anndata,lab,hf,onnx,lightning]'
	@touch $@

# The reference imports everything that has a page, the callbacks included.
$(DOCS): $(SETUP) $(TEST) | $(PY)
	@echo "nearid: installing what the site needs, pinned ..."
	@if $(have_uv) && $(uv_install) -e '.[docs]'; then :; else $(pip_install) -e '.[docs]'; fi
	@touch $@
