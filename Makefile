# make demo and make test work on a fresh clone: they make their own environment in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest -q
IN_TWO := -n 2 --dist worksteal

# What takes longest of the tests; make check leaves it out.
SLOW := audit bench compile docs examples reproduce service_trust study_trust

# What has more to test where time does not matter: make audit. It also draws new examples for every property test.
LONG := audit site study_trust service_schema service_trust session_bytes diagnostics standing cli_exits sweeps

# For the comparisons with VOPy (VOPY=skip leaves it out of make bench) and Ax. Where this brings CUDA along, point TORCH at a CPU wheel.
TORCH ?= torch==2.13.0
VOPY_VENV := .venv-vopy

.PHONY: demo test check lint style types uncompiled compiled audit reach bench service scale cones growth beside-hyperfine beside-evaluations engines peers leaderboard contexts examples algorithms pictures notebooks site dist first-minute clean

demo: $(VENV)/installed
	@mkdir -p out
	@$(BIN)/paretoscout demo --out out/demo.png

# Types are checked while the uncompiled kernels are tested: mypy has but one process.
test: style
	@$(MAKE) -j2 types uncompiled
	@$(MAKE) compiled
	$(PYTEST) $(IN_TWO)

check: lint compiled
	$(PYTEST) $(IN_TWO) $(SLOW:%=--ignore=tests/test_%.py)

lint: style types

style: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/prose.py
	@if command -v actionlint > /dev/null; then actionlint; else echo "skipped: actionlint is not installed (no package on PyPI holds it): .github/workflows were not checked"; fi

types: $(VENV)/installed-dev
	$(BIN)/mypy

uncompiled: $(VENV)/installed-dev
	NUMBA_DISABLE_JIT=1 $(PYTEST) $(IN_TWO) -m kernels tests

compiled: $(VENV)/installed-dev
	$(BIN)/python tests/compile_all.py

audit: $(VENV)/installed-clusters $(VENV)/installed-docs $(VENV)/tried-fuzz
	$(BIN)/paretoscout audit --rows out/audit --out out/audit.json
	PARETOSCOUT_LONG=1 $(PYTEST) $(IN_TWO) $(LONG:%=tests/test_%.py)
	PARETOSCOUT_LONG=1 $(PYTEST) $(IN_TWO) -m hypothesis $(LONG:%=--ignore=tests/test_%.py)
	$(BIN)/python -m benchmarks.fuzz_files --out out/fuzz
	$(BIN)/python -m benchmarks.service_trust --json out/service-trust.json

reach: $(VENV)/installed-dev
	$(BIN)/python -m benchmarks.reach --json out/reach.json --picture out/reach.png

engines: $(VENV)/installed-clusters
	$(BIN)/python -m benchmarks.engines --json out/engines.json --page docs/sweeps.md

# Each program in an environment of its own, under .venvs-peers. PEERS: more options, such as where a paper's code is.
peers: $(VENV)/installed-dev
	$(BIN)/python -m benchmarks.peers --torch '$(TORCH)' --json out/peers.json --page docs/peers.md $(PEERS)

leaderboard: $(VENV)/installed-dev
	$(BIN)/python -m benchmarks.leaderboard --json out/leaderboard.json --page docs/leaderboard.md

contexts: $(VENV)/installed-dev
	$(BIN)/python -m benchmarks.real_contexts --json out/real-contexts.json --picture docs/images/real-contexts.png --page docs/real-contexts.md

algorithms: $(VENV)/installed-dev
	$(BIN)/python tools/algorithms_page.py

examples: $(VENV)/installed-dev
	$(BIN)/python -m benchmarks.examples

pictures: $(VENV)/installed-dev
	$(BIN)/python tools/concept_pictures.py

notebooks: $(VENV)/installed-dev
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[notebooks]'
	$(BIN)/python tools/notebooks.py

# Built from what is here, without a network: open out/site/index.html. A warning is an error.
site: $(VENV)/installed-docs
	$(BIN)/sphinx-build -q -W --keep-going -n docs out/site
	@echo "the site: out/site/index.html"

# All of them run, whatever misses its target; then it fails.
bench: $(VENV)/installed-bench $(VOPY_VENV)/tried
	@missed=; \
	run() { echo "python -m benchmarks.$$*"; $(BIN)/python -m "benchmarks.$$@" || missed="$$missed $$1"; }; \
	run speed --vopy-python $(VOPY_VENV)/bin/python --json out/bench.json; \
	run growth --json out/growth.json --picture out/growth.png; \
	run reach --json out/reach.json --picture out/reach.png; \
	run study_speed --json out/study.json; \
	run service_load --json out/service.json; \
	run against_hyperfine --json out/hyperfine.json; \
	run beside_hyperfine --json out/beside-hyperfine.json; \
	test -z "$$missed" || { echo "missed:$$missed"; exit 1; }

# Both run, whatever misses its target; then it fails.
service: $(VENV)/installed-bench
	@missed=; \
	run() { echo "python -m benchmarks.$$*"; $(BIN)/python -m "benchmarks.$$@" || missed="$$missed $$1"; }; \
	run service_load --json out/service.json; \
	run service_trust --json out/service-trust.json; \
	test -z "$$missed" || { echo "missed:$$missed"; exit 1; }

cones: $(VENV)/installed-dev $(VOPY_VENV)/tried
	$(BIN)/python -m benchmarks.cones --vopy-python $(VOPY_VENV)/bin/python --json out/cones.json

first-minute: $(VENV)/installed-dev
	$(BIN)/python -m benchmarks.first_minute --json out/first-minute.json --page docs/first-minute.md

scale: $(VENV)/installed-dev
	$(BIN)/python -m benchmarks.scale --json out/scale.json

growth: $(VENV)/installed-dev
	$(BIN)/python -m benchmarks.growth --json out/growth.json --picture docs/images/growth.png --page docs/growth.md

beside-hyperfine: $(VENV)/installed-dev
	$(BIN)/python -m benchmarks.beside_hyperfine --json out/beside-hyperfine.json

beside-evaluations: $(VENV)/installed-dev
	$(BIN)/python -m benchmarks.beside_evaluations --json out/beside-evaluations.json

$(VENV)/installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "paretoscout needs Python 3.11 or newer: make PYTHON=python3.11")'
	@test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	@echo "installing paretoscout into $(VENV) ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[plots]'
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev]'
	@touch $@

$(VENV)/installed-docs: $(VENV)/installed-dev
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[docs]'
	@touch $@

$(VENV)/installed-bench: $(VENV)/installed-dev
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[bench]'
	@touch $@

$(VENV)/installed-clusters: $(VENV)/installed-dev
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dask,ray]'
	@touch $@

# atheris has wheels for few Pythons. Where it cannot be had the fuzzing says so.
$(VENV)/tried-fuzz: $(VENV)/installed-dev
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[fuzz]' || echo "atheris could not be installed: files will not be fuzzed"
	@touch $@

# VOPy pins an older numpy, hence an environment of its own. Where it cannot be had the benchmark says so.
$(VOPY_VENV)/tried:
	@$(PYTHON) -m venv $(VOPY_VENV)
	@test "$(VOPY)" = skip || { $(VOPY_VENV)/bin/python -m pip install -q --disable-pip-version-check '$(TORCH)' \
		&& $(VOPY_VENV)/bin/python -m pip install -q --disable-pip-version-check vopy==0.2.0; } \
		|| echo "VOPy could not be installed: its comparison will be skipped"
	@touch $@

# It does not read versions that stand in the code.
VERSION_OF_SBOM := import json, pathlib; from paretoscout import __version__; path = pathlib.Path("dist/sbom.cdx.json"); \
	bom = json.loads(path.read_text()); bom["metadata"]["component"]["version"] = __version__; path.write_text(json.dumps(bom, indent=2))

# Builds what is published, checks it, and tries the wheel on every Python there is. Nothing is uploaded.
dist: $(VENV)/installed-release
	rm -rf dist
	$(BIN)/python -m build -q
	$(BIN)/twine check --strict dist/*
	@$(PYTHON) -m venv --clear --without-pip dist/empty
	@$(BIN)/python -m pip --python dist/empty/bin/python install -q --disable-pip-version-check "$$(echo dist/*.whl)[serve,postgres]"
	$(BIN)/cyclonedx-py environment dist/empty/bin/python --pyproject pyproject.toml --mc-type library --of JSON -o dist/sbom.cdx.json
	@$(BIN)/python -c '$(VERSION_OF_SBOM)'
	@rm -rf dist/empty
	$(BIN)/python tools/try_wheel.py dist/*.whl
	$(BIN)/python tools/try_wheel.py --lowest --python $(BIN)/python dist/*.whl

$(VENV)/installed-release: $(VENV)/installed
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[release]'
	@touch $@

clean:
	rm -rf $(VENV) $(VOPY_VENV) .venvs-peers out .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
