// Package installed finds the manager in a cluster: its Deployment, the replica that leads, and the settings that it runs with,
// which it reads as the manager does, from the Deployment's arguments, variables and ConfigMaps.
package installed
