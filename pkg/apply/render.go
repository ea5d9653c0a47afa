package apply

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// Render returns what Apply would write for an owner in a cluster where nothing exists yet: the desired objects in
// order, with the labels and owner references in place. The kind of the owner must be set on it, unless it is one of
// Kubernetes' own.
func Render(desired Desired, component string, owner client.Object) ([]*unstructured.Unstructured, error) {
	o, err := newOwner(owner, scheme.Scheme)
	if err != nil {
		return nil, err
	}
	objects := make([]*unstructured.Unstructured, 0, len(desired))
	for _, object := range desired {
		c, err := newChild(object)
		if err == nil {
			err = o.mayOwn(c)
		}
		if err != nil {
			return nil, fmt.Errorf("rendering %s: %w", title(c.key.Kind, c.key.Namespace, c.key.Name), err)
		}
		rendered, err := c.render(component, o, nil)
		if err != nil {
			return nil, fmt.Errorf("rendering %s: %w", title(c.key.Kind, c.key.Namespace, c.key.Name), err)
		}
		objects = append(objects, rendered)
	}
	return objects, nil
}

// render returns the whole body of an apply request but for the uid. Others are references of other owners that our
// field owner holds and must send again, or it would drop them.
func (c child) render(component string, o owner, others []metav1.OwnerReference) (*unstructured.Unstructured, error) {
	body := &unstructured.Unstructured{}
	if err := body.UnmarshalJSON(c.body); err != nil {
		return nil, fmt.Errorf("decoding the apply configuration: %w", err)
	}
	spellOut(c.key.GroupKind(), body.Object)
	labels := body.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, names.Labels(component))
	body.SetLabels(labels)
	if ref := o.reference(c.Ownership); ref != nil {
		others = append(others, *ref)
	}
	if len(others) > 0 {
		body.SetOwnerReferences(others)
	}
	return body, nil
}

// spellOut writes out what the API server would fill in, where much depends on it: what is not named is not ours, and a stranger's
// change of it would stay unnoticed. A policy that lists no rules denies by that, so the empty list is named as well.
func spellOut(kind schema.GroupKind, object map[string]any) {
	spec, ok := object["spec"].(map[string]any)
	if !ok {
		return
	}
	switch kind {
	case schema.GroupKind{Kind: "Service"}:
		spellOutService(spec)
	case schema.GroupKind{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:
		types, _ := spec["policyTypes"].([]any)
		for direction, rules := range map[string]string{"Ingress": "ingress", "Egress": "egress"} {
			if slices.Contains(types, any(direction)) {
				preset(spec, rules, []any{})
			}
		}
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}:
		preset(spec, "strategy", map[string]any{"type": "RollingUpdate"})
	case schema.GroupKind{Group: "apps", Kind: "StatefulSet"}:
		preset(spec, "updateStrategy", map[string]any{"type": "RollingUpdate"})
	}
}

func spellOutService(spec map[string]any) {
	preset(spec, "type", "ClusterIP")
	ports, _ := spec["ports"].([]any)
	for _, item := range ports {
		if port, ok := item.(map[string]any); ok {
			preset(port, "protocol", "TCP")
			preset(port, "targetPort", port["port"])
		}
	}
}

// preset sets a field that is not there.
func preset(fields map[string]any, name string, value any) {
	if _, ok := fields[name]; !ok {
		fields[name] = value
	}
}
