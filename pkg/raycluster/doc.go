// Package raycluster is shared by webhooks and controllers of RayClusters: keys, names of objects, a view of the raw object, the security
// that KubeRay provides itself, and the Mode that follows from the settings for one cluster.
//
// A RayCluster belongs to KubeRay, and its types grow with every release. So single fields are read from the raw object, and no typed object
// is ever written back.
package raycluster
