// Package conversion converts ModelRegistry objects between v1alpha1 and v1beta1.
//
// It converts decoded JSON, so that unknown fields are preserved. Fields that only v1beta1 has are kept in an annotation of the v1alpha1
// object; the annotation is never stored. Converting back restores each field from it, unless the v1alpha1 object has another value. Clients
// of v1alpha1 can therefore change every field that v1alpha1 has, and keep those that it lacks.
package conversion
