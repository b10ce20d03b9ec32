# make demo: raw text to BLEU on a CPU in minutes.  make test: the whole suite.
# Each installs what is missing into .venv first.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt

unexport PYTHON  # it makes .venv; what runs after that is of .venv

.PHONY: install same-python demo test test-slow test-gpu notebook lint clean

install: $(INSTALLED)

# fairseq-fixed is compiled where there is no wheel of it, against the torch that is installed.
$(INSTALLED): setup.py constraints.txt | same-python
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || \
	    { echo "$(PYTHON) is not Python 3.11, 3.12 or 3.13: name one that is, as in make PYTHON=python3.12"; exit 2; }
	@$(BIN)/python -m pip --version > /dev/null 2>&1 || $(PYTHON) -m venv $(VENV)
	@echo "installing torch, fairseq and the plugin into $(VENV): 7 GB, or 2 without CUDA; nothing is printed for some minutes"
	@$(PIP) torch numpy cython setuptools wheel
	@$(PIP) --no-build-isolation "fairseq-fixed==0.12.3.1"
	@$(PIP) --no-build-isolation -e ".[test,export,serve]"
	@touch $@

# A Python named on the command line is that of .venv, where there is one.
same-python:
	@$(PYTHON) -V > /dev/null 2>&1 || [[ "$(origin PYTHON)" != "command line" && -x $(BIN)/python ]] || \
	    { echo "$(PYTHON) does not run: name a Python that does, as in make PYTHON=python3.12"; exit 2; }
	@[[ "$(origin PYTHON)" != "command line" || ! -x $(BIN)/python || \
	    $$($(PYTHON) -V) == $$($(BIN)/python -V) ]] || \
	    { echo "$(VENV) has $$($(BIN)/python -V), not $$($(PYTHON) -V): 'make clean' first"; exit 2; }

# Whatever environment is active.
demo: export VIRTUAL_ENV := $(CURDIR)/$(VENV)
demo: export PATH := $(CURDIR)/$(BIN):$(PATH)

demo: install
	@recipes/run.sh toy

# The models of the tests are too small for threads to help: a process a core does more.
test: export OMP_NUM_THREADS ?= 1
test-slow: export OMP_NUM_THREADS ?= 2

test: install
	@echo "The suite takes 9 to 16 minutes on 2 cores. make test-slow has the long tests."
	@$(BIN)/python -m pytest -m "not slow and not gpu" \
	    --numprocesses auto --maxprocesses 8 --dist loadfile

test-slow: install
	$(BIN)/python -m pytest -m slow

# With the Python that is active if it has what is needed: a GPU machine may have no network.
GPU_TESTS = -m pytest -m gpu $$(grep -rl --include='test_*.py' pytest.mark.gpu tests)
COMPLETE = $(PYTHON) -c "import fairseq, pytest, sacremoses" 2> /dev/null

test-gpu:
	@$(COMPLETE) || $(MAKE) install
	@if $(COMPLETE); then $(PYTHON) $(GPU_TESTS); else $(BIN)/python $(GPU_TESTS); fi

# The notebook with its outputs, from the program beside it and the demo's model.
notebook: demo
	@$(PIP) jupytext nbconvert ipykernel
	@$(BIN)/jupytext --quiet --to ipynb --set-kernel python3 examples/annotated_transformer.py
	@$(BIN)/jupyter-nbconvert --log-level ERROR --to notebook --inplace --execute \
	    --ExecutePreprocessor.record_timing=False examples/annotated_transformer.ipynb

lint: install
	$(BIN)/python -m pytest tests/test_style.py

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache
