// Package nodes reads the health of nodes for AppWrappers. Labels determine the resources for which running pods should be evicted
// ([Nodes.NoExecute]). Labels, cordons and taints determine the capacity that is unavailable to new pods. The lending limits of one
// ClusterQueue, the slack queue, depend on that capacity.
package nodes
