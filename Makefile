# Everything runs in an environment of its own, made on first use from exact versions.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test fuzz lint docs clean

$(READY): pyproject.toml constraints.txt setup.py $(wildcard src/matchloom/kernels/*.cpp)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

# Corpus, training, comparison with the baselines and explained matches, in about two minutes.
demo: $(READY)
	$(BIN)/matchloom demo

# The whole default suite.
test: $(READY)
	$(BIN)/pytest --numprocesses 2

# Every property test with fresh examples, ten times as many. What it finds comes again with its seed.
SEED := $(or $(SEED),$(shell date +%s))
fuzz: $(READY)
	@echo 'seed $(SEED); to draw the same examples again: make fuzz SEED=$(SEED)'
	$(BIN)/pytest --numprocesses 2 -m hypothesis --hypothesis-profile fuzz --hypothesis-seed $(SEED)

lint: $(READY)
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy

# Pages that are made from the code.
docs: $(READY)
	$(BIN)/python -m matchloom.cli.docs docs
	$(BIN)/python -m benchmarks.page

clean:
	rm -rf $(VENV) build dist runs
