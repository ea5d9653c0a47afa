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
	hubFinalizer    = "aihub.opendatahub.io/finalizer"
	catalogCRD      = "catalogs.aihub.opendatahub.io"
	managementState = "component.opendatahub.io/management-state"
)

// absentNamespace returns the name of a namespace that does not exist, and deletes the namespace after the spec.
func absentNamespace() string {
	GinkgoHelper()
	name := "registries-" + rand.String(6)
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, framework.NamespaceNamed(name)))).To(Succeed())
	}, NodeTimeout(specTimeout))
	return name
}

// createRegistriesNamespace creates a namespace with the label that allows registries in it.
func createRegistriesNamespace(ctx context.Context) string {
	GinkgoHelper()
	name := env.Namespace(ctx, "registries")
	env.SetLabel(ctx, framework.NamespaceNamed(name), "platform.opendatahub.io/registries", "true")
	return name
}

// newHub returns the AIHub as the platform creates it.
func newHub(instances string, changes ...func(*platformv1alpha1.AIHub)) *platformv1alpha1.AIHub {
	hub := &platformv1alpha1.AIHub{ObjectMeta: metav1.ObjectMeta{Name: "default-aihub", Annotations: map[string]string{managementState: "Managed"}}}
	hub.Spec = platformv1alpha1.AIHubSpec{ApplicationNamespace: namespace, InstancesNamespace: instances}
	for _, change := range changes {
		change(hub)
	}
	return hub
}

func withGateway(hub *platformv1alpha1.AIHub) {
	hub.Spec.Gateway = &platformv1alpha1.AIHubGateway{Domain: "hub.example.com"}
}

// createHub creates an AIHub when the webhooks respond, and deletes it with its Catalog after the spec.
func createHub(ctx context.Context, hub *platformv1alpha1.AIHub) *platformv1alpha1.AIHub {
	GinkgoHelper()
	waitForWebhooks(ctx)
	return create(ctx, hub)
}

// waitForWebhooks waits until the webhooks of the manager respond, which are unavailable while it starts.
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

// newRegistry returns a registry with an existing database.
func newRegistry(namespace, name string) *v1beta1.ModelRegistry {
	registry := &v1beta1.ModelRegistry{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	registry.Spec.Postgres = &v1beta1.PostgresConfig{Host: "db", Username: "u", Database: "d", PasswordSecret: &v1beta1.SecretKeyValue{Name: "db", Key: "password"}}
	return registry
}

// routeOf returns the HTTPRoute of a registry.
func routeOf(name string) *unstructured.Unstructured {
	return framework.Unstructured(capability.HTTPRoute, namespace, "model-registry-"+name)
}

// hubVersionConfigMap returns the ConfigMap in which the platform publishes its version to AIHubs.
func hubVersionConfigMap(in, version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: "odh-modelregistry-config"}, Data: map[string]string{"platformVersion": version}}
}

// newLegacyDeployment returns a Deployment like those that the legacy controller of AIHubs created.
func newLegacyDeployment(hub *platformv1alpha1.AIHub, name string) *appsv1.Deployment {
	labels := map[string]string{"control-plane": name}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"platform.opendatahub.io/part-of": "aihub"}}}
	deployment.Spec = appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "quay.io/example/older:v1"}}}},
	}
	if hub != nil {
		deployment.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(hub, platformv1alpha1.GroupVersion.WithKind("AIHub"))}
	}
	return deployment
}

func findHubCondition(hub *platformv1alpha1.AIHub, conditionType string) platformv1alpha1.Condition {
	i := slices.IndexFunc(hub.Status.Conditions, func(c platformv1alpha1.Condition) bool { return c.Type == conditionType })
	if i < 0 {
		return platformv1alpha1.Condition{}
	}
	return hub.Status.Conditions[i]
}

// waitForHubCondition waits until a condition of an AIHub has a status and a reason for the current generation.
func waitForHubCondition(ctx context.Context, hub *platformv1alpha1.AIHub, conditionType string, status metav1.ConditionStatus, reason string) platformv1alpha1.Condition {
	GinkgoHelper()
	env.WaitFor(ctx, hub, func(g Gomega) {
		c := findHubCondition(hub, conditionType)
		g.Expect(fmt.Sprintf("%s %s", c.Status, c.Reason)).To(Equal(fmt.Sprintf("%s %s", status, reason)), "%s: %s", conditionType, c.Message)
		g.Expect(c.ObservedGeneration).To(Equal(hub.Generation))
		g.Expect(hub.Status.ObservedGeneration).To(Equal(hub.Generation))
	})
	return findHubCondition(hub, conditionType)
}

// hubWrites returns the writes of the manager for the AIHub since a position in the audit log, except updates of the Catalog.
func hubWrites(start framework.AuditPosition) framework.Entries {
	GinkgoHelper()
	return env.Since(start).ObjectWrites(manager.User).Where(func(e framework.Entry) bool {
		return slices.Contains([]string{"aihubs", "namespaces"}, e.Resource) || e.Resource == "catalogs" && (e.Verb == "create" || e.Verb == "delete")
	})
}
