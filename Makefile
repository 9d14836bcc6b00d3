VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
# An environment of its own: trainers such as Lightning log to TensorBoard if they find it.
EXPORTS := $(VENV)-exports
# Two more: fsspec with its packages, and a server of S3 that needs another botocore than these.
S3 := $(VENV)-s3
MOTO := $(VENV)-moto
ENGINES := $(VENV)-engines
# What trainings log with finds TensorBoard and trackers as soon as they are installed.
ZOO := $(VENV)-zoo
# The packages whose examples tests/fixes/programs.py fixes, in the versions of their sources there.
PROGRAMS := $(VENV)-programs
# Exact, because any other request brings gigabytes of CUDA libraries that the tests do not need.
TORCH := torch==2.13.0
# Tests of the source text, which start nothing.
LAWS := tests/test_structure.py tests/test_security.py

# With it, each of thousands of processes would compile the package and the recorder again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: $(shell sed -n 's/^\([a-z0-9-]*\):.*\#\#.*/\1/p' $(MAKEFILE_LIST))

help: ## Show this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

$(VENV)/.base: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet $(TORCH) numpy scikit-learn -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.base
	$(BIN)/pip install --quiet tensorflow-cpu -e '.[dev]'
	@touch $@

# Without their dependencies, tf_keras does not bring a second TensorFlow beside tensorflow-cpu, nor xgboost NCCL.
$(VENV)/.ecosystem: $(VENV)/.dev
	$(BIN)/pip install --quiet $(TORCH) -e '.[ecosystem]'
	$(BIN)/pip install --quiet --no-deps tf_keras xgboost
	@touch $@

$(EXPORTS)/.exports: pyproject.toml
	test -x $(EXPORTS)/bin/python || $(PYTHON) -m venv $(EXPORTS)
	$(EXPORTS)/bin/pip install --quiet mlflow -e '.[dev,mlflow,tensorboard]'
	@touch $@

$(S3)/.s3: pyproject.toml
	test -x $(S3)/bin/python || $(PYTHON) -m venv $(S3)
	$(S3)/bin/pip install --quiet -e '.[dev,s3]'
	@touch $@

$(MOTO)/.moto: Makefile
	test -x $(MOTO)/bin/python || $(PYTHON) -m venv $(MOTO)
	$(MOTO)/bin/pip install --quiet 'moto[s3,server]==5.2.5'
	@touch $@

$(ENGINES)/.engines: pyproject.toml
	test -x $(ENGINES)/bin/python || $(PYTHON) -m venv $(ENGINES)
	$(ENGINES)/bin/pip install --quiet $(TORCH) kubernetes-validate -e '.[dev,parsl,ray]'
	@touch $@

$(ZOO)/.zoo: pyproject.toml
	test -x $(ZOO)/bin/python || $(PYTHON) -m venv $(ZOO)
	$(ZOO)/bin/pip install --quiet $(TORCH) -e '.[dev,zoo]'
	$(ZOO)/bin/pip install --quiet --no-deps xgboost
	@touch $@

$(VENV)/.docs: $(VENV)/.base
	$(BIN)/pip install --quiet -e '.[docs]'
	@touch $@

$(PROGRAMS)/.programs: pyproject.toml
	test -x $(PROGRAMS)/bin/python || $(PYTHON) -m venv $(PROGRAMS)
	$(PROGRAMS)/bin/pip install --quiet $(TORCH) gpytorch==1.15.2 deepxde==1.15.0 imbalanced-learn==0.14.2 matplotlib pandas tqdm -e .
	@touch $@

demo: $(VENV)/.base ## Audit the torch example, and find the changes that make it deterministic (minutes)
	@echo '$$ detaudit run examples/digits_torch.py --runs 3'
	@$(BIN)/detaudit run examples/digits_torch.py --runs 3; \
		status=$$?; echo "exit status $$status"; test $$status -eq 1
	@echo; echo '$$ detaudit fix examples/digits_torch.py'
	@$(BIN)/detaudit fix examples/digits_torch.py; \
		status=$$?; echo "exit status $$status"; test $$status -eq 0

# What lint runs is left out, so that lint and test together run each test once.
test: $(VENV)/.dev ## Run the unit tests, and real processes that take seconds (six minutes)
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations=20 $(addprefix --ignore=,$(LAWS))

test-full: $(VENV)/.dev ## Run the process tests that `make test` leaves out, and HTML reports in Chromium (minutes)
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations=20 -m "full and not slow"

test-pages: $(VENV)/.dev ## Run every command of the documentation; some races need an idle machine (half an hour)
	$(BIN)/python -m pytest tests/docs -m pages

test-slow: $(VENV)/.dev ## Test every way to train, with TensorFlow too, and the slowest process tests (two hours)
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow

test-ecosystem: $(VENV)/.ecosystem ## Test with Lightning, transformers, JAX and others (half an hour)
	$(BIN)/python -m pytest tests/ecosystem -m ecosystem

test-exports: $(EXPORTS)/.exports ## Send reports to a real MLflow server, and read them with TensorBoard (minutes)
	$(EXPORTS)/bin/python -m pytest tests/exports -m "exports or not exports"

test-engines: $(ENGINES)/.engines ## Do runs by real engines on this machine, and kill parts of them (three quarters of an hour)
	$(ENGINES)/bin/python -m pytest tests/remote/engines -m "engines or not engines"

# Open MPI, if it is installed, and accelerate, if the environment has it, start ranks too.
test-ranks: $(VENV)/.ecosystem ## Plant faults in ranks that torchrun, accelerate and mpirun start (a quarter of an hour)
	$(BIN)/python -m pytest tests/ranks -m "ranks or not ranks"

test-s3: $(S3)/.s3 $(MOTO)/.moto ## Store archives on a real server of S3, which is stopped and started (minutes)
	MOTO=$(MOTO)/bin/python $(S3)/bin/python -m pytest tests/remote -m s3

# As root, after: apt-get install --no-install-recommends slurmctld slurmd slurm-client munge
test-slurm: $(VENV)/.dev ## Do runs by an array of real Slurm on this machine (a minute)
	$(BIN)/python -m pytest tests/remote -m slurm

test-faults: $(VENV)/.dev ## Inject every fault into an audit and write docs/lab/faults.md (a quarter of an hour)
	$(BIN)/python -m tests.faults --write docs/lab/faults.md

test-interpreters: $(VENV)/.dev ## Test without frameworks on each Python from 3.10 to 3.14 that is installed
	$(BIN)/python -m tests.interpreters

# The time of every file in them, which is that of hatchling, so that the same source gives the same bytes.
dist: export SOURCE_DATE_EPOCH := 1580601600

dist: $(VENV)/.dev ## Build the sdist and, from it, the wheel into dist/, check both, and build both again to compare
	$(BIN)/pip install --quiet build==1.3.0 check-wheel-contents==0.6.3 twine==6.2.0
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/python -m tests.rebuild dist
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl

test-install: dist ## Install dist/ with pip, pipx, uv and uvx, and audit other environments from there (minutes)
	$(BIN)/pip install --quiet pipx uv
	$(BIN)/python -m pytest tests/process -m install

test-fuzz: $(VENV)/.dev ## Read and print a million bad inputs (FUZZ_INPUTS=N for fewer, FUZZ_SEED=S for others)
	$(BIN)/python -m pytest tests/fuzz -m fuzz -o faulthandler_timeout=0

test-corpus: $(VENV)/.dev ## Audit every labeled script three times and write docs/lab/corpus-verdicts.md (hours, resumable)
	$(BIN)/python -m tests.corpus.audit_corpus --repeats 3 --write docs/lab/corpus-verdicts.md

test-results: $(VENV)/.dev ## Audit scripts whose files and printed text are labeled and write docs/lab/results.md (an hour, resumable)
	$(BIN)/python -m tests.results.audit --write docs/lab/results.md

test-zoo: $(ZOO)/.zoo ## Audit equal trainings that log in many ways and write docs/lab/zoo.md (hours, resumable)
	$(ZOO)/bin/python -m tests.zoo.audit --write docs/lab/zoo.md

test-bisect: $(VENV)/.dev ## Bisect every script whose needed flags are known and write docs/lab/corpus-bisections.md (hours, resumable)
	$(BIN)/python -m tests.corpus.bisect_corpus --write docs/lab/corpus-bisections.md

test-trace: $(VENV)/.dev ## Trace every script whose culprit is known five times and write docs/lab/corpus-traces.md (hours, resumable)
	$(BIN)/python -m tests.corpus.trace_corpus --write docs/lab/corpus-traces.md

test-fixes: $(VENV)/.dev ## Fix planted bugs and write docs/lab/fixes.md (half an hour, resumable)
	$(BIN)/python -m tests.fixes.measure

test-programs: $(PROGRAMS)/.programs ## Fix programs that packages ship and write docs/lab/fixes-programs.md (an hour, resumable)
	$(PROGRAMS)/bin/python -m tests.fixes.programs

test-corpus-fixes: $(VENV)/.dev ## Fix scripts with a known culprit five times and write docs/lab/corpus-fixes.md (hours, resumable)
	$(BIN)/python -m tests.corpus.fix_corpus --write docs/lab/corpus-fixes.md

test-against: $(VENV)/.dev ## Compare pairs of commits and write docs/lab/against.md (half an hour, resumable)
	$(BIN)/python -m tests.against.measure

test-environments: $(VENV)/.dev ## Compare pairs of environments and write docs/lab/environments.md (half an hour, resumable)
	$(BIN)/pip install --quiet uv
	$(BIN)/python -m tests.environments.measure

test-resume: $(VENV)/.dev ## Resume labeled scripts that lose one thing, and write docs/lab/resume.md (half an hour, resumable)
	$(BIN)/python -m tests.resume.measure --write docs/lab/resume.md

test-replay: $(VENV)/.dev ## Repeat planted operations of torch and TensorFlow in real processes (half an hour)
	$(BIN)/python -m pytest tests/replay -m "replay or not replay"

# A mutant runs in a fork, in which torch may wait forever for threads that it had before.
test-mutants: $(VENV)/.dev ## Change the code that decides, see whether a test fails, and write docs/lab/mutants.md (minutes, resumable)
	$(BIN)/pip install --quiet mutmut==3.8.1
	OMP_NUM_THREADS=1 $(BIN)/mutmut run --max-children 1
	$(BIN)/python -m tests.mutants.table --write docs/lab/mutants.md

measure-corpus: $(VENV)/.dev ## Run every labeled script alone, 20 times or more, and measure how often runs differ (resumable)
	$(BIN)/python -m tests.corpus.measure

measure-planted: $(VENV)/.dev ## Flip random bits in trainings, audit controls, and write docs/lab/planted.md (hours, resumable)
	$(BIN)/python -m tests.planted.measure --write docs/lab/planted.md

# Pages are filled from data that Sphinx knows nothing of, so each build reads all of them.
SPHINX := -m sphinx --fresh-env --doctree-dir build/doctrees --fail-on-warning --keep-going --quiet

docs: $(VENV)/.docs ## Build the documentation as a site, with warnings as errors, in build/docs
	$(BIN)/python $(SPHINX) --builder html docs build/docs

docs-links: $(VENV)/.docs ## Look up every address that the documentation links to
	$(BIN)/python $(SPHINX) --builder linkcheck docs build/docs-links

check: $(VENV)/.dev ## Audit the project's own example, as CI does
	$(BIN)/detaudit check

lint: $(VENV)/.dev ## Check style, types and structure
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q $(LAWS)

# Asks a database on the network, so it is no part of lint.
audit-dependencies: $(VENV)/.dev ## Look for known vulnerabilities in what detaudit depends on
	$(BIN)/pip install --quiet pip-audit
	$(BIN)/pip-audit --strict .

# picire needs a setuptools that still has pkg_resources.
bench: $(VENV)/.dev ## Measure what detaudit costs, print one table and write docs/lab/benchmarks.md (minutes)
	$(BIN)/pip install --quiet picire==21.8 'setuptools<81'
	$(BIN)/python -W ignore -m benchmarks $(BENCH)

bench-long: $(VENV)/.dev ## Measure whole audits, bisections and traces likewise (hours; BENCH=NAME for one of them)
	$(BIN)/python -m benchmarks --long $(BENCH)

scan-ops: $(VENV)/.dev ## Scan all operations of torch and TensorFlow and write docs/ops.md (half an hour, resumable)
	$(BIN)/python -m benchmarks.scan --write docs/ops.md

# On the Python of the environment, which may be one with a torch for CUDA: make test-gpu GPU_PYTHON=python
GPU_PYTHON ?= $(BIN)/python
DEVICE ?= cuda

test-gpu: ## Test on a GPU; DEVICE=cpu runs all of it without one (nine minutes, resumable)
	$(GPU_PYTHON) -m tests.gpu --device $(DEVICE) $(TASKS)

bench-gpu: ## Measure on a GPU; DEVICE=cpu runs all of it without one (nine minutes, resumable)
	$(GPU_PYTHON) -m benchmarks.gpu --device $(DEVICE)

bench-horizon: $(VENV)/.dev ## Simulate bisections of long trainings and write docs/lab/horizon.md (minutes)
	$(BIN)/python -m benchmarks.horizon docs/lab/horizon.md

bench-jobs: $(VENV)/.dev ## Measure which races runs at once hide, and write docs/lab/jobs.md (half an hour)
	$(BIN)/python -m benchmarks.jobs --write docs/lab/jobs.md

clean: ## Remove everything that the other targets create
	rm -rf $(VENV) $(EXPORTS) $(ENGINES) $(S3) $(MOTO) $(ZOO) $(PROGRAMS) build dist mutants .mypy_cache .pytest_cache .ruff_cache .detaudit
