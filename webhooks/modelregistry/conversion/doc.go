// Package conversion converts ModelRegistry objects between v1alpha1 and v1beta1.
//
// It converts decoded JSON, so that unknown fields are preserved. Fields that only v1beta1 has are stored in an annotation of the v1alpha1
// object, which stored objects do not have. Converting back restores each field, unless the v1alpha1 object has another value for it:
// clients of the older version may change the fields that they see and lose none that they do not see.
package conversion
