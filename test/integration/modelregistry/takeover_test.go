package modelregistry_test

import (
	"context"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	recordingsDir         = "../../../controllers/modelregistry/resources/testdata/recordings/"
	lastAppliedAnnotation = "banzaicloud.com/last-applied"
	pausedAnnotation      = "platform.opendatahub.io/paused"
)

// legacyRegistry is a registry with the child objects that the legacy operator created.
type legacyRegistry struct {
	registry  *v1beta1.ModelRegistry
	children  []*unstructured.Unstructured
	originals []*unstructured.Unstructured // the children before the take-over
}

// createLegacyRegistry creates the children and the status of the legacy operator for an existing, paused registry.
func createLegacyRegistry(ctx context.Context, m *v1beta1.ModelRegistry, file, recordedName string) *legacyRegistry {
	GinkgoHelper()
	env.WaitForCondition(ctx, m, "Paused", metav1.ConditionTrue, "")
	s := &legacyRegistry{registry: m, children: framework.Recording(recordingsDir+file, "lab-registries", m.Namespace, recordedName, m.Name)[1:]}
	env.CreateRecording(ctx, s.children, framework.RecordingOptions{Owner: m, Manager: "manager", Annotations: map[string]string{lastAppliedAnnotation: "UEsDBBQACAAIAA=="}})
	m.Status.Conditions = append(m.Status.Conditions,
		framework.Condition("Available", metav1.ConditionTrue, "DeploymentAvailable"),
		framework.Condition("IstioAvailable", metav1.ConditionTrue, "ResourcesAvailable"))
	Expect(env.Admin.Status().Update(ctx, m)).To(Succeed())
	d := child(m, &appsv1.Deployment{}, "")
	env.WaitFor(ctx, d, func(g Gomega) { g.Expect(d.Status.AvailableReplicas).To(Equal(int32(1))) })
	admitRoute(ctx, m)
	for _, c := range s.children {
		s.originals = append(s.originals, env.Live(ctx, c))
	}
	return s
}

// takeOver resumes the registry, waits until the manager is idle and returns its requests.
func (s *legacyRegistry) takeOver(ctx context.Context) framework.Entries {
	GinkgoHelper()
	start := env.AuditPosition()
	env.SetAnnotation(ctx, s.registry, pausedAnnotation, nil)
	env.WaitFor(ctx, s.registry, func(g Gomega) {
		g.Expect(framework.FindCondition(s.registry.Status.Conditions, "Paused")).To(Equal(metav1.Condition{}))
	})
	env.WaitForCondition(ctx, s.registry, "Available", metav1.ConditionTrue, "DeploymentAvailable")
	env.WaitIdle(manager.User, idlePeriod, specTimeout)
	env.Get(ctx, s.registry)
	return env.Since(start).ByUser(manager.User)
}

// field returns a field of an object, or nil.
func field(object *unstructured.Unstructured, path ...string) any {
	value, _, err := unstructured.NestedFieldCopy(object.Object, path...)
	Expect(err).NotTo(HaveOccurred())
	return value
}

// expectTakenOver checks that the fields on which clients and data depend are unchanged, that nothing was deleted, and that metadata and
// conditions are those of this operator.
func (s *legacyRegistry) expectTakenOver(ctx context.Context, requests framework.Entries) {
	GinkgoHelper()
	for i, c := range s.children {
		live := env.Live(ctx, c)
		name := c.GetKind() + " " + c.GetName()
		Expect(live.GetUID()).To(Equal(s.originals[i].GetUID()), name)
		Expect(live.GetAnnotations()).NotTo(HaveKey(lastAppliedAnnotation), "[S2] %s still has the last-applied annotation", name)
		Expect(live.GetLabels()).To(HaveKeyWithValue("platform.opendatahub.io/component", "modelregistry"), name)
		switch c.GetKind() {
		case "Service", "Route", "PersistentVolumeClaim":
			Expect(field(live, "spec")).To(Equal(field(s.originals[i], "spec")), name)
		case "Secret":
			Expect(field(live, "data")).To(Equal(field(s.originals[i], "data")), name)
		case "Deployment":
			Expect(field(live, "spec", "selector")).To(Equal(field(s.originals[i], "spec", "selector")), name)
			Expect(containerFields(live)).To(Equal(containerFields(s.originals[i])), name)
			Expect(field(live, "spec", "template", "metadata", "annotations")).To(Equal(field(s.originals[i], "spec", "template", "metadata", "annotations")),
				"%s: the annotations of the pod template changed without a rotation", name)
		}
	}
	Expect(requests.Where(func(e framework.Entry) bool { return e.Verb == "delete" })).To(BeEmpty())
	Expect(requests.ForResource("deployments").Writes()).NotTo(BeEmpty())
	Expect(framework.FindCondition(s.registry.Status.Conditions, "IstioAvailable")).To(Equal(metav1.Condition{}), "[D19] the condition IstioAvailable of the legacy operator was not removed")
}

// containerFields returns the name, image, arguments and variables of each container of a Deployment, without the differences that a
// take-over may cause.
func containerFields(d *unstructured.Unstructured) []any {
	containers, _, err := unstructured.NestedSlice(d.Object, "spec", "template", "spec", "containers")
	Expect(err).NotTo(HaveOccurred())
	var all []any
	for _, c := range containers {
		fields, ok := c.(map[string]any)
		Expect(ok).To(BeTrue())
		args, _, err := unstructured.NestedStringSlice(fields, "args")
		Expect(err).NotTo(HaveOccurred())
		variables, _ := fields["env"].([]any)
		args = slices.DeleteFunc(args, func(arg string) bool {
			dsn, isDSN := strings.CutPrefix(arg, "--embedmd-database-dsn=")
			if isDSN { // the URL moved to a variable
				variables = append(variables, map[string]any{"name": "MR_EMBEDMD_DATABASE_DSN", "value": dsn})
			}
			// Behind a proxy the server listens on the loopback address, and the kubelet probes it through the proxy.
			return isDSN || strings.HasPrefix(arg, "--hostname=") || strings.HasPrefix(arg, "--ignore-paths=")
		})
		all = append(all, fields["name"], fields["image"], args, variables)
	}
	return all
}

var _ = Describe("A registry of the legacy operator", func() {
	var namespace string
	BeforeEach(func(ctx SpecContext) { namespace = env.Namespace(ctx, "legacy") }, NodeTimeout(specTimeout))
	pausedMeta := metav1.ObjectMeta{Annotations: map[string]string{pausedAnnotation: "true"}}

	It("of v1alpha1 with istio is taken over without a visible change [modelregistry-23]", func(ctx SpecContext) {
		legacy := &v1alpha1.ModelRegistry{ObjectMeta: *pausedMeta.DeepCopy()}
		legacy.Namespace, legacy.Name = namespace, namespace
		legacy.Spec.GRPC.Port = new(int32(9091))
		legacy.Spec.Postgres = &v1alpha1.PostgresConfig{Host: "pg.data.svc", Username: "registry", Database: "models"}
		legacy.Spec.Istio = &v1alpha1.IstioConfig{Gateway: &v1alpha1.GatewayConfig{Domain: "old.example.com"}}
		Expect(env.Admin.Create(ctx, legacy)).To(Succeed())
		m := &v1beta1.ModelRegistry{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: namespace}}
		DeferCleanup(func(ctx SpecContext) { env.Delete(ctx, m) }, NodeTimeout(specTimeout))
		s := createLegacyRegistry(ctx, m, "v1alpha1-istio-openshift.yaml", "old-mesh")
		s.expectTakenOver(ctx, s.takeOver(ctx))
	}, NodeTimeout(specTimeout))

	It("with oauthProxy is taken over, and loses its catalog and the cookie Secret of its proxy [modelregistry-36] [D24]", func(ctx SpecContext) {
		m := &v1beta1.ModelRegistry{ObjectMeta: *pausedMeta.DeepCopy()}
		m.Namespace, m.Name = namespace, namespace
		m.Spec.Postgres = &v1beta1.PostgresConfig{Host: "pg.data.svc", Username: "registry", Database: "models"}
		m.Spec.OAuthProxy = &v1beta1.ProxyConfig{Domain: "old.example.com"}
		create(ctx, m)
		s := createLegacyRegistry(ctx, m, "v1alpha1-istio-openshift.yaml", "old-mesh")
		legacyLabels := map[string]string{"app.kubernetes.io/created-by": "model-registry-operator", "app": m.Name}
		controller := []metav1.OwnerReference{*metav1.NewControllerRef(m, v1beta1.GroupVersion.WithKind("ModelRegistry"))}
		cookie := passwordSecret(namespace, "")
		cookie.Name, cookie.Labels = m.Name+"-oauth-cookie-secret", legacyLabels
		catalog := newDeployment(m, m.Name+"-catalog")
		catalog.Labels, catalog.OwnerReferences = legacyLabels, controller
		shared := newDeployment(m, "model-catalog")
		shared.Labels = legacyLabels
		create(ctx, cookie, catalog, shared)
		start := env.AuditPosition()
		env.SetAnnotation(ctx, m, pausedAnnotation, nil)
		env.WaitDeleted(ctx, cookie, catalog)
		env.WaitForCondition(ctx, m, "Available", metav1.ConditionTrue, "DeploymentAvailable")
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		env.Get(ctx, m)
		env.Get(ctx, shared) // [modelregistry-37] it is kept
		requests := env.Since(start).ByUser(manager.User).Where(func(e framework.Entry) bool {
			return e.Verb != "delete" || e.Name != cookie.Name && e.Name != catalog.Name
		})
		s.expectTakenOver(ctx, requests)
		Expect(m.Spec.OAuthProxy).To(BeNil())
		Expect(m.Spec.KubeRBACProxy.Domain).To(Equal("old.example.com"))
	}, NodeTimeout(specTimeout))

	It("gets a new Deployment if that of the legacy operator has another selector [D9] [D10]", func(ctx SpecContext) {
		m := newRegistry(namespace, namespace, func(m *v1beta1.ModelRegistry) { m.Annotations = pausedMeta.Annotations })
		create(ctx, passwordSecret(namespace, "first"), proxyCertificate(m), m)
		env.WaitForCondition(ctx, m, "Paused", metav1.ConditionTrue, "")
		legacyDeployment := newDeployment(m, m.Name)
		legacyDeployment.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(m, v1beta1.GroupVersion.WithKind("ModelRegistry"))}
		create(ctx, legacyDeployment)
		env.SetAnnotation(ctx, m, pausedAnnotation, nil)
		deployment := child(m, &appsv1.Deployment{}, "")
		env.WaitFor(ctx, deployment, func(g Gomega) {
			g.Expect(deployment.UID).NotTo(Equal(legacyDeployment.UID))
			g.Expect(deployment.Spec.Selector.MatchLabels).To(HaveKeyWithValue("component", "model-registry"))
		})
		waitAvailable(ctx, m)
	}, NodeTimeout(specTimeout))

	It("that was deleted leaves no permissions, because its ClusterRoleBinding is deleted [D1]", func(ctx SpecContext) {
		deleted := newRegistry(namespace, namespace)
		orphan := authDelegatorBinding(deleted)
		orphan.Labels = map[string]string{"app": deleted.Name, "component": "model-registry", "app.kubernetes.io/created-by": "model-registry-operator",
			"modelregistry.opendatahub.io/namespace": namespace}
		orphan.RoleRef.APIGroup, orphan.RoleRef.Kind, orphan.RoleRef.Name = "rbac.authorization.k8s.io", "ClusterRole", "system:auth-delegator"
		unrelated := orphan.DeepCopy()
		unrelated.Name = deleted.Name + "-other"
		create(ctx, orphan, unrelated)
		DeferCleanup(func(ctx SpecContext) { env.Delete(ctx, unrelated) }, NodeTimeout(specTimeout))
		manager.Restart(ctx)
		env.WaitDeleted(ctx, orphan)
		env.Get(ctx, unrelated)
	}, NodeTimeout(specTimeout))
})

// newDeployment returns a Deployment with a selector that the operator does not use.
func newDeployment(m *v1beta1.ModelRegistry, name string) *appsv1.Deployment {
	deployment := child(m, &appsv1.Deployment{}, "")
	deployment.Name = name
	labels := map[string]string{"old": name}
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	deployment.Spec.Template.Labels = labels
	deployment.Spec.Template.Spec.Containers = containers("quay.io/example/old:1")
	return deployment
}
