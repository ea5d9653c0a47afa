// Package modelregistry admits ModelRegistry and Catalog objects and converts ModelRegistry objects between their versions.
//
// The rules are pure functions of the new and old object, the settings and the APIs of the cluster. The controller calls some of them
// too, because webhooks may be missing. Defaults are set in decoded JSON and returned as a patch, which preserves unknown fields.
// Terminating objects are always allowed, because rules must not block their deletion.
package modelregistry
