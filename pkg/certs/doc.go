// Package certs gives the webhook server its certificate.
//
// A mounted certificate (OLM, service-ca, cert-manager) is used where there is one. Otherwise the program is its own
// authority: an Authority keeps a CA and a serving certificate in one Secret that all replicas share, serves from
// memory, renews both in time and writes the CA into the webhook configurations that name it.
//
// Renewal never breaks a connection. A new CA is published beside the old one first, and signs the serving
// certificate only when every API server had time to learn of it; replicas that still serve the old certificate are
// trusted as long as the old CA stands in the bundle, which is until the next renewal. Any replica may do the work:
// the Secret is written with optimistic concurrency, and who loses reads what the winner wrote.
//
// KeepServing issues certificates for servers that a component runs, where the platform does not.
//
// KeepRoot and Root.KeepLeaf keep a CA of its own for a group of servers that speak mutual TLS and read their certificates
// once, when they start, as the processes of a Ray cluster do. All decisions are functions of the data of a Secret and of a
// moment.
package certs
