// Package storage moves stored ModelRegistry objects from the version in which they were once written to the one in which
// they are written now, so that the older version can be given up some day.
//
// Whether there is something to do says the CRD: the API server lists in status.storedVersions every version that any object
// may be stored in, and removes nothing from that list. Every object is written back as it is, which an API server answers with a
// write only for objects that are stored in another version. Then the list is trimmed, and no request follows ever after.
package storage

// The objects of every namespace have to be moved, whatever namespace the settings name.
// +kubebuilder:rbac:groups=modelregistry.opendatahub.io,resources=modelregistries,verbs=list;patch
// +kubebuilder:rbac:groups=modelregistry.opendatahub.io,resources=modelregistries/status,verbs=patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=modelregistries.modelregistry.opendatahub.io,verbs=get
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions/status,resourceNames=modelregistries.modelregistry.opendatahub.io,verbs=patch
