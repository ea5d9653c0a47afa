// Package platform reconciles the resources by which the platform operator enables MLflow (MLflowOperator), model registries and the
// catalog (AIHub): it reports conditions and releases, creates the namespace of registries and the Catalog, and blocks deletions while
// dependent objects exist.
//
// status.go contains the conditions and releases.go the versions of both.
package platform
