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
	It("is guarded and published, and leaves no ClusterRoleBinding when it is deleted [raycluster-1] [raycluster-2] [raycluster-3] [raycluster-4] [raycluster-7] [raycluster-8]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "life")
		start := env.AuditPosition()
		rayCluster := create(ctx, newRayCluster(ns, "demo", setField(false, "spec", "suspend"), setField([]any{}, "spec", "headGroupSpec", "template", "spec", "containers")))
		objects := proxyObjects(rayCluster)
		env.WaitExists(ctx, objects...)
		Expect(namesOf(rayCluster).CASecret).To(Equal("ca-secret-demo"), "without the version annotation the names are the legacy ones")
		Expect(namesOf(rayCluster).ServiceAccount).To(Equal("demo-oauth-proxy"))
		for _, o := range objects[:4] {
			refs := o.GetOwnerReferences()
			Expect(refs).NotTo(BeEmpty())
			Expect(refs[0].Kind).To(Equal("RayCluster"))
			Expect(refs[0].Name).To(Equal("demo"))
			Expect(o.GetLabels()).To(HaveKeyWithValue(raycluster.LabelClusterName, "demo"))
		}
		env.WaitFor(ctx, rayCluster, func(g Gomega) { g.Expect(rayCluster.GetFinalizers()).To(ContainElement(raycluster.Finalizer)) })
		waitSecured(ctx, rayCluster)
		forbidden := env.Since(start).ByUser(manager.User).Forbidden()
		Expect(forbidden).To(BeEmpty(), "[R36] the shipped permissions suffice")
		env.ExpectNoRequests(env.RequestsIn(manager.User, ns), idlePeriod)

		Expect(env.Admin.Delete(ctx, rayCluster)).To(Succeed())
		env.WaitDeleted(ctx, objects[4], rayCluster)
	}, NodeTimeout(specTimeout))

	It("gets its NetworkPolicies before anything that exposes it [R3]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "order")
		start := env.AuditPosition()
		rayCluster := create(ctx, newRayCluster(ns, "demo", withVersion, withInjectedFields))
		env.WaitExists(ctx, proxyObjects(rayCluster)...)
		env.WaitExists(ctx, routeOf(rayCluster, namesOf(rayCluster).Client))
		writes := env.Since(start).ByUser(manager.User).WithoutEvents().Writes().Where(func(e framework.Entry) bool { return e.Namespace == ns && e.Code < 300 })
		first := map[string]int{}
		for i, e := range writes {
			if _, known := first[e.Resource]; !known {
				first[e.Resource] = i
			}
		}
		Expect(first).To(HaveKey("networkpolicies"))
		for _, resource := range []string{"routes", "services", "serviceaccounts"} {
			Expect(first["networkpolicies"]).To(BeNumerically("<", first[resource]), resource)
		}
	}, NodeTimeout(specTimeout))

	It("causes no request when KubeRay writes its status [R21]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "status")
		rayCluster := create(ctx, newRayCluster(ns, "demo", withVersion, withInjectedFields))
		waitSecured(ctx, rayCluster)
		start := env.AuditPosition()
		for i := range 5 {
			env.Patch(ctx, rayCluster, map[string]any{"status": map[string]any{"desiredWorkerReplicas": i, "state": "ready"}}, "status")
		}
		env.ExpectNoRequests(env.RequestsIn(manager.User, ns), idlePeriod)
		Expect(env.RequestsIn(manager.User, ns)(start)).To(BeEmpty())
	}, NodeTimeout(specTimeout))

	It("has a random cookie secret, which no other cluster has [R9]", func(ctx SpecContext) {
		cookies := map[string]bool{}
		for _, prefix := range []string{"one", "two"} {
			rayCluster := create(ctx, newRayCluster(env.Namespace(ctx, prefix), "demo", withVersion))
			secret := &corev1.Secret{ObjectMeta: objectMeta(rayCluster, namesOf(rayCluster).CookieSecret)}
			env.WaitExists(ctx, secret)
			random, err := base64.URLEncoding.DecodeString(string(secret.Data[raycluster.KeyCookie]))
			Expect(err).NotTo(HaveOccurred())
			Expect(random).To(HaveLen(32))
			cookies[string(random)] = true
		}
		Expect(cookies).To(HaveLen(2), "clusters with the same name in two namespaces have different secrets")
	}, NodeTimeout(specTimeout))

	It("is not reconciled after its finalizer is removed during the deletion [R6]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "terminating")
		rayCluster := create(ctx, newRayCluster(ns, "demo", withVersion, func(rayCluster *unstructured.Unstructured) { rayCluster.SetFinalizers([]string{"example.com/redis"}) }))
		binding := bindingOf(rayCluster)
		env.WaitExists(ctx, binding)
		waitSecured(ctx, rayCluster)
		Expect(env.Admin.Delete(ctx, rayCluster)).To(Succeed())
		env.WaitDeleted(ctx, binding)
		env.WaitFor(ctx, rayCluster, func(g Gomega) { g.Expect(rayCluster.GetFinalizers()).To(Equal([]string{"example.com/redis"})) })
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
		start := env.AuditPosition()
		env.SetAnnotation(ctx, rayCluster, "example.com/seen", "yes")
		Expect(env.Admin.Delete(ctx, routeOf(rayCluster, namesOf(rayCluster).Dashboard))).To(Succeed())
		env.ExpectNoRequests(env.RequestsIn(manager.User, ns), idlePeriod)
		env.ExpectAbsent(ctx, binding, routeOf(rayCluster, namesOf(rayCluster).Dashboard))
		Expect(env.Since(start).ByUser(manager.User).ForResource("clusterrolebindings").Writes()).To(BeEmpty())
		env.Patch(ctx, rayCluster, map[string]any{"metadata": map[string]any{"finalizers": nil}})
	}, NodeTimeout(specTimeout))

	It("has its child objects recreated after a user deletes them", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "drift")
		rayCluster := create(ctx, newRayCluster(ns, "demo", withVersion, withInjectedFields))
		objects := append(proxyObjects(rayCluster), routeOf(rayCluster, namesOf(rayCluster).Client))
		env.WaitExists(ctx, objects...)
		waitSecured(ctx, rayCluster)
		for _, o := range objects {
			uid := o.GetUID()
			Expect(env.Admin.Delete(ctx, o)).To(Succeed())
			Eventually(func(g Gomega) {
				g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
				g.Expect(o.GetUID()).NotTo(Equal(uid))
			}).WithContext(ctx).WithTimeout(waitTimeout).Should(Succeed(), "%T", o)
		}
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
		env.ExpectNoRequests(env.RequestsIn(manager.User, ns), idlePeriod)
	}, NodeTimeout(specTimeout))

	It("gets no objects if MultiKueue runs it in another cluster [R23]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "multikueue")
		remote := create(ctx, newRayCluster(ns, "remote", withVersion, setField(raycluster.ManagerMultiKueue, "spec", "managedBy")))
		local := create(ctx, newRayCluster(ns, "local", withVersion))
		waitSecured(ctx, local)
		env.WaitExists(ctx, proxyObjects(local)...)
		env.ExpectAbsent(ctx, append(proxyObjects(remote), policyOf(remote, namesOf(remote).HeadPolicy), policyOf(remote, namesOf(remote).WorkerPolicy))...)
		env.Get(ctx, remote)
		Expect(remote.GetFinalizers()).To(BeEmpty())
	}, NodeTimeout(specTimeout))

	It("is not reachable while it is suspended, keeps its cookie secret, and has no finalizer [R7] [R28]", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "suspended")
		rayCluster := create(ctx, newRayCluster(ns, "demo", withVersion, withInjectedFields, setField(true, "spec", "suspend")))
		waitSecured(ctx, rayCluster)
		env.ExpectAbsent(ctx, proxyObjects(rayCluster)...)
		env.Get(ctx, rayCluster)
		Expect(rayCluster.GetFinalizers()).To(BeEmpty())

		By("resuming the cluster")
		env.Patch(ctx, rayCluster, map[string]any{"spec": map[string]any{"suspend": false}})
		objects := proxyObjects(rayCluster)
		env.WaitExists(ctx, objects...)
		cookie := objects[0].(*corev1.Secret).Data[raycluster.KeyCookie]

		By("suspending the cluster")
		env.Patch(ctx, rayCluster, map[string]any{"spec": map[string]any{"suspend": true}})
		env.WaitDeleted(ctx, objects[3], objects[4], routeOf(rayCluster, namesOf(rayCluster).Client))
		env.WaitFor(ctx, rayCluster, func(g Gomega) { g.Expect(rayCluster.GetFinalizers()).To(BeEmpty()) })
		env.Get(ctx, objects[0])
		Expect(objects[0].(*corev1.Secret).Data[raycluster.KeyCookie]).To(Equal(cookie))
		env.WaitNoRequests(ctx, env.RequestsIn(manager.User, ns), idlePeriod, waitTimeout)
		env.ExpectNoRequests(env.RequestsIn(manager.User, ns), idlePeriod)
	}, NodeTimeout(specTimeout))
})

var _ = Describe("The ClusterRoleBinding of a RayCluster", func() {
	It("is not shared by clusters for which it would have the same name", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "clash")
		otherNamespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "b-" + namespace}}
		Expect(env.Admin.Create(ctx, otherNamespace)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(env.Admin.Delete(ctx, otherNamespace)).To(Succeed()) }, NodeTimeout(specTimeout))
		first := create(ctx, newRayCluster(namespace, "a-b", withVersion))
		binding := bindingOf(first)
		env.WaitExists(ctx, binding)
		second := create(ctx, newRayCluster(otherNamespace.Name, "a", withVersion))
		Expect(bindingOf(second).Name).To(Equal(binding.Name))
		Expect(env.WaitForEvent(ctx, second, "ClusterRoleBindingTaken", "")).To(ContainSubstring("recreate this RayCluster under another name"))
		env.Get(ctx, binding)
		Expect(binding.Subjects).To(Equal([]rbacv1.Subject{{Kind: "ServiceAccount", Name: namesOf(first).ServiceAccount, Namespace: namespace}}))
		Expect(env.Admin.Delete(ctx, second)).To(Succeed())
		env.WaitDeleted(ctx, second)
		env.Get(ctx, binding)
		Expect(binding.DeletionTimestamp).To(BeNil())
	}, NodeTimeout(specTimeout))

	It("is deleted if a client removed the finalizer of its cluster [R7]", func(ctx SpecContext) {
		rayCluster := create(ctx, newRayCluster(env.Namespace(ctx, "forced"), "demo", withVersion))
		binding := bindingOf(rayCluster)
		env.WaitExists(ctx, binding)
		waitSecured(ctx, rayCluster)
		env.Patch(ctx, rayCluster, map[string]any{"metadata": map[string]any{"finalizers": nil}})
		err := env.Admin.Delete(ctx, rayCluster)
		Expect(err == nil || apierrors.IsNotFound(err)).To(BeTrue())
		env.WaitDeleted(ctx, rayCluster, binding)
	}, NodeTimeout(specTimeout))

	It("is deleted when the manager starts if the finalizer of its cluster was removed while the manager was down", func(ctx SpecContext) {
		rayCluster := create(ctx, newRayCluster(env.Namespace(ctx, "forced"), "demo", withVersion))
		binding := bindingOf(rayCluster)
		env.WaitExists(ctx, binding)
		waitSecured(ctx, rayCluster)
		manager.StopTemporarily(ctx)
		env.Patch(ctx, rayCluster, map[string]any{"metadata": map[string]any{"finalizers": nil}})
		err := env.Admin.Delete(ctx, rayCluster)
		Expect(err == nil || apierrors.IsNotFound(err)).To(BeTrue())
		env.WaitDeleted(ctx, rayCluster)
		manager.Restart(ctx)
		env.WaitDeleted(ctx, binding)
	}, NodeTimeout(specTimeout))
})

var _ = Describe("A restart of the operator", func() {
	It("neither reads nor writes the Secrets with the certificates of a cluster", func(ctx SpecContext) {
		ns := env.Namespace(ctx, "restart")
		rayCluster := create(ctx, newRayCluster(ns, "demo", withVersion))
		waitSecured(ctx, rayCluster)
		start := env.AuditPosition()
		manager.Restart(ctx)
		headPolicy := policyOf(rayCluster, namesOf(rayCluster).HeadPolicy)
		Expect(env.Admin.Delete(ctx, headPolicy)).To(Succeed())
		waitSecured(ctx, rayCluster) // the new process has reconciled the cluster
		certificates := []string{namesOf(rayCluster).CASecret, namesOf(rayCluster).HeadTLS, namesOf(rayCluster).WorkerTLS}
		secrets := env.RequestsIn(manager.User, ns)(start).Where(func(e framework.Entry) bool { return e.Resource == "secrets" && slices.Contains(certificates, e.Name) })
		Expect(secrets).To(BeEmpty(), "requests:\n%s", secrets)
	}, NodeTimeout(specTimeout))
})
