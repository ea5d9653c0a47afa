//go:build clients

package clients_test

import (
	. "github.com/onsi/ginkgo/v2"
)

var _ = Describe("Ray clusters", func() {
	each("creates a cluster, finds its dashboard and deletes it", releases("codeflare-sdk", "0.40.1", "0.32.2"), func(ctx SpecContext, c client) {
		python := c.install(ctx)
		namespace := env.Namespace(ctx, "team")
		c.run(ctx, python, "ray_clusters.py", namespace, user(ctx, namespace, "edit", "ray-user"))
	})
})
