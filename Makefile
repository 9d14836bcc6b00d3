VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
# Exact, because any other request brings gigabytes of CUDA libraries that the tests do not need.
TORCH := torch==2.13.0

.PHONY: help demo test test-slow test-ecosystem test-corpus test-bisect test-trace measure-corpus check lint bench bench-bisect bench-trace clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

$(VENV)/.base: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet $(TORCH) numpy scikit-learn -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.base
	$(BIN)/pip install --quiet tensorflow-cpu -e '.[dev]'
	@touch $@

# Without its dependencies, tf_keras does not bring a second TensorFlow beside tensorflow-cpu.
$(VENV)/.ecosystem: $(VENV)/.dev
	$(BIN)/pip install --quiet $(TORCH) -e '.[ecosystem]'
	$(BIN)/pip install --quiet --no-deps tf_keras
	@touch $@

demo: $(VENV)/.base ## Audit a torch script with real data: as it stands, then with the recipe
	@echo '$$ detaudit run examples/digits_torch.py --runs 5'
	@$(BIN)/detaudit run examples/digits_torch.py --runs 5; \
		status=$$?; echo "exit status $$status"; test $$status -eq 1
	@echo; echo '$$ detaudit run examples/digits_torch.py --runs 2 --recipe all'
	@$(BIN)/detaudit run examples/digits_torch.py --runs 2 --recipe all; \
		status=$$?; echo "exit status $$status"; test $$status -eq 0

test: $(VENV)/.dev ## Run the tests (minutes: real frameworks, real processes)
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-slow: $(VENV)/.dev ## Run the tests of every way to train with TensorFlow
	$(BIN)/python -m pytest -m slow

test-ecosystem: $(VENV)/.ecosystem ## Run the tests with Lightning, transformers, JAX and others (half an hour)
	$(BIN)/python -m pytest tests/ecosystem -m ecosystem

test-corpus: $(VENV)/.dev ## Audit every labelled script three times and write docs/corpus.md (hours; it can be resumed)
	$(BIN)/python -m tests.corpus.audit_corpus --repeats 3 --write docs/corpus.md

test-bisect: $(VENV)/.dev ## Bisect every script whose needed flags are known and write docs/bisect.md (hours; it can be resumed)
	$(BIN)/python -m tests.corpus.bisect_corpus --write docs/bisect.md

test-trace: $(VENV)/.dev ## Trace every script whose culprit is known five times and write docs/trace.md (hours; it can be resumed)
	$(BIN)/python -m tests.corpus.trace_corpus --write docs/trace.md

bench-trace: $(VENV)/.dev ## Measure what watching every operation costs beside torch's DebugMode, and how soon a trace answers
	$(BIN)/python benchmarks/trace.py

measure-corpus: $(VENV)/.dev ## Run every labelled script by itself, 20 times and more, for what is new in it (resumes)
	$(BIN)/python -m tests.corpus.measure

check: $(VENV)/.dev ## Audit the project's own example, as a user's CI would
	$(BIN)/detaudit check

lint: $(VENV)/.dev ## Check style, types and the shape of the house
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_structure.py

bench: $(VENV)/.dev ## Measure the cost of detaudit itself
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/recorder.py
	$(BIN)/python benchmarks/digest.py
	$(BIN)/python benchmarks/keras.py

# picire asks for a setuptools that still has pkg_resources.
bench-bisect: $(VENV)/.dev ## Count the launches of the search beside ddmin and one flag at a time
	$(BIN)/pip install --quiet picire 'setuptools<81'
	$(BIN)/python -W ignore benchmarks/search.py

clean: ## Remove what the targets above made
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .detaudit
