// Package conditions sets status conditions, evaluates workloads, and summarizes conditions for clients of kstatus. It also reports objects
// that are not ready in a metric.
//
// Messages are stable: they contain the cause and the fix, but neither counters nor generated names, because every change of a message
// updates the status and notifies all watchers.
package conditions
