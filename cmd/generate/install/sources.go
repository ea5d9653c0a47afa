package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/cmd/generate/kustomization"
)

const (
	deploymentName = "odh-platform-operator-controller-manager"
	paramsName     = "odh-platform-operator-params"
	// namespacePlaceholder is the placeholder for the namespace of a Helm release.
	namespacePlaceholder = "namespace-of-the-release"
	// Groups of objects without a component.
	crdGroup, managerGroup = "crds", "manager"
	// monitoring is a component that requires the Prometheus operator.
	monitoring = "monitoring"
	params     = "params"
)

// sources are the objects of config/overlays/kubernetes, with namespacePlaceholder, by group: CRDs, manager, and one for each component.
type sources struct {
	groups     map[string][]*unstructured.Unstructured
	deployment *unstructured.Unstructured
	// components are the names of the Kustomize components of the overlay, in order, with monitoring and without params.
	components []string
}

func readSources(config string) (*sources, error) {
	s := &sources{groups: map[string][]*unstructured.Unstructured{}}
	folder := filepath.Join(config, "overlays", "kubernetes")
	if err := s.prepareOverlay(filepath.Join(folder, "kustomization.yaml")); err != nil {
		return nil, err
	}
	componentByKey, err := s.componentByKey(config)
	if err != nil {
		return nil, err
	}
	objects, err := kustomization.Objects(folder)
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		group := componentByKey[keyOf(o)]
		switch {
		case o.GetKind() == "Namespace" || o.GetName() == paramsName:
			continue // Helm creates the namespace, and values replace the parameters
		case o.GetKind() == "CustomResourceDefinition":
			group = crdGroup
		case o.GetName() == deploymentName && o.GetKind() == "Deployment":
			s.deployment = o
			continue
		case group == "":
			group = managerGroup
		}
		s.groups[group] = append(s.groups[group], o)
	}
	if s.deployment == nil {
		return nil, fmt.Errorf("the overlay has no Deployment %s", deploymentName)
	}
	return s, nil
}

// prepareOverlay sets namespacePlaceholder in the copied overlay, adds monitoring, and records the components.
func (s *sources) prepareOverlay(path string) error {
	k := types.Kustomization{}
	content, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(content, &k)
	}
	if err != nil {
		return fmt.Errorf("reading an overlay: %w", err)
	}
	if err := setNamespacePlaceholder(filepath.Join(filepath.Dir(path), "params.env"), k.Namespace); err != nil {
		return err
	}
	k.Namespace = namespacePlaceholder
	index := slices.Index(k.Components, "../../components/"+params)
	if index < 0 {
		return fmt.Errorf("%s has no component %s", path, params)
	}
	k.Components = slices.Insert(k.Components, index, "../../components/"+monitoring)
	for _, component := range k.Components {
		if name := filepath.Base(component); name != params {
			s.components = append(s.components, name)
		}
	}
	return writeKustomization(path, k)
}

// setNamespacePlaceholder replaces the namespace in the parameters of the overlay.
func setNamespacePlaceholder(path, namespace string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading parameters: %w", err)
	}
	return os.WriteFile(path, []byte(strings.ReplaceAll(string(content), "="+namespace+"\n", "="+namespacePlaceholder+"\n")), 0o600)
}

// componentByKey maps keyOf(object) to the component that adds the object, and to "" for objects of config/manager.
func (s *sources) componentByKey(config string) (map[string]string, error) {
	byKey := map[string]string{}
	for _, component := range append([]string{""}, s.components...) {
		k := types.Kustomization{Resources: []string{"../../manager"}}
		if component != "" {
			k.Components = []string{"../../components/" + component}
		}
		folder := filepath.Join(config, "single", "with-"+component)
		if err := writeKustomization(filepath.Join(folder, "kustomization.yaml"), k); err != nil {
			return nil, err
		}
		objects, err := kustomization.Objects(folder)
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			if _, found := byKey[keyOf(o)]; !found {
				byKey[keyOf(o)] = component
			}
		}
	}
	return byKey, nil
}

func writeKustomization(path string, k types.Kustomization) error {
	content, err := yaml.Marshal(k)
	if err != nil {
		return fmt.Errorf("encoding a kustomization: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}

func keyOf(o *unstructured.Unstructured) string {
	return strings.Join([]string{o.GroupVersionKind().Group, o.GetKind(), o.GetName()}, "/")
}
