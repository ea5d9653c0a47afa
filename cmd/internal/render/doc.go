// Package render shows what custom resources bring about, without writing anything. The manager and the plugin of kubectl share it:
// one table of kinds, read with the settings and the served APIs of a cluster, a real one or one of those that are made up here.
package render
