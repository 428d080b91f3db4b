# Every target installs what it needs into its own .venv; Python 3.11+, pip, make and a C++ compiler are enough.
PYTHON ?= python3
BIN := .venv/bin
CXX_FILES := $(wildcard core/*.cpp core/*.h benchmarks/*.cpp tests/native/*.cpp)
TWIN_TESTS := tests/test_twin.py tests/test_frozen.py tests/test_house.py tests/fit/test_views.py \
	tests/kernels/test_elementary.py tests/model tests/test_contract.py tests/modelfile/test_persist.py \
	tests/modelfile/test_hostile_values.py tests/modelfile/test_relations.py tests/test_bad_input.py

# A file's tests run in one process, one after the other: what they fit and start is fitted and started once.
# The files are taken in their order: examples of docstrings, which are short, come last, so that no process waits long.
TEST = $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder
EXHAUSTIVE = -m "exhaustive or hypothesis" --hypothesis-profile=all

# Compiles a program that calls the core without Python, with the kernels that run on any processor.
COMPILE_CORE = g++ -std=c++17 -ffp-contract=off -fno-math-errno -Wall -Wextra -Wno-psabi -pthread -Icore \
	-DRGLD_NAMESPACE=rgld_baseline '-DRGLD_NAME="baseline"' -DRGLD_LANES=4

.PHONY: demo test test-all check check-native check-threads coverage time-sorts fuzz format benchmark history lock wheel sdist docs tutorials results oddbench clean

demo: .venv/.installed
	$(BIN)/python examples/demo.py

test: .venv/.installed-dev
	$(TEST)
	RGLD_KERNELS=numpy $(TEST) $(TWIN_TESTS)

# And what is exhaustive: more examples of every property, more random files, detectors that take long to compile.
test-all: test
	$(TEST) $(EXHAUSTIVE)
	RGLD_KERNELS=numpy $(TEST) $(EXHAUSTIVE) $(TWIN_TESTS)

check: .venv/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(CXX_FILES)
	$(BIN)/mypy
	$(BIN)/lint-imports

# The core with the address and undefined-behaviour sanitizers of GCC. Without `site` (-S) the editable installation is
# not seen, so that the sanitized core is the one tested.
check-native: SITE = $(shell $(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
check-native: SANITIZERS = $(foreach name,libasan.so libubsan.so libstdc++.so,$(shell gcc -print-file-name=$(name)))
check-native: SANITIZED = env PYTHONPATH=$(CURDIR)/build/sanitized:$(SITE) LD_PRELOAD="$(SANITIZERS)" \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 RGLD_KERNELS=native $(BIN)/python -S
check-native: .venv/.installed-dev
	rm -rf build/sanitized
	CC=gcc CXX=g++ $(BIN)/python -m pip install --quiet --no-deps --target build/sanitized \
		--config-settings cmake.define.RGLD_SANITIZE=ON .
	$(SANITIZED) -c 'from rgld._kernels import _core; print(_core.__file__)' | tee build/sanitized/tested
	grep --quiet '^$(CURDIR)/build/sanitized/' build/sanitized/tested
	$(SANITIZED) -m pytest --quiet --capture=no -m "not own_process" tests/kernels/test_kernels.py tests/kernels/test_leverage.py \
		tests/kernels/test_changing_arrays.py tests/fit/test_merging.py
	RGLD_CPU=baseline $(SANITIZED) -m pytest --quiet --capture=no -m "not own_process" tests/kernels/test_kernels.py -k "any_values or any_projection or several or standardized"

# Which lines the tests run: Python by coverage.py, C++ by gcov. Pages: build/coverage/python and build/coverage/cpp.html.
# Tests that start processes of their own are left out: those would run the usual core. A line of the core that is
# compiled for several instruction sets counts once. gcov misses nanobind's headers, which are not ours, and says so;
# it warns of lines that ran billions of times. Takes half an hour of one core.
COVERAGE_TESTS ?= tests
coverage: SITE = $(shell $(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
coverage: .venv/.installed-dev
	$(INSTALL) --group coverage
	rm -rf build/covered build/covered-objects build/coverage
	mkdir -p build/coverage
	CC=gcc CXX=g++ $(BIN)/python -m pip install --quiet --no-deps --target build/covered \
		--config-settings cmake.define.RGLD_COVERAGE=ON --config-settings build-dir=build/covered-objects .
	COVERAGE_FILE=build/coverage/data PYTHONPATH=$(CURDIR)/build/covered:$(SITE) RGLD_KERNELS=native $(BIN)/python -S -m pytest \
		--quiet -p no:cacheprovider -m "not own_process and not exhaustive" --cov=rgld --cov-report=term \
		--cov-report=html:build/coverage/python $(COVERAGE_TESTS)
	$(BIN)/python -m gcovr --root . --filter core/ --exclude core/bindings.cpp --merge-lines --exclude-throw-branches \
		--gcov-ignore-errors=source_not_found --gcov-ignore-errors=no_working_dir_found \
		--gcov-ignore-parse-errors=suspicious_hits.warn_once_per_file --gcov-ignore-parse-errors=negative_hits.warn_once_per_file \
		--print-summary --txt build/coverage/cpp.txt --html-details build/coverage/cpp.html build/covered-objects

# The core's own threads with the thread sanitizer of GCC.
check-threads:
	mkdir -p build
	$(COMPILE_CORE) -O1 -g -fsanitize=thread $(filter-out core/bindings.cpp,$(wildcard core/*.cpp)) \
		tests/native/threads.cpp -o build/threads
	TSAN_OPTIONS=halt_on_error=1 build/threads

# Damaged and forged input for so many seconds each: model files, streams, CSV, Parquet, arrays, tables. What breaks lies
# in build/fuzz. FUZZ_SEED=0 gives the same inputs every time, FUZZ_TARGETS="csv parquet" attacks only these.
FUZZ_SECONDS ?= 60
fuzz: .venv/.installed-dev
	$(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS) $(if $(FUZZ_SEED),--seed $(FUZZ_SEED)) $(FUZZ_TARGETS)

format: .venv/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CXX_FILES)

# What each sort of the core gains, in ratios.
time-sorts:
	mkdir -p build
	$(COMPILE_CORE) -O3 core/dispatch.cpp core/kernels.cpp core/table.cpp benchmarks/sorts.cpp -o build/sorts
	build/sorts

# With RGLD_DATA set to the folder of the datasets, half an hour; without, on synthetic tables.
benchmark: .venv/.installed-dev
	@test -n "$(RGLD_DATA)" || { echo "Set RGLD_DATA to the folder of the study's datasets: the committed page is of these."; exit 2; }
	$(BIN)/python benchmarks/speed.py --lines benchmarks/results/speed.json --out docs/speed.md

# A wheel in dist/, installed into a clean environment and tried there: -I keeps src/ and the folder out of the path.
wheel:
	rm -rf build/wheel dist/*.whl
	$(PYTHON) -m venv build/wheel/venv
	build/wheel/venv/bin/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	build/wheel/venv/bin/python -m pip install --quiet dist/*.whl pytest
	cp tests/test_minimal.py build/wheel
	cd build/wheel && venv/bin/python -I -c 'from rgld._kernels import _core; print(_core.__file__)'
	cd build/wheel && venv/bin/python -I -m pytest --quiet test_minimal.py

# The sdist as a release has it: complete, and with a description that PyPI shows.
sdist: .venv/.installed-dev
	$(INSTALL) --group release
	rm -rf dist/*.tar.gz
	$(BIN)/python -m build --sdist --outdir dist .
	$(BIN)/python -m twine check --strict dist/*.tar.gz
	$(BIN)/check-manifest

# The documentation site in build/site: strict, so that a link or an anchor that leads nowhere is an error. It opens from
# the file system and needs no network.
docs: .venv/.installed-dev
	$(INSTALL) --group docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "Open build/site/index.html"

# Writes what the commands and examples of the tutorials print now into the pages, where it is not what they show.
tutorials: .venv/.installed-dev
	MPLBACKEND=agg COLUMNS=100 $(BIN)/python -m tests.pages $(filter-out %/index.md,$(wildcard docs/tutorials/*.md))

# Speed of this commit, kept in benchmarks/asv/results: docs/history.md. ASV="--quick" only tries the benchmarks.
history: .venv/.installed-dev
	$(INSTALL) --group history
	cd benchmarks/asv && ../../$(BIN)/python -m asv machine --yes
	cd benchmarks/asv && ../../$(BIN)/python -m asv run --python=same --set-commit-hash $$(git rev-parse HEAD) $(ASV); \
		failed=$$?; ../../$(BIN)/python keep.py; exit $$failed

# The page of the second study, from its lines.
oddbench: .venv/.installed-dev
	$(BIN)/rgld bench oddbench benchmarks/oddbench/others benchmarks/oddbench/plus --out docs/oddbench.md

results: .venv/.installed-dev
	$(BIN)/rgld bench results benchmarks/results --out docs/results.md

# With PINNED=1, the versions of requirements-dev.lock are installed instead of the newest ones.
INSTALL = $(BIN)/python -m pip install --quiet $(if $(PINNED),--constraint requirements-dev.lock)

.venv/.installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(INSTALL) --editable '.[cli]'
	touch $@

.venv/.installed-dev: .venv/.installed
	$(INSTALL) --editable '.[all]' --group dev
	touch $@

# Writes down the versions that are installed now.
lock: .venv/.installed-dev
	echo '# Versions of the development environment, made by `make lock`; `make PINNED=1 test` installs these.' > requirements-dev.lock
	$(BIN)/python -m pip freeze --quiet --exclude-editable --exclude pip --exclude setuptools >> requirements-dev.lock

clean:
	rm -rf .venv build dist
