// Package operands starts what the operator's pods would start, with the public release of MLflow and with PostgreSQL: the
// migration program, the server, garbage collection, trace archival. It does the same with a Model Registry, PostgreSQL and
// MariaDB. Commands and environments are those of the rendered objects. What a kubelet does to them, and what a machine
// without a cluster has to change, is in tables. What pods show better is left to package e2e.
//
// The tests need the build tag operands, because they install MLflow into the user's cache directory: run `make test-operands`.
package operands
