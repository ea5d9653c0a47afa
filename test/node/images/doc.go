// Package images makes container images without a container engine and serves them under any name.
//
// A [Store] keeps layers and configurations by the digest of their content, for all instances of a user, and the names of
// images apart from them, for one instance: two checkouts may run side by side, each with its own build behind one name.
// [Store.Layer] runs a recipe once and caches its result. [Store.Pack] adds single files and the configuration of the
// process. Layers are not compressed: they travel over loopback only.
//
// The store is an [net/http.Handler] that acts as a mirror of all registries. containerd uses it for all hosts
// and names the host in the query.
package images
