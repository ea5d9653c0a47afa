package peers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
	"github.com/odh-platform/odh-platform-operator/test/node/images"
)

// PackPeerImage builds a peer, packs it as the image in its shipped manifests, and returns the manifests, for a cluster with a real node.
func PackPeerImage(ctx context.Context, peer cluster.Peer, store images.Store, progress io.Writer) (manifests string, err error) {
	binary, err := cluster.BuildPeer(ctx, peer, progress)
	if err != nil {
		return "", err
	}
	objects, err := shippedObjects(ctx, peer)
	if err != nil {
		return "", err
	}
	if peer == cluster.TrainingOperator {
		if objects, err = withPyTorchOnly(objects); err != nil {
			return "", fmt.Errorf("reading the manifests of %s: %w", peer, err)
		}
	}
	objects = slices.DeleteFunc(objects, isAPIService)
	image, program, err := container(objects)
	if err != nil {
		return "", fmt.Errorf("reading the manifests of %s: %w", peer, err)
	}
	if err := images.Program(store, binary, program, image); err != nil {
		return "", err
	}
	return operator.Encode(objects)
}

// withPyTorchOnly disables the kinds of the training operator except PyTorchJob, and removes their large CRDs.
func withPyTorchOnly(objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var kept []*unstructured.Unstructured
	for _, object := range objects {
		switch object.GetKind() {
		case "CustomResourceDefinition":
			if object.GetName() != "pytorchjobs.kubeflow.org" {
				continue
			}
		case "Deployment":
			containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
			if err != nil {
				return nil, err
			}
			for _, one := range containers {
				one.(map[string]any)["args"] = []any{"--enable-scheme=pytorchjob"}
			}
			if err := unstructured.SetNestedSlice(object.Object, containers, "spec", "template", "spec", "containers"); err != nil {
				return nil, err
			}
		}
		kept = append(kept, object)
	}
	return kept, nil
}

// container returns the image of the first Deployment and the program that it runs.
func container(objects []*unstructured.Unstructured) (image, program string, err error) {
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			continue
		}
		deployment := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment); err != nil {
			return "", "", fmt.Errorf("decoding Deployment %s: %w", object.GetName(), err)
		}
		containers := deployment.Spec.Template.Spec.Containers
		if len(containers) == 0 || len(containers[0].Command) == 0 {
			return "", "", fmt.Errorf("the Deployment %s has no command", object.GetName())
		}
		return containers[0].Image, containers[0].Command[0], nil
	}
	return "", "", errors.New("no Deployment")
}
