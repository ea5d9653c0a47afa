package apply

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// OwnsExactly reports whether the fields that FieldOwner owns in a cached object are those of a desired object without lists, whatever
// their values. The API server takes a field from FieldOwner when another client changes its value.
func (a *Applier) OwnsExactly(owner client.Object, object Object, cached metav1.Object) (bool, error) {
	o, err := newOwner(owner, a.Client.Scheme())
	if err != nil {
		return false, err
	}
	c, err := newChild(object)
	if err != nil {
		return false, err
	}
	body, err := c.render(a.Component, o, nil)
	if err != nil {
		return false, err
	}
	owned := &fieldpath.Set{}
	for _, ref := range body.GetOwnerReferences() {
		owned.Insert(fieldpath.MakePathOrDie("metadata", "ownerReferences", fieldpath.KeyByFields("uid", string(ref.UID))))
	}
	for _, identity := range []string{"apiVersion", "kind"} {
		delete(body.Object, identity)
	}
	if metadata, ok := body.Object["metadata"].(map[string]any); ok {
		for _, identity := range []string{"name", "namespace", "ownerReferences"} {
			delete(metadata, identity)
		}
	}
	insertFields(owned, nil, body.Object)
	raw, err := owned.ToJSON()
	if err != nil {
		return false, err
	}
	fields := &metav1.FieldsV1{}
	fields.SetRawBytes(raw)
	return digestOf(cached.GetManagedFields(), a.FieldOwner).fields == hashFields(fields), nil
}

// insertFields adds the paths of all fields that contain no other fields.
func insertFields(set *fieldpath.Set, path fieldpath.Path, fields map[string]any) {
	for name, value := range fields {
		at := append(path.Copy(), fieldpath.PathElement{FieldName: &name})
		if inner, ok := value.(map[string]any); ok && len(inner) > 0 {
			insertFields(set, at, inner)
		} else {
			set.Insert(at)
		}
	}
}
