// Package render shows what custom resources bring about, without writing anything. The manager and the plugin of kubectl share it:
// one table of kinds, which package kinds has, read with the settings and the served APIs of a cluster, a real one or a pretended one.
package render
