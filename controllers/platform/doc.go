// Package platform answers the resources with which the operator of the platform hands areas over: it says whether the
// area has what it needs, which releases run, and keeps the resource while the area still has objects.
//
// mlflowoperator.go is the resource of MLflow, aihub.go that of registries and the catalog (aihub_status.go: its conditions);
// conditions.go and releases.go serve both, takeover.go ends the programs that the original operator left running.
package platform
