// Package prometheus tests the rules and dashboards of the manager with the engine of Prometheus: each alert fires only when it should,
// and each query uses existing metrics. It is a separate module, because the requirements of Prometheus would raise
// versions in the manager.
package prometheus
