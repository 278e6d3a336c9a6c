# SPDX-License-Identifier: Apache-2.0
# A thin front of CMake. `make demo` and `make test` are all that a newcomer needs; `make help` lists the rest.
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
DESTDIR ?=
MAKEFLAGS += --no-print-directory

deps = @sh tools/install-deps.sh
configure = @cmake --preset $(1) --log-level=WARNING >/dev/null
build = @cmake --build --preset $(1) --parallel $(JOBS)
test = @ctest --preset $(1) --parallel $(JOBS)
# The thread sanitizer of gcc 12 dislikes kernels with wide address randomisation; where it can be off, it is.
fixed_addresses := $(shell setarch -R true 2>/dev/null && echo setarch -R)

.PHONY: all program demo test test-default test-asan test-tsan clang bench install clean format format-check help

all:
	$(deps) build
	$(call configure,default)
	$(call build,default)

program:
	$(deps) demo
	$(call configure,default)
	$(call build,default) --target kvlane-tool

demo: program ## move a model's paged KV cache from a prefill to a decode process and check every byte
	@build/kvlane demo

bench: program ## measure all shapes; BENCH="single --size 4KiB" for one
	@$(if $(BENCH),build/kvlane bench $(BENCH),set -e; for shape in $(shapes); do build/kvlane bench $$shape; done)

shapes = scatter single mixed post idle

test: test-default test-asan test-tsan ## the whole suite, then under the address, undefined and thread sanitizers

test-default:
	$(deps) test
	$(call configure,default)
	$(call build,default)
	$(call test,default)

test-asan:
	$(deps) test
	$(call configure,asan)
	$(call build,asan)
	$(call test,asan)

test-tsan:
	$(deps) test
	$(call configure,tsan)
	$(call build,tsan)
	@$(fixed_addresses) ctest --preset tsan --parallel $(JOBS)

clang: ## compile everything with clang too
	$(deps) ci
	$(call configure,clang)
	$(call build,clang)

install: all ## PREFIX=/usr/local DESTDIR=
	@DESTDIR="$(DESTDIR)" cmake --install build --prefix "$(PREFIX)"

sources = $(shell find include src tools examples tests -name '*.[ch]')

format: ## rewrite all C files in the project's style
	$(deps) ci
	@clang-format -i $(sources)

format-check:
	$(deps) ci
	@clang-format --dry-run --Werror $(sources)

clean:
	@cmake -E rm -rf build build-asan build-tsan build-clang build-cuda

help:
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20
