// Package images builds container images without a container engine and serves them under any name.
//
// A [Store] stores layers and configurations by their digest, shared by all instances of a user, and the names of images per
// instance. Two checkouts can run in parallel with different builds of the same image name. [Store.Layer] runs a recipe once
// and caches its result. [Store.Pack] adds single files and the configuration of the process. Layers are not compressed,
// because they are served over loopback only.
//
// The store is a [net/http.Handler] that serves as a mirror of all registries. containerd sends the host of the registry in the
// query.
package images
