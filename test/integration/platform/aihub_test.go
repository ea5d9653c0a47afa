package platform_test

import (
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

var _ = Describe("An AIHub", func() {
	It("creates its namespace and its Catalog, reports them, and then sends no write [modelregistry-107] [modelregistry-109] [modelregistry-113]", func(ctx SpecContext) {
		instances := absentNamespace()
		start := env.AuditPosition()
		a := createHub(ctx, hub(instances, published))
		waitHub(ctx, a, "Ready", metav1.ConditionTrue, "AllDependentsHealthy")
		Expect(a.Finalizers).To(ContainElement(hubFinalizer))
		Expect(a.Status.Phase).To(Equal(platformv1alpha1.PhaseReady))
		var summary []string
		for _, c := range a.Status.Conditions {
			summary = append(summary, c.Type+" "+string(c.Status)+" "+c.Reason+" "+string(c.Severity))
		}
		Expect(summary).To(Equal([]string{
			"Ready True AllDependentsHealthy ", "ProvisioningSucceeded True AllResourcesApplied ", "ModelRegistryReady True AllDeploymentsAvailable ",
			"CatalogReady True AllDeploymentsAvailable ", "Degraded False NoDegradation Info",
		}))
		Expect(a.Status.Releases).To(HaveLen(2))
		Expect(a.Status.Releases[0].Name).To(Equal("Kubeflow Model Registry"))
		Expect(a.Status.Releases[1].Name).To(Equal("Open Data Hub Model Registry Operator"))

		home := framework.NamespaceNamed(instances)
		env.Get(ctx, home)
		Expect(home.OwnerReferences).To(BeEmpty())
		c := catalogIn(instances)
		env.Get(ctx, c)
		Expect(metav1.IsControlledBy(c, a)).To(BeTrue())
		Expect(c.Spec.Resources).To(BeNil())
		Expect(c.Spec.Database).To(BeNil())

		// A change of labels and a restart of the manager cause no write.
		start = expectWrites(start, 5)
		env.SetLabel(ctx, a, "example.com/touched", "yes")
		manager.Restart(ctx)
		env.WaitIdle(manager.User, quiet, specTimeout)
		expectWrites(start, 0)
		Expect(env.Since(start).ByUser(manager.User).Refused()).To(BeEmpty())
	}, NodeTimeout(specTimeout))

	It("is rejected with another name, without namespaces, or with an invalid domain [modelregistry-103]", func(ctx SpecContext) {
		for description, change := range map[string]func(*platformv1alpha1.AIHub){
			"Only the name 'default-aihub' is allowed": func(a *platformv1alpha1.AIHub) { a.Name = "default" },
			"spec.applicationNamespace":                func(a *platformv1alpha1.AIHub) { a.Spec.ApplicationNamespace = "" },
			"spec.instancesNamespace":                  func(a *platformv1alpha1.AIHub) { a.Spec.InstancesNamespace = "" },
			"spec.gateway.domain": func(a *platformv1alpha1.AIHub) {
				a.Spec.Gateway = &platformv1alpha1.AIHubGateway{Domain: strings.Repeat("a", 64) + ".example.com"}
			},
		} {
			err := env.Admin.Create(ctx, hub("registries", change))
			Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
			Expect(err).To(MatchError(ContainSubstring(description)))
		}
		bare := routeOf("x")
		bare.SetAPIVersion(platformv1alpha1.GroupVersion.String())
		bare.SetKind("AIHub")
		bare.SetNamespace("")
		bare.SetName("default-aihub")
		Expect(env.Admin.Create(ctx, bare)).To(MatchError(ContainSubstring("spec: Required value")))
	}, NodeTimeout(specTimeout))

	It("is deleted after its Catalog, and foreign objects are kept [modelregistry-110]", func(ctx SpecContext) {
		instances := absentNamespace()
		a := createHub(ctx, hub(instances))
		c := catalogIn(instances)
		env.WaitFor(ctx, c, nil)
		waitHub(ctx, a, "ProvisioningSucceeded", metav1.ConditionTrue, "AllResourcesApplied")
		remove(ctx, a)
		env.WaitDeleted(ctx, c)
		env.Get(ctx, framework.NamespaceNamed(instances))

		foreign := create(ctx, catalogIn(instances))
		a = createHub(ctx, hub(instances))
		waitHub(ctx, a, "Ready", metav1.ConditionTrue, "AllDependentsHealthy")
		remove(ctx, a)
		env.Get(ctx, foreign)
		Expect(foreign.DeletionTimestamp).To(BeNil())
		Expect(foreign.OwnerReferences).To(BeEmpty())
	}, NodeTimeout(specTimeout))

	It("is ready without a gateway, and reports that no gateway is set [modelregistry-112]", func(ctx SpecContext) {
		a := createHub(ctx, hub(namespace))
		c := waitHub(ctx, a, "Degraded", metav1.ConditionTrue, "GatewayDomainUnavailable")
		Expect(c.Severity).To(Equal(platformv1alpha1.SeverityInfo))
		Expect(a.Status.Phase).To(Equal(platformv1alpha1.PhaseReady))
		env.WaitFor(ctx, catalogIn(namespace), nil) // registries may share its namespace
		env.Patch(ctx, a, map[string]any{"spec": map[string]any{"gateway": map[string]any{"domain": "hub.example.com"}}})
		waitHub(ctx, a, "Degraded", metav1.ConditionFalse, "NoDegradation")
	}, NodeTimeout(specTimeout))

	It("reports the version of the platform from its own namespace only [modelregistry-111]", func(ctx SpecContext) {
		otherNamespace := env.Namespace(ctx, "elsewhere")
		create(ctx, versions(otherNamespace, "9.9.9"))
		a := createHub(ctx, hub(absentNamespace()))
		waitHub(ctx, a, "Ready", metav1.ConditionTrue, "AllDependentsHealthy")
		Expect(a.Status.Releases).To(HaveLen(2))
		platformIs := func(version string) {
			GinkgoHelper()
			env.WaitFor(ctx, a, func(g Gomega) {
				g.Expect(a.Status.Releases).To(HaveLen(3))
				g.Expect(a.Status.Releases[2]).To(Equal(platform(version)))
			})
		}
		version := create(ctx, versions(namespace, "2.30.0"))
		platformIs("2.30.0")
		env.Patch(ctx, version, map[string]any{"data": map[string]any{"platformVersion": "2.31.0"}})
		platformIs("2.31.0")
		Expect(env.Admin.Delete(ctx, version)).To(Succeed())
		env.WaitFor(ctx, a, func(g Gomega) { g.Expect(a.Status.Releases).To(HaveLen(2)) })
	}, NodeTimeout(specTimeout))

	It("reports that the catalog does not run while its API is not served, and creates the Catalog afterwards [modelregistry-108]", func(ctx SpecContext) {
		restore := deleteCRD(ctx, catalogsDefinition)
		instances := absentNamespace()
		a := create(ctx, hub(instances, published))
		c := waitHub(ctx, a, "CatalogReady", metav1.ConditionFalse, "ChildDeploymentNotReady")
		Expect(c.Message).To(HavePrefix("child deployment catalog-controller-manager not yet Available"))
		Expect(hubCondition(a, "ModelRegistryReady").Status).To(Equal(metav1.ConditionTrue))
		ready := hubCondition(a, "Ready")
		Expect(ready.Status).To(Equal(metav1.ConditionFalse))
		Expect(ready.Message).To(Equal(c.Message))
		Expect(a.Status.Phase).To(Equal(platformv1alpha1.PhaseNotReady))
		env.Get(ctx, framework.NamespaceNamed(instances))

		restore(ctx)
		waitHub(ctx, a, "Ready", metav1.ConditionTrue, "AllDependentsHealthy")
		env.WaitFor(ctx, catalogIn(instances), nil)
	}, NodeTimeout(specTimeout))

	It("moves its Catalog with its namespace, and deletes it when the platform disables it [D27]", func(ctx SpecContext) {
		first, second := absentNamespace(), absentNamespace()
		a := createHub(ctx, hub(first))
		env.WaitFor(ctx, catalogIn(first), nil)
		env.Patch(ctx, a, map[string]any{"spec": map[string]any{"instancesNamespace": second}})
		env.WaitFor(ctx, catalogIn(second), nil)
		env.WaitDeleted(ctx, catalogIn(first))
		waitHub(ctx, a, "Ready", metav1.ConditionTrue, "AllDependentsHealthy")
		env.Get(ctx, framework.NamespaceNamed(first))

		env.SetAnnotation(ctx, a, managementState, "Removed")
		env.WaitDeleted(ctx, catalogIn(second))
		env.SetAnnotation(ctx, a, managementState, "Managed")
		env.WaitFor(ctx, catalogIn(second), nil)
	}, NodeTimeout(specTimeout))

	It("deletes the Deployments of the legacy operator, and no others", func(ctx SpecContext) {
		legacyDeployment := create(ctx, childOf(nil, "catalog-controller-manager"))
		a := createHub(ctx, hub(absentNamespace()))
		waitHub(ctx, a, "Ready", metav1.ConditionTrue, "AllDependentsHealthy")
		old := create(ctx, childOf(a, "model-registry-operator-controller-manager"))
		env.WaitDeleted(ctx, old)
		waitHub(ctx, a, "ProvisioningSucceeded", metav1.ConditionTrue, "AllResourcesApplied")

		again := create(ctx, childOf(a, "model-registry-operator-controller-manager"))
		c := waitHub(ctx, a, "Degraded", metav1.ConditionTrue, "EarlierOperatorRuns")
		Expect(c.Message).To(ContainSubstring("has been created again; delete Deployment aihub-controller-manager"))
		waitHub(ctx, a, "Ready", metav1.ConditionTrue, "AllDependentsHealthy")
		env.Get(ctx, again)
		Expect(again.DeletionTimestamp).To(BeNil())
		env.Get(ctx, legacyDeployment)
		Expect(legacyDeployment.DeletionTimestamp).To(BeNil())
	}, NodeTimeout(specTimeout))

	It("does not delete a Deployment of a tenant with the name of a legacy one, and stays ready", func(ctx SpecContext) {
		team, instances := env.Namespace(ctx, "team"), absentNamespace()
		a := createHub(ctx, hub(instances))
		waitHub(ctx, a, "Ready", metav1.ConditionTrue, "AllDependentsHealthy")
		for _, name := range []string{"catalog-controller-manager", "model-registry-operator-controller-manager"} {
			forged := childOf(a, name)
			forged.Namespace = team
			remove(ctx, create(ctx, forged.DeepCopy()))
			create(ctx, forged)
			By("a Catalog that is made again although " + name + " is there")
			c := catalogIn(instances)
			env.WaitFor(ctx, c, nil)
			before := c.UID
			Expect(env.Admin.Delete(ctx, c)).To(Succeed())
			env.WaitFor(ctx, c, func(g Gomega) { g.Expect(c.UID).NotTo(Equal(before)) })
			env.Get(ctx, forged)
			Expect(forged.DeletionTimestamp).To(BeNil())
		}
		waitHub(ctx, a, "Ready", metav1.ConditionTrue, "AllDependentsHealthy")
		Expect(hubCondition(a, "Degraded").Reason).NotTo(Equal("EarlierOperatorRuns"))
	}, NodeTimeout(specTimeout))

	It("is reconciled as in the sample [D27]", func(ctx SpecContext) {
		samples, err := framework.ReadObjects("../../../config/samples/platform_aihub.yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(samples).To(HaveLen(1))
		waitForWebhooks(ctx)
		create(ctx, samples[0])
		waitHub(ctx, hub("odh-model-registries"), "Ready", metav1.ConditionTrue, "AllDependentsHealthy")
	}, NodeTimeout(specTimeout))
})

var _ = Describe("Registries with an AIHub", func() {
	It("are published as the AIHub configures without a restart, and as before after its deletion [modelregistry-104] [modelregistry-112]", func(ctx SpecContext) {
		pid := manager.Process.PID
		instances := createRegistriesNamespace(ctx)
		waitForWebhooks(ctx)
		create(ctx, registry(instances, "before"))
		a := createHub(ctx, hub(instances, published))
		for _, name := range []string{"before", "after"} {
			if name == "after" {
				create(ctx, registry(instances, name))
			}
			env.WaitFor(ctx, routeOf(name), nil)
		}
		m := registry(instances, "after")
		env.WaitFor(ctx, m, func(g Gomega) {
			g.Expect(m.Status.Hosts).To(ContainElement("hub.example.com/model-registry/after"))
		})
		env.Patch(ctx, a, map[string]any{"spec": map[string]any{"gateway": map[string]any{"domain": "moved.example.com"}}})
		env.WaitFor(ctx, m, func(g Gomega) {
			g.Expect(m.Status.Hosts).To(ContainElement("moved.example.com/model-registry/after"))
		})
		remove(ctx, a)
		for _, name := range []string{"before", "after"} {
			env.WaitDeleted(ctx, routeOf(name))
		}
		Expect(manager.Process.PID).To(Equal(pid))
	}, NodeTimeout(specTimeout))

	It("cannot be assigned a namespace of a tenant or of the cluster", func(ctx SpecContext) {
		squatted := env.Namespace(ctx, "squatted")
		a := createHub(ctx, hub(squatted))
		c := waitHub(ctx, a, "ProvisioningSucceeded", metav1.ConditionFalse, "DeployFailed")
		Expect(c.Message).To(ContainSubstring("kubectl label namespace " + squatted + " platform.opendatahub.io/registries=true"))
		Expect(apierrors.IsNotFound(env.Admin.Get(ctx, client.ObjectKeyFromObject(catalogIn(squatted)), catalogIn(squatted)))).To(BeTrue())
		first := absentNamespace()
		env.Patch(ctx, a, map[string]any{"spec": map[string]any{"instancesNamespace": first}})
		waitHub(ctx, a, "Ready", metav1.ConditionTrue, "AllDependentsHealthy")
		env.Patch(ctx, a, map[string]any{"spec": map[string]any{"instancesNamespace": metav1.NamespaceSystem}})
		env.WaitFor(ctx, a, func(g Gomega) {
			i := slices.IndexFunc(a.Status.Conditions, func(c platformv1alpha1.Condition) bool { return c.Type == "ProvisioningSucceeded" })
			g.Expect(a.Status.Conditions[i].Message).To(ContainSubstring("belongs to the cluster"))
		})
		kept := catalogIn(first)
		env.Get(ctx, kept)
		Expect(kept.DeletionTimestamp).To(BeNil())
	}, NodeTimeout(specTimeout))

	It("can be created only in its namespace while the AIHub exists [modelregistry-104]", func(ctx SpecContext) {
		otherNamespace := env.Namespace(ctx, "elsewhere")
		a := createHub(ctx, hub(createRegistriesNamespace(ctx)))
		waitHub(ctx, a, "Ready", metav1.ConditionTrue, "AllDependentsHealthy")
		try := func() error { return env.Admin.Create(ctx, registry(otherNamespace, "stray"), client.DryRunAll) }
		Expect(try()).To(MatchError(ContainSubstring(a.Spec.InstancesNamespace)))
		remove(ctx, a)
		Eventually(try).WithContext(ctx).Should(Succeed())
	}, NodeTimeout(specTimeout))

	It("cannot be in another namespace than the flag sets, which is reported", func(ctx SpecContext) {
		manager.StopTemporarily(ctx)
		startAnotherManager(ctx, framework.ManagerOptions{WebhookPort: env.Installed.WebhookPort, Args: []string{"--components=platform,modelregistry,modelcatalog"}, Env: []string{"REGISTRIES_NAMESPACE=set-namespace"}})
		instances := env.Namespace(ctx, "registries")
		a := createHub(ctx, hub(instances))
		c := waitHub(ctx, a, "ProvisioningSucceeded", metav1.ConditionFalse, "DeployFailed")
		Expect(c.Message).To(And(ContainSubstring(instances), ContainSubstring("set-namespace"), ContainSubstring("REGISTRIES_NAMESPACE")))
		Expect(apierrors.IsNotFound(env.Admin.Get(ctx, client.ObjectKeyFromObject(catalogIn(instances)), catalogIn(instances)))).To(BeTrue())
		remove(ctx, a)
	}, NodeTimeout(specTimeout))
})

// expectWrites waits until the manager is idle, and limits its writes for the AIHub: finalizer, namespace, Catalog, and the status once,
// or twice if webhooks must first observe the namespace.
func expectWrites(start framework.AuditPosition, most int) framework.AuditPosition {
	GinkgoHelper()
	waitIdle()
	found := hubWrites(start)
	Expect(len(found)).To(BeNumerically("<=", most), "%s", found)
	return env.AuditPosition()
}
