package kserve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

// clusterRuntimes is not needed if the manager serves one namespace.
const clusterRuntimes = "clusterservingruntimes.serving.kserve.io"

// Definitions returns the CRDs as published by KServe; without that of ClusterServingRuntime for a single namespace.
func Definitions(ctx context.Context, namespaced bool) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	all, err := cluster.ReadSet(ctx, cluster.KServe)
	if err != nil {
		return nil, err
	}
	var selected []*apiextensionsv1.CustomResourceDefinition
	for _, crd := range all {
		if !namespaced || crd.Name != clusterRuntimes {
			selected = append(selected, crd)
		}
	}
	return selected, nil
}

// Write writes a folder that kustomize builds, for users who install by other means. They must check that no newer CRD is
// overwritten. Other files in the folder are kept.
func Write(dir string, crds []*apiextensionsv1.CustomResourceDefinition) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the folder: %w", err)
	}
	kustomization := strings.Builder{}
	kustomization.WriteString("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n")
	for _, crd := range crds {
		content, err := yaml.Marshal(crd)
		if err != nil {
			return fmt.Errorf("encoding CustomResourceDefinition %s: %w", crd.Name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, crd.Name+".yaml"), content, 0o644); err != nil {
			return fmt.Errorf("writing CustomResourceDefinition %s: %w", crd.Name, err)
		}
		fmt.Fprintf(&kustomization, "  - %s.yaml\n", crd.Name)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(kustomization.String()), 0o644); err != nil {
		return fmt.Errorf("writing the kustomization: %w", err)
	}
	return nil
}

// Install creates missing CRDs, updates older ones, and does not change others. It reports the result for each on out. A CRD
// that is different causes an error, after the others are installed.
func Install(
	ctx context.Context, client apiextensions.CustomResourceDefinitionInterface, crds []*apiextensionsv1.CustomResourceDefinition, out io.Writer,
) error {
	var errs []error
	for _, crd := range crds {
		relation, err := install(ctx, client, crd)
		if err != nil {
			errs = append(errs, fmt.Errorf("CustomResourceDefinition %s: %w", crd.Name, err))
			continue
		}
		done := map[Relation]string{
			Missing: "created", Older: "brought up to date", Same: "is there already", Newer: "is there in a newer form, left as it is",
		}[relation]
		if _, err := fmt.Fprintf(out, "%s: %s\n", crd.Name, done); err != nil {
			return fmt.Errorf("telling what was done: %w", err)
		}
	}
	return errors.Join(errs...)
}

// errDifferent is returned because only an administrator can choose between the CRDs.
var errDifferent = errors.New("it has fields that ours lacks, and lacks some of ours: left as it is; bring KServe up to date, or remove it first if it is not used")

func install(ctx context.Context, client apiextensions.CustomResourceDefinitionInterface, crd *apiextensionsv1.CustomResourceDefinition) (Relation, error) {
	live, err := client.Get(ctx, crd.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		live = nil
	} else if err != nil {
		return "", err
	}
	relation := Compare(live, crd)
	switch relation {
	case Missing:
		_, err = client.Create(ctx, crd, metav1.CreateOptions{})
	case Older:
		// Its conversion, labels and annotations belong to the client that installed it.
		live.Spec.Versions = crd.Spec.Versions
		_, err = client.Update(ctx, live, metav1.UpdateOptions{})
	case Different:
		err = errDifferent
	default:
		err = nil
	}
	return relation, err
}
