// Package status is the sub-command that shows on one screen how the manager is, which components run, and how every resource
// that they look after is.
//
// A [Report] is gathered from the cluster and judged by package health; text and JSON show the same one.
package status
