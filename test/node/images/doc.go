// Package images makes container images without a container engine and serves them under any name.
//
// A [Store] keeps layers and configurations by the digest of their content, for all instances of a user, and the names of
// images apart from them, for one instance: two checkouts may run side by side, each with its own build behind one name.
// [Store.Layer] runs a recipe once and finds its result afterwards. [Store.Pack] adds single files and what a process needs
// to know. Layers are not compressed: they travel over loopback only.
//
// The store is an [net/http.Handler] that answers as every registry at once. containerd asks it as the mirror of all hosts,
// and says in the query which host it means.
package images
