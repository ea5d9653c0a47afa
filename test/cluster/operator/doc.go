// Package operator installs the operator into a test cluster and runs the real manager against it.
//
// The manifests are installed as a user would install them, except for the manager's Deployment, because the manager runs as a process
// next to the control plane. It has exactly the permissions of the ServiceAccount in the Deployment. The API server calls the webhooks
// of that process through Services of type ExternalName, see package cluster.
package operator
