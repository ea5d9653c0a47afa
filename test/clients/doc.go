// Package clients does with the real Python clients of Ray clusters, models, registries and MLflow what their users do first: against
// the manager with its shipped roles, as an account with the roles of a user. Pods are fake, except those of servers that a client
// talks to: these run on this machine, with the commands and environments of the Deployments that the operator made.
//
// Each client is in a Python environment of its own in the user's cache directory, with everything that it needs pinned in
// requirements/CLIENT-VERSION.txt (in a fresh environment of Python 3.12: pip install CLIENT==VERSION, then pip freeze). `make
// test-clients` runs the newest release of each, `make test-clients-all` the oldest that is supported too.
//
// Helm is not among them: the suites chart and install use it as a library. kubectl-ray is not served by the proxy of Go modules.
package clients
