# `make` lists what can be made.
GO        ?= go
VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
PREFIX    ?= /usr/local
DESTDIR   ?=
FUZZTIME  ?= 60s
FUZZOTHERS ?= $(FUZZTIME)
# Packages whose tests want the machine to themselves.
ALONE     := /(bpf|drill|profiler|profiler/unwind|proxy|watchdog)$$
LINT      := build/tools/golangci-lint
LINT_VERSION := v2.15.0
GOTESTSUM := build/tools/gotestsum
GOTESTSUM_VERSION := v1.13.0
NFPM      := build/tools/nfpm
NFPM_VERSION := v2.43.0
# Debian wants a version that begins with a digit; without a tag it is 0.
PACKAGE_VERSION ?= $(shell git describe --tags --match 'v[0-9]*' 2>/dev/null | sed 's/^v//;s/-/+/g' | grep . || echo "0+git$$(git log -1 --format=%cd --date=format:%Y%m%d%H%M).$$(git rev-parse --short HEAD)")

.DEFAULT_GOAL := help
.PHONY: help build demo test cases negatives soak bench kernels fuzz generate lint install package package-files clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## bin/spinguard, static, without cgo
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/spinguard ./cmd/spinguard

demo: ## replay the outage on a private nginx and watch it heal (as root; installs what it lacks)
	@scripts/install-packages.sh demo
	@$(MAKE) --no-print-directory build
	@bin/spinguard drill gcd-nan --out build/demo

test: $(if $(TRIES),$(GOTESTSUM)) ## all tests (as root; installs what they lack); TRIES=2 runs those that fail again
	@scripts/install-packages.sh test
	@$(MAKE) --no-print-directory build
	@# First, three at a time, since they mostly wait, what does not care how busy the machine is; then, alone, what samples, judges and times.
	@all=$$($(GO) list ./...) && export SPINGUARD_BIN=$(CURDIR)/bin/spinguard && code=0 && \
	  GO='$(GO)' scripts/test.sh '$(TRIES)' 3 $$(echo "$$all" | grep -Ev '$(ALONE)') || code=1; \
	  GO='$(GO)' scripts/test.sh '$(TRIES)' 1 $$(echo "$$all" | grep -E '$(ALONE)') || code=1; exit $$code

cases: build ## every case, with the agent acting (as root); CASES=faults leaves out the negatives, TRIES=2 runs what fails again
	bin/spinguard drill $(or $(CASES),cases) --tries $(or $(TRIES),1) --out build/cases

negatives: build ## what only looks bad, for FOR (default 5m), with one agent: nothing may happen (as root)
	bin/spinguard drill negatives --one-agent --for $(or $(FOR),5m) --out build/negatives

soak: build ## negatives for hours, with one agent: SOAK=3h make soak (default 1h; as root)
	bin/spinguard drill negatives --one-agent --for $(or $(SOAK),1h) --out build/soak

bench: build ## measure speed and memory, perf beside it where installed; prints its methods
	@command -v perf >/dev/null || apt-get install -y -qq linux-perf >/dev/null 2>&1 || true
	$(GO) run ./bench -spinguard bin/spinguard
	SPINGUARD_BIN=$(CURDIR)/bin/spinguard $(GO) test -p 1 -run '^$$' -bench . -benchtime 1s ./...

kernels: ## tests of the BPF programs under another kernel, emulated; KERNELS=vmlinuz... (default: Debian's)
	@GO='$(GO)' scripts/kernels.sh $(KERNELS)

fuzz: ## readers of foreign memory for FUZZTIME (60s) each, other fuzz targets for FUZZOTHERS (as long)
	@GO='$(GO)' scripts/fuzz.sh $(FUZZTIME) $(FUZZOTHERS)

generate: ## regenerate the BPF objects, the page assets and the documentation of configuration and API
	$(GO) generate ./...
	$(GO) test ./watchdog/config ./web -run Documentation -update

lint: $(LINT) ## golangci-lint, luacheck, go.mod as `go mod tidy` leaves it
	$(GO) mod tidy -diff
	$(LINT) run ./...
	luacheck --quiet balancer drill/scenarios

$(LINT):
	GOBIN=$(CURDIR)/build/tools $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)

$(GOTESTSUM):
	GOBIN=$(CURDIR)/build/tools $(GO) install gotest.tools/gotestsum@$(GOTESTSUM_VERSION)

install: build package-files ## install to DESTDIR/PREFIX (default /usr/local)
	install -D -m 755 bin/spinguard $(DESTDIR)$(PREFIX)/bin/spinguard
	install -d $(DESTDIR)$(PREFIX)/share/lua/5.1/resty
	cp -r balancer/lua/resty/. $(DESTDIR)$(PREFIX)/share/lua/5.1/resty/
	install -D -m 644 deploy/systemd/spinguard.service $(DESTDIR)$(PREFIX)/lib/systemd/system/spinguard.service
	install -D -m 644 build/package/spinguard.8.gz $(DESTDIR)$(PREFIX)/share/man/man8/spinguard.8.gz
	install -D -m 644 build/package/spinguard.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/spinguard
	install -D -m 644 build/package/_spinguard $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_spinguard
	test -e $(DESTDIR)/etc/spinguard/agent.yaml || install -D -m 644 deploy/agent.yaml $(DESTDIR)/etc/spinguard/agent.yaml

package: $(NFPM) package-files ## build/spinguard_*.deb
	rm -f build/spinguard_*.deb
	PACKAGE_VERSION='$(PACKAGE_VERSION)' $(NFPM) package --config deploy/debian/nfpm.yaml --packager deb --target build/

package-files: build
	mkdir -p build/package
	bin/spinguard manual | gzip -9n > build/package/spinguard.8.gz
	bin/spinguard completion bash > build/package/spinguard.bash
	bin/spinguard completion zsh > build/package/_spinguard

$(NFPM):
	GOBIN=$(CURDIR)/build/tools $(GO) install github.com/goreleaser/nfpm/v2/cmd/nfpm@$(NFPM_VERSION)

clean: ## remove what was built
	rm -rf bin build
