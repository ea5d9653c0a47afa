// Package certs issues and renews certificates: a CA and leaves in Secrets. All decisions are functions of the data of a Secret and of
// a moment.
//
//   - KeepRoot keeps a CA: the next one is published in the bundle long before it signs. Root.KeepLeaf keeps a certificate of it: for
//     a group of servers that speak mutual TLS and read their certificates once, when they start, as the processes of a Ray cluster do,
//     or for a server that reads a renewed one at once.
//   - KeepServing keeps the certificate of a server with a CA that signs nothing else, where the platform makes none.
//   - Authority keeps CA and serving certificate of the webhooks in one Secret that all replicas share, serves from memory, and writes
//     the CA into the webhook configurations that name it. Any replica may do the work: the Secret is written with optimistic
//     concurrency, and who loses reads what the winner wrote. A mounted certificate (OLM, service-ca, cert-manager) is used where
//     there is one.
//
// Renewal never breaks a connection: a client that still serves an old certificate is trusted as long as its CA stands in the bundle, which is
// until that has expired.
package certs
