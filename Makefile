# The commands of memlab. The first one sets .venv up; from then on they start at once and need no network.
# Settings: PYTHON, MEMLAB_PYTHON, MEMLAB_TORCH, MEMLAB_TORCH_INDEX (tools/bootstrap.py tells what they do).

ifeq ($(OS),Windows_NT)
PYTHON ?= python
else
PYTHON ?= python3
endif
RUN := $(PYTHON) tools/bootstrap.py run
# mypy reads the browser tests too.
LINT := $(RUN) --extra lint --extra test --extra browser --

NOTEBOOKS := $(sort $(wildcard notebooks/*.ipynb))
NBVAL := $(if $(NOTEBOOKS),--nbval-lax --nbval-current-env --nbval-sanitize-with tests/nbval_sanitize.cfg)

# Jupyter refuses to run as root unless told; in a container there is nobody else.
ALLOW_ROOT := $(if $(filter 0,$(shell id -u 2>/dev/null)),--allow-root)

.DEFAULT_GOAL := help
.PHONY: help demo test test-browser test-mcp lab lint clean distclean

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' Makefile

demo: ## set up, build a store from the sample and recall from it
	@$(RUN) -- memlab demo

test: ## set up and run all tests that need no browser, notebooks included
	@$(RUN) --extra test -- python -m pytest $(NBVAL) tests $(NOTEBOOKS) $(ARGS)

test-browser: ## set up and test the widgets in JupyterLab with a real browser (needs Chromium)
	@$(RUN) --extra test --extra browser -- python -m pytest tests/browser $(ARGS)

test-mcp: ## set up and test the MCP server with the Inspector and the conformance suite (needs npm)
	@$(RUN) --extra test -- python -m pytest tests/mcp_tools $(ARGS)

lab: ## set up and open JupyterLab on the first notebook
	@$(RUN) --extra notebook -- jupyter lab $(ALLOW_ROOT) $(firstword $(NOTEBOOKS)) $(ARGS)

lint: ## set up and check style and types
	@$(LINT) python -m ruff check
	@$(LINT) python -m ruff format --check
	@$(LINT) python -m mypy

clean: ## remove what builds and tests leave
	rm -rf build dist htmlcov screenshots .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name .venv -prune -o \( -name __pycache__ -o -name .ipynb_checkpoints \) -type d -prune -exec rm -rf {} +

distclean: clean ## the same, and .venv and .mcp-tools
	rm -rf .venv .mcp-tools
