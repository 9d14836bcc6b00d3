VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
# Exact, because any other request brings gigabytes of CUDA libraries that the tests do not need.
TORCH := torch==2.13.0
# Tests of the source text, which start nothing.
LAWS := tests/test_structure.py tests/test_language.py tests/test_security.py

.PHONY: help demo test test-full test-slow test-ecosystem test-faults test-interpreters test-corpus test-bisect test-trace measure-corpus check lint audit-dependencies bench bench-bisect bench-horizon bench-long bench-trace clean test-fuzz measure-planted test-mutants

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

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

demo: $(VENV)/.base ## Audit the torch example without flags, then with recipe all
	@echo '$$ detaudit run examples/digits_torch.py --runs 3'
	@$(BIN)/detaudit run examples/digits_torch.py --runs 3; \
		status=$$?; echo "exit status $$status"; test $$status -eq 1
	@echo; echo '$$ detaudit run examples/digits_torch.py --runs 2 --recipe all'
	@$(BIN)/detaudit run examples/digits_torch.py --runs 2 --recipe all; \
		status=$$?; echo "exit status $$status"; test $$status -eq 0

# What lint runs is left out, so that lint and test together run each test once.
test: $(VENV)/.dev ## Run the unit tests, and a real process for each promise (minutes)
	$(BIN)/python -m pytest -n 2 --dist worksteal $(addprefix --ignore=,$(LAWS))

test-full: $(VENV)/.dev ## Run the process tests that `make test` leaves out (minutes)
	$(BIN)/python -m pytest -n 2 --dist worksteal -m full tests/process

test-slow: $(VENV)/.dev ## Test every way to train with TensorFlow
	$(BIN)/python -m pytest -m slow

test-ecosystem: $(VENV)/.ecosystem ## Test with Lightning, transformers, JAX and others (half an hour)
	$(BIN)/python -m pytest tests/ecosystem -m ecosystem

test-faults: $(VENV)/.dev ## Inject every fault into an audit and write docs/faults.md (a quarter of an hour)
	$(BIN)/python -m tests.faults --write docs/faults.md

test-interpreters: $(VENV)/.dev ## Test without frameworks on each Python from 3.10 to 3.14 that is installed
	$(BIN)/python -m tests.interpreters

test-fuzz: $(VENV)/.dev ## Read and print a million bad inputs (FUZZ_INPUTS=N for fewer, FUZZ_SEED=S for others)
	$(BIN)/python -m pytest tests/fuzz -m fuzz

test-corpus: $(VENV)/.dev ## Audit every labeled script three times and write docs/corpus.md (hours, resumable)
	$(BIN)/python -m tests.corpus.audit_corpus --repeats 3 --write docs/corpus.md

test-bisect: $(VENV)/.dev ## Bisect every script whose needed flags are known and write docs/bisect.md (hours, resumable)
	$(BIN)/python -m tests.corpus.bisect_corpus --write docs/bisect.md

test-trace: $(VENV)/.dev ## Trace every script whose culprit is known five times and write docs/trace.md (hours, resumable)
	$(BIN)/python -m tests.corpus.trace_corpus --write docs/trace.md

# A mutant runs in a fork, in which torch may wait forever for threads that it had before.
test-mutants: $(VENV)/.dev ## Change the code that decides, see whether a test fails, and write docs/mutants.md (minutes, resumable)
	$(BIN)/pip install --quiet mutmut==3.8.1
	OMP_NUM_THREADS=1 $(BIN)/mutmut run --max-children 1
	$(BIN)/python -m tests.mutants.table --write docs/mutants.md

bench-trace: $(VENV)/.dev ## Benchmark tracing against torch's DebugMode
	$(BIN)/python benchmarks/trace.py

measure-corpus: $(VENV)/.dev ## Run every labeled script alone, 20 times or more, and measure how often runs differ (resumable)
	$(BIN)/python -m tests.corpus.measure

measure-planted: $(VENV)/.dev ## Flip random bits in trainings, audit controls, and write docs/planted.md (hours, resumable)
	$(BIN)/python -m tests.planted.measure --write docs/planted.md

check: $(VENV)/.dev ## Audit the project's own example, as CI does
	$(BIN)/detaudit check

lint: $(VENV)/.dev ## Check style, types, structure and language
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q $(LAWS)

# Asks a database on the network, so it is no part of lint.
audit-dependencies: $(VENV)/.dev ## Look for known vulnerabilities in what detaudit depends on
	$(BIN)/pip install --quiet pip-audit
	$(BIN)/pip-audit --strict .

bench: $(VENV)/.dev ## Benchmark startup, the recorder, digests and comparisons
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/recorder.py
	$(BIN)/python benchmarks/digest.py
	$(BIN)/python benchmarks/keras.py
	$(BIN)/python benchmarks/files.py
	$(BIN)/python benchmarks/processes.py
	$(BIN)/python benchmarks/comparison.py
	$(BIN)/python benchmarks/distances.py

# picire needs a setuptools that still has pkg_resources.
bench-bisect: $(VENV)/.dev ## Count the runs per bisection against ddmin and one flag at a time
	$(BIN)/pip install --quiet picire 'setuptools<81'
	$(BIN)/python -W ignore benchmarks/search.py

bench-horizon: $(VENV)/.dev ## Simulate bisections of long trainings and write docs/horizon.md (minutes)
	$(BIN)/python -m benchmarks.horizon docs/horizon.md

bench-long: $(VENV)/.dev ## Time bisections of real trainings of one and ten minutes (an hour)
	$(BIN)/python benchmarks/long_bisect.py

clean: ## Remove everything that the other targets create
	rm -rf $(VENV) build dist mutants .mypy_cache .pytest_cache .ruff_cache .detaudit
