package kind

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
)

const (
	managerName = "odh-platform-operator-controller-manager"
	bundleName  = "mlflow-ca-bundle"
	// workFolder is below the root of the checkout, because a kustomization can reference others only by relative paths.
	workFolder = "bin/kind"
	// kindFromWork is the path of config/kind, relative to a folder in workFolder.
	kindFromWork = "../../../config/kind/"
)

// kustomization contains the fields of a Kustomization that this package sets.
type kustomization struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Namespace  string   `json:"namespace"`
	Resources  []string `json:"resources"`
	Components []string `json:"components,omitempty"`
	Patches    []patch  `json:"patches,omitempty"`
}

type patch struct {
	Target target `json:"target"`
	Patch  string `json:"patch"`
}

type target struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// operation is an operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// patches returns the patches for the options that no kustomize component implements.
func (o Options) patches() ([]patch, error) {
	var mlflow, manager []operation
	if o.MLflowImage != "" {
		mlflow = append(mlflow, operation{"add", "/spec/image", map[string]string{"image": o.MLflowImage, "imagePullPolicy": "IfNotPresent"}})
	}
	if o.CABundleConfigMap != "" {
		mlflow = append(mlflow, operation{"replace", "/spec/caBundleConfigMap/name", o.CABundleConfigMap})
	}
	if o.Image != "" {
		manager = append(manager,
			operation{"replace", "/spec/template/spec/containers/0/image", o.Image},
			// An image that kind has loaded exists only on the nodes.
			operation{"add", "/spec/template/spec/containers/0/imagePullPolicy", "IfNotPresent"})
	}
	var patches []patch
	for _, part := range []struct {
		target     target
		operations []operation
	}{{target{"MLflow", "mlflow"}, mlflow}, {target{"Deployment", managerName}, manager}} {
		if len(part.operations) == 0 {
			continue
		}
		text, err := json.Marshal(part.operations)
		if err != nil {
			return nil, fmt.Errorf("encoding a patch of %s: %w", part.target.Kind, err)
		}
		patches = append(patches, patch{part.target, string(text)})
	}
	return patches, nil
}

func (o Options) renderKustomization() ([]byte, error) {
	patches, err := o.patches()
	if err != nil {
		return nil, err
	}
	k := kustomization{
		APIVersion: "kustomize.config.k8s.io/v1beta1", Kind: "Kustomization", Namespace: o.Namespace,
		Resources: []string{kindFromWork + "base"}, Patches: patches,
	}
	for _, component := range o.components() {
		k.Components = append(k.Components, kindFromWork+component)
	}
	return yaml.Marshal(k)
}

// Render returns the manifests without the objects of [Generate], which differ by cluster.
func Render(o Options) (objects []*unstructured.Unstructured, err error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	text, err := o.renderKustomization()
	if err != nil {
		return nil, err
	}
	root, err := cluster.RepositoryRoot()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(root, workFolder), 0o755); err != nil {
		return nil, fmt.Errorf("creating a folder for the kustomization: %w", err)
	}
	dir, err := os.MkdirTemp(filepath.Join(root, workFolder), "*")
	if err != nil {
		return nil, fmt.Errorf("creating a folder for the kustomization: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), text, 0o600); err != nil {
		return nil, fmt.Errorf("writing the kustomization: %w", err)
	}
	objects, err = operator.Kustomize(dir)
	for _, object := range objects {
		if object.GetKind() == "MLflow" { // kustomize does not know that the kind is cluster-scoped
			object.SetNamespace("")
		}
	}
	return objects, err
}
