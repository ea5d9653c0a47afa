# Every target requires only Go, make, gcc and git, unless its help says otherwise; all other tools are Go modules.
SHELL := /usr/bin/env bash -o pipefail
.SHELLFLAGS := -ec
.DEFAULT_GOAL := help

VERSION ?= 0.1.0
GOLANGCI_LINT_VERSION ?= v2.12.2
BUF_VERSION ?= v1.75.0
JSONNET_VERSION ?= v0.21.0
GOTESTSUM_VERSION ?= v1.13.0
D2_VERSION ?= v0.7.1
VALE_VERSION ?= v3.22.0
VALE = CGO_ENABLED=1 go run github.com/vale-cli/vale/v3/cmd/vale@$(VALE_VERSION) --config=test/docs/vale/vale.ini
# grpcnotrace excludes a tracing package with templates; the binary is 11 MB smaller without it.
TAGS := grpcnotrace
# The commit, if Go does not embed it; see cmd/release.
COMMIT ?=
LDFLAGS := -s -w -X main.version=$(VERSION) $(if $(COMMIT),-X main.commit=$(COMMIT))
BINARY ?= bin/manager
PLUGIN ?= bin/kubectl-odh
COMPONENTS := appwrapper mlflow mlflowaccess modelcatalog modelcatalog/namespaced modelcatalog/huggingface modelmesh modelmesh/models modelmesh/openshift modelmesh/runtimes modelregistry modelregistry/namespaced modelregistry/storage olm platform raycluster
CLUSTER ?= dev
# The race detector is enabled in unit tests of packages that start goroutines; with RACE=all in all unit tests and in the manager of suites.
RACE ?=
# The directory in which suites record the permissions that the manager used, see test/rbac.
RIGHTS_DIR ?= $(CURDIR)/bin/rights
# The manager that suites start; it is built once.
TEST_MANAGER ?= $(CURDIR)/bin/manager-test$(if $(RACE),-race)
# The client for the cluster of KUBECONFIG; `go run ./test/cluster/cmd/testcluster kubectl` prints the one that tests use.
KUBECTL ?= kubectl
OVERLAY ?= kubernetes
IMG ?=
PLATFORM ?= plain
CONTAINER_TOOL ?= $(if $(shell command -v docker),docker,$(if $(shell command -v podman),podman,docker))
REAL ?=
# The platforms of the image of the manager, in a release and with docker-buildx. The Deployment in the bundle selects nodes of these platforms.
PLATFORMS ?= linux/amd64,linux/arm64,linux/ppc64le,linux/s390x
# By default, docker-build builds the image that deploy deploys.
IMAGE = $(or $(IMG),$(shell sed -n 's/^odh-platform-operator-image=//p' 'config/overlays/$(OVERLAY)/params.env'))
# The registry of a release, and the builder in its provenance.
REGISTRY ?= ghcr.io/odh-platform
BUILDER ?=
DIST ?= $(CURDIR)/dist
# The operating systems of kubectl-odh in a release.
SYSTEMS ?= linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64
ALLOW_DIRTY ?=
BUNDLE_IMG ?= $(REGISTRY)/odh-platform-operator-bundle:v$(VERSION)
GOFIPS140 ?= off
IMAGE_ARGS = --build-arg VERSION='$(VERSION)' --build-arg GOFIPS140='$(GOFIPS140)'
FUZZTIME ?= 20s
HISTORY ?=
SIZES ?= 1000,5000
# The number of real nodes on which specs run in parallel.
E2E_NODES ?= 3
# A number of inputs in place of a time, because a time limit fails on a busy machine.
MESH_FUZZ ?= 10000x

export CGO_ENABLED ?= 0
# Tests compile with the flags of a release too, so libraries are compiled once.
export GOFLAGS := $(shell go env GOFLAGS) -trimpath -gcflags=all=-dwarf=false
# A cache per checkout, because the linter stores findings with the path of the checkout.
export GOLANGCI_LINT_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/golangci-lint-$(shell echo '$(CURDIR)' | cksum | cut -d' ' -f1)

# timed,targets: makes the targets sequentially, and prints the duration of each.
timed = for part in $(1); do SECONDS=0; $(MAKE) --no-print-directory $$part || exit; echo "$$part: $$SECONDS s" | tee -a "$${CI_SUMMARY:-/dev/null}"; done

# With the default GOGC, garbage collection takes a quarter of the CPU time of unit tests. Compilers keep the default, because they use more memory.
TEST_FLAGS := -vet=off -ldflags="-s -w" -shuffle=on -exec="env GOGC=400"

# run-tests,packages,flags: runs tests. In CI, a failed test is retried once and listed in CI_SUMMARY; locally it is not retried, so flaky
# tests are noticed. Results are not cached, because each run has a new seed. go vet is disabled, because the linters include it.
ifeq ($(CI),true)
define run-tests
report=$$(mktemp); trap 'cat "$$report" >>"$${CI_SUMMARY:-/dev/stderr}"; rm -f "$$report"' EXIT; \
CGO_ENABLED=$(if $(findstring -race,$(2)),1,0) go run gotest.tools/gotestsum@$(GOTESTSUM_VERSION) --format standard-quiet --rerun-fails=1 --rerun-fails-max-failures=3 \
  --rerun-fails-report="$$report" --packages="$(1)" -- $(TEST_FLAGS) $(2)
endef
else
run-tests = CGO_ENABLED=$(if $(findstring -race,$(2)),1,0) go test $(TEST_FLAGS) $(2) $(1)
endif

# The directories of unit tests. CONCURRENT start goroutines. UNRACED run without the race detector: generators start no goroutines, and
# tests that inject a fault into every request are many times slower with it.
with-tests = $(shell go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' $(1) | sed 's,^$(CURDIR),.,')
matching = $(sort $(patsubst %/,./%,$(dir $(shell grep -rlE --include=*.go '$(1)' apis cmd controllers pkg webhooks))))
UNIT_TESTS = $(eval UNIT_TESTS := $(call with-tests,./apis/... ./cmd/... ./controllers/... ./pkg/... ./webhooks/...))$(UNIT_TESTS)
GOROUTINE = ^\s*go (func|[a-zA-Z.]+\()|\.Go\(
CONCURRENT = $(filter $(call matching,$(GOROUTINE)),$(UNIT_TESTS))
UNRACED = $(call matching,fakeapi\.(Exhaustive|Scenario)) ./cmd/generate/%
RACED = $(filter-out $(UNRACED),$(if $(filter all,$(RACE)),$(UNIT_TESTS),$(CONCURRENT)))
# The tests of the test infrastructure.
TOOLS = ./test/bench ./test/chaos ./test/cluster/... ./test/filelock ./test/framework ./test/measure ./test/modelmesh/... ./test/node/... ./test/poll ./test/rights

# The longest suites start first, so they overlap with the others. Up to eight run in parallel, because they wait for half of the time; each
# uses up to 2.5 GB of memory.
LONGEST = $(addprefix ./test/integration/,install modelcatalog mlflow foundation docs appwrapper appwrapper_kueue modelregistry_plain modelregistry all_components platform)
SUITES ?= $(or $(shell awk '/^MemTotal/ { n = int($$2 / 2500000); print (n > 8 ? 8 : n < 1 ? 1 : n) }' /proc/meminfo 2>/dev/null),7)
SUITE_PACKAGES = $(LONGEST) $(filter-out ./test/rbac $(LONGEST) $(call with-tests,$(TOOLS)),$(call with-tests,./test/...))

##@ Use

.PHONY: demo
demo: ## Start a control plane and the manager, apply the samples, and wait until they are ready (REAL=1: on a real node, FORCE=1: replace a running demo)
	go run -tags $(TAGS) ./test/demo up $(if $(filter-out 0,$(REAL)),--real) $(if $(filter-out 0,$(FORCE)),--force)

.PHONY: demo-down
demo-down: ## Stop the demo
	go run -tags $(TAGS) ./test/demo down

.PHONY: cluster-up
cluster-up: ## Start a test cluster without the operator (CLUSTER=dev PLATFORM=bare|plain|openshift) and print the path of its kubeconfig
	go run ./test/cluster/cmd/testcluster up $(CLUSTER) --platform $(PLATFORM)

.PHONY: cluster-down
cluster-down: ## Stop the test cluster
	go run ./test/cluster/cmd/testcluster down $(CLUSTER)

.PHONY: clean-cache
clean-cache: ## Delete the cache directory of demo, tests and benchmarks; fails while a cluster is running
	go run ./test/cluster/cmd/testcluster clean

.PHONY: kserve-crds
kserve-crds: ## Write the CRDs of KServe to config/crd/kserve, for ModelMesh without KServe
	go run ./test/cluster/cmd/kservecrds write config/crd/kserve

.PHONY: install-kserve-crds
install-kserve-crds: ## Install the CRDs of KServe in the current cluster; keeps newer CRDs
	go run ./test/cluster/cmd/kservecrds install

##@ Install in the cluster of KUBECONFIG

# Variables are exported and not expanded in a command, because a value can contain special characters of a shell.
install deploy undeploy uninstall deploy-to-platform: export KUBECTL := $(KUBECTL)
install deploy undeploy uninstall deploy-to-platform: export OVERLAY := $(OVERLAY)
deploy deploy-to-platform: export IMG := $(IMG)
deploy-to-platform: export PLATFORM := $(if $(filter file,$(origin PLATFORM)),odh,$(PLATFORM))
deploy-to-platform: export ODH_GATEWAY_NAME := $(ODH_GATEWAY_NAME)
deploy-to-platform: export ODH_GATEWAY_NAMESPACE := $(ODH_GATEWAY_NAMESPACE)
uninstall: export FORCE := $(FORCE)
serve-models: export NAMESPACES := $(NAMESPACES)
serve-models: export STORAGE := $(STORAGE)

.PHONY: install
install: ## Install the CRDs (OVERLAY=kubernetes|openshift|odh|rhoai)
	config/manage install

.PHONY: deploy
deploy: ## Install the operator (OVERLAY=..., IMG= image of the manager)
	config/manage deploy

.PHONY: deploy-to-platform
deploy-to-platform: ## Like deploy, for PLATFORM=odh|rhoai (odh), with the address of the platform's Gateway (ODH_GATEWAY_NAME= ODH_GATEWAY_NAMESPACE=)
	config/manage deploy-to-platform

.PHONY: undeploy
undeploy: ## Remove the operator (OVERLAY=...); keeps CRDs, custom resources and their workloads
	config/manage undeploy

.PHONY: uninstall
uninstall: ## Remove the CRDs; fails while custom resources exist, unless FORCE=1
	config/manage uninstall

.PHONY: serve-models
serve-models: ## Prepare NAMESPACES= for models of ModelMesh; STORAGE=1 copies the Secret storage-config of the operator's namespace (OVERLAY=...)
	config/manage serve-models

##@ Install in a kind cluster

KIND ?= kind
KIND_CLUSTER ?= odh-platform-operator
KIND_NAMESPACE ?= opendatahub
BACKEND_STORE ?= sqlite
REGISTRY_STORE ?=
ARTIFACT_STORAGE ?= file
SERVE_ARTIFACTS ?= true
MLFLOW_IMAGE ?=
POSTGRES_TLS ?= false
SEAWEEDFS_TLS ?= false
CA_BUNDLE_PATH ?=
CA_BUNDLE_CONFIGMAP ?=
DEPLOY_KIND = go run -tags $(TAGS) ./test/kind/cmd/deploykind -kind '$(KIND)' -cluster '$(KIND_CLUSTER)' -namespace '$(KIND_NAMESPACE)' \
  -backend-store '$(BACKEND_STORE)' -registry-store '$(REGISTRY_STORE)' -artifact-storage '$(ARTIFACT_STORAGE)' \
  -serve-artifacts='$(SERVE_ARTIFACTS)' -mlflow-image '$(MLFLOW_IMAGE)' -image '$(IMG)' -postgres-tls='$(POSTGRES_TLS)' \
  -seaweedfs-tls='$(SEAWEEDFS_TLS)' -ca-bundle-path '$(CA_BUNDLE_PATH)' -ca-bundle-configmap '$(CA_BUNDLE_CONFIGMAP)'

.PHONY: deploy-kind
deploy-kind: ## Create a kind cluster with the operator and an MLflow, and wait until they are ready; help-kind lists the variables
	$(DEPLOY_KIND) up

.PHONY: undeploy-kind
undeploy-kind: ## Delete the kind cluster and everything in it
	$(DEPLOY_KIND) down

.PHONY: render-kind
render-kind: ## Print the manifests that deploy-kind applies, except generated Secrets
	@$(DEPLOY_KIND) render

.PHONY: apply-kind
apply-kind: ## Like deploy-kind, in the existing cluster of KUBECONFIG
	$(DEPLOY_KIND) apply

.PHONY: help-kind
help-kind: ## List the variables of deploy-kind
	@echo 'make deploy-kind VARIABLE=value ...; see docs/kind.md'
	@echo '  BACKEND_STORE=sqlite|postgres   where MLflow stores runs'
	@echo '  REGISTRY_STORE=sqlite|postgres  where MLflow stores models; default: BACKEND_STORE'
	@echo '  ARTIFACT_STORAGE=file|s3        where MLflow stores artifacts'
	@echo '  SERVE_ARTIFACTS=true|false      whether clients access artifacts through MLflow'
	@echo '  POSTGRES_TLS=true SEAWEEDFS_TLS=true   TLS for PostgreSQL and SeaweedFS'
	@echo '  CA_BUNDLE_PATH= CA_BUNDLE_CONFIGMAP=   additional CAs, from a file or a ConfigMap'
	@echo '  KIND_NAMESPACE=opendatahub KIND_CLUSTER=odh-platform-operator KIND=kind'
	@echo '  MLFLOW_IMAGE= IMG=              images of MLflow and of the manager; IMG is loaded onto the nodes'

##@ Release

.PHONY: release
release: ## Write the files of release VERSION= to DIST: images, manifests, charts, bundle, catalog, kubectl-odh (REGISTRY=, PLATFORMS=, SYSTEMS=, ALLOW_DIRTY=1)
	cd cmd/release && go run . build --root '$(CURDIR)' --dist '$(abspath $(DIST))' --platforms '$(PLATFORMS)' --systems '$(SYSTEMS)' --registry '$(REGISTRY)' --version '$(if $(filter file,$(origin VERSION)),,$(VERSION))' \
	  $(if $(BUILDER),--builder '$(BUILDER)') $(if $(filter 1,$(ALLOW_DIRTY)),--allow-dirty)

.PHONY: push
push: ## Push the images and the chart in DIST to the registry for which they were built; fails if REGISTRY= differs
	cd cmd/release && go run . push --dist '$(abspath $(DIST))' --registry '$(if $(filter file,$(origin REGISTRY)),,$(REGISTRY))'

.PHONY: bundle
bundle: bundle-files ## Generate the OLM bundle of VERSION (IMG= image of the manager) and run all validators
	go test ./test/bundle

.PHONY: bundle-files
bundle-files:
	go run ./cmd/generate/bundle --version '$(VERSION)' --image '$(IMG)'

.PHONY: docker-build
docker-build: ## Build the image of the manager for this platform (CONTAINER_TOOL=docker|podman, IMG=, GOFIPS140=v1.0.0)
	$(CONTAINER_TOOL) build $(IMAGE_ARGS) -t '$(IMAGE)' .

.PHONY: docker-push
docker-push: ## Push the image of docker-build
	$(CONTAINER_TOOL) push '$(IMAGE)'

.PHONY: docker-buildx
docker-buildx: ## Build and push the image for PLATFORMS
	$(CONTAINER_TOOL) buildx build --push --platform '$(PLATFORMS)' $(IMAGE_ARGS) -t '$(IMAGE)' .

.PHONY: bundle-build
bundle-build: ## Build the image of the bundle (BUNDLE_IMG=)
	$(CONTAINER_TOOL) build -f bundle.Dockerfile -t '$(BUNDLE_IMG)' .

##@ Develop

.PHONY: print-supported-mlflow-version
print-supported-mlflow-version: ## Print the oldest release of MLflow that this version supports
	@awk '$$3 == "MLflow" { found = 1 } found && $$1 == "version:" { sub(/^v/, "", $$2); print $$2; exit }' config/component_metadata.yaml

.PHONY: validate-samples
validate-samples: ## Validate the samples against the CRDs, without a cluster
	go test -run 'Samples|Sample' ./apis/... ./pkg/appwrapper/podset ./controllers/modelmesh/resources

.PHONY: verify-manifests
verify-manifests: ## Build every overlay and check the result, without a cluster
	go test ./test/overlays

.PHONY: build
build: plugin manager ## Build bin/manager and bin/kubectl-odh

.PHONY: manager
manager: ## Build bin/manager; GOOS, GOARCH and GOFIPS140 select the target
	go build -tags $(TAGS) -ldflags '$(LDFLAGS)' -o '$(BINARY)' ./cmd/manager

.PHONY: plugin
plugin: ## Build bin/kubectl-odh, the kubectl plugin; GOOS and GOARCH select the system
	go build -tags $(TAGS) -ldflags '$(LDFLAGS)' -o '$(PLUGIN)' ./cmd/kubectl-odh

.PHONY: generate
generate: ## Regenerate deep copies, CRDs, roles, protocols, reference pages, dashboards and the bundle
	go run github.com/bufbuild/buf/cmd/buf@$(BUF_VERSION) generate
	go tool controller-gen object paths=./apis/...
	rm -f config/crd/bases/*.yaml
	go tool controller-gen crd paths="./apis/aihub/...;./apis/appwrapper/...;./apis/mlflow/...;./apis/mlflowconfig/...;./apis/modelregistry/...;./apis/platform/...;./apis/serving/v1alpha1" output:crd:dir=config/crd/bases
	go tool controller-gen rbac:roleName=odh-platform-operator-manager paths=./cmd/manager/... output:rbac:dir=config/rbac/manager
	for c in $(COMPONENTS); do \
	  go tool controller-gen rbac:roleName=odh-platform-operator-$${c//\//-} paths=./controllers/$${c/mlflowaccess/mlflow\/access} output:rbac:dir=config/rbac/$$c; \
	done
	go run ./cmd/generate/reference config/crd/bases config/samples docs/reference
	go run ./cmd/generate/configuration docs/configuration.md
	go test -count=1 -run TestVersionsMatchTests ./test/docs -update-versions
	cd config/dashboards && go run github.com/google/go-jsonnet/cmd/jsonnet@$(JSONNET_VERSION) -S -m . dashboards.jsonnet
	$(MAKE) --no-print-directory bundle-files

.PHONY: pictures
pictures: ## Render the diagrams of the documentation (docs/images/*.d2)
	for source in docs/images/*.d2; do go run oss.terrastruct.com/d2@$(D2_VERSION) --layout dagre "$$source" "$${source%.d2}.svg"; done

# The Python environment with MkDocs.
DOCS_ENV := bin/docs-env
MERMAID_VERSION := 11.12.0
MERMAID_SHA256 := 93492e4d609be83653a41c435f4cbd7e74419f7fa6b4fc90a8c983195f64af82
$(DOCS_ENV)/installed: docs/site/requirements.txt Makefile
	python3 -m venv --clear $(DOCS_ENV)
	$(DOCS_ENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r $<
	curl -fsSLo $(DOCS_ENV)/mermaid.tgz https://registry.npmjs.org/mermaid/-/mermaid-$(MERMAID_VERSION).tgz
	echo "$(MERMAID_SHA256)  $(DOCS_ENV)/mermaid.tgz" | sha256sum --check --quiet
	tar -xzOf $(DOCS_ENV)/mermaid.tgz package/dist/mermaid.min.js > $(DOCS_ENV)/mermaid.min.js
	rm $(DOCS_ENV)/mermaid.tgz
	touch $@

docs docs-serve: export NO_MKDOCS_2_WARNING := 1

.PHONY: docs
docs: $(DOCS_ENV)/installed ## Write the documentation as a site with search to bin/site; requires curl, and Python 3.11 or later with venv (on Debian: python3-venv)
	$(DOCS_ENV)/bin/mkdocs build --strict --config-file docs/site/mkdocs.yml

.PHONY: docs-serve
docs-serve: $(DOCS_ENV)/installed ## Serve the site on http://127.0.0.1:8000 and rebuild it when a page changes; same requirements as docs
	$(DOCS_ENV)/bin/mkdocs serve --config-file docs/site/mkdocs.yml

.PHONY: verify
verify: generate ## Fail if a generated file is stale or the module files are not tidy
	go mod tidy
	cd cmd/release && go mod tidy
	@changes=$$(git status --porcelain); if [ -n "$$changes" ]; then \
	  echo "Generated files are stale; run 'make generate' and commit:"; echo "$$changes"; git diff | head -100; exit 1; fi

.PHONY: lint
lint: ## Run golangci-lint with go vet, check the style of documentation and comments with Vale, and check the limits of test/measure
	go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION) run ./...
	$(VALE) --glob='!*.pb.go' *.md docs charts/mlflow/README.md config/prometheus apis cmd controllers pkg webhooks
	@test "$$($(VALE) --output=line test/docs/vale/testdata | cut -d: -f2 | sort -u | wc -l)" -eq "$$(wc -l < test/docs/vale/testdata/sentences.md)" \
	  || { echo 'a line of test/docs/vale/testdata/sentences.md breaks no rule of Vale'; exit 1; }
	go run ./test/measure

.PHONY: test
test: ## Run the tests of the operator: unit tests, alerts, and the suites against a real control plane (RACE=all: with the race detector)
	@$(call timed,test-unit test-rules test-integration)

# The commit with which `make check` compares the checkout.
BASE ?= HEAD

.PHONY: check
check: ## Build and vet the packages that differ from commit BASE= and their direct importers, and run the unit tests of the changed packages
	@changed=$$({ git diff --name-only '$(BASE)'; git ls-files --others --exclude-standard; } | xargs -r -n1 dirname | sort -u); \
	packages=$$(go list -f '{{.Dir}} {{.ImportPath}} {{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}}' ./... | \
	  awk -v changed="$$changed" -v top='$(CURDIR)' 'BEGIN { n = split(changed, folders, "\n") } { dir[$$2] = $$1; line[$$2] = $$0 } \
	    END { for (p in dir) for (i = 1; i <= n; i++) { f = top "/" folders[i]; if (f == dir[p] || index(f, dir[p] "/testdata") == 1) own[p] } \
	      for (p in line) { n = split(line[p], imports, " "); for (i = 3; i <= n; i++) if (imports[i] in own) users[p] } \
	      for (p in own) print "own", p; for (p in users) if (!(p in own)) print "user", p }'); \
	own=$$(awk '$$1 == "own" { print $$2 }' <<<"$$packages"); all=$$(awk 'NF { print $$2 }' <<<"$$packages"); \
	[ -n "$$all" ] || { echo 'No package has changed since $(BASE).'; exit; }; \
	go vet -tags $(TAGS) $$all; \
	tested=$$(grep -v /test/ <<<"$$own" || true); [ -z "$$tested" ] || go test -tags $(TAGS) -vet=off -shuffle=on $$tested

.PHONY: test-unit
test-unit: ## Run the unit tests in random order; packages that start goroutines with the race detector
	@$(call run-tests,$(filter-out $(RACED),$(UNIT_TESTS)))
	@$(call run-tests,$(RACED),-race)

.PHONY: test-tools
test-tools: cluster-build ## Test the test infrastructure: the control plane, the node, the fake of ModelMesh; part of CI
	@$(call run-tests,$(TOOLS),-timeout 40m)

.PHONY: test-rules
test-rules: ## Test alerts, recording rules and dashboards with the engine of Prometheus, in a separate module
	cd test/prometheus && go test -vet=off -shuffle=on ./...

.PHONY: test-release
test-release: ## Build a small release twice and check its files, in a separate module; part of CI
	cd cmd/release && go test -shuffle=on ./...

.PHONY: test-integration
test-integration: ## Run the suites against real control planes, SUITES= in parallel, and compare the shipped roles with the permissions that the manager used
	@# With RACE=all the manager has the race detector. The tests do not, because they contain little code of the operator.
	go run ./test/cluster/cmd/testcluster build --peers
	rm -rf '$(RIGHTS_DIR)'
	CGO_ENABLED=$(if $(RACE),1,0) go build $(if $(RACE),-race) -tags $(TAGS) -o '$(TEST_MANAGER)' ./cmd/manager
	@export RIGHTS_DIR='$(RIGHTS_DIR)' TEST_MANAGER='$(TEST_MANAGER)'; \
	$(call run-tests,$(SUITE_PACKAGES),-timeout 40m -p $(SUITES))
	@export RIGHTS_DIR='$(RIGHTS_DIR)'; $(call run-tests,./test/rbac)

.PHONY: test-operands
test-operands: ## Test the programs of the pods with real MLflow, Model Registry, ModelMesh adapters, PostgreSQL and MariaDB; installs missing programs
	cd test/operands && go test -tags operands -count=1 -parallel 8 -timeout 45m .

.PHONY: test-operands-all
test-operands-all: ## Like test-operands, with every supported release of MLflow; test-operands uses the oldest and the newest
	MLFLOW_RELEASES=all $(MAKE) test-operands

# Without a package argument, so go test prints the table of results.
TEST_CLIENTS = cd test/clients && go test -tags clients -count=1 -timeout 60m

.PHONY: test-clients
test-clients: cluster-build ## Test the newest Python clients of Ray, KServe, Model Registry and MLflow with the first steps of their users; installs missing clients
	$(TEST_CLIENTS)

.PHONY: test-clients-all
test-clients-all: export CLIENTS := all
test-clients-all: cluster-build ## Like test-clients, and with the oldest supported clients
	$(TEST_CLIENTS)

.PHONY: e2e
e2e: ## Test the operator and the pods that it creates on a real node; requires root on Linux, installs missing programs (E2E_PICTURES= directory for screenshots)
	@# Specs run in parallel, each process with its own node, because specs wait for most of the time.
	go run github.com/onsi/ginkgo/v2/ginkgo -procs=$(E2E_NODES) -tags e2e -timeout 2h ./test/e2e

# Suites for admission, CRDs, and the lifecycle of every kind.
OLDEST_SUITES = $(addprefix ./test/integration/,all_components $(addsuffix _admission,appwrapper modelmesh modelregistry raycluster))

.PHONY: test-oldest
test-oldest: export TEST_KUBERNETES := oldest
test-oldest: cluster-build ## Run OLDEST_SUITES= against a control plane of the oldest supported Kubernetes
	CGO_ENABLED=0 go build -tags $(TAGS) -o '$(TEST_MANAGER)' ./cmd/manager
	@export TEST_MANAGER='$(TEST_MANAGER)'; $(call run-tests,$(OLDEST_SUITES),-timeout 40m -p $(SUITES))
	@# This test compiles CEL rules with the code of that API server. Its error contains the rule with an unsupported function.
	cd test/cluster/binaries/oldest && go test -vet=off -shuffle=on .

.PHONY: test-nightly
test-nightly: cluster-build ## Run the specs with the label nightly, which build the controller of KServe for minutes and run it with the manager
	cd test/integration/modelmesh_models && go test -vet=off -timeout 40m . -ginkgo.label-filter=nightly

.PHONY: e2e-nightly
e2e-nightly: ## Run the specs of e2e with the label nightly: installation of the bundle with OLM v1; same requirements as e2e
	go run github.com/onsi/ginkgo/v2/ginkgo -tags e2e -timeout 60m -label-filter=nightly ./test/e2e

.PHONY: e2e-all
e2e-all: e2e e2e-nightly test-oldest test-nightly test-operands-all test-clients-all ## Run `make e2e` and the nightly tests: OLM v1, the oldest Kubernetes, the controller of KServe, every release of MLflow, the oldest clients

.PHONY: e2e-demo
e2e-demo: ## Test `make demo REAL=1` and open the pages of MLflow and of a Ray dashboard; same requirements as e2e
	go test -tags e2e,$(TAGS) -count=1 -timeout 60m -run TestRealDemo ./test/demo

.PHONY: e2e-ci
e2e-ci: ## Run the specs of e2e with the label ci on one real node: data and authorization of a registry; leader election, rollout and removal of the operator
	go run github.com/onsi/ginkgo/v2/ginkgo -tags e2e -timeout 60m -label-filter=ci ./test/e2e

.PHONY: cluster-build
cluster-build: ## Build the control plane in the cache directory (six to twenty minutes the first time)
	go run ./test/cluster/cmd/testcluster build

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME each
	@grep -rl --include='*_test.go' '^func Fuzz' . | while read -r file; do \
	  for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p' $$file); do \
	    go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$(dirname $$file); \
	  done; \
	done

.PHONY: fuzz-mesh
fuzz-mesh: ## Fuzz the input of ModelMesh users for about a minute (MESH_FUZZ=10m: for ten minutes)
	go test -run '^$$' -fuzz '^FuzzServingRuntime$$' -fuzztime $(MESH_FUZZ) ./webhooks/modelmesh
	go test -run '^$$' -fuzz '^FuzzBuilders$$' -fuzztime $(MESH_FUZZ) ./controllers/modelmesh/resources
	go test -run '^$$' -fuzz '^FuzzInferenceService$$' -fuzztime $(MESH_FUZZ) ./pkg/modelmesh
	go test -run '^$$' -fuzz '^FuzzDocuments$$' -fuzztime $(MESH_FUZZ) ./pkg/modelmesh/settings

.PHONY: bench
bench: cluster-build ## Measure size, memory, requests, writes and leader changes, and print them with their limits (HISTORY= file with previous ratios for comparison)
	go run -tags $(TAGS) ./test/bench$(if $(HISTORY), -history '$(HISTORY)')
	go run -tags $(TAGS) ./test/bench -bursts

.PHONY: scale
scale: cluster-build ## Measure requests, memory and restarts with SIZES objects of each kind, and 50,000 unrelated Secrets and pods
	go run -tags $(TAGS) ./test/bench -scale=$(SIZES) -secrets=50000

# The duration of the random part of `make chaos`, its seed (0: a random seed), and the scenarios to run (default: all).
DURATION ?= 5m
SEED ?= 0
SCENARIO ?=

.PHONY: chaos
chaos: cluster-build ## Inject every fault and print the results (SCENARIO=regexp, DURATION= of the random part, SEED=)
	go run -tags $(TAGS) ./test/chaos -scenario '$(SCENARIO)' -duration '$(DURATION)' -seed '$(SEED)'

.PHONY: ci
ci: ## Run the checks of CI: stale files, linters, `make test`, then real programs and pods
	@$(call timed,verify lint test test-tools test-release)
	@# These targets run in parallel, because they wait for pods and servers for most of the time.
	@($(call timed,e2e-ci)) & pods=$$!; ($(call timed,test-operands test-clients)) || failed=1; wait $$pods; [ -z "$${failed:-}" ]
	@$(call timed,build)

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*##"} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*##/ {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
