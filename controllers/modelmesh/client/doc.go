// Package client talks to the routing layers of ModelMesh: one client for each namespace, which spreads its calls over the ready
// pods behind the Service of that namespace.
//
// A [Pool] holds the clients. It learns what to talk to (Ensure, Forget) and where the pods are (SetAddresses, which the
// controller of [Endpoints] calls), and it tells its subscribers when either changes.
package client
