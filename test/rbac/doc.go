// Package rbac checks the shipped roles against the requests of managers.
//
// Every suite that runs a manager leaves a record of the rights that it used, see package rights. After all suites, every right in the
// roles of the manager must have been used by a manager that ran the component of the role; or be granted by the manager to
// others, which requires it; or be listed in [rare] or [untested] with a reason. And no request may have been refused.
//
// `make test-integration` runs the suites and then this package. To see what is unused after single suites:
//
//	go test ./test/integration/mlflow && go test -v ./test/rbac
//
// A record of chosen specs adds to the one of the whole suite. Outside CI the package skips the checks that need missing records, and
// lists these.
package rbac
