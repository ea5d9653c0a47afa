// Package gather collects what a support case needs into an archive: the manager, resources, the objects that belong to them, events and
// logs. Credentials are taken out of everything, see package redact.
package gather
