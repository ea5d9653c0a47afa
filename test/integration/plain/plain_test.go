package plain_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

func object(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func certificate() *corev1.Secret { return &corev1.Secret{ObjectMeta: object("mlflow-tls")} }

func deployment() *appsv1.Deployment { return &appsv1.Deployment{ObjectMeta: object("mlflow")} }

func account(name string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: object(name)}
}

func route() *unstructured.Unstructured {
	return framework.Unstructured(capability.HTTPRoute, namespace, "mlflow")
}

func server(changes ...func(*mlflowv1.MLflowSpec)) *mlflowv1.MLflow {
	m := &mlflowv1.MLflow{ObjectMeta: metav1.ObjectMeta{Name: mlflowv1.SingletonName}}
	m.Spec.BackendStoreURI = "postgresql://tracker@db/x"
	m.Spec.DefaultArtifactRoot = "s3://bucket"
	for _, change := range changes {
		change(&m.Spec)
	}
	return m
}

// create creates an object, and deletes it with its dependents at the end of the spec.
func create(ctx context.Context, o client.Object) {
	GinkgoHelper()
	Expect(env.Admin.Create(ctx, o)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { remove(ctx, o) }, NodeTimeout(specTimeout))
}

func remove(ctx context.Context, o client.Object) {
	GinkgoHelper()
	Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationForeground)))).To(Succeed())
	env.WaitDeleted(ctx, o)
}

// createReady creates an MLflow, and waits until it is available and the manager is idle.
func createReady(ctx context.Context, m *mlflowv1.MLflow) *mlflowv1.MLflow {
	GinkgoHelper()
	create(ctx, m)
	env.WaitForCondition(ctx, m, "Available", metav1.ConditionTrue, "DeploymentReady")
	env.WaitIdle(manager.User, quiet, specTimeout)
	env.Get(ctx, m)
	return m
}

func template(ctx context.Context) string {
	GinkgoHelper()
	d := deployment()
	env.Get(ctx, d)
	return d.Spec.Template.String()
}

// valid checks that clients that trust the CA in a Secret accept its certificate for the names of the Service.
func valid(s *corev1.Secret) {
	GinkgoHelper()
	pair, err := tls.X509KeyPair(s.Data["tls.crt"], s.Data["tls.key"])
	Expect(err).NotTo(HaveOccurred())
	key, isECDSA := pair.PrivateKey.(*ecdsa.PrivateKey)
	Expect(isECDSA).To(BeTrue())
	Expect(key.Curve).To(Equal(elliptic.P256()))
	roots := x509.NewCertPool()
	Expect(roots.AppendCertsFromPEM(s.Data["ca.crt"])).To(BeTrue())
	for _, name := range []string{"mlflow", "mlflow.opendatahub", "mlflow.opendatahub.svc", "mlflow.opendatahub.svc.cluster.local", "localhost"} {
		_, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots})
		Expect(err).NotTo(HaveOccurred(), name)
	}
}

var _ = Describe("The serving certificate without OpenShift", func() {
	It("is issued, causes no write in the steady state or after a restart, and is deleted with its MLflow", func(ctx SpecContext) {
		start := env.AuditPosition()
		m := createReady(ctx, server())
		s := certificate()
		env.Get(ctx, s)
		Expect(s.Type).To(Equal(corev1.SecretTypeTLS))
		Expect(metav1.IsControlledBy(s, m)).To(BeTrue())
		valid(s)
		Expect(env.Since(start).ByUser(manager.User).Refused()).To(BeEmpty())
		env.ExpectIdle(manager.User, quiet)
		before := template(ctx)

		By("adding a label of another client")
		env.SetLabel(ctx, s, "touched", "yes")
		env.ExpectNoWrites(manager.User, quiet)

		By("removing its labels and its owner reference")
		env.Patch(ctx, s, map[string]any{"metadata": map[string]any{"ownerReferences": nil, "labels": map[string]any{names.OperatorLabel: nil, names.ComponentLabel: nil}}})
		Eventually(func(g Gomega) {
			now := certificate()
			g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(now), now)).To(Succeed())
			g.Expect(metav1.IsControlledBy(now, m)).To(BeTrue())
			g.Expect(now.Labels).To(HaveKeyWithValue(names.ComponentLabel, "mlflow"))
			g.Expect(now.Data).To(Equal(s.Data))
		}).WithContext(ctx).WithTimeout(specTimeout).Should(Succeed())
		env.WaitIdle(manager.User, quiet, specTimeout)

		By("restarting the manager")
		start = env.AuditPosition()
		manager.Restart(ctx)
		env.WaitIdle(manager.User, quiet, specTimeout)
		mine := env.Since(start).ByUser(manager.User).WithoutLeases().WithoutReviews().WithoutDiscovery()
		Expect(mine.Writes()).To(BeEmpty(), "writes after a restart:\n%s", mine.Writes())
		Expect(template(ctx)).To(Equal(before))

		remove(ctx, m)
		env.WaitDeleted(ctx, s)
	}, NodeTimeout(specTimeout))

	It("is renewed when it is due, and the pods load it", func(ctx SpecContext) {
		createReady(ctx, server())
		s := certificate()
		env.Get(ctx, s)
		before := template(ctx)

		By("replacing it by a certificate that expires soon")
		short, err := certs.EnsureServing(nil, certs.ServingOptions{
			CACommonName: "odh-platform-operator-mlflow-ca", DNSNames: []string{"mlflow", "mlflow.opendatahub", "mlflow.opendatahub.svc", "mlflow.opendatahub.svc.cluster.local", "localhost"},
			Lifetime: time.Hour,
		}, time.Now().Add(-55*time.Minute))
		Expect(err).NotTo(HaveOccurred())
		data := map[string]any{}
		for k, v := range short.Data {
			data[k] = v
		}
		env.Patch(ctx, s, map[string]any{"data": data})
		env.WaitFor(ctx, s, func(g Gomega) { g.Expect(s.Data["tls.crt"]).NotTo(Equal(short.Data["tls.crt"])) })
		valid(s)
		Expect(bytes.Contains(s.Data["ca.crt"], short.Data["ca.crt"])).To(BeTrue(), "clients still trust pods with the old certificate")
		Eventually(template).WithContext(ctx).WithArguments(ctx).WithTimeout(specTimeout).ShouldNot(Equal(before))
		env.WaitIdle(manager.User, quiet, specTimeout)

		By("deleting it")
		Expect(env.Admin.Delete(ctx, certificate())).To(Succeed())
		env.WaitExists(ctx, s)
		env.WaitIdle(manager.User, quiet, specTimeout)
		env.ExpectIdle(manager.User, quiet)
	}, NodeTimeout(specTimeout))

	It("of an artifact server is issued separately, and deleted with that server [mlflow-94]", func(ctx SpecContext) {
		start := env.AuditPosition()
		m := createReady(ctx, server(func(s *mlflowv1.MLflowSpec) {
			s.DefaultArtifactRoot, s.ArtifactsDestination = "", "s3://bucket"
			s.ArtifactsServer = &mlflowv1.ArtifactsServerConfig{Enabled: true}
		}))
		second := &corev1.Secret{ObjectMeta: object("mlflow-artifacts-tls")}
		env.Get(ctx, second)
		Expect(metav1.IsControlledBy(second, m)).To(BeTrue())
		pair, err := tls.X509KeyPair(second.Data["tls.crt"], second.Data["tls.key"])
		Expect(err).NotTo(HaveOccurred())
		Expect(pair.Leaf.VerifyHostname("mlflow-artifacts.opendatahub.svc")).To(Succeed())
		env.ExpectIdle(manager.User, quiet)

		By("switching that server off")
		env.Patch(ctx, m, map[string]any{"spec": map[string]any{"defaultArtifactRoot": "s3://bucket", "artifactsServer": nil}})
		env.WaitDeleted(ctx, second, &appsv1.Deployment{ObjectMeta: object("mlflow-artifacts")})
		env.WaitIdle(manager.User, quiet, specTimeout)
		env.Get(ctx, certificate())
		Expect(env.Since(start).ByUser(manager.User).Refused()).To(BeEmpty())
		env.ExpectIdle(manager.User, quiet)
	}, NodeTimeout(specTimeout))

	It("of the user is not changed and outlives the MLflow", func(ctx SpecContext) {
		foreign := certificate()
		foreign.StringData = map[string]string{"tls.crt": "one", "tls.key": "two"}
		create(ctx, foreign)
		m := createReady(ctx, server())
		env.ExpectIdle(manager.User, quiet)
		remove(ctx, m)
		now := certificate()
		env.Get(ctx, now)
		Expect(now.UID).To(Equal(foreign.UID))
		Expect(now.ResourceVersion).To(Equal(foreign.ResourceVersion))
	}, NodeTimeout(specTimeout))

	It("is not issued if the user provides it", func(ctx SpecContext) {
		createReady(ctx, server(func(s *mlflowv1.MLflowSpec) { s.TLS = &mlflowv1.TLSConfig{Mode: mlflowv1.TLSProvided} }))
		err := env.Admin.Get(ctx, client.ObjectKeyFromObject(certificate()), certificate())
		Expect(client.IgnoreNotFound(err)).To(Succeed())
		Expect(err).To(HaveOccurred())
		env.ExpectIdle(manager.User, quiet)
	}, NodeTimeout(specTimeout))
})

var _ = Describe("The accounts of a server", func() {
	It("have the annotations of the spec, foreign ones are used unchanged, and obsolete managed ones are deleted [D36]", func(ctx SpecContext) {
		foreign := account("team-identity")
		foreign.Annotations = map[string]string{"example.com/role": "theirs"}
		create(ctx, foreign)
		annotated := func(s *mlflowv1.MLflowSpec) {
			s.ServiceAccountAnnotations = map[string]string{"example.com/role": "ours"}
			s.GarbageCollection = &mlflowv1.GarbageCollectionConfig{Schedule: "@daily"}
		}
		m := createReady(ctx, server(annotated))
		for _, name := range []string{"mlflow-sa", "mlflow-gc-sa"} {
			a := account(name)
			env.Get(ctx, a)
			Expect(a.Annotations).To(HaveKeyWithValue("example.com/role", "ours"), name)
		}

		By("naming another ServiceAccount")
		env.Patch(ctx, m, map[string]any{"spec": map[string]any{"serviceAccountName": "team-identity"}})
		env.WaitDeleted(ctx, account("mlflow-sa"))
		env.WaitIdle(manager.User, quiet, specTimeout)
		a := account("team-identity")
		env.Get(ctx, a)
		Expect(a.ResourceVersion).To(Equal(foreign.ResourceVersion))

		By("generating the ServiceAccount again")
		env.Patch(ctx, m, map[string]any{"spec": map[string]any{"serviceAccountName": "mlflow-sa"}})
		Eventually(func() error {
			return env.Admin.Get(ctx, client.ObjectKeyFromObject(account("mlflow-sa")), account("mlflow-sa"))
		}).
			WithContext(ctx).WithTimeout(specTimeout).Should(Succeed())
		remove(ctx, m)
		env.Get(ctx, a)
		Expect(a.ResourceVersion).To(Equal(foreign.ResourceVersion))
		Expect(a.DeletionTimestamp).To(BeNil())
	}, NodeTimeout(specTimeout))
})

var _ = Describe("The external URL", func() {
	// answer writes the status of the HTTPRoute, like a gateway.
	respond := func(ctx context.Context, accepted metav1.ConditionStatus, reason string) {
		GinkgoHelper()
		r := route()
		env.Get(ctx, r)
		env.Patch(ctx, r, map[string]any{"status": map[string]any{"parents": []any{map[string]any{
			"parentRef":      map[string]any{"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": "openshift-ingress", "name": "data-science-gateway"},
			"controllerName": "example.com/gateway",
			"conditions": []any{map[string]any{
				"type": "Accepted", "status": string(accepted), "reason": reason, "message": "no listener takes it",
				"observedGeneration": r.GetGeneration(), "lastTransitionTime": "2026-01-01T00:00:00Z",
			}},
		}}}}, "status")
	}

	It("is removed while the Gateway rejects the route, and other status updates of the Gateway cause no request [D30]", func(ctx SpecContext) {
		m := createReady(ctx, server())
		Expect(m.Status.URL).To(Equal("https://gateway.example.com/mlflow"))

		By("accepting the route for the first time")
		start := env.AuditPosition()
		respond(ctx, metav1.ConditionTrue, "Accepted")
		env.ExpectIdle(manager.User, quiet)
		Expect(env.Since(start).ByUser(manager.User).Reads()).To(BeEmpty())

		By("rejecting the route")
		respond(ctx, metav1.ConditionFalse, "NotAllowedByListeners")
		env.WaitForCondition(ctx, m, "RouteAccepted", metav1.ConditionFalse, "NotAllowedByListeners")
		env.Get(ctx, m)
		Expect(m.Status.URL).To(BeEmpty())
		Expect(m.Status.Address.URL).NotTo(BeEmpty())
		for _, c := range m.Status.Conditions {
			if c.Type == "Available" {
				Expect(c.Status).To(Equal(metav1.ConditionTrue), "the server itself answers")
			}
		}
		env.WaitIdle(manager.User, quiet, specTimeout) // Events are sent later
		env.ExpectIdle(manager.User, quiet)

		By("accepting the route")
		respond(ctx, metav1.ConditionTrue, "Accepted")
		env.WaitFor(ctx, m, func(g Gomega) {
			g.Expect(m.Status.URL).To(Equal("https://gateway.example.com/mlflow"))
			for _, c := range m.Status.Conditions {
				g.Expect(c.Type).NotTo(Equal("RouteAccepted"))
			}
		})
	}, NodeTimeout(specTimeout))
})

var _ = Describe("A password in the spec", func() {
	It("causes a warning without the password until it is removed [D28]", func(ctx SpecContext) {
		m := createReady(ctx, server(func(s *mlflowv1.MLflowSpec) { s.BackendStoreURI = "postgresql://tracker:hidden@db/x" }))
		env.WaitForCondition(ctx, m, "CredentialsInSpec", metav1.ConditionTrue, "PasswordInURI")
		for _, c := range m.Status.Conditions {
			Expect(c.Message).NotTo(ContainSubstring("hidden"))
		}
		env.Patch(ctx, m, map[string]any{"spec": map[string]any{"backendStoreUri": "postgresql://tracker@db/x"}})
		env.WaitFor(ctx, m, func(g Gomega) {
			for _, c := range m.Status.Conditions {
				g.Expect(c.Type).NotTo(Equal("CredentialsInSpec"))
			}
		})
	}, NodeTimeout(specTimeout))
})

var _ = Describe("A child object of an MLflow", func() {
	It("gets its owner reference back after its removal, which on OpenShift requires the permission to delete", func(ctx SpecContext) {
		m := createReady(ctx, server())
		parts := []client.Object{
			deployment(), &corev1.Service{ObjectMeta: object("mlflow")}, account("mlflow-sa"),
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "mlflow"}}, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "mlflow"}},
		}
		policies := &networkingv1.NetworkPolicyList{}
		Expect(env.Admin.List(ctx, policies, client.InNamespace(namespace), client.MatchingLabels{"platform.opendatahub.io/component": "mlflow"})).To(Succeed())
		Expect(policies.Items).NotTo(BeEmpty())
		for i := range policies.Items {
			parts = append(parts, &policies.Items[i])
		}
		owned := func(g Gomega, part client.Object) {
			g.Expect(part.GetOwnerReferences()).To(ContainElement(HaveField("UID", m.UID)), "%T %s", part, part.GetName())
		}
		start := env.AuditPosition()
		for _, part := range parts {
			env.Get(ctx, part)
			owned(Default, part)
			env.Patch(ctx, part, map[string]any{"metadata": map[string]any{"ownerReferences": nil}})
			env.WaitFor(ctx, part, func(g Gomega) { owned(g, part) })
		}
		Expect(env.Since(start).ByUser(manager.User).Refused()).To(BeEmpty())
	}, SpecTimeout(specTimeout))
})
