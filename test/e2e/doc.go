// Package e2e runs the operator and what it makes as pods on a real node, see package node.
//
// It starts where a user does, with `kubectl apply -k config/overlays/kubernetes` and an image that is made as the Dockerfile
// says. The suite needs root on Linux and has the build tag e2e, so that only `make e2e` and, in part, `make ci` run it; a machine that cannot run a
// real node skips it and says what is missing.
//
// Pages are opened with Chromium in a pod. E2E_PICTURES names a folder of the checkout for pictures of them.
//
// Kueue, JobSet, KubeRay and the training operator run as pods of their own manifests, see package peers. The server of the
// catalog is a placeholder: no release of it can be had as a Go module.
//
// The spec of a release makes one with `make release` and types the first page in a cluster of its own, whose node pulls the image from
// a registry on loopback.
//
// OLM comes from its modules too, with its chart, and installs, upgrades and removes the bundle of such a release in another cluster.
//
// Specs with the label `ci` cover data, guards and the rollout of the operator, for machines that have little time: `make e2e-ci`.
//
// Of ModelMesh the routing layer is a fake, see package test/modelmesh/instance, and so is the REST proxy; adapter, model server,
// etcd and object store are real.
package e2e
