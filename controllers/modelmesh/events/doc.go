// Package events tells which models changed in the routing layers of ModelMesh, by watching the keys that these keep in etcd.
// Nothing is ever written there.
//
// The [Stream] has a watch for every namespace that it was asked to look at. Each is a small machine of its own: it lists, watches
// from there on, and starts over when etcd forgot its place; when etcd is away it tries again after growing pauses. Who listens
// hears of every model that there is when a watch starts, and of every one that went while no watch ran.
package events
