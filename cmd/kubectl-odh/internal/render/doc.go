// Package render is the command that shows what the manager would create for custom resources, without a cluster or with the settings
// of one, and how that differs from what is there.
package render
