// Package conditions sets status conditions and judges the health of workloads for them.
//
// Everything it says is stable: a message names cause and fix, and holds neither counters nor generated names,
// because every change of a message is a write of a status that wakes all its watchers.
package conditions
