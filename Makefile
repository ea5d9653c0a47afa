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
# grpcnotrace keeps a tracing package with templates out of the binary, which is 11 MB smaller for it.
TAGS := grpcnotrace
# The commit, if the tool chain does not know it; see cmd/release.
COMMIT ?=
LDFLAGS := -s -w -X main.version=$(VERSION) $(if $(COMMIT),-X main.commit=$(COMMIT))
BINARY ?= bin/manager
PLUGIN ?= bin/kubectl-odh
COMPONENTS := appwrapper mlflow mlflowaccess modelcatalog modelcatalog/namespaced modelcatalog/huggingface modelmesh modelmesh/models modelmesh/openshift modelmesh/runtimes modelregistry modelregistry/namespaced modelregistry/storage olm platform raycluster
CLUSTER ?= dev
# The race detector: in unit tests of packages that start goroutines, or with RACE=all everywhere, also in the manager that suites run.
RACE ?=
# Where suites record which permissions the manager used, see test/rbac.
RIGHTS_DIR ?= $(CURDIR)/bin/rights
# The manager that suites run, built once for all of them.
TEST_MANAGER ?= $(CURDIR)/bin/manager-test$(if $(RACE),-race)
# The client for the cluster of KUBECONFIG; `go run ./test/cluster/cmd/testcluster kubectl` prints the one that tests use.
KUBECTL ?= kubectl
OVERLAY ?= kubernetes
IMG ?=
PLATFORM ?= plain
CONTAINER_TOOL ?= $(if $(shell command -v docker),docker,$(if $(shell command -v podman),podman,docker))
REAL ?=
# The platforms of the image of the manager, in a release and by docker-buildx; the Deployment of the bundle runs on nodes of these platforms.
PLATFORMS ?= linux/amd64,linux/arm64,linux/ppc64le,linux/s390x
# By default, docker-build builds the image that deploy deploys.
IMAGE = $(or $(IMG),$(shell sed -n 's/^odh-platform-operator-image=//p' 'config/overlays/$(OVERLAY)/params.env'))
# The registry in which a release is published, and the builder that its provenance names.
REGISTRY ?= ghcr.io/odh-platform
BUILDER ?=
DIST ?= $(CURDIR)/dist
# The systems for which a release has kubectl-odh.
SYSTEMS ?= linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64
ALLOW_DIRTY ?=
BUNDLE_IMG ?= $(REGISTRY)/odh-platform-operator-bundle:v$(VERSION)
GOFIPS140 ?= off
IMAGE_ARGS = --build-arg VERSION='$(VERSION)' --build-arg GOFIPS140='$(GOFIPS140)'
FUZZTIME ?= 20s
HISTORY ?=
SIZES ?= 1000,5000
# The number of real nodes on which specs run side by side.
E2E_NODES ?= 3
# A number of inputs instead of a time: a busy machine then takes longer instead of failing.
MESH_FUZZ ?= 10000x

export CGO_ENABLED ?= 0
# Everything is compiled with the flags of a release, also what tests build and run: libraries are then compiled once for all of it.
export GOFLAGS := $(shell go env GOFLAGS) -trimpath -gcflags=all=-dwarf=false
# A cache per checkout: the linter stores findings with the path of the checkout.
export GOLANGCI_LINT_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/golangci-lint-$(shell echo '$(CURDIR)' | cksum | cut -d' ' -f1)

# timed,targets: make them one after the other, and print how long each took.
timed = for part in $(1); do SECONDS=0; $(MAKE) --no-print-directory $$part || exit; echo "$$part: $$SECONDS s" | tee -a "$${CI_SUMMARY:-/dev/null}"; done

# Garbage collection would take a quarter of the processor time of unit tests. Compilers keep the default, because they use more memory.
TEST_FLAGS := -vet=off -ldflags="-s -w" -shuffle=on -exec="env GOGC=400"

# run-tests,packages,flags: in CI, a test that fails is retried once and listed in CI_SUMMARY. Locally it runs once, so that the author of
# a flaky test notices. Results never come from the cache: a shuffled test has a new seed each time. The linters include go vet.
ifeq ($(CI),true)
define run-tests
report=$$(mktemp); trap 'cat "$$report" >>"$${CI_SUMMARY:-/dev/stderr}"; rm -f "$$report"' EXIT; \
CGO_ENABLED=$(if $(findstring -race,$(2)),1,0) go run gotest.tools/gotestsum@$(GOTESTSUM_VERSION) --format standard-quiet --rerun-fails=1 --rerun-fails-max-failures=3 \
  --rerun-fails-report="$$report" --packages="$(1)" -- $(TEST_FLAGS) $(2)
endef
else
run-tests = CGO_ENABLED=$(if $(findstring -race,$(2)),1,0) go test $(TEST_FLAGS) $(2) $(1)
endif

# The folders of unit tests, those with tests that start goroutines, and those with tests that try a fault at every request, which the
# race detector makes many times slower. Generators start no goroutines.
with-tests = $(shell go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' $(1) | sed 's,^$(CURDIR),.,')
matching = $(sort $(patsubst %/,./%,$(dir $(shell grep -rlE --include=*.go '$(1)' apis cmd controllers pkg webhooks))))
UNIT_TESTS = $(eval UNIT_TESTS := $(call with-tests,./apis/... ./cmd/... ./controllers/... ./pkg/... ./webhooks/...))$(UNIT_TESTS)
GOROUTINE = ^\s*go (func|[a-zA-Z.]+\()|\.Go\(
CONCURRENT = $(filter $(call matching,$(GOROUTINE)),$(UNIT_TESTS))
UNRACED = $(call matching,fakeapi\.(Exhaustive|Scenario)) ./cmd/generate/%
RACED = $(filter-out $(UNRACED),$(if $(filter all,$(RACE)),$(UNIT_TESTS),$(CONCURRENT)))
# The tests of what tests are made of.
TOOLS = ./test/bench ./test/chaos ./test/cluster/... ./test/filelock ./test/framework ./test/measure ./test/modelmesh/... ./test/node/... ./test/poll ./test/rights

# The longest suites start first, so that none of them runs alone at the end. Up to eight run at a time, because they wait for half of the
# time; each takes up to 2.5 GB of memory.
LONGEST = $(addprefix ./test/integration/,install modelcatalog mlflow foundation docs appwrapper appwrapper_kueue modelregistry_plain modelregistry all_components platform)
SUITES ?= $(or $(shell awk '/^MemTotal/ { n = int($$2 / 2500000); print (n > 8 ? 8 : n < 1 ? 1 : n) }' /proc/meminfo 2>/dev/null),7)
SUITE_PACKAGES = $(LONGEST) $(filter-out ./test/rbac $(LONGEST) $(call with-tests,$(TOOLS)),$(call with-tests,./test/...))

##@ Use

.PHONY: demo
demo: ## Start a control plane and the manager, apply the samples, wait until they are ready, and leave it all running (REAL=1: with pods that really run, FORCE=1: replace a running demo)
	go run -tags $(TAGS) ./test/demo up $(if $(filter-out 0,$(REAL)),--real) $(if $(filter-out 0,$(FORCE)),--force)

.PHONY: demo-down
demo-down: ## Stop everything that `make demo` started
	go run -tags $(TAGS) ./test/demo down

.PHONY: cluster-up
cluster-up: ## Start a bare test cluster (CLUSTER=dev PLATFORM=bare|plain|openshift) and print its kubeconfig
	go run ./test/cluster/cmd/testcluster up $(CLUSTER) --platform $(PLATFORM)

.PHONY: cluster-down
cluster-down: ## Stop the test cluster
	go run ./test/cluster/cmd/testcluster down $(CLUSTER)

.PHONY: clean-cache
clean-cache: ## Delete what demo, tests and benchmarks built or installed in your cache directory; refuses while a cluster is running
	go run ./test/cluster/cmd/testcluster clean

.PHONY: kserve-crds
kserve-crds: ## Write the CRDs of KServe to config/crd/kserve, for ModelMesh without KServe
	go run ./test/cluster/cmd/kservecrds write config/crd/kserve

.PHONY: install-kserve-crds
install-kserve-crds: ## Install the CRDs of KServe in the current cluster; keeps newer ones that exist
	go run ./test/cluster/cmd/kservecrds install

##@ Install in the cluster of KUBECONFIG

# Exported, and not pasted into a command: a value may contain characters that a shell would interpret.
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
uninstall: ## Remove the CRDs; refuses while custom resources exist, unless FORCE=1
	config/manage uninstall

.PHONY: serve-models
serve-models: ## Prepare NAMESPACES= for models of ModelMesh; STORAGE=1 copies the Secret storage-config of the operator's namespace (OVERLAY=...)
	config/manage serve-models

##@ Try it with kind

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
	@echo '  REGISTRY_STORE=sqlite|postgres  where it stores models; by default with the runs'
	@echo '  ARTIFACT_STORAGE=file|s3        where it stores artifacts'
	@echo '  SERVE_ARTIFACTS=true|false      whether clients access them through MLflow'
	@echo '  POSTGRES_TLS=true SEAWEEDFS_TLS=true   TLS for these servers'
	@echo '  CA_BUNDLE_PATH= CA_BUNDLE_CONFIGMAP=   additional CAs, from a file or a ConfigMap'
	@echo '  KIND_NAMESPACE=opendatahub KIND_CLUSTER=odh-platform-operator KIND=kind'
	@echo '  MLFLOW_IMAGE= IMG=              other images; IMG is the image of the manager and is loaded onto the nodes'

##@ Ship

.PHONY: release
release: ## Write everything that a release of VERSION= publishes to DIST: images, manifests, charts, bundle, catalog, kubectl-odh (REGISTRY=, PLATFORMS=, SYSTEMS=, ALLOW_DIRTY=1)
	cd cmd/release && go run . build --root '$(CURDIR)' --dist '$(abspath $(DIST))' --platforms '$(PLATFORMS)' --systems '$(SYSTEMS)' --registry '$(REGISTRY)' --version '$(if $(filter file,$(origin VERSION)),,$(VERSION))' \
	  $(if $(BUILDER),--builder '$(BUILDER)') $(if $(filter 1,$(ALLOW_DIRTY)),--allow-dirty)

.PHONY: push
push: ## Push the images and the chart in DIST to the registry that they were built for; fails if REGISTRY= names another one
	cd cmd/release && go run . push --dist '$(abspath $(DIST))' --registry '$(if $(filter file,$(origin REGISTRY)),,$(REGISTRY))'

.PHONY: bundle
bundle: bundle-files ## Generate the OLM bundle of VERSION (IMG= another image of the manager) and run all validators
	go test ./test/bundle

.PHONY: bundle-files
bundle-files:
	go run ./cmd/generate/bundle --version '$(VERSION)' --image '$(IMG)'

.PHONY: docker-build
docker-build: ## Build the image of the manager for this platform (CONTAINER_TOOL=docker|podman, IMG=, GOFIPS140=v1.0.0)
	$(CONTAINER_TOOL) build $(IMAGE_ARGS) -t '$(IMAGE)' .

.PHONY: docker-push
docker-push: ## Push the image that docker-build built
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

# The environment with MkDocs, which writes the site.
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
docs-serve: $(DOCS_ENV)/installed ## Serve this site on http://127.0.0.1:8000 and rebuild it when a page changes; requires the same
	$(DOCS_ENV)/bin/mkdocs serve --config-file docs/site/mkdocs.yml

.PHONY: verify
verify: generate ## Fail if a generated file is stale or the module files are not tidy
	go mod tidy
	cd cmd/release && go mod tidy
	@changes=$$(git status --porcelain); if [ -n "$$changes" ]; then \
	  echo "Generated files are stale; run 'make generate' and commit:"; echo "$$changes"; git diff | head -100; exit 1; fi

.PHONY: lint
lint: ## Run golangci-lint, which includes go vet, check the words of pages and comments, and the limits of the project
	go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION) run ./...
	$(VALE) --glob='!*.pb.go' *.md docs charts/mlflow/README.md config/prometheus apis cmd controllers pkg webhooks
	@test "$$($(VALE) --output=line test/docs/vale/testdata | cut -d: -f2 | sort -u | wc -l)" -eq "$$(wc -l < test/docs/vale/testdata/sentences.md)" \
	  || { echo 'a line of test/docs/vale/testdata/sentences.md breaks no rule of Vale'; exit 1; }
	go run ./test/measure

.PHONY: test
test: ## Run every test of the operator: unit tests first, then the suites against a real control plane (RACE=all: with the race detector)
	@$(call timed,test-unit test-rules test-integration)

# The commit since which `make check` looks for changes.
BASE ?= HEAD

.PHONY: check
check: ## Build and vet the packages that changed since BASE= (a commit) and their direct importers, and run the unit tests of the changed ones
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
test-unit: ## Run the unit tests, in random order, and those of packages that start goroutines with the race detector
	@$(call run-tests,$(filter-out $(RACED),$(UNIT_TESTS)))
	@$(call run-tests,$(RACED),-race)

.PHONY: test-tools
test-tools: cluster-build ## Test what tests are made of: the control plane, the node, the fake mesh; part of CI
	@$(call run-tests,$(TOOLS),-timeout 40m)

.PHONY: test-rules
test-rules: ## Test alerts, recording rules and dashboards with the engine of Prometheus, in a separate module
	cd test/prometheus && go test -vet=off -shuffle=on ./...

.PHONY: test-release
test-release: ## Build a small release twice and check its files, in a separate module; part of CI
	cd cmd/release && go test -shuffle=on ./...

.PHONY: test-integration
test-integration: ## Run the suites against real control planes, SUITES= at a time; then compare the shipped roles with the permissions that were used
	@# With RACE=all the manager has the race detector. The tests do not: they contain almost no code of the product.
	go run ./test/cluster/cmd/testcluster build --peers
	rm -rf '$(RIGHTS_DIR)'
	CGO_ENABLED=$(if $(RACE),1,0) go build $(if $(RACE),-race) -tags $(TAGS) -o '$(TEST_MANAGER)' ./cmd/manager
	@export RIGHTS_DIR='$(RIGHTS_DIR)' TEST_MANAGER='$(TEST_MANAGER)'; \
	$(call run-tests,$(SUITE_PACKAGES),-timeout 40m -p $(SUITES))
	@export RIGHTS_DIR='$(RIGHTS_DIR)'; $(call run-tests,./test/rbac)

.PHONY: test-operands
test-operands: ## Test the programs of the pods, with real MLflow, Model Registry, ModelMesh adapters, PostgreSQL and MariaDB; installs or builds what is missing
	cd test/operands && go test -tags operands -count=1 -parallel 8 -timeout 45m .

.PHONY: test-operands-all
test-operands-all: ## The same with every release of MLflow that is supported, not only the oldest and the newest
	MLFLOW_RELEASES=all $(MAKE) test-operands

# In its folder and without a package, so that go test shows the table of what the clients did.
TEST_CLIENTS = cd test/clients && go test -tags clients -count=1 -timeout 60m

.PHONY: test-clients
test-clients: cluster-build ## Do with the newest Python clients of Ray clusters, models, registries and MLflow what their users do first; installs what is missing
	$(TEST_CLIENTS)

.PHONY: test-clients-all
test-clients-all: export CLIENTS := all
test-clients-all: cluster-build ## The same with the oldest supported releases of these clients too
	$(TEST_CLIENTS)

.PHONY: e2e
e2e: ## Test the operator and the pods that it creates on a real node; requires root on Linux, installs or builds what is missing (E2E_PICTURES= directory for screenshots)
	@# Side by side, each on a node of its own: most of the time, specs wait.
	go run github.com/onsi/ginkgo/v2/ginkgo -procs=$(E2E_NODES) -tags e2e -timeout 2h ./test/e2e

# Admission, CRDs and a life of every kind.
OLDEST_SUITES = $(addprefix ./test/integration/,all_components $(addsuffix _admission,appwrapper modelmesh modelregistry raycluster))

.PHONY: test-oldest
test-oldest: export TEST_KUBERNETES := oldest
test-oldest: cluster-build ## Run OLDEST_SUITES= against a control plane of the oldest Kubernetes that is supported
	CGO_ENABLED=0 go build -tags $(TAGS) -o '$(TEST_MANAGER)' ./cmd/manager
	@export TEST_MANAGER='$(TEST_MANAGER)'; $(call run-tests,$(OLDEST_SUITES),-timeout 40m -p $(SUITES))
	@# Compiles CEL rules with the code of that API server, which names the rule that it lacks a function for.
	cd test/cluster/binaries/oldest && go test -vet=off -shuffle=on .

.PHONY: test-nightly
test-nightly: cluster-build ## Run the specs with the label nightly, whose peers take minutes to build: the controller of KServe next to the manager
	cd test/integration/modelmesh_models && go test -vet=off -timeout 40m . -ginkgo.label-filter=nightly

.PHONY: e2e-nightly
e2e-nightly: ## Run the specs of e2e with the label nightly: OLM v1, which installs the bundle; requires the same as e2e
	go run github.com/onsi/ginkgo/v2/ginkgo -tags e2e -timeout 60m -label-filter=nightly ./test/e2e

.PHONY: e2e-all
e2e-all: e2e e2e-nightly test-oldest test-nightly test-operands-all test-clients-all ## Run `make e2e`, and what a night has time for: OLM v1, the oldest Kubernetes, the controller of KServe, every release of MLflow, the oldest clients

.PHONY: e2e-demo
e2e-demo: ## Test `make demo REAL=1`: open the pages of MLflow and of a Ray dashboard that it prints; requires the same
	go test -tags e2e,$(TAGS) -count=1 -timeout 60m -run TestRealDemo ./test/demo

.PHONY: e2e-ci
e2e-ci: ## Run the part of e2e that covers data, guards and the rollout of the operator, on one real node
	go run github.com/onsi/ginkgo/v2/ginkgo -tags e2e -timeout 60m -label-filter=ci ./test/e2e

.PHONY: cluster-build
cluster-build: ## Build the control plane in your cache directory (six to twenty minutes the first time)
	go run ./test/cluster/cmd/testcluster build

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME each
	@grep -rl --include='*_test.go' '^func Fuzz' . | while read -r file; do \
	  for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p' $$file); do \
	    go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$(dirname $$file); \
	  done; \
	done

.PHONY: fuzz-mesh
fuzz-mesh: ## Fuzz the input of ModelMesh users for about a minute; longer with MESH_FUZZ=10m
	go test -run '^$$' -fuzz '^FuzzServingRuntime$$' -fuzztime $(MESH_FUZZ) ./webhooks/modelmesh
	go test -run '^$$' -fuzz '^FuzzBuilders$$' -fuzztime $(MESH_FUZZ) ./controllers/modelmesh/resources
	go test -run '^$$' -fuzz '^FuzzInferenceService$$' -fuzztime $(MESH_FUZZ) ./pkg/modelmesh
	go test -run '^$$' -fuzz '^FuzzDocuments$$' -fuzztime $(MESH_FUZZ) ./pkg/modelmesh/settings

.PHONY: bench
bench: cluster-build ## Measure size, memory, requests, writes and changes of the leader, and print them next to their limits (HISTORY= file with former ratios, with which new ones are compared)
	go run -tags $(TAGS) ./test/bench$(if $(HISTORY), -history '$(HISTORY)')
	go run -tags $(TAGS) ./test/bench -bursts

.PHONY: scale
scale: cluster-build ## Measure requests, memory and restarts with SIZES objects of each kind, and 50,000 unrelated Secrets and pods
	go run -tags $(TAGS) ./test/bench -scale=$(SIZES) -secrets=50000

# How long the random part of `make chaos` runs, its seed (0: a new one each time), and which scenarios to run (default: all).
DURATION ?= 5m
SEED ?= 0
SCENARIO ?=

.PHONY: chaos
chaos: cluster-build ## Inject every fault and print the results (SCENARIO=regexp, DURATION= of the random part, SEED=)
	go run -tags $(TAGS) ./test/chaos -scenario '$(SCENARIO)' -duration '$(DURATION)' -seed '$(SEED)'

.PHONY: ci
ci: ## Run what CI runs: stale files, linters, `make test`, then real programs and pods
	@$(call timed,verify lint test test-tools test-release)
	@# Most of the time, these wait for pods and servers.
	@($(call timed,e2e-ci)) & pods=$$!; ($(call timed,test-operands test-clients)) || failed=1; wait $$pods; [ -z "$${failed:-}" ]
	@$(call timed,build)

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*##"} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*##/ {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
