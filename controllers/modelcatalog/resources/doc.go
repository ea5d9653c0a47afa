// Package resources builds the objects of a Catalog from its spec and Inputs. It sends no requests. build.go lists the objects.
// The other files build the server, its sources and the database.
package resources
