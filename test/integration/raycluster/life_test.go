package raycluster_test

import (
	"encoding/base64"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

var _ = Describe("A RayCluster on OpenShift", func() {
	It("is guarded and published, and leaves no object when it is deleted [raycluster-1] [raycluster-2] [raycluster-3] [raycluster-4] [raycluster-7] [raycluster-8]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "life")
		start := env.AuditPosition()
		u := create(ctx, rayCluster(ns, "demo", set(false, "spec", "suspend"), set([]any{}, "spec", "headGroupSpec", "template", "spec", "containers")))
		objects := proxyObjects(u)
		env.WaitExists(ctx, objects...)
		Expect(names(u).CASecret).To(Equal("ca-secret-demo"), "without the annotation the names are those of old")
		Expect(names(u).ServiceAccount).To(Equal("demo-oauth-proxy"))
		for _, o := range objects[:4] {
			refs := o.GetOwnerReferences()
			Expect(refs).NotTo(BeEmpty())
			Expect(refs[0].Kind).To(Equal("RayCluster"))
			Expect(refs[0].Name).To(Equal("demo"))
			Expect(o.GetLabels()).To(HaveKeyWithValue(raycluster.LabelClusterName, "demo"))
		}
		env.WaitFor(ctx, u, func(g Gomega) { g.Expect(u.GetFinalizers()).To(ContainElement(raycluster.Finalizer)) })
		waitSecured(ctx, u)
		forbidden := env.Since(start).ByUser(manager.User).Refused()
		Expect(forbidden).To(BeEmpty(), "[R36] the shipped rights suffice")
		env.ExpectNoRequests(env.RequestsIn(manager.User, ns), quiet)

		Expect(env.Admin.Delete(ctx, u)).To(Succeed())
		env.WaitDeleted(ctx, objects[4], u)
	}, NodeTimeout(specTimeout))

	It("gets its NetworkPolicies before anything that exposes it [R3]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "order")
		start := env.AuditPosition()
		u := create(ctx, rayCluster(ns, "demo", hashed, injected))
		env.WaitExists(ctx, proxyObjects(u)...)
		env.WaitExists(ctx, route(u, names(u).Client))
		writes := env.Since(start).ByUser(manager.User).WithoutEvents().Writes().Where(func(e framework.Entry) bool { return e.Namespace == ns && e.Code < 300 })
		first := map[string]int{}
		for i, e := range writes {
			if _, known := first[e.Resource]; !known {
				first[e.Resource] = i
			}
		}
		for _, later := range []string{"routes", "services", "serviceaccounts"} {
			Expect(first["networkpolicies"]).To(BeNumerically("<", first[later]), later)
		}
	}, NodeTimeout(specTimeout))

	It("causes no request when KubeRay writes its status [R21]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "status")
		u := create(ctx, rayCluster(ns, "demo", hashed, injected))
		waitSecured(ctx, u)
		start := env.AuditPosition()
		for i := range 5 {
			env.Patch(ctx, u, map[string]any{"status": map[string]any{"desiredWorkerReplicas": i, "state": "ready"}}, "status")
		}
		env.ExpectNoRequests(env.RequestsIn(manager.User, ns), quiet)
		Expect(env.RequestsIn(manager.User, ns)(start)).To(BeEmpty())
	}, NodeTimeout(specTimeout))

	It("has a random cookie secret, which does not change [R9]", func(ctx SpecContext) {
		cookies := map[string]bool{}
		for _, prefix := range []string{"one", "two"} {
			u := create(ctx, rayCluster(env.Namespace(ctx, prefix), "demo", hashed))
			s := &corev1.Secret{ObjectMeta: inNamespace(u, names(u).CookieSecret)}
			env.WaitExists(ctx, s)
			random, err := base64.URLEncoding.DecodeString(string(s.Data[raycluster.KeyCookie]))
			Expect(err).NotTo(HaveOccurred())
			Expect(random).To(HaveLen(32))
			cookies[string(random)] = true
		}
		Expect(cookies).To(HaveLen(2), "clusters of one name in two namespaces")
	}, NodeTimeout(specTimeout))

	It("is not reconciled once its finalizer was removed during deletion [R6]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "ending")
		u := create(ctx, rayCluster(ns, "demo", hashed, func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"example.com/redis"}) }))
		b := binding(u)
		env.WaitExists(ctx, b)
		waitSecured(ctx, u)
		Expect(env.Admin.Delete(ctx, u)).To(Succeed())
		env.WaitDeleted(ctx, b)
		env.WaitFor(ctx, u, func(g Gomega) { g.Expect(u.GetFinalizers()).To(Equal([]string{"example.com/redis"})) })
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), quiet, waitTimeout)
		start := env.AuditPosition()
		env.SetAnnotation(ctx, u, "example.com/seen", "yes")
		Expect(env.Admin.Delete(ctx, route(u, names(u).Dashboard))).To(Succeed())
		env.ExpectNoRequests(env.RequestsIn(manager.User, ns), quiet)
		env.ExpectAbsent(ctx, b, route(u, names(u).Dashboard))
		Expect(env.Since(start).ByUser(manager.User).Of("clusterrolebindings").Writes()).To(BeEmpty())
		env.Patch(ctx, u, map[string]any{"metadata": map[string]any{"finalizers": nil}})
	}, NodeTimeout(specTimeout))

	It("has objects restored that a user deletes", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "drift")
		u := create(ctx, rayCluster(ns, "demo", hashed, injected))
		objects := append(proxyObjects(u), route(u, names(u).Client))
		env.WaitExists(ctx, objects...)
		waitSecured(ctx, u)
		for _, o := range objects {
			before := o.GetUID()
			Expect(env.Admin.Delete(ctx, o)).To(Succeed())
			Eventually(func(g Gomega) {
				g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
				g.Expect(o.GetUID()).NotTo(Equal(before))
			}).WithContext(ctx).WithTimeout(waitTimeout).Should(Succeed(), "%T", o)
		}
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), quiet, waitTimeout)
		env.ExpectNoRequests(env.RequestsIn(manager.User, ns), quiet)
	}, NodeTimeout(specTimeout))

	It("gets no objects if another cluster runs it [R23]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "multikueue")
		remote := create(ctx, rayCluster(ns, "remote", hashed, set(raycluster.ManagerMultiKueue, "spec", "managedBy")))
		local := create(ctx, rayCluster(ns, "local", hashed))
		waitSecured(ctx, local)
		env.WaitExists(ctx, proxyObjects(local)...)
		env.ExpectAbsent(ctx, append(proxyObjects(remote), policy(remote, names(remote).HeadPolicy), policy(remote, names(remote).WorkerPolicy))...)
		env.Get(ctx, remote)
		Expect(remote.GetFinalizers()).To(BeEmpty())
	}, NodeTimeout(specTimeout))

	It("is not reachable while it is suspended, keeps its identity, and has no finalizer [R7] [R28]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "suspended")
		u := create(ctx, rayCluster(ns, "demo", hashed, injected, set(true, "spec", "suspend")))
		waitSecured(ctx, u)
		env.ExpectAbsent(ctx, proxyObjects(u)...)
		env.Get(ctx, u)
		Expect(u.GetFinalizers()).To(BeEmpty())

		By("running")
		env.Patch(ctx, u, map[string]any{"spec": map[string]any{"suspend": false}})
		objects := proxyObjects(u)
		env.WaitExists(ctx, objects...)
		cookie := objects[0].(*corev1.Secret).Data[raycluster.KeyCookie]

		By("being suspended")
		env.Patch(ctx, u, map[string]any{"spec": map[string]any{"suspend": true}})
		env.WaitDeleted(ctx, objects[3], objects[4], route(u, names(u).Client))
		env.WaitFor(ctx, u, func(g Gomega) { g.Expect(u.GetFinalizers()).To(BeEmpty()) })
		env.Get(ctx, objects[0])
		Expect(objects[0].(*corev1.Secret).Data[raycluster.KeyCookie]).To(Equal(cookie))
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), quiet, waitTimeout)
		env.ExpectNoRequests(env.RequestsIn(manager.User, ns), quiet)
	}, NodeTimeout(specTimeout))
})

var _ = Describe("The binding of a RayCluster", func() {
	It("is not shared by clusters whose truncated names are equal", func(ctx SpecContext) {
		outer := env.Namespace(ctx, "clash")
		inner := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "b-" + outer}}
		Expect(env.Admin.Create(ctx, inner)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(env.Admin.Delete(ctx, inner)).To(Succeed()) }, NodeTimeout(specTimeout))
		first := create(ctx, rayCluster(outer, "a-b", hashed))
		b := binding(first)
		env.WaitExists(ctx, b)
		second := create(ctx, rayCluster(inner.Name, "a", hashed))
		Expect(binding(second).Name).To(Equal(b.Name))
		Expect(env.WaitForEvent(ctx, second, "ClusterRoleBindingTaken", "")).To(ContainSubstring("recreate this RayCluster under another name"))
		env.Get(ctx, b)
		Expect(b.Subjects).To(Equal([]rbacv1.Subject{{Kind: "ServiceAccount", Name: names(first).ServiceAccount, Namespace: outer}}))
		Expect(env.Admin.Delete(ctx, second)).To(Succeed())
		env.WaitDeleted(ctx, second)
		env.Get(ctx, b)
		Expect(b.DeletionTimestamp).To(BeNil())
	}, NodeTimeout(specTimeout))

	It("is deleted if the finalizer of its cluster was removed by force [R7]", func(ctx SpecContext) {
		u := create(ctx, rayCluster(env.Namespace(ctx, "forced"), "demo", hashed))
		b := binding(u)
		env.WaitExists(ctx, b)
		waitSecured(ctx, u)
		env.Patch(ctx, u, map[string]any{"metadata": map[string]any{"finalizers": nil}})
		err := env.Admin.Delete(ctx, u)
		Expect(err == nil || apierrors.IsNotFound(err)).To(BeTrue())
		env.WaitDeleted(ctx, u, b)
	}, NodeTimeout(specTimeout))

	It("is deleted at the start if the finalizer of its cluster was removed during the downtime", func(ctx SpecContext) {
		u := create(ctx, rayCluster(env.Namespace(ctx, "forced"), "demo", hashed))
		b := binding(u)
		env.WaitExists(ctx, b)
		waitSecured(ctx, u)
		manager.StopTemporarily(ctx)
		env.Patch(ctx, u, map[string]any{"metadata": map[string]any{"finalizers": nil}})
		err := env.Admin.Delete(ctx, u)
		Expect(err == nil || apierrors.IsNotFound(err)).To(BeTrue())
		env.WaitDeleted(ctx, u)
		manager.Restart(ctx)
		env.WaitDeleted(ctx, b)
	}, NodeTimeout(specTimeout))
})

var _ = Describe("A restart of the operator", func() {
	It("neither reads nor writes the Secrets with the certificates of a cluster", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "remembered")
		u := create(ctx, rayCluster(ns, "demo", hashed))
		waitSecured(ctx, u)
		start := env.AuditPosition()
		manager.Restart(ctx)
		lost := policy(u, names(u).HeadPolicy)
		Expect(env.Admin.Delete(ctx, lost)).To(Succeed())
		waitSecured(ctx, u) // so the new process has reconciled the cluster
		certificates := []string{names(u).CASecret, names(u).HeadTLS, names(u).WorkerTLS}
		secrets := env.RequestsIn(manager.User, ns)(start).Where(func(e framework.Entry) bool { return e.Resource == "secrets" && slices.Contains(certificates, e.Name) })
		Expect(secrets).To(BeEmpty(), "requests:\n%s", secrets)
	}, NodeTimeout(specTimeout))
})
