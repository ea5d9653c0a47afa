// Package rbac compares the shipped roles with the requests of managers.
//
// Every suite that runs a manager writes a record of the permissions that the manager used, see package rights. A permission in the roles
// of the manager must have been used by a manager with the component of the role, or have been required because the manager grants
// it to others, or be listed in [rare] or [untested] with a reason. No request may have been forbidden, unless a spec expected that.
//
// `make test-integration` runs the suites and then this package. To list unused permissions after single suites:
//
//	go test ./test/integration/mlflow && go test -v ./test/rbac
//
// A record of selected specs is merged into that of the complete suite. Outside CI the package skips checks whose records are missing, and
// lists the suites.
package rbac
