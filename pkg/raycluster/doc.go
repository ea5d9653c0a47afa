// Package raycluster is shared by webhooks and controllers of RayClusters: keys, names of objects, a view of the raw object, the elements
// that are injected into pods, the security that KubeRay provides itself, and the Mode of one cluster.
//
// KubeRay adds fields to its types with every release. Therefore this package reads single fields of the raw object, and no typed object is
// ever written back.
package raycluster
