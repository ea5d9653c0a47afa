package apply

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// us is the field manager of the tests.
const us = "us"

// newEntry returns a managed fields entry with a time some seconds after a fixed one.
func newEntry(manager string, operation metav1.ManagedFieldsOperationType, subresource, fields string, seconds int64) metav1.ManagedFieldsEntry {
	raw := &metav1.FieldsV1{}
	raw.SetRawBytes([]byte(fields))
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, Subresource: subresource,
		APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: raw, Time: new(metav1.NewTime(time.Unix(1000+seconds, 0)))}
}

func ownEntry(fields string) metav1.ManagedFieldsEntry {
	return newEntry(us, metav1.ManagedFieldsOperationApply, "", fields, 0)
}

const fields = `{"f:data":{"f:a":{},"f:b":{}},"f:ports":{"k:{\"port\":8080}":{".":{},"f:port":{}},"k:{\"port\":10000}":{".":{},"f:port":{}}}}`

func TestDigestDependsOnOwnEntry(t *testing.T) {
	base := digestOf([]metav1.ManagedFieldsEntry{ownEntry(fields)}, us)
	for name, test := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		same    bool
	}{
		"equal entries": {[]metav1.ManagedFieldsEntry{ownEntry(fields)}, true},
		"another order of keys": {[]metav1.ManagedFieldsEntry{ownEntry(
			`{"f:ports":{"k:{\"port\":10000}":{"f:port":{},".":{}},"k:{\"port\":8080}":{".":{},"f:port":{}}},"f:data":{"f:b":{},"f:a":{}}}`)}, true},
		"entries of other managers": {[]metav1.ManagedFieldsEntry{
			newEntry("kubectl", metav1.ManagedFieldsOperationUpdate, "", `{"f:data":{"f:c":{}}}`, 5), ownEntry(fields),
			newEntry("controller", metav1.ManagedFieldsOperationUpdate, "status", `{"f:status":{}}`, 9)}, true},
		"own entry for a subresource": {[]metav1.ManagedFieldsEntry{ownEntry(fields),
			newEntry(us, metav1.ManagedFieldsOperationApply, "status", `{"f:status":{}}`, 5)}, true},
		"own entry by update": {[]metav1.ManagedFieldsEntry{
			newEntry(us, metav1.ManagedFieldsOperationUpdate, "", `{"f:data":{"f:c":{}}}`, 5), ownEntry(fields)}, true},
		"field is no longer owned": {[]metav1.ManagedFieldsEntry{ownEntry(`{"f:data":{"f:a":{}}}`)}, false},
		"written later":            {[]metav1.ManagedFieldsEntry{newEntry(us, metav1.ManagedFieldsOperationApply, "", fields, 1)}, false},
		"no own entry":             {[]metav1.ManagedFieldsEntry{newEntry("them", metav1.ManagedFieldsOperationApply, "", fields, 0)}, false},
		"no fields":                {[]metav1.ManagedFieldsEntry{{Manager: us, Operation: metav1.ManagedFieldsOperationApply}}, false},
		"invalid path element":     {[]metav1.ManagedFieldsEntry{ownEntry(`{"x:":{}}`)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := digestOf(test.entries, us) == base; got != test.same {
				t.Errorf("same digest: %v, want %v", got, test.same)
			}
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ManagedFields: test.entries}}
			before := digestOf(test.entries, us)
			transform(t, object)
			if after := digestOf(object.ManagedFields, us); after != before {
				t.Errorf("the transform changed the digest from %v to %v", before, after)
			}
		})
	}
}

func transform(t *testing.T, object any) {
	t.Helper()
	if _, err := Transform(us, "twin")(object); err != nil {
		t.Fatal(err)
	}
}

func TestTransformKeepsOwnEntry(t *testing.T) {
	annotations := map[string]string{corev1.LastAppliedConfigAnnotation: "duplicate", "other": "stays"}
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: annotations, ManagedFields: []metav1.ManagedFieldsEntry{
		newEntry("kubectl", metav1.ManagedFieldsOperationUpdate, "", fields, 0),
		ownEntry(fields),
		newEntry("twin", metav1.ManagedFieldsOperationApply, "", fields, 0),
	}}}
	for range 2 { // the second call must change nothing
		transform(t, object)
		if len(object.ManagedFields) != 2 || object.ManagedFields[0].Manager != us || object.ManagedFields[1].Manager != "twin" {
			t.Fatalf("unexpected managed fields: %v", object.ManagedFields)
		}
		if len(object.Annotations) != 1 || object.Annotations["other"] != "stays" {
			t.Errorf("unexpected annotations: %v", object.Annotations)
		}
		for _, entry := range object.ManagedFields {
			if raw := entry.FieldsV1.GetRawBytes(); len(raw) > 20 || raw[0] != '"' || raw[len(raw)-1] != '"' {
				t.Errorf("fields became %s, want a short JSON string", raw)
			}
		}
	}
	if _, err := object.Marshal(); err != nil {
		t.Errorf("encoding the transformed object: %v", err)
	}
}

func TestTransformKeepsTombstones(t *testing.T) {
	in := toolscache.DeletedFinalStateUnknown{Key: "a/b"}
	if out, err := Transform(us)(in); err != nil || out != in {
		t.Errorf("got %v, error %v, want the same object", out, err)
	}
	object := &corev1.ConfigMap{}
	transform(t, object)
	if object.ManagedFields != nil {
		t.Errorf("managed fields were added: %v", object.ManagedFields)
	}
}
