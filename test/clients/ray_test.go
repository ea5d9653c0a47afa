//go:build clients

package clients_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// oldestRay is the last minor release that supports AppWrappers.
const oldestRay = "0.32.2"

var _ = Describe("Ray clusters", func() {
	each("creates a cluster, finds its dashboard and deletes it", releases("codeflare-sdk", "0.40.1", oldestRay), func(ctx SpecContext, c client) {
		python := c.install(ctx)
		namespace := env.Namespace(ctx, "team")
		t := task{script: "ray_clusters.py", namespace: namespace, kubeconfig: user(ctx, namespace, "edit", "ray-user")}
		if c.version == oldestRay {
			// This release finds an HTTPRoute only for users who may list HTTPRoutes in all namespaces, see docs/components/raycluster.md.
			everywhere := &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: namespace},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "ray-user"},
				Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}},
			}
			Expect(env.Admin.Create(ctx, everywhere)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(env.Admin.Delete(ctx, everywhere)).To(Succeed()) })
		}
		c.do(ctx, python, t)
	})
})
