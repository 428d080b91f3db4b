# Every target installs what it needs into its own .venv; Python 3.11+, pip and make are enough.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check format benchmark results clean

demo: .venv/.installed
	$(BIN)/python examples/demo.py

test: .venv/.installed-dev
	$(BIN)/python -m pytest -n auto

check: .venv/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

benchmark: .venv/.installed
	$(BIN)/python benchmarks/speed.py

results: .venv/.installed-dev
	$(BIN)/rgld bench results benchmarks/results --out docs/results.md

.venv/.installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

.venv/.installed-dev: .venv/.installed
	$(BIN)/python -m pip install --quiet --editable '.[all]' --group dev
	touch $@

clean:
	rm -rf .venv build dist
