// Package operator installs the operator into a test cluster and runs the real manager against it.
//
// The manifests are installed as a user would install them, with one difference: the manager's Deployment is left out,
// because the manager runs as a process beside the control plane. It has the rights of the ServiceAccount which the
// Deployment names and nothing more. Webhook configurations are routed to that process through Services of type
// ExternalName, see package cluster.
package operator
