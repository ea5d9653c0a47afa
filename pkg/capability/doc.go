// Package capability determines which optional APIs the cluster serves, and notifies listeners of changes.
//
// A Watcher reads discovery when CustomResourceDefinitions change, and every ten minutes for aggregated APIs, and replaces an immutable
// Set. A kind is removed only when its CRD is deleted or discovery omits it persistently: a failed discovery call keeps the last
// known state of the versions it could not read. If the first discovery call is partial, all kinds of an unreadable version count as
// served.
//
// Until discovery has succeeded and the presence of the platform's KubeRay is known, the set is empty, the Watcher is not ready, and
// components, which all require a kind, wait.
//
// Optional kinds must be watched through Watcher.Kind, or by a component that requires them.
package capability
