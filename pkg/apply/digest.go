package apply

import (
	"hash/maphash"
	"slices"
	"strconv"
	"unique"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// digest stands for one managed fields entry. The zero value stands for no entry.
type digest struct {
	fields string
	at     int64 // seconds since 1970: when the entry changed last
}

// digestOf returns the digest of the entry under which fieldOwner applies. It is the same for an entry as the API
// server sends it and for one that Transform has shortened.
func digestOf(entries []metav1.ManagedFieldsEntry, fieldOwner string) digest {
	i := slices.IndexFunc(entries, applied(fieldOwner))
	if i < 0 {
		return digest{}
	}
	d := digest{fields: fingerprint(entries[i].FieldsV1)}
	if entries[i].Time != nil {
		d.at = entries[i].Time.Unix()
	}
	return d
}

// applied selects the entry of a field owner that uses server-side apply on the object itself; the API server keeps
// at most one.
func applied(fieldOwner string) func(metav1.ManagedFieldsEntry) bool {
	return func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == fieldOwner && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
	}
}

// fingerprint returns a short JSON string in place of a set of fields, or the string that already stands there. The
// hash is taken over the canonical form: the order of keys differs between the encodings of the API server.
func fingerprint(fields *metav1.FieldsV1) string {
	if fields == nil {
		return ""
	}
	raw := fields.GetRawBytes()
	if len(raw) > 0 && raw[0] == '"' {
		return string(raw)
	}
	if set, err := decode(fields); err == nil {
		if canonical, err := set.ToJSON(); err == nil {
			raw = canonical
		}
	}
	return `"` + strconv.FormatUint(maphash.Bytes(seed, raw), 36) + `"`
}

func decode(fields *metav1.FieldsV1) (*fieldpath.Set, error) {
	set := &fieldpath.Set{}
	if err := set.FromJSON(fields.GetRawReader()); err != nil {
		return nil, err
	}
	return set, nil
}

// Transform returns a cache transform that keeps of the managed fields only what an Applier with one of the field
// owners needs: its own entry, with the set of fields replaced by a hash. Managed fields are the largest part of
// most objects' metadata; of the rest it shares what many objects have in common. Objects read through such a cache must
// not be sent back with an update; patches are fine.
func Transform(fieldOwners ...string) toolscache.TransformFunc {
	return func(in any) (any, error) {
		object, err := meta.Accessor(in)
		if err != nil {
			return in, nil // a tombstone, or no API object at all: nothing to shorten
		}
		var kept []metav1.ManagedFieldsEntry
		for _, entry := range object.GetManagedFields() {
			if !slices.ContainsFunc(fieldOwners, func(owner string) bool { return applied(owner)(entry) }) {
				continue
			}
			if entry.FieldsV1 != nil {
				short := &metav1.FieldsV1{}
				short.SetRawBytes([]byte(fingerprint(entry.FieldsV1)))
				entry.FieldsV1 = short
			}
			entry.Manager, entry.APIVersion, entry.FieldsType = one(entry.Manager), one(entry.APIVersion), one(entry.FieldsType)
			kept = append(kept, entry)
		}
		object.SetManagedFields(kept)
		share(object)
		return in, nil
	}
}

// share lets an object use one copy of the texts that thousands of objects have in common, and the children of an owner: they are half
// of what the metadata of a child takes.
func share(object metav1.Object) {
	if labels := object.GetLabels(); len(labels) > 0 {
		shared := make(map[string]string, len(labels))
		for name, value := range labels {
			shared[one(name)] = one(value)
		}
		object.SetLabels(shared)
	}
	refs := object.GetOwnerReferences()
	for i, ref := range refs {
		refs[i].APIVersion, refs[i].Kind, refs[i].Name, refs[i].UID = one(ref.APIVersion), one(ref.Kind), one(ref.Name), one(ref.UID)
	}
	if len(refs) > 0 {
		object.SetOwnerReferences(refs)
	}
	object.SetNamespace(one(object.GetNamespace()))
}

func one[T comparable](value T) T { return unique.Make(value).Value() }
