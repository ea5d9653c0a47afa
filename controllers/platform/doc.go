// Package platform answers the resources with which the operator of the platform hands areas over: it says whether the
// area has what it needs, which releases run, and keeps the resource while the area still has objects.
//
// mlflowoperator.go is MLflow's resource, aihub*.go that of model registries and the catalog; conditions.go and releases.go are what all of them share.
package platform
