# errand: every target needs Go, git and make, nothing else. Run `make` for the list.

GO        ?= go
ARGS      ?=
FUZZTIME  ?= 10s
BENCH     ?= .
SEED      ?= 1
WALKS     ?= 1
PLATFORMS ?= linux-amd64 linux-arm64 darwin-arm64
IMAGE     ?= linux-$(shell $(GO) env GOARCH)
VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
GEN        = $(GO) run ./internal/tools/gen

# Root boxes need root; for the others it matters who runs them: namespaces, sandboxes and files differ.
ROOTED     = ./e2e/rootbox/... ./e2e/cloud/... ./e2e/image/... ./internal/runner/... ./internal/fleet/... ./internal/remote/... ./internal/egress/... \
             ./internal/server/... ./internal/config/... ./internal/sim/simagent/...

# Without symbol tables, which stack traces do not need, test programs are linked twice as fast. There are 118 of them.
# gotestsum counts: it prints a line per package, the output of what failed and why tests were skipped, then calls .ci/counts.
# .ci/tools.mod has its version, apart from go.mod, so that it moves no version that the product is built with.
COUNT      = $(GO) tool -modfile=.ci/tools.mod gotestsum --format pkgname-and-test-fails --format-hide-empty-pkg \
             --jsonfile $(shell mkdir -p .cache && echo .cache/tests.json) --post-run-command .ci/counts -- -ldflags='-s -w'
# Many tests wait, for processes and disks: more packages at a time than there are processors. `make lint` and CI vet everything.
AT_ONCE    = -vet=off -p $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) * 2)))

# Tests that take minutes are named TestHeavy…. `make test` reports them as skipped, `make test-full` runs nothing else.
HEAVY      = $(addprefix ./,$(sort $(dir $(shell grep -rl --include=*_test.go '^func TestHeavy' cmd e2e handlers internal state))))

# Runs a command with its temporary files in memory, if there is enough.
SCRATCH    = .ci/scratch

# In both, the simulators record their answers, which `make test-full` compares with what GitHub and Hetzner publish.
RECORDINGS = $(CURDIR)/.cache/said
RECORD     = SIMGITHUB_RECORD=$(RECORDINGS)/github SIMHETZNER_RECORD=$(RECORDINGS)/hetzner

# No C compiler is needed, programs are static, and all targets but race share the build cache.
export CGO_ENABLED ?= 0
# The build cache does not depend on the folder then, and has what a release needs.
export GOFLAGS := $(strip $(filter-out -trimpath,$(shell $(GO) env GOFLAGS)) -trimpath)

.DEFAULT_GOAL := help
.PHONY: help demo test test-full test-root race lint fuzz walk bench verify generate build runner release image pictures published clis probot rootfs tidy clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: runner ## play the whole life of a task on this machine (ARGS="-interactive" keeps it up, ARGS="-setup" is for trying errand setup)
	$(GO) build -o bin/errand-demo ./cmd/errand-demo
	$(if $(findstring -setup,$(ARGS)),$(GO) build -o bin/errand ./cmd/errand)
	@bin/errand-demo $(ARGS)

test: ## all tests but the heavy ones; skipped tests are reported
	$(RECORD) $(SCRATCH) $(COUNT) $(AT_ONCE) -timeout 20m ./...

test-full: export PATH := $(CURDIR)/.cache/clis/bin:$(PATH)

test-full: published clis probot ## the heavy tests, which take minutes or need installed programs; also checks the simulators' answers
	@test -d $(RECORDINGS)/github || $(MAKE) test
	$(RECORD) ERRAND_TEST_FULL=1 $(SCRATCH) $(COUNT) $(AT_ONCE) -count=1 -timeout 40m -run '^TestHeavy' $(HEAVY)
	ERRAND_SAID=$(RECORDINGS)/github ERRAND_SAID_HETZNER=$(RECORDINGS)/hetzner $(GO) test -count=1 -v ./e2e/likeness/...

test-root: rootfs ## the tests that need root, or that behave differently with it, as root
	ERRAND_TEST_FULL=1 $(COUNT) -vet=off -count=1 -timeout 20m $(ROOTED)

published: ## GitHub's published API descriptions, by npm, into .cache/published (ERRAND_REQUIRE_NPM=1 makes its absence an error)
	@cmp -s e2e/likeness/package-lock.json .cache/published/package-lock.json && exit 0; rm -rf .cache/published; \
	mkdir -p .cache/published && cp e2e/likeness/package.json e2e/likeness/package-lock.json .cache/published && \
	npm ci --prefix .cache/published --ignore-scripts --no-audit --no-fund && exit 0; rm -rf .cache/published; \
	echo "npm cannot install GitHub's published API descriptions: the simulator is not compared with it"; test -z "$$ERRAND_REQUIRE_NPM"

clis: ## the real agent programs, by npm, into .cache/clis/bin (900 MB; Gemini CLI needs Node.js 20; ERRAND_REQUIRE_NPM=1 makes their absence an error)
	@$(GO) run ./internal/tools/clis .cache/clis && exit 0; rm -rf .cache/clis; \
	echo "npm cannot install the real agent programs: the tests that need them are skipped"; test -z "$$ERRAND_REQUIRE_NPM"

probot: ## Probot, which webhooks are compared with, by npm, into .cache/probot (90 MB; without it the comparison is left out)
	@cmp -s e2e/bench/probot/package-lock.json .cache/probot/package-lock.json && exit 0; rm -rf .cache/probot; \
	mkdir -p .cache/probot && cp e2e/bench/probot/package.json e2e/bench/probot/package-lock.json .cache/probot && \
	npm ci --prefix .cache/probot --ignore-scripts --no-audit --no-fund || { rm -rf .cache/probot; echo "npm cannot install Probot: webhooks are not compared with it"; }

rootfs: ## the base file system of root boxes, into .cache/rootbox (as root, with mmdebstrap; takes a minute, once)
	$(GO) run ./e2e/rootbox/rootfs

# A data race needs two goroutines: the packages are those that start goroutines or use locks, and the tests that run all of errand.
RACED      = ./e2e ./e2e/cloud ./e2e/crash ./e2e/leak ./e2e/secrets ./cmd/... $(addprefix ./,$(sort $(dir $(shell \
             grep -rlE '^\s*go [a-zA-Z]|"sync"|"sync/atomic"|sync/errgroup"' --include=*.go --exclude=*_test.go handlers internal state))))
# Random lives and their controls, leaks, load and all crashes but one story's are the same code many times over.
NOT_RACED  = ^Test(BaseUpdates|CanceledWork|Continuity|Controls|Load|Merge|NothingLeaks|Queue|RandomLives|Rerun|Sample|StorageIsOnTheBill)$$

# By default the race detector has every program wait for a second at its end, and tests start hundreds.
race: ## the tests of what runs concurrently under the race detector (needs a C compiler)
	CGO_ENABLED=1 GORACE="$${GORACE:-atexit_sleep_ms=0}" $(SCRATCH) $(COUNT) $(AT_ONCE) -race -skip '$(NOT_RACED)' -timeout 20m $(RACED)

lint: ## gofmt, vet, and staticcheck where it is installed
	@files="$$(gofmt -l cmd handlers internal prompts state $$(ls -d e2e 2>/dev/null))"; test -z "$$files" || { echo "run gofmt on:"; echo "$$files"; exit 1; }
	$(GO) vet ./...
	@if command -v staticcheck >/dev/null; then echo staticcheck ./...; staticcheck ./...; else echo "staticcheck is not installed: skipped"; fi

fuzz: ## every fuzz target for FUZZTIME (10s)
	$(GO) run ./internal/tools/fuzz -time $(FUZZTIME)

walk: ## replay a random walk (SEED=N), or run WALKS new ones (SEED=N WALKS=1000)
	$(GO) test ./e2e/walk -run 'TestWalks/shard/0' -count=1 -v -timeout 30m -rapid.seed=$(SEED) -rapid.checks=$(WALKS)

bench: probot ## all benchmarks, or those that match BENCH
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem ./...

generate: ## write the documents that are made from code
	$(GEN)

verify: ## check the source tree: format, go.mod, generated documents, dead code, imports, sizes, links
	@files="$$(gofmt -l cmd handlers internal prompts state $$(ls -d e2e 2>/dev/null))"; test -z "$$files" || { echo "run gofmt on:"; echo "$$files"; exit 1; }
	$(GO) mod tidy -diff
	$(GEN) -check
	$(GO) run ./internal/tools/deadcode
	$(SCRATCH) $(COUNT) $(AT_ONCE) -timeout 20m ./internal/repotest/... ./internal/tools/... ./internal/config/...

build: runner ## bin/errand, bin/errand-demo, and the runner for this machine and for VMs
	$(GO) build -o bin/errand ./cmd/errand
	$(GO) build -o bin/errand-demo ./cmd/errand-demo
	GOOS=linux GOARCH=amd64 $(GO) build -ldflags "-s -w" -o bin/errand-runner-linux-amd64 ./cmd/errand-runner
	GOOS=linux GOARCH=arm64 $(GO) build -ldflags "-s -w" -o bin/errand-runner-linux-arm64 ./cmd/errand-runner

runner: ## bin/errand-runner for this machine
	@test -e bin/errand-runner || echo "Compiling errand and its dependencies, which takes some minutes the first time."
	$(GO) build -ldflags "-s -w" -o bin/errand-runner ./cmd/errand-runner

release: ## dist/: a reproducible archive and a list of components (SBOM) per platform, with checksums (PLATFORMS="linux-amd64 …")
	GO="$(GO)" VERSION="$(VERSION)" .ci/release $(PLATFORMS)

image: ## dist/: a container image for this machine's processor, made by mmdebstrap (as root, or with user namespaces; IMAGE=linux-arm64 needs qemu)
	GO="$(GO)" VERSION="$(VERSION)" .ci/image $(IMAGE)

pictures: ## docs/images: the README's pictures, kept by the browser tests
	ERRAND_TEST_FULL=1 ERRAND_PICTURES=$(CURDIR)/docs/images ERRAND_REQUIRE_CHROMIUM=1 $(GO) test -count=1 -run '^TestHeavyByClicks$$' ./e2e/browser

tidy: ## go.mod and gofmt
	$(GO) mod tidy
	gofmt -w cmd handlers internal prompts state $$(ls -d e2e 2>/dev/null)

clean: ## delete build output and the simulators' recorded answers
	rm -rf bin dist .cache/said
