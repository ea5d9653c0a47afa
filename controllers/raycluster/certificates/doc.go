// Package certificates issues and renews the certificates of Ray clusters: a CA per cluster in a Secret, one certificate for the head and
// one for the workers, and one for the proxy of the dashboard.
//
// A reconcile of the certificates:
//
//  1. Reconciler.Reconcile (reconciler.go) is called with the RayCluster and its mode; planCertificates (plan.go) returns the desired
//     certificates with their DNS names and addresses.
//  2. isUpToDate (reconciler.go) compares each Secret with the memory: an unchanged Secret that is not due needs no request.
//  3. issue.go issues or renews due certificates with pkg/certs, or certmanager.go creates Certificates. applySecret (reconciler.go)
//     applies the Secrets.
//  4. podannotation.go annotates waiting pods when the certificate contains their address: the kubelet then updates their volumes.
//  5. Reconcile returns the time until the next reconcile.
package certificates
