// Package rbac holds the roles that are shipped against what managers did with them.
//
// Every suite that runs a manager leaves a record of the rights that it used, see package rights. When all have run, every right of the
// roles of the manager must have been used by one of them, by a manager that ran the component of the role; or be one that it gives to
// others, which the API server lets it do only if it has it; or stand in [rare] or [unproven] with a reason. And no request may have been refused.
//
// `make test-integration` runs the suites and then this package. To see what is unused after single suites:
//
//	go test ./test/integration/mlflow && go test -v ./test/rbac
//
// A record of chosen specs adds to the one of the whole suite. Without the records of all suites the package says which are missing and
// skips what needs them, but not in CI.
package rbac
