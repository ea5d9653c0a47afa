// Package resources builds the objects of a Catalog from its spec and the APIs of the cluster. It has no client. build.go lists the objects
// in the order in which they are applied; the other files build them by kind or build those of the database.
package resources
