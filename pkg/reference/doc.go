// Package reference tracks the Secrets and ConfigMaps that pods of a component use and that other clients own.
//
// The objects are watched as metadata. Their content is read from the API server when their resourceVersion changes, and only a hash of
// the used keys is stored. The hashes are annotations of the workload. A change of a used key, such as a password or
// certificate, causes a rollout. Changes of other keys or labels, a restart of the manager and the adoption of the workload cause none.
package reference
