// Package shipped holds the manifests of CRDs, rights and webhooks as they are installed, for programs that compare a cluster with them.
package shipped

import "embed"

// Files are the manifests, by their paths below config.
//
//go:embed crd/bases/*.yaml rbac webhook
var Files embed.FS
