// Package capability knows which optional APIs the cluster serves, follows them live, and says when that changes.
//
// A Watcher reads discovery, listens to the names of CustomResourceDefinitions to learn when to read it again, looks for
// aggregated APIs every ten minutes, and swaps an immutable Set. A failing discovery call keeps the last known state of the group
// versions it could not read, and a kind is given up only when its definition goes or discovery omits it persistently: a transient error never downgrades a platform. At the start there is no last state: until discovery has answered
// once the set is empty, a Watcher is not ready, and components, which all require a kind, wait. A version that is listed then but
// cannot be described counts as served.
//
// Kinds that a Watcher follows are to be watched through Watcher.Watch, or by a component that requires them.
// When such a kind comes or goes, its informers leave the cache, so that no informer lists an API that is gone for ever,
// and so that its return is noticed at once. Reads from a cache that Reads made do not wait for a kind that is gone.
package capability
