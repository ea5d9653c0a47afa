// Package raycluster holds what webhooks and controllers of RayClusters have to agree on: the keys, the names of objects, a view of the
// raw object, which security KubeRay brings itself, and what follows from the settings for one cluster.
//
// A RayCluster belongs to KubeRay, and its types grow faster than this program. So it is read as it is, field by field, and
// never written back from a type.
package raycluster
