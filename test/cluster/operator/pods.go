package operator

import (
	"context"
	"os"
	"regexp"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/node/images"
	"github.com/odh-platform/odh-platform-operator/test/operands/programs"
)

// The namespace and the Deployment of the operator in the manifests of [PackImages].
const (
	PodNamespace  = "opendatahub"
	PodDeployment = "odh-platform-operator-controller-manager"
)

const (
	// SampleImage is the image of the pods of samples.
	SampleImage = "quay.io/project-codeflare/busybox:1.36"
	// certGenerator is the image of the init container of Ray's pods that waits for their certificates.
	certGenerator = "registry.redhat.io/ubi9:latest"
)

// digests matches the digests of images. The packed images have other digests.
var digests = regexp.MustCompile(`@sha256:[0-9a-f]{64}`)

// PackImages packs the images of the operator and those of [PackOperandImages], for a cluster with a real node. It returns the manifests of
// the overlay kubernetes, with tags in place of digests.
func PackImages(ctx context.Context, store images.Store) (manifests string, err error) {
	checkout, err := cluster.RepositoryRoot()
	if err != nil {
		return "", err
	}
	if err := images.Operator(ctx, store, checkout); err != nil {
		return "", err
	}
	if err := PackOperandImages(ctx, store); err != nil {
		return "", err
	}
	objects, err := Kustomize("config/overlays/kubernetes")
	if err != nil {
		return "", err
	}
	text, err := Encode(objects)
	return digests.ReplaceAllString(text, ":latest"), err
}

// PackOperandImages packs the images of Model Registry, its proxy, PostgreSQL and the pods of samples, and certGenerator.
func PackOperandImages(ctx context.Context, store images.Store) error {
	if err := images.Base(ctx, store, SampleImage, certGenerator); err != nil {
		return err
	}
	if err := images.Postgres(ctx, store); err != nil {
		return err
	}
	return packRegistry(ctx, store)
}

// packRegistry packs the images of Model Registry and of its proxy.
func packRegistry(ctx context.Context, store images.Store) error {
	server, err := programs.ModelRegistry(ctx)
	if err != nil {
		return err
	}
	if err := images.Program(store, server, "/model-registry", images.ModelRegistryImage); err != nil {
		return err
	}
	proxy, err := cluster.BuildPeer(ctx, cluster.KubeRBACProxy, os.Stderr)
	if err != nil {
		return err
	}
	return images.Program(store, proxy, "/kube-rbac-proxy", images.KubeRBACProxyImage)
}
