package platform_test

import (
	"context"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	hubFinalizer       = "aihub.opendatahub.io/finalizer"
	catalogsDefinition = "catalogs.aihub.opendatahub.io"
	managementState    = "component.opendatahub.io/management-state"
)

// absentNamespace returns the name of a namespace that does not exist, and deletes the namespace at the end of the spec.
func absentNamespace() string {
	GinkgoHelper()
	name := "registries-" + rand.String(6)
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, framework.NamespaceNamed(name)))).To(Succeed())
	}, NodeTimeout(specTimeout))
	return name
}

// createRegistriesNamespace creates a namespace that administrators chose for registries.
func createRegistriesNamespace(ctx context.Context) string {
	GinkgoHelper()
	name := env.Namespace(ctx, "registries")
	env.SetLabel(ctx, framework.NamespaceNamed(name), "platform.opendatahub.io/registries", "true")
	return name
}

// hub returns the AIHub as the platform creates it.
func hub(instances string, changes ...func(*platformv1alpha1.AIHub)) *platformv1alpha1.AIHub {
	a := &platformv1alpha1.AIHub{ObjectMeta: metav1.ObjectMeta{Name: "default-aihub", Annotations: map[string]string{managementState: "Managed"}}}
	a.Spec = platformv1alpha1.AIHubSpec{ApplicationNamespace: namespace, InstancesNamespace: instances}
	for _, change := range changes {
		change(a)
	}
	return a
}

func published(a *platformv1alpha1.AIHub) {
	a.Spec.Gateway = &platformv1alpha1.AIHubGateway{Domain: "hub.example.com"}
}

// createHub creates an AIHub, and deletes it with its Catalog at the end of the spec.
func createHub(ctx context.Context, a *platformv1alpha1.AIHub) *platformv1alpha1.AIHub {
	GinkgoHelper()
	waitForWebhooks(ctx)
	return create(ctx, a)
}

// waitForWebhooks waits until the webhooks of the manager respond; they are unavailable during its start.
func waitForWebhooks(ctx context.Context) {
	GinkgoHelper()
	misnamed := catalogIn(metav1.NamespaceDefault)
	misnamed.Name = "probe"
	Eventually(func() error { return env.Admin.Create(ctx, misnamed.DeepCopy(), client.DryRunAll) }).
		WithContext(ctx).Should(MatchError(ContainSubstring("must be 'catalog'")))
}

func catalogIn(namespace string) *aihubv1alpha1.Catalog {
	return &aihubv1alpha1.Catalog{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "catalog"}}
}

// registry returns a registry with an existing database.
func registry(namespace, name string) *v1beta1.ModelRegistry {
	m := &v1beta1.ModelRegistry{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	m.Spec.Postgres = &v1beta1.PostgresConfig{Host: "db", Username: "u", Database: "d", PasswordSecret: &v1beta1.SecretKeyValue{Name: "db", Key: "password"}}
	return m
}

// routeOf returns the HTTPRoute of a registry.
func routeOf(name string) *unstructured.Unstructured {
	return framework.Unstructured(capability.HTTPRoute, namespace, "model-registry-"+name)
}

// versions returns the ConfigMap with which the platform sets the version of an AIHub.
func versions(in, version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: "odh-modelregistry-config"}, Data: map[string]string{"platformVersion": version}}
}

// childOf returns a Deployment as the legacy controller of AIHubs created it.
func childOf(a *platformv1alpha1.AIHub, name string) *appsv1.Deployment {
	labels := map[string]string{"control-plane": name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"platform.opendatahub.io/part-of": "aihub"}}}
	d.Spec = appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "quay.io/example/older:v1"}}}},
	}
	if a != nil {
		d.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(a, platformv1alpha1.GroupVersion.WithKind("AIHub"))}
	}
	return d
}

func hubCondition(a *platformv1alpha1.AIHub, kind string) platformv1alpha1.Condition {
	i := slices.IndexFunc(a.Status.Conditions, func(c platformv1alpha1.Condition) bool { return c.Type == kind })
	if i < 0 {
		return platformv1alpha1.Condition{}
	}
	return a.Status.Conditions[i]
}

// waitHub waits until a condition of an AIHub has the status and reason for the current generation.
func waitHub(ctx context.Context, a *platformv1alpha1.AIHub, kind string, status metav1.ConditionStatus, reason string) platformv1alpha1.Condition {
	GinkgoHelper()
	env.WaitFor(ctx, a, func(g Gomega) {
		c := hubCondition(a, kind)
		g.Expect(fmt.Sprintf("%s %s", c.Status, c.Reason)).To(Equal(fmt.Sprintf("%s %s", status, reason)), "%s: %s", kind, c.Message)
		g.Expect(c.ObservedGeneration).To(Equal(a.Generation))
		g.Expect(a.Status.ObservedGeneration).To(Equal(a.Generation))
	})
	return hubCondition(a, kind)
}

// hubWrites returns the writes of the manager for the AIHub since a position in the log, without those of the catalog.
func hubWrites(start framework.AuditPosition) framework.Entries {
	GinkgoHelper()
	return env.Since(start).ChildWrites(manager.User).Where(func(e framework.Entry) bool {
		return slices.Contains([]string{"aihubs", "namespaces"}, e.Resource) || e.Resource == "catalogs" && (e.Verb == "create" || e.Verb == "delete")
	})
}
