package apply

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// Render returns the objects that Apply would create in an empty cluster, in order, with labels and owner references. The owner must have
// a TypeMeta unless it is of a built-in kind.
func Render(desired Desired, component string, owner client.Object) ([]*unstructured.Unstructured, error) {
	o, err := newOwner(owner, scheme.Scheme)
	if err != nil {
		return nil, err
	}
	objects := make([]*unstructured.Unstructured, 0, len(desired))
	for _, object := range desired {
		c, err := newChild(object)
		if err == nil {
			err = o.checkNamespace(c)
		}
		var rendered *unstructured.Unstructured
		if err == nil {
			rendered, err = c.render(component, o)
		}
		if err != nil {
			return nil, fmt.Errorf("rendering %s: %w", objectTitle(c.key.Kind, c.key.Namespace, c.key.Name), err)
		}
		objects = append(objects, rendered)
	}
	return objects, nil
}

// render returns the body of an apply request.
func (c *child) render(component string, o owner) (*unstructured.Unstructured, error) {
	body := &unstructured.Unstructured{}
	if err := body.UnmarshalJSON(c.body); err != nil {
		return nil, fmt.Errorf("decoding the apply configuration: %w", err)
	}
	setDefaults(c.key.GroupKind(), body.Object)
	labels := body.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, names.Labels(component))
	body.SetLabels(labels)
	body.SetUID(c.uid)
	refs := slices.Clone(c.otherReferences)
	if ref := o.ownerReference(c.Ownership); ref != nil {
		refs = append(refs, *ref)
	}
	body.SetOwnerReferences(refs)
	return body, nil
}

// setDefaults sets important defaults of the API server explicitly. FieldOwner then owns them, and a change by another client is
// detected. For a NetworkPolicy the empty list of rules, which denies all traffic, is set too.
func setDefaults(kind schema.GroupKind, object map[string]any) {
	spec, ok := object["spec"].(map[string]any)
	if !ok {
		return
	}
	switch kind {
	case schema.GroupKind{Kind: "Service"}:
		setDefault(spec, "type", "ClusterIP")
		ports, _ := spec["ports"].([]any)
		for _, item := range ports {
			if port, ok := item.(map[string]any); ok {
				setDefault(port, "protocol", "TCP")
				setDefault(port, "targetPort", port["port"])
			}
		}
	case schema.GroupKind{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:
		types, _ := spec["policyTypes"].([]any)
		for _, direction := range types {
			if name, ok := direction.(string); ok {
				setDefault(spec, strings.ToLower(name), []any{})
			}
		}
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}:
		setDefault(spec, "strategy", map[string]any{"type": "RollingUpdate"})
	case schema.GroupKind{Group: "apps", Kind: "StatefulSet"}:
		setDefault(spec, "updateStrategy", map[string]any{"type": "RollingUpdate"})
	}
}

// setDefault sets a field unless it is set.
func setDefault(fields map[string]any, name string, value any) {
	if _, ok := fields[name]; !ok {
		fields[name] = value
	}
}
