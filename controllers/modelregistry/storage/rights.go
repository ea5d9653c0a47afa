package storage

// The objects of every namespace have to be moved, whatever namespace the settings name.
// +kubebuilder:rbac:groups=modelregistry.opendatahub.io,resources=modelregistries,verbs=list;patch
// +kubebuilder:rbac:groups=modelregistry.opendatahub.io,resources=modelregistries/status,verbs=patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=modelregistries.modelregistry.opendatahub.io,verbs=get
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions/status,resourceNames=modelregistries.modelregistry.opendatahub.io,verbs=patch
// +kubebuilder:rbac:groups=storagemigration.k8s.io;migration.k8s.io,resources=storageversionmigrations,verbs=create
// +kubebuilder:rbac:groups=storagemigration.k8s.io;migration.k8s.io,resources=storageversionmigrations,resourceNames=modelregistry-v1alpha1-to-v1beta1-migration,verbs=get;delete
