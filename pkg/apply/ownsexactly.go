package apply

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// OwnsExactly reports whether the fields that FieldOwner owns in a cached object are those of a desired object without lists, whatever
// their values. The API server takes a field from FieldOwner when another client changes its value.
func (a *Applier) OwnsExactly(owner client.Object, object Object, cached metav1.Object) (bool, error) {
	rendered, err := Render(Desired{object}, a.Component, owner)
	if err != nil {
		return false, err
	}
	body, refs := rendered[0], rendered[0].GetOwnerReferences()
	for _, identity := range [][]string{{"apiVersion"}, {"kind"}, {"metadata", "name"}, {"metadata", "namespace"}, {"metadata", "ownerReferences"}} {
		unstructured.RemoveNestedField(body.Object, identity...)
	}
	owned := fieldpath.SetFromValue(value.NewValueInterface(body.Object))
	for _, ref := range refs {
		owned.Insert(fieldpath.MakePathOrDie("metadata", "ownerReferences", fieldpath.KeyByFields("uid", string(ref.UID))))
	}
	raw, err := owned.ToJSON()
	fields := &metav1.FieldsV1{}
	fields.SetRawBytes(raw)
	return err == nil && digestOf(cached.GetManagedFields(), a.FieldOwner).fields == hashFields(fields), err
}
