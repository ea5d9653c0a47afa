//go:build clients

package clients_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// oldestCodeFlareSDK is the oldest supported version of codeflare-sdk, from its last minor version with AppWrappers.
const oldestCodeFlareSDK = "0.32.2"

var _ = Describe("Ray clusters", func() {
	eachRelease("creates a cluster, returns its dashboard URL and deletes it", releases("codeflare-sdk", "0.40.1", oldestCodeFlareSDK), func(ctx SpecContext, c client) {
		python := c.install(ctx)
		namespace := env.Namespace(ctx, "team")
		t := task{script: "ray_clusters.py", namespace: namespace, kubeconfig: createUser(ctx, namespace, "edit", "ray-user")}
		if c.version == oldestCodeFlareSDK {
			// This release finds an HTTPRoute only for users who can list HTTPRoutes in all namespaces, see docs/components/raycluster.md.
			allNamespaces := &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: namespace},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "ray-user"},
				Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}},
			}
			Expect(env.Admin.Create(ctx, allNamespaces)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(env.Admin.Delete(ctx, allNamespaces)).To(Succeed()) })
		}
		c.run(ctx, python, t)
	})
})
