// Package render shows what the manager would create for custom resources, without writing anything. The manager and the kubectl plugin
// share it: one table of kinds, which package kinds has, with the settings and the served APIs of a real or an assumed cluster.
package render
