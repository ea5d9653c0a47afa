// Package prometheus proves the rules and dashboards of the manager with the engine of Prometheus: each alert fires when it should and
// not otherwise, and each query uses metrics that exist. It is a module of its own, because the requirements of Prometheus would raise
// versions in the manager.
package prometheus
