package apply

import (
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
