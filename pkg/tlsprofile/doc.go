// Package tlsprofile keeps the TLS settings of our listeners in line with the platform.
//
// On OpenShift the administrator chooses a TLS profile for the whole cluster (apiservers.config.openshift.io/cluster,
// spec.tlsSecurityProfile). A Watcher follows that one object and a Listener asks it at every handshake, so a new
// profile holds for the next connection and nothing restarts. Everywhere else, and whenever the profile cannot be
// read, Intermediate is in force; no error here ever ends the process.
package tlsprofile
