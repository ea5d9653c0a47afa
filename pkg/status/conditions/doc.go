// Package conditions sets status conditions, judges the health of workloads for them, and sums them up for tools that know the rules of
// kstatus. It also reports objects that are not ready by name in a metric.
//
// Everything it says is stable: a message names cause and fix, and holds neither counters nor generated names,
// because every change of a message is a write of a status that wakes all its watchers.
package conditions
