// Package tree is the sub-command that shows what a resource consists of in the cluster, down to the pods, and how each part is.
//
// What belongs to a resource is found by owner references, and where there are none, as with data that is kept, objects in
// other namespaces and those of cluster scope, by labels, see kin.go. Only metadata is listed; of what is shown, the objects
// whose health depends on more than that they exist are then read.
package tree
