// Package resources builds the objects of a Catalog: pure functions of its spec and of what the cluster serves. build.go lists them in
// the order in which they are written; each other file has those of a kind, or those of the database.
package resources
