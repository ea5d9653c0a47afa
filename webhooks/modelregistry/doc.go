// Package modelregistry admits ModelRegistry and Catalog objects and converts ModelRegistry objects between their versions.
//
// The rules are pure functions of the new and old object, the settings and the APIs of the cluster. The controller calls them when webhooks
// are disabled. Defaults are set in decoded JSON and returned as a patch, so that unknown fields are preserved. Terminating objects are
// always allowed, so that rules cannot block their deletion.
package modelregistry
