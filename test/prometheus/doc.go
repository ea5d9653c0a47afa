// Package prometheus tests the rules and dashboards of the manager with the engine of Prometheus: alerts fire only while their condition
// holds, and queries use existing metrics. It is a separate module, because Prometheus requires newer versions of some dependencies of the
// manager.
package prometheus
