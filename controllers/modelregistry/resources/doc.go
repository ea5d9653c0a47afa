// Package resources builds the objects of a registry from its spec with all defaults and from [Inputs]. It has no client.
//
// build.go lists the objects of the server. names.go has their names and labels. backend.go has the address of the database and the flags,
// variables and volumes of the connection. The other files build the server and the generated database.
package resources
