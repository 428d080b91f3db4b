# Every target installs what it needs into its own .venv; Python 3.11+, pip, make and a C++ compiler are enough.
PYTHON ?= python3
BIN := .venv/bin
TWIN_TESTS := $(addprefix tests/test_,twin.py frozen.py parts.py contract.py persist.py bad_input.py)

.PHONY: demo test check check-native format benchmark wheel results clean

demo: .venv/.installed
	$(BIN)/python examples/demo.py

test: .venv/.installed-dev
	$(BIN)/python -m pytest -n auto
	RGLD_KERNELS=numpy $(BIN)/python -m pytest -n auto $(TWIN_TESTS)

check: .venv/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
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
	$(SANITIZED) -m pytest --quiet --capture=no -m "not own_process" tests/test_kernels.py tests/test_merging.py
	RGLD_CPU=baseline $(SANITIZED) -m pytest --quiet --capture=no -m "not own_process" tests/test_kernels.py -k "any_values or any_projection or several or standardized"

format: .venv/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

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

results: .venv/.installed-dev
	$(BIN)/rgld bench results benchmarks/results --out docs/results.md

.venv/.installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable '.[cli]'
	touch $@

.venv/.installed-dev: .venv/.installed
	$(BIN)/python -m pip install --quiet --editable '.[all]' --group dev
	touch $@

clean:
	rm -rf .venv build dist
