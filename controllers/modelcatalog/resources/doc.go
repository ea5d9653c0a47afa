// Package resources builds the objects of a Catalog from its spec and the APIs of the cluster. It has no client. build.go lists the
// objects. The other files build the server, its sources and the database.
package resources
