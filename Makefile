# Front door to CMake, CTest and the scripts; `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# A file that includes libtorch takes 1 GB to compile: as many jobs as cores and memory allow.
JOBS ?= $(shell awk -v cores="$$(nproc)" '/^MemAvailable/ { fit = int($$2 / 1.5e6) } \
  END { print fit < 1 ? 1 : fit < cores ? fit : cores }' /proc/meminfo)
CTEST_ARGS ?=
export JOBS

launcher := $(if $(shell command -v ccache),-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
funcpipe := build/release/funcpipe

# $(call configure,PRESET): only once; afterwards ninja notices changed CMake files itself.
configure = [ -f build/$(1)/build.ninja ] || cmake --preset $(1) $(launcher)
# $(call build,PRESET,TARGETS)
build = $(call configure,$(1)); cmake --build --preset $(1) --parallel $(JOBS) $(if $(2),--target $(2))
# $(call check,PRESET)
check = $(call build,$(1)); ctest --test-dir build/$(1) --output-on-failure --no-tests=error $(CTEST_ARGS)

.PHONY: help
help:  ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

.PHONY: deps
deps:  ## install the Debian packages that are missing
	@scripts/deps.sh

.PHONY: build
build: deps  ## build everything into build/release
	@$(call build,release)

.PHONY: test
test: deps  ## build and run all tests
	@$(call check,release)

.PHONY: demo
demo: deps  ## train a convolutional net on MNIST with four functions
	@$(call build,release,funcpipe)
	@scripts/fetch_mnist.sh data/mnist-idx
	@[ -f data/mnist/train/index.json ] && [ -f data/mnist/test/index.json ] || \
	  $(funcpipe) data import mnist data/mnist-idx -o data/mnist
	@$(funcpipe) train examples/mnist.yaml --run-dir runs/mnist --overwrite
	@echo
	@echo "The trained weights are in runs/mnist: model.safetensors, and model.pt for PyTorch's torch.jit.load:"
	@echo "  /usr/bin/python3 -c 'import torch; print(torch.jit.load(\"runs/mnist/model.pt\"))'"

.PHONY: bench
bench: deps  ## build and run the benchmarks
	@$(call configure,release); cmake -DFUNCPIPE_BUILD_BENCH=ON build/release >/dev/null
	@$(call build,release)
	@for bench in build/release/bench/*_bench; do echo "== $$bench"; "$$bench"; done
	@PYTHONPATH=python /usr/bin/python3 bench/overhead.py $(funcpipe)

.PHONY: asan
asan: deps  ## run all tests under the address and undefined-behaviour sanitizers
	@$(call check,asan)

.PHONY: tsan
tsan: deps  ## run the tests that need no libtorch under the thread sanitizer
	@$(call check,tsan)

.PHONY: format
format:  ## format all C++ files
	@scripts/format.sh

.PHONY: lint
lint: deps  ## check layers, formatting and clang-tidy on what changed since BASE (default: the last commit)
	@$(call configure,release)
	@scripts/lint.sh $(BASE)

.PHONY: clean
clean:  ## remove build/; data and runs stay
	@rm -rf build
