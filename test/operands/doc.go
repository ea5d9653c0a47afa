// Package operands starts the programs of the operator's pods as processes: public releases of MLflow with PostgreSQL and SQLite, Model
// Registry with PostgreSQL and MariaDB, backups of PostgreSQL, the adapters and the etcd of ModelMesh, and the manager. Commands and
// environments are those of the rendered objects; tables such as replacedPaths adapt them to a machine without a kubelet. Package e2e
// tests with pods.
//
// The build tag operands is required, because the tests install MLflow into the user's cache directory: run `make test-operands`.
package operands
