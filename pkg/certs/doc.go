// Package certs issues and renews CAs and certificates in Secrets, depending on the data of a Secret and the time.
//
//   - EnsureRoot rotates a CA: the next CA is published in the bundle long before it signs. Root.EnsureLeaf issues its certificates,
//     for servers with mutual TLS that read their certificates only at start, such as the processes of a Ray cluster, or for a server
//     that reloads its certificate.
//   - EnsureServing issues the certificate of one server with its own CA, if the platform provides none.
//   - Authority manages the CA and the serving certificate of the webhooks in a Secret that all replicas share, and injects the CA into
//     the webhook configurations. Each replica may write the Secret, with optimistic concurrency; after a conflict it reads the
//     Secret again. A mounted certificate (OLM, service-ca, cert-manager) takes precedence.
//
// A renewal breaks no connection: old certificates are trusted until their CA expires, since the bundle contains it until then.
package certs
