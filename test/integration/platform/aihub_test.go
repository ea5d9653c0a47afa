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
	It("creates its namespace and its Catalog, reports them, and writes nothing afterwards [modelregistry-107] [modelregistry-109] [modelregistry-113]", func(ctx SpecContext) {
		instances := absentNamespace()
		start := env.AuditPosition()
		hub := createHub(ctx, newHub(instances, withGateway))
		waitForHubCondition(ctx, hub, "Ready", metav1.ConditionTrue, "AllDependentsHealthy")
		Expect(hub.Finalizers).To(ContainElement(hubFinalizer))
		Expect(hub.Status.Phase).To(Equal(platformv1alpha1.PhaseReady))
		var summary []string
		for _, c := range hub.Status.Conditions {
			summary = append(summary, c.Type+" "+string(c.Status)+" "+c.Reason+" "+string(c.Severity))
		}
		Expect(summary).To(Equal([]string{
			"Ready True AllDependentsHealthy ", "ProvisioningSucceeded True AllResourcesApplied ", "ModelRegistryReady True AllDeploymentsAvailable ",
			"CatalogReady True AllDeploymentsAvailable ", "Degraded False NoDegradation Info",
		}))
		Expect(hub.Status.Releases).To(HaveLen(2))
		Expect(hub.Status.Releases[0].Name).To(Equal("Kubeflow Model Registry"))
		Expect(hub.Status.Releases[1].Name).To(Equal("Open Data Hub Model Registry Operator"))

		instancesNamespace := framework.NamespaceNamed(instances)
		env.Get(ctx, instancesNamespace)
		Expect(instancesNamespace.OwnerReferences).To(BeEmpty())
		c := catalogIn(instances)
		env.Get(ctx, c)
		Expect(metav1.IsControlledBy(c, hub)).To(BeTrue())
		Expect(c.Spec.Resources).To(BeNil())
		Expect(c.Spec.Database).To(BeNil())

		// A change of labels and a restart of the manager cause no write.
		start = expectWrites(start, 5)
		env.SetLabel(ctx, hub, "example.com/touched", "yes")
		manager.Restart(ctx)
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		expectWrites(start, 0)
		Expect(env.Since(start).ByUser(manager.User).Forbidden()).To(BeEmpty())
	}, NodeTimeout(specTimeout))

	It("is rejected with another name, without namespaces, or with an invalid domain [modelregistry-103]", func(ctx SpecContext) {
		for message, change := range map[string]func(*platformv1alpha1.AIHub){
			"Only the name 'default-aihub' is allowed": func(hub *platformv1alpha1.AIHub) { hub.Name = "default" },
			"spec.applicationNamespace":                func(hub *platformv1alpha1.AIHub) { hub.Spec.ApplicationNamespace = "" },
			"spec.instancesNamespace":                  func(hub *platformv1alpha1.AIHub) { hub.Spec.InstancesNamespace = "" },
			"spec.gateway.domain": func(hub *platformv1alpha1.AIHub) {
				hub.Spec.Gateway = &platformv1alpha1.AIHubGateway{Domain: strings.Repeat("a", 64) + ".example.com"}
			},
		} {
			err := env.Admin.Create(ctx, newHub("registries", change))
			Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
			Expect(err).To(MatchError(ContainSubstring(message)))
		}
		withoutSpec := routeOf("x")
		withoutSpec.SetAPIVersion(platformv1alpha1.GroupVersion.String())
		withoutSpec.SetKind("AIHub")
		withoutSpec.SetNamespace("")
		withoutSpec.SetName("default-aihub")
		Expect(env.Admin.Create(ctx, withoutSpec)).To(MatchError(ContainSubstring("spec: Required value")))
	}, NodeTimeout(specTimeout))

	It("is deleted with its Catalog, and keeps its namespace and a foreign Catalog [modelregistry-110]", func(ctx SpecContext) {
		instances := absentNamespace()
		hub := createHub(ctx, newHub(instances))
		c := catalogIn(instances)
		env.WaitFor(ctx, c, nil)
		waitForHubCondition(ctx, hub, "ProvisioningSucceeded", metav1.ConditionTrue, "AllResourcesApplied")
		deleteAndWait(ctx, hub)
		env.WaitDeleted(ctx, c)
		env.Get(ctx, framework.NamespaceNamed(instances))

		foreign := create(ctx, catalogIn(instances))
		hub = createHub(ctx, newHub(instances))
		waitForHubCondition(ctx, hub, "Ready", metav1.ConditionTrue, "AllDependentsHealthy")
		deleteAndWait(ctx, hub)
		env.Get(ctx, foreign)
		Expect(foreign.DeletionTimestamp).To(BeNil())
		Expect(foreign.OwnerReferences).To(BeEmpty())
	}, NodeTimeout(specTimeout))

	It("is ready without a gateway, and reports that no gateway is set [modelregistry-112]", func(ctx SpecContext) {
		hub := createHub(ctx, newHub(namespace))
		c := waitForHubCondition(ctx, hub, "Degraded", metav1.ConditionTrue, "GatewayDomainUnavailable")
		Expect(c.Severity).To(Equal(platformv1alpha1.SeverityInfo))
		Expect(hub.Status.Phase).To(Equal(platformv1alpha1.PhaseReady))
		env.WaitFor(ctx, catalogIn(namespace), nil) // the namespace of the manager is allowed
		env.Patch(ctx, hub, map[string]any{"spec": map[string]any{"gateway": map[string]any{"domain": "hub.example.com"}}})
		waitForHubCondition(ctx, hub, "Degraded", metav1.ConditionFalse, "NoDegradation")
	}, NodeTimeout(specTimeout))

	It("reports the platform version only from the ConfigMap of the applications namespace [modelregistry-111]", func(ctx SpecContext) {
		otherNamespace := env.Namespace(ctx, "other")
		create(ctx, hubVersionConfigMap(otherNamespace, "9.9.9"))
		hub := createHub(ctx, newHub(absentNamespace()))
		waitForHubCondition(ctx, hub, "Ready", metav1.ConditionTrue, "AllDependentsHealthy")
		Expect(hub.Status.Releases).To(HaveLen(2))
		expectPlatformVersion := func(version string) {
			GinkgoHelper()
			env.WaitFor(ctx, hub, func(g Gomega) {
				g.Expect(hub.Status.Releases).To(HaveLen(3))
				g.Expect(hub.Status.Releases[2]).To(Equal(platformRelease(version)))
			})
		}
		version := create(ctx, hubVersionConfigMap(namespace, "2.30.0"))
		expectPlatformVersion("2.30.0")
		env.Patch(ctx, version, map[string]any{"data": map[string]any{"platformVersion": "2.31.0"}})
		expectPlatformVersion("2.31.0")
		Expect(env.Admin.Delete(ctx, version)).To(Succeed())
		env.WaitFor(ctx, hub, func(g Gomega) { g.Expect(hub.Status.Releases).To(HaveLen(2)) })
	}, NodeTimeout(specTimeout))

	It("reports that the catalog does not run while its API is not served, and creates the Catalog afterwards [modelregistry-108]", func(ctx SpecContext) {
		restore := deleteCRD(ctx, catalogCRD)
		instances := absentNamespace()
		hub := create(ctx, newHub(instances, withGateway))
		c := waitForHubCondition(ctx, hub, "CatalogReady", metav1.ConditionFalse, "ChildDeploymentNotReady")
		Expect(c.Message).To(HavePrefix("child deployment catalog-controller-manager not yet Available"))
		Expect(findHubCondition(hub, "ModelRegistryReady").Status).To(Equal(metav1.ConditionTrue))
		ready := findHubCondition(hub, "Ready")
		Expect(ready.Status).To(Equal(metav1.ConditionFalse))
		Expect(ready.Message).To(Equal(c.Message))
		Expect(hub.Status.Phase).To(Equal(platformv1alpha1.PhaseNotReady))
		env.Get(ctx, framework.NamespaceNamed(instances))

		restore(ctx)
		waitForHubCondition(ctx, hub, "Ready", metav1.ConditionTrue, "AllDependentsHealthy")
		env.WaitFor(ctx, catalogIn(instances), nil)
	}, NodeTimeout(specTimeout))

	It("moves its Catalog when instancesNamespace changes, and deletes the Catalog while its management state is Removed [D27]", func(ctx SpecContext) {
		first, second := absentNamespace(), absentNamespace()
		hub := createHub(ctx, newHub(first))
		env.WaitFor(ctx, catalogIn(first), nil)
		env.Patch(ctx, hub, map[string]any{"spec": map[string]any{"instancesNamespace": second}})
		env.WaitFor(ctx, catalogIn(second), nil)
		env.WaitDeleted(ctx, catalogIn(first))
		waitForHubCondition(ctx, hub, "Ready", metav1.ConditionTrue, "AllDependentsHealthy")
		env.Get(ctx, framework.NamespaceNamed(first))

		env.SetAnnotation(ctx, hub, managementState, "Removed")
		env.WaitDeleted(ctx, catalogIn(second))
		env.SetAnnotation(ctx, hub, managementState, "Managed")
		env.WaitFor(ctx, catalogIn(second), nil)
	}, NodeTimeout(specTimeout))

	It("deletes a Deployment of the legacy operator once, and no others", func(ctx SpecContext) {
		unowned := create(ctx, newLegacyDeployment(nil, "catalog-controller-manager"))
		hub := createHub(ctx, newHub(absentNamespace()))
		waitForHubCondition(ctx, hub, "Ready", metav1.ConditionTrue, "AllDependentsHealthy")
		replaced := create(ctx, newLegacyDeployment(hub, "model-registry-operator-controller-manager"))
		env.WaitDeleted(ctx, replaced)
		waitForHubCondition(ctx, hub, "ProvisioningSucceeded", metav1.ConditionTrue, "AllResourcesApplied")

		recreated := create(ctx, newLegacyDeployment(hub, "model-registry-operator-controller-manager"))
		c := waitForHubCondition(ctx, hub, "Degraded", metav1.ConditionTrue, "EarlierOperatorRuns")
		Expect(c.Message).To(ContainSubstring("has been created again; delete Deployment aihub-controller-manager"))
		waitForHubCondition(ctx, hub, "Ready", metav1.ConditionTrue, "AllDependentsHealthy")
		env.Get(ctx, recreated)
		Expect(recreated.DeletionTimestamp).To(BeNil())
		env.Get(ctx, unowned)
		Expect(unowned.DeletionTimestamp).To(BeNil())
	}, NodeTimeout(specTimeout))

	It("does not delete a Deployment of a tenant with the name of a legacy one, and stays ready", func(ctx SpecContext) {
		team, instances := env.Namespace(ctx, "team"), absentNamespace()
		hub := createHub(ctx, newHub(instances))
		waitForHubCondition(ctx, hub, "Ready", metav1.ConditionTrue, "AllDependentsHealthy")
		for _, name := range []string{"catalog-controller-manager", "model-registry-operator-controller-manager"} {
			forged := newLegacyDeployment(hub, name)
			forged.Namespace = team
			deleteAndWait(ctx, create(ctx, forged.DeepCopy()))
			create(ctx, forged)
			By("recreating the Catalog although Deployment " + name + " exists")
			catalog := catalogIn(instances)
			env.WaitFor(ctx, catalog, nil)
			uid := catalog.UID
			Expect(env.Admin.Delete(ctx, catalog)).To(Succeed())
			env.WaitFor(ctx, catalog, func(g Gomega) { g.Expect(catalog.UID).NotTo(Equal(uid)) })
			env.Get(ctx, forged)
			Expect(forged.DeletionTimestamp).To(BeNil())
		}
		waitForHubCondition(ctx, hub, "Ready", metav1.ConditionTrue, "AllDependentsHealthy")
		Expect(findHubCondition(hub, "Degraded").Reason).NotTo(Equal("EarlierOperatorRuns"))
	}, NodeTimeout(specTimeout))

	It("becomes ready with the spec of the sample [D27]", func(ctx SpecContext) {
		samples, err := framework.ReadObjects("../../../config/samples/platform_aihub.yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(samples).To(HaveLen(1))
		waitForWebhooks(ctx)
		create(ctx, samples[0])
		waitForHubCondition(ctx, newHub("odh-model-registries"), "Ready", metav1.ConditionTrue, "AllDependentsHealthy")
	}, NodeTimeout(specTimeout))
})

var _ = Describe("Registries with an AIHub", func() {
	It("are published as the AIHub configures, without a restart of the manager, until the AIHub is deleted [modelregistry-104] [modelregistry-112]", func(ctx SpecContext) {
		pid := manager.Process.PID
		instances := createRegistriesNamespace(ctx)
		waitForWebhooks(ctx)
		create(ctx, newRegistry(instances, "before"))
		hub := createHub(ctx, newHub(instances, withGateway))
		for _, name := range []string{"before", "after"} {
			if name == "after" {
				create(ctx, newRegistry(instances, name))
			}
			env.WaitFor(ctx, routeOf(name), nil)
		}
		registry := newRegistry(instances, "after")
		env.WaitFor(ctx, registry, func(g Gomega) {
			g.Expect(registry.Status.Hosts).To(ContainElement("hub.example.com/model-registry/after"))
		})
		env.Patch(ctx, hub, map[string]any{"spec": map[string]any{"gateway": map[string]any{"domain": "moved.example.com"}}})
		env.WaitFor(ctx, registry, func(g Gomega) {
			g.Expect(registry.Status.Hosts).To(ContainElement("moved.example.com/model-registry/after"))
		})
		deleteAndWait(ctx, hub)
		for _, name := range []string{"before", "after"} {
			env.WaitDeleted(ctx, routeOf(name))
		}
		Expect(manager.Process.PID).To(Equal(pid))
	}, NodeTimeout(specTimeout))

	It("cannot be assigned a namespace of a tenant or of the cluster", func(ctx SpecContext) {
		tenantNamespace := env.Namespace(ctx, "tenant")
		hub := createHub(ctx, newHub(tenantNamespace))
		c := waitForHubCondition(ctx, hub, "ProvisioningSucceeded", metav1.ConditionFalse, "DeployFailed")
		Expect(c.Message).To(ContainSubstring("kubectl label namespace " + tenantNamespace + " platform.opendatahub.io/registries=true"))
		Expect(apierrors.IsNotFound(env.Admin.Get(ctx, client.ObjectKeyFromObject(catalogIn(tenantNamespace)), catalogIn(tenantNamespace)))).To(BeTrue())
		first := absentNamespace()
		env.Patch(ctx, hub, map[string]any{"spec": map[string]any{"instancesNamespace": first}})
		waitForHubCondition(ctx, hub, "Ready", metav1.ConditionTrue, "AllDependentsHealthy")
		env.Patch(ctx, hub, map[string]any{"spec": map[string]any{"instancesNamespace": metav1.NamespaceSystem}})
		env.WaitFor(ctx, hub, func(g Gomega) {
			i := slices.IndexFunc(hub.Status.Conditions, func(c platformv1alpha1.Condition) bool { return c.Type == "ProvisioningSucceeded" })
			g.Expect(hub.Status.Conditions[i].Message).To(ContainSubstring("belongs to the cluster"))
		})
		kept := catalogIn(first)
		env.Get(ctx, kept)
		Expect(kept.DeletionTimestamp).To(BeNil())
	}, NodeTimeout(specTimeout))

	It("can be created only in its namespace while the AIHub exists [modelregistry-104]", func(ctx SpecContext) {
		otherNamespace := env.Namespace(ctx, "other")
		hub := createHub(ctx, newHub(createRegistriesNamespace(ctx)))
		waitForHubCondition(ctx, hub, "Ready", metav1.ConditionTrue, "AllDependentsHealthy")
		createRegistry := func() error { return env.Admin.Create(ctx, newRegistry(otherNamespace, "stray"), client.DryRunAll) }
		Expect(createRegistry()).To(MatchError(ContainSubstring(hub.Spec.InstancesNamespace)))
		deleteAndWait(ctx, hub)
		Eventually(createRegistry).WithContext(ctx).Should(Succeed())
	}, NodeTimeout(specTimeout))

	It("cannot be assigned a namespace other than REGISTRIES_NAMESPACE, and the AIHub reports that", func(ctx SpecContext) {
		manager.StopTemporarily(ctx)
		startAnotherManager(ctx, framework.ManagerOptions{WebhookPort: env.Installed.WebhookPort, Args: []string{"--components=platform,modelregistry,modelcatalog"}, Env: []string{"REGISTRIES_NAMESPACE=set-namespace"}})
		instances := env.Namespace(ctx, "registries")
		hub := createHub(ctx, newHub(instances))
		c := waitForHubCondition(ctx, hub, "ProvisioningSucceeded", metav1.ConditionFalse, "DeployFailed")
		Expect(c.Message).To(And(ContainSubstring(instances), ContainSubstring("set-namespace"), ContainSubstring("REGISTRIES_NAMESPACE")))
		Expect(apierrors.IsNotFound(env.Admin.Get(ctx, client.ObjectKeyFromObject(catalogIn(instances)), catalogIn(instances)))).To(BeTrue())
		deleteAndWait(ctx, hub)
	}, NodeTimeout(specTimeout))
})

// expectWrites waits until the manager is idle, checks that it sent at most limit writes for the AIHub, and returns the position in the
// audit log. The writes are the finalizer, the namespace, the Catalog, and the status, twice if the webhooks do not know the namespace yet.
func expectWrites(start framework.AuditPosition, limit int) framework.AuditPosition {
	GinkgoHelper()
	waitIdle()
	writes := hubWrites(start)
	Expect(len(writes)).To(BeNumerically("<=", limit), "%s", writes)
	return env.AuditPosition()
}
