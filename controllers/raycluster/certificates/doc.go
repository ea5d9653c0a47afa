// Package certificates keeps the certificates of Ray clusters: the CA of each in a Secret, a certificate for its head and one for its
// workers, and that of the proxy before its dashboard.
//
// A reconcile goes through it like this:
//
//  1. Keeper.Keep (keeper.go) is called with the cluster and its mode; planCertificates (plan.go) says which Secrets belong to it, and for
//     which names and addresses.
//  2. isGood (keeper.go) asks the memory about each: a Secret of a known version whose time has not come costs no request.
//  3. What is due is issued or renewed by issue.go with the engine of pkg/certs, or asked of cert-manager by certmanager.go. write
//     (keeper.go) applies it.
//  4. serve.go marks the pods that wait once their address is in the certificate, so that their kubelets look at once.
//  5. Keep returns when something will be due: the next renewal.
package certificates
