// Package render is the command that shows what custom resources bring about, without a cluster or with the settings of one, and how
// that differs from what is there.
package render
