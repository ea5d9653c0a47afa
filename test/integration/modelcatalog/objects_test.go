package modelcatalog_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/server"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

var _ = Describe("A new Catalog", func() {
	It("creates its objects on plain Kubernetes, sources of users and the ClusterRoleBinding without an owner, and then causes no request [modelregistry-75] [modelregistry-80] [modelregistry-81]", func(ctx SpecContext) {
		env := onKubernetes
		ns := env.namespace(ctx)
		start := env.AuditPosition()
		c := env.createReady(ctx, catalog(ns))
		Expect(c.Finalizers).To(ContainElement("catalog.aihub.opendatahub.io/finalizer"))
		for _, o := range []client.Object{
			&corev1.ServiceAccount{ObjectMeta: meta(ns, "model-catalog")}, configMap(ns, "default-catalog-sources"),
			deployment(ns, "model-catalog"), service(ns, "model-catalog"), role(ns, "model-catalog"),
			roleBinding(ns, "model-catalog-authenticated"), role(ns, "model-catalog-admin"), secret(ns, "model-catalog-postgres"),
			deployment(ns, "model-catalog-postgres"), service(ns, "model-catalog-postgres"), policy(ns, "model-catalog-postgres"),
			configMap(ns, "model-catalog-kube-rbac-proxy-config"), policy(ns, "model-catalog-ingress"),
			policy(ns, "model-catalog-egress"), policy(ns, "model-catalog-postgres-egress"),
			secret(ns, "model-catalog-kube-rbac-proxy"),
		} {
			env.Get(ctx, o)
			Expect(o.GetOwnerReferences()).To(HaveLen(1), o.GetName())
			Expect(metav1.IsControlledBy(o, c)).To(BeTrue(), o.GetName())
			Expect(o.GetLabels()).To(HaveKeyWithValue("app.kubernetes.io/created-by", "model-registry-operator"), o.GetName())
			Expect(o.GetLabels()).To(HaveKeyWithValue("app", "model-catalog"), o.GetName())
			Expect(o.GetAnnotations()).NotTo(HaveKey("banzaicloud.com/last-applied"))
		}
		for _, name := range userSources {
			m := configMap(ns, name)
			env.Get(ctx, m)
			Expect(m.OwnerReferences).To(BeEmpty())
		}
		binding := authDelegatorBinding()
		env.Get(ctx, binding)
		Expect(binding.OwnerReferences).To(BeEmpty())
		Expect(binding.Labels).To(HaveKeyWithValue("modelregistry.opendatahub.io/namespace", ns))
		env.ExpectAbsent(ctx, roleBinding(ns, "model-catalog-admin-binding"))
		Expect(c.Status.ObservedGeneration).To(Equal(c.Generation))

		requests := env.Since(start).ByUser(env.manager.User)
		Expect(requests.Forbidden()).To(BeEmpty())
		env.ExpectIdle(env.manager.User, idlePeriod)
	}, NodeTimeout(specTimeout))

	It("encrypts the connection to its database, and connects to an external database with a Secret", func(ctx SpecContext) {
		env := onKubernetes
		ns := env.namespace(ctx)
		c := env.createReady(ctx, catalog(ns, func(s *aihubv1alpha1.CatalogSpec) {
			s.Database = &aihubv1alpha1.CatalogDatabase{ServerTLS: server.Enabled}
		}))
		tlsSecret, server := secret(ns, "model-catalog-postgres-tls"), deployment(ns, "model-catalog")
		env.Get(ctx, tlsSecret)
		Expect(metav1.IsControlledBy(tlsSecret, c)).To(BeTrue())
		env.Get(ctx, server)
		Expect(server.Spec.Template.Spec.Containers[0].Env).To(ContainElement(corev1.EnvVar{Name: "PGSSLMODE", Value: "verify-full"}))
		env.waitIdle()
		env.ExpectIdle(env.manager.User, idlePeriod)
		env.Patch(ctx, c, map[string]any{"spec": map[string]any{"database": map[string]any{"serverTLS": nil, "connection": map[string]any{"secretName": "catalog-app"}}}})
		env.WaitDeleted(ctx, deployment(ns, "model-catalog-postgres"))
		env.WaitFor(ctx, server, func(g Gomega) {
			g.Expect(server.Spec.Template.Spec.Containers[0].Env).To(ContainElement(HaveField("ValueFrom.SecretKeyRef.Key", "dbname")))
		})
	}, NodeTimeout(specTimeout))

	It("uses the resources and the volume size of its spec [modelregistry-76]", func(ctx SpecContext) {
		env := onKubernetes
		ns := env.namespace(ctx)
		env.createReady(ctx, catalog(ns, func(s *aihubv1alpha1.CatalogSpec) {
			s.Resources = &aihubv1alpha1.CatalogResources{
				Catalog:  &corev1.ResourceRequirements{Limits: corev1.ResourceList{"memory": resource.MustParse("512Mi")}},
				Postgres: &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("300m")}},
			}
			s.Database = &aihubv1alpha1.CatalogDatabase{Volume: &aihubv1alpha1.CatalogVolume{SizeLimit: new(resource.MustParse("10Gi"))}}
		}))
		server, database := deployment(ns, "model-catalog"), deployment(ns, "model-catalog-postgres")
		env.Get(ctx, server)
		env.Get(ctx, database)
		Expect(server.Spec.Template.Spec.Containers[0].Resources.Limits.Memory().String()).To(Equal("512Mi"))
		Expect(database.Spec.Template.Spec.Containers[0].Resources.Requests.Cpu().String()).To(Equal("300m"))
		Expect(database.Spec.Template.Spec.Volumes[0].EmptyDir.SizeLimit.String()).To(Equal("10Gi"))
	}, NodeTimeout(specTimeout))

	It("is published on OpenShift by a Route and a gateway, and is unpublished when it is deleted [modelregistry-78] [modelregistry-82] [modelregistry-83] [D25] [D26]", func(ctx SpecContext) {
		env := onOpenShift
		ns := env.namespace(ctx)
		legacyGrant := framework.Unstructured(capability.ReferenceGrant, ns, "allow-gateway-httproutes") // of the legacy operator, for every Service
		legacyGrant.SetLabels(map[string]string{"app.kubernetes.io/created-by": "model-registry-operator", "component": "model-registry"})
		legacyGrant.Object["spec"] = map[string]any{
			"from": []any{map[string]any{"group": capability.HTTPRoute.Group, "kind": "HTTPRoute", "namespace": routes}},
			"to":   []any{map[string]any{"group": "", "kind": "Service"}},
		}
		Expect(env.Admin.Create(ctx, legacyGrant)).To(Succeed())
		c := env.createReady(ctx, catalog(ns))
		env.WaitDeleted(ctx, legacyGrant)
		route := framework.Unstructured(capability.Route, ns, "model-catalog-https")
		env.Get(ctx, route)
		spec := route.Object["spec"].(map[string]any)
		Expect(spec["host"]).To(Equal("model-catalog." + domain))
		Expect(spec["tls"]).To(HaveKeyWithValue("termination", "reencrypt"))
		env.Get(ctx, policy(ns, "model-catalog-https-route"))
		httpRoute := framework.Unstructured(capability.HTTPRoute, routes, "model-catalog")
		env.Get(ctx, httpRoute)
		Expect(httpRoute.GetOwnerReferences()).To(BeEmpty())
		grant := framework.Unstructured(capability.ReferenceGrant, ns, "allow-gateway-model-catalog")
		env.Get(ctx, grant)
		Expect(grant.Object["spec"].(map[string]any)["to"]).To(ConsistOf(HaveKeyWithValue("name", "model-catalog")))
		s := service(ns, "model-catalog")
		env.Get(ctx, s)
		Expect(s.Annotations).To(HaveKeyWithValue("routing.opendatahub.io/external-address-rest", "gateway.example.com/catalog"))
		env.ExpectAbsent(ctx, secret(ns, "model-catalog-kube-rbac-proxy")) // OpenShift creates it
		env.ExpectAbsent(ctx, policy(ns, "model-catalog-ingress"))
		env.ExpectIdle(env.manager.User, idlePeriod)

		env.deleteAndWait(ctx, c)
		env.WaitDeleted(ctx, httpRoute, authDelegatorBinding(), route)
	}, NodeTimeout(specTimeout))

	It("publishes no address without its Route or HTTPRoute [D22]", func(ctx SpecContext) {
		env := onKubernetes
		ns := env.namespace(ctx)
		env.createReady(ctx, catalog(ns))
		s := service(ns, "model-catalog")
		env.Get(ctx, s)
		for key, value := range s.Annotations {
			Expect(strings.HasPrefix(key, "routing.opendatahub.io/")).To(BeFalse(), "%s=%s", key, value)
		}
	}, NodeTimeout(specTimeout))
})
