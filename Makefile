# What a developer runs. Every target makes and checks its own .venv first; the second
# time that costs nothing. PYTHON=/path/to/python chooses another interpreter.
PYTHON ?= python3
UV ?= uv
VENV_PYTHON := .venv/bin/python

# A Python that was named is used or refused; otherwise a newer one is looked for.
EXACTLY := $(if $(filter file,$(origin PYTHON)),,--exactly)

.DEFAULT_GOAL := help
.PHONY: help venv demo test test-cluster test-long soak lock format clean

help: ## say what there is
	@sed -n 's/^\([a-z-]*\):.* ## \(.*\)/make \1: \2/p' $(MAKEFILE_LIST) | \
		awk -F': ' '{ printf "  %-18s %s\n", $$1, $$2 }'

venv: ## make .venv with the locked packages
	@command -v "$(PYTHON)" >/dev/null || { echo "Trimtab needs Python 3.11 or newer\
	 and there is no $(PYTHON) here: install it (Debian and Ubuntu: apt install python3\
	 python3-venv), or name one with make PYTHON=/path/to/python." >&2; exit 1; }
	@exec "$(PYTHON)" -I -S hack/bootstrap.py $(EXACTLY)

demo: venv ## see it work
	@$(VENV_PYTHON) examples/demo.py

test: venv ## lint, types, layers and every test but the long ones (6 min at most)
	@$(VENV_PYTHON) -m hack.tiers test

test-cluster: venv ## every test that speaks to a server, on a real one (15 min)
	@$(VENV_PYTHON) hack/cluster/build.py
	@$(VENV_PYTHON) -m hack.tiers cluster

test-long: venv ## the long tests; writes docs/evidence (MINUTES=60)
	@$(VENV_PYTHON) hack/cluster/build.py
	@$(VENV_PYTHON) -m hack.tiers long $(if $(MINUTES),--minutes $(MINUTES))

soak: venv ## simulate random runs of the example for long (MINUTES=10)
	@$(VENV_PYTHON) -m trimtab sim examples/website.py \
		--minutes $(if $(MINUTES),$(MINUTES),10)

# Keeps what is locked where it still fits; LOCK_FLAGS=--upgrade takes the newest.
lock: ## make requirements/dev.txt again (needs uv)
	@command -v "$(UV)" >/dev/null || { echo "make lock needs uv: install it\
	 (pipx install uv) and run make lock again." >&2; exit 1; }
	@"$(UV)" pip compile --quiet --universal --generate-hashes --python-version 3.11 \
		--extra embedded --extra vmafx --extra plot --extra sessions \
		--extra training \
		--custom-compile-command 'make lock' $(LOCK_FLAGS) \
		pyproject.toml requirements/dev.in --output-file requirements/dev.txt

format: venv ## format and mend what ruff can mend
	@$(VENV_PYTHON) -m ruff check --quiet --fix . || true
	@$(VENV_PYTHON) -m ruff format .

clean: ## remove .venv and every cache of a tool
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache \
		.hypothesis build dist
