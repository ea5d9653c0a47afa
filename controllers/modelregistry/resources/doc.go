// Package resources builds the objects of a registry: pure functions of its spec with every default and of what the cluster serves.
//
// build.go lists them in the order in which they are written, names.go has their names and labels, dsn.go the address of the database,
// backend.go what the server is given to reach it; each other file has the objects of a kind, or those of the generated database.
package resources
