// Package clients runs the first steps of users with the real Python clients of Ray clusters, models, registries and MLflow. The manager
// has the shipped roles, and the ServiceAccount has the roles of a user. Pods are fake, except the servers that a client calls: these run
// as processes with the commands and environments of the operator's Deployments.
//
// Each client has a Python environment in the user's cache directory with the pinned dependencies of requirements/CLIENT-VERSION.txt (in a
// new environment of Python 3.12: pip install CLIENT==VERSION, then pip freeze). `make test-clients` runs the newest release of each, `make
// test-clients-all` also the oldest supported one.
//
// The suites chart and install use Helm as a library. kubectl-ray is missing, because the proxy of Go modules does not serve it.
package clients
