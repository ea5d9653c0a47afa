package apply

import (
	"encoding/json"
	"hash/maphash"
	"slices"
	"strconv"
	"unique"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// digest identifies the state of one managed fields entry. The zero value is for a missing entry.
type digest struct {
	fields string
	at     int64 // time of the last change of the entry, in seconds since 1970
}

// digestOf returns the digest of the apply entry of fieldOwner. An entry that Transform has shortened has the same digest.
func digestOf(entries []metav1.ManagedFieldsEntry, fieldOwner string) digest {
	i := slices.IndexFunc(entries, isAppliedBy(fieldOwner))
	if i < 0 {
		return digest{}
	}
	d := digest{fields: hashFields(entries[i].FieldsV1)}
	if entries[i].Time != nil {
		d.at = entries[i].Time.Unix()
	}
	return d
}

// isAppliedBy matches the entry of a field owner that applies the object itself. The API server keeps at most one.
func isAppliedBy(fieldOwner string) func(metav1.ManagedFieldsEntry) bool {
	return func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == fieldOwner && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
	}
}

// hashFields returns a hash of a set of fields as a JSON string, or the existing hash. It hashes sorted keys, because the API server varies
// their order.
func hashFields(fields *metav1.FieldsV1) string {
	if fields == nil {
		return ""
	}
	if raw := fields.GetRawBytes(); len(raw) > 0 && raw[0] == '"' {
		return string(raw)
	}
	return hashTree(decodeFields(fields))
}

func hashTree(tree fieldTree) string {
	raw, err := json.Marshal(tree)
	if err != nil {
		return ""
	}
	return `"` + strconv.FormatUint(maphash.Bytes(hashSeed, raw), 36) + `"`
}

// Transform returns a cache transform that keeps only the managed fields entries of the field owners, each with a hash of its fields.
// Managed fields are the largest part of the metadata of most objects. Common strings are interned. Objects from such a cache must not be
// updated, only patched.
func Transform(fieldOwners ...string) toolscache.TransformFunc {
	return func(in any) (any, error) {
		object, err := meta.Accessor(in)
		if err != nil {
			return in, nil // a tombstone, or no API object
		}
		var kept []metav1.ManagedFieldsEntry
		for _, entry := range object.GetManagedFields() {
			if !slices.ContainsFunc(fieldOwners, func(owner string) bool { return isAppliedBy(owner)(entry) }) {
				continue
			}
			if entry.FieldsV1 != nil {
				short := &metav1.FieldsV1{}
				short.SetRawBytes([]byte(hashFields(entry.FieldsV1)))
				entry.FieldsV1 = short
			}
			entry.Manager, entry.APIVersion, entry.FieldsType = intern(entry.Manager), intern(entry.APIVersion), intern(entry.FieldsType)
			kept = append(kept, entry)
		}
		object.SetManagedFields(kept)
		internStrings(object)
		return in, nil
	}
}

// internStrings shares the strings that many objects have in common, such as labels and owner references: half of the metadata of a
// child.
func internStrings(object metav1.Object) {
	if labels := object.GetLabels(); len(labels) > 0 {
		shared := make(map[string]string, len(labels))
		for name, value := range labels {
			shared[intern(name)] = intern(value)
		}
		object.SetLabels(shared)
	}
	refs := object.GetOwnerReferences()
	for i, ref := range refs {
		refs[i].APIVersion, refs[i].Kind, refs[i].Name, refs[i].UID = intern(ref.APIVersion), intern(ref.Kind), intern(ref.Name), intern(ref.UID)
	}
	if len(refs) > 0 {
		object.SetOwnerReferences(refs)
	}
	object.SetNamespace(intern(object.GetNamespace()))
}

func intern[T comparable](value T) T { return unique.Make(value).Value() }
