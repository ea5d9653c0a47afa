// Package reference tracks the Secrets and ConfigMaps that pods of a component use and that other clients own.
//
// The objects are watched as metadata. Their content is read from the API server when their resourceVersion changes. A [Tracker] stores
// only hashes of it, and an annotation of the workload contains one hash of the used keys of each object. A change of a used key, such as a
// password or certificate, causes a rollout. Changes of other keys or labels, a restart of the manager and the adoption of the workload
// cause none.
package reference
