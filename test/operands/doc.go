// Package operands starts the programs of the operator's pods with the public release of MLflow and with PostgreSQL: the migration program,
// the server, garbage collection, trace archival. It also starts a Model Registry with PostgreSQL and with MariaDB. Commands and
// environments are those of the rendered objects; three tables in container_test.go adapt them to a machine without a kubelet and a cluster.
// Package e2e tests with pods.
//
// The build tag operands is required, because the tests install MLflow into the user's cache directory: run `make test-operands`.
package operands
