// Package operator installs the operator into a test cluster and runs the real manager against it.
//
// The manifests are installed as a user would install them, except for the manager's Deployment, because the manager runs
// as a process next to the control plane. It has exactly the permissions of the ServiceAccount which the
// Deployment names. Webhook configurations are routed to that process through Services of type
// ExternalName, see package cluster.
package operator
