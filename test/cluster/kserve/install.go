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

// Definitions returns the CRDs of KServe without conversion, and without ClusterServingRuntime if the manager serves a single namespace.
func Definitions(ctx context.Context, singleNamespace bool) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	all, err := cluster.ReadSet(ctx, cluster.KServe)
	if err != nil {
		return nil, err
	}
	var selected []*apiextensionsv1.CustomResourceDefinition
	for _, crd := range all {
		if !singleNamespace || crd.Name != clusterRuntimes {
			selected = append(selected, crd)
		}
	}
	return selected, nil
}

// Write writes the CRDs as a kustomization, for users who install them by other means. Users must check that they do not overwrite a newer
// CRD. Write keeps other files in the folder.
func Write(dir string, crds []*apiextensionsv1.CustomResourceDefinition) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("creating the folder: %w", err)
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

// Install creates missing CRDs, updates older ones, and does not change others. It writes the result for each CRD to out. If the
// installed and the required CRD each have fields that the other lacks, it installs the other CRDs and returns an error.
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
			Missing: "created", Older: "updated", Same: "unchanged", Newer: "unchanged, because the installed version is newer",
		}[relation]
		if _, err := fmt.Fprintf(out, "%s: %s\n", crd.Name, done); err != nil {
			return fmt.Errorf("writing the result: %w", err)
		}
	}
	return errors.Join(errs...)
}

// errDifferent is returned because only an administrator can choose between the CRDs.
var errDifferent = errors.New("the installed CRD and the required one each have fields that the other lacks, so it is not changed; upgrade KServe, or delete the CRD if it is not used")

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
		// Conversion, labels and annotations belong to the client that installed the CRD.
		live.Spec.Versions = crd.Spec.Versions
		_, err = client.Update(ctx, live, metav1.UpdateOptions{})
	case Different:
		err = errDifferent
	default:
		err = nil
	}
	return relation, err
}
