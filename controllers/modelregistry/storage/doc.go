// Package storage migrates stored ModelRegistry objects from an earlier API version to the current storage version, so that the earlier
// version can be removed.
//
// status.storedVersions of the CRD lists the versions in which objects may be stored; the API server never removes an entry. The migration
// patches every object, so that the API server stores it in the storage version. Then it removes the earlier version from the list. After
// that, each start sends at most one request.
package storage

// Objects of all namespaces are migrated, regardless of the configured namespace.
// +kubebuilder:rbac:groups=modelregistry.opendatahub.io,resources=modelregistries,verbs=list;patch
// +kubebuilder:rbac:groups=modelregistry.opendatahub.io,resources=modelregistries/status,verbs=patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=modelregistries.modelregistry.opendatahub.io,verbs=get
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions/status,resourceNames=modelregistries.modelregistry.opendatahub.io,verbs=patch
