# run       set up .venv and qualify this machine with lanes/diabetes.yaml; the bundle lands under runs/
# test      the tests: every kind of fault; each at a choice of places where it may strike
# test-all  each of those at every place, too: some times as long
# check     format, lint, types and import contracts
# gates     what can be said of every gate's lanes without machines: built twice, checked, the same bytes
# bench     what the parts cost on this machine
# fuzz      what a role reads, with any input, for MINUTES=10 in all; finds go to .fuzz, which is kept
# clean     remove what the targets above made in this folder, but for bundles and the tracker's database
# help      these lines
#
# Needs make and Python 3.11 or newer. Outside this folder: built programs are kept in $XDG_CACHE_HOME/orch (else
# ~/.cache/orch), roles work under $TMPDIR/orch-<uid> (else /tmp/orch-<uid>) while they run, pip keeps its cache, and
# a root user on Debian or Ubuntu gets the packages that are missing (python3-venv, qemu-user-static, and for the
# tests openssh-server, dropbear-bin, busybox-static and iproute2).

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# A venv holds absolute paths, and what is installed in it follows pyproject.toml: each of the two, and
# another interpreter, makes the stamps stale.
KEY := $(shell { cat pyproject.toml; echo '$(CURDIR)'; $(PYTHON) -VV; } 2>&1 | cksum | tr -s ' \t' '-')
STAMP := $(VENV)/.installed-$(KEY)
EXTRA_test := [test]
EXTRA_check := [check]
EXTRA_gates := [device]

MACHINE := $(shell uname -m)
OTHER := $(if $(filter aarch64 arm64,$(MACHINE)),x86_64,aarch64)

APT := DEBIAN_FRONTEND=noninteractive apt-get
CAN_APT := [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null

MINUTES ?= 10

# Many tests wait for processes, disks and deadlines: twice as many at once as there are processors.
WORKERS ?= $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
# Faults are injected at moments: a test that fails beside others is told, and has to pass with nothing beside it.
AGAIN := echo "some tests failed; each of them again, alone:" && $(BIN)/python -m pytest --last-failed \
  --last-failed-no-failures none

.PHONY: run test test-all check gates bench fuzz clean help qemu nodes
.DEFAULT_GOAL := run

run: $(STAMP)-run $(if $(filter x86_64 amd64,$(MACHINE)),,qemu)
	@$(BIN)/orch run lanes/diabetes.yaml

test: $(STAMP)-test qemu nodes
	$(PYTEST) || { [ $$? = 1 ] && $(AGAIN); }

test-all: $(STAMP)-test qemu nodes
	ORCH_TEST_ALL=1 $(PYTEST) -m ''

check: $(STAMP)-check
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	@said=$$($(BIN)/lint-imports 2>&1) && echo "import contracts hold" || { echo "$$said"; exit 1; }

gates: $(STAMP)-gates
	@$(BIN)/orch gate

bench: $(STAMP)-run
	$(BIN)/python -m benchmarks

fuzz: $(STAMP)-test
	@command -v clang >/dev/null || { \
	  if $(CAN_APT); then $(APT) update -qq && $(APT) install -qq -y clang libclang-rt-dev; \
	  else echo "clang is missing; on Debian and Ubuntu: apt install clang libclang-rt-dev"; fi >&2; }
	nice -n 19 $(BIN)/python tests/fuzz/fuzzing.py $(MINUTES) .fuzz

clean:
	rm -rf $(VENV) dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find orchestrator evidence tracker tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

$(STAMP)-%: | $(VENV)/.made-$(KEY)
	@echo "installing orch$(EXTRA_$*) into $(VENV)" >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.$(EXTRA_$*)'
	@touch $@

$(VENV)/.made-$(KEY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "orch needs Python 3.11 or newer; name one: make PYTHON=python3.12 run" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  if $(CAN_APT); then $(APT) update -qq && $(APT) install -qq -y python3-venv; fi >&2; \
	  $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) cannot make virtual environments; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }; }
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

# The other instruction set's role programs run under user-mode emulation. Without it orch says what it needs,
# by label.
qemu:
	@command -v qemu-$(OTHER)-static >/dev/null || { \
	  if $(CAN_APT); then $(APT) update -qq && $(APT) install -qq -y qemu-user-static; \
	  else echo "qemu-$(OTHER)-static is missing; on Debian and Ubuntu: apt install qemu-user-static"; fi >&2; }

# What the tests' own nodes are made of: program:package. Tests that lack one of them say so and are skipped.
NODES := sshd:openssh-server dropbear:dropbear-bin busybox:busybox-static ip:iproute2
nodes:
	@lacking=$$(PATH="$$PATH:/usr/sbin:/sbin"; for pair in $(NODES); do \
	  command -v "$${pair%%:*}" >/dev/null || printf ' %s' "$${pair#*:}"; done); \
	[ -z "$$lacking" ] || { \
	  if $(CAN_APT); then $(APT) update -qq && $(APT) install -qq -y $$lacking; \
	  else echo "some tests will be skipped; on Debian and Ubuntu: apt install$$lacking"; fi >&2; }
