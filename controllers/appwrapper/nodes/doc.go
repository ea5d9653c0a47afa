// Package nodes follows the health of nodes for AppWrappers: labels, cordons and taints say which resources running pods should leave
// ([Nodes.NoExecute]), and what new pods cannot count on. By the latter the lending limits of one ClusterQueue are set, the slack queue.
package nodes
