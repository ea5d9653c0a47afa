// Package conversion converts ModelRegistry objects between v1alpha1 and v1beta1.
//
// It converts decoded JSON, which preserves unknown fields. An annotation of the v1alpha1 object contains the fields that only v1beta1 has.
// The conversion back removes the annotation and restores each field, unless the v1alpha1 object has another value. Clients of v1alpha1
// can therefore change every field that v1alpha1 has, without losing the others.
package conversion
