// Package mlflow turns the cluster-scoped MLflow resource into a running, TLS-terminating MLflow server in one namespace,
// reachable inside the cluster and, where the cluster serves the Gateway API, through a gateway.
//
// setup.go says what is watched and with which rights, phases.go what one pass does, build*.go what the cluster should hold
// (pure functions), status.go what users are told.
package mlflow
