package modelcatalog_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// waitTimeout bounds each wait for a change by the manager or the API server.
const waitTimeout = 90 * time.Second

// controlPlane is a control plane with its manager.
type controlPlane struct {
	*framework.Env
	manager *framework.Manager
}

// userSources are the ConfigMaps that remain when a Catalog is deleted.
var userSources = []string{"model-catalog-sources", "mcp-catalog-sources", "agent-catalog-sources", "serving-runtime-catalog-sources"}

func (env *controlPlane) ensureNamespace(ctx context.Context, name string) {
	GinkgoHelper()
	err := env.Admin.Create(ctx, framework.NamespaceNamed(name))
	Expect(client.IgnoreAlreadyExists(err)).To(Succeed())
}

// namespace returns the namespace for the Catalog of a spec: a new one, except on OpenShift.
func (env *controlPlane) namespace(ctx context.Context) string {
	GinkgoHelper()
	if env == onOpenShift {
		return registries
	}
	return env.Namespace(ctx, "catalog")
}

func catalog(namespace string, changes ...func(*aihubv1alpha1.CatalogSpec)) *aihubv1alpha1.Catalog {
	c := &aihubv1alpha1.Catalog{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: aihubv1alpha1.CatalogName}}
	for _, change := range changes {
		change(&c.Spec)
	}
	return c
}

// create creates an object, and deletes it at the end of the spec.
func (env *controlPlane) create(ctx context.Context, o client.Object) {
	GinkgoHelper()
	Expect(env.Admin.Create(ctx, o)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { env.deleteAndWait(ctx, o) }, NodeTimeout(specTimeout))
}

func (env *controlPlane) deleteAndWait(ctx context.Context, o client.Object) {
	GinkgoHelper()
	err := env.Admin.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationBackground))
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	env.WaitDeleted(ctx, o)
	if _, isCatalog := o.(*aihubv1alpha1.Catalog); isCatalog {
		env.deleteRetained(ctx, o.GetNamespace())
	}
}

// deleteRetained deletes the ConfigMaps that remain when a Catalog is deleted, and waits until the main children of the Catalog are deleted.
func (env *controlPlane) deleteRetained(ctx context.Context, namespace string) {
	GinkgoHelper()
	for _, name := range userSources {
		Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, configMap(namespace, name)))).To(Succeed())
	}
	env.WaitDeleted(ctx, deployment(namespace, "model-catalog"), deployment(namespace, "model-catalog-postgres"), secret(namespace, "model-catalog-postgres"),
		configMap(namespace, "default-catalog-sources"), configMap(namespace, "model-catalog-sources"), authDelegatorBinding())
}

// createReady creates a Catalog, and waits until it is available and the manager is idle.
func (env *controlPlane) createReady(ctx context.Context, c *aihubv1alpha1.Catalog) *aihubv1alpha1.Catalog {
	GinkgoHelper()
	env.create(ctx, c)
	env.waitAvailable(ctx, c)
	return c
}

func (env *controlPlane) waitAvailable(ctx context.Context, c *aihubv1alpha1.Catalog) {
	GinkgoHelper()
	env.WaitFor(ctx, c, func(g Gomega) {
		g.Expect(framework.FindCondition(c.Status.Conditions, "Available").Reason).To(Equal("DeploymentAvailable"), framework.FindCondition(c.Status.Conditions, "Available").Message)
		g.Expect(c.Status.ObservedGeneration).To(Equal(c.Generation))
	})
	env.waitIdle()
	env.Get(ctx, c)
}

func (env *controlPlane) waitIdle() {
	GinkgoHelper()
	env.WaitIdle(env.manager.User, idlePeriod, specTimeout)
}

// waitForWebhook waits until the webhook of Catalogs responds and is trusted.
func (env *controlPlane) waitForWebhook(ctx context.Context) {
	GinkgoHelper()
	misnamed := catalog(registries)
	misnamed.Name = "probe"
	Eventually(func() error { return env.Admin.Create(ctx, misnamed.DeepCopy(), client.DryRunAll) }).
		WithContext(ctx).WithTimeout(waitTimeout).Should(MatchError(ContainSubstring("must be 'catalog'")))
}

// withoutWebhook calls a function while no webhook validates Catalogs.
func (env *controlPlane) withoutWebhook(ctx context.Context, call func()) {
	GinkgoHelper()
	hook := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "catalog-validating-webhook-configuration"}}
	env.Get(ctx, hook)
	Expect(env.Admin.Delete(ctx, hook.DeepCopy())).To(Succeed())
	defer func() {
		hook.ResourceVersion, hook.UID = "", ""
		Expect(env.Admin.Create(ctx, hook)).To(Succeed())
		env.waitForWebhook(ctx)
	}()
	// The API server drops a deleted webhook with a delay.
	probe := catalog(metav1.NamespaceDefault)
	probe.Name = "probe"
	Eventually(func() error { return env.Admin.Create(ctx, probe.DeepCopy(), client.DryRunAll) }).WithContext(ctx).WithTimeout(waitTimeout).Should(Succeed())
	call()
}

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func deployment(namespace, name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: meta(namespace, name)}
}

func secret(namespace, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: meta(namespace, name)}
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: meta(namespace, name)}
}

func service(namespace, name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: meta(namespace, name)}
}

func policy(namespace, name string) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{ObjectMeta: meta(namespace, name)}
}

func role(namespace, name string) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: meta(namespace, name)}
}

func roleBinding(namespace, name string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: meta(namespace, name)}
}

func authDelegatorBinding() *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "model-catalog-auth-delegator"}}
}

func source(namespace, name, content string) *corev1.ConfigMap {
	m := configMap(namespace, name)
	m.Labels = map[string]string{"opendatahub.io/catalog-source": "true"}
	m.Data = map[string]string{"sources.yaml": content}
	return m
}
