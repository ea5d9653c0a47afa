// Package tlsprofile applies the TLS profile of the cluster to the listeners of the manager. It also returns the profile of servers in
// pods.
//
// On OpenShift the administrator sets a TLS profile for the cluster (apiservers.config.openshift.io/cluster, spec.tlsSecurityProfile). A Watcher
// watches this object, and a Listener uses the profile for each handshake, so that the listeners need no restart. On other platforms, until
// the profile is read, and without permission to read it, the listeners use Intermediate. Errors of reading the profile never stop the
// process.
package tlsprofile
