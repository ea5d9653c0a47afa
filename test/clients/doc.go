// Package clients runs the first steps of a user with the real Python clients of Ray clusters, models, registries and MLflow. The manager
// has its shipped roles, and the ServiceAccount of the client has the roles of a user. Pods are fake, except the servers that a client
// calls: these run as processes with the commands and environment variables of the Deployments that the operator creates.
//
// Each client has a Python environment in the user's cache directory. Except for MLflow, which extends the environment of test/operands, it has
// the pinned dependencies of requirements/CLIENT-VERSION.txt (in a new environment of Python 3.12: pip install CLIENT==VERSION, then pip
// freeze). `make test-clients` tests the newest supported release of each, `make test-clients-all` also the oldest.
//
// Not tested here: Helm, which the suites chart and install use as a library, and kubectl-ray, which the Go module proxy does not serve.
package clients
