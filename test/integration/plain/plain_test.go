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

func objectMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func certificateSecret() *corev1.Secret { return &corev1.Secret{ObjectMeta: objectMeta("mlflow-tls")} }

func mlflowDeployment() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: objectMeta("mlflow")}
}

func serviceAccountOf(name string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: objectMeta(name)}
}

func httpRoute() *unstructured.Unstructured {
	return framework.Unstructured(capability.HTTPRoute, namespace, "mlflow")
}

func newMLflow(changes ...func(*mlflowv1.MLflowSpec)) *mlflowv1.MLflow {
	mlflow := &mlflowv1.MLflow{ObjectMeta: metav1.ObjectMeta{Name: mlflowv1.SingletonName}}
	mlflow.Spec.BackendStoreURI = "postgresql://tracker@db/x"
	mlflow.Spec.DefaultArtifactRoot = "s3://bucket"
	for _, change := range changes {
		change(&mlflow.Spec)
	}
	return mlflow
}

// create creates an object, and deletes it with its dependents after the spec.
func create(ctx context.Context, o client.Object) {
	GinkgoHelper()
	Expect(env.Admin.Create(ctx, o)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { deleteAndWait(ctx, o) }, NodeTimeout(specTimeout))
}

func deleteAndWait(ctx context.Context, o client.Object) {
	GinkgoHelper()
	Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationForeground)))).To(Succeed())
	env.WaitDeleted(ctx, o)
}

// createReady creates an MLflow, and waits until it is available and the manager is idle.
func createReady(ctx context.Context, mlflow *mlflowv1.MLflow) *mlflowv1.MLflow {
	GinkgoHelper()
	create(ctx, mlflow)
	env.WaitForCondition(ctx, mlflow, "Available", metav1.ConditionTrue, "DeploymentReady")
	env.WaitIdle(manager.User, idlePeriod, specTimeout)
	env.Get(ctx, mlflow)
	return mlflow
}

func getPodTemplate(ctx context.Context) string {
	GinkgoHelper()
	d := mlflowDeployment()
	env.Get(ctx, d)
	return d.Spec.Template.String()
}

// expectValid checks the certificate in a Secret: the CA in the Secret signed it for all names of the Service and for localhost.
func expectValid(secret *corev1.Secret) {
	GinkgoHelper()
	pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
	Expect(err).NotTo(HaveOccurred())
	key, isECDSA := pair.PrivateKey.(*ecdsa.PrivateKey)
	Expect(isECDSA).To(BeTrue())
	Expect(key.Curve).To(Equal(elliptic.P256()))
	roots := x509.NewCertPool()
	Expect(roots.AppendCertsFromPEM(secret.Data["ca.crt"])).To(BeTrue())
	for _, name := range []string{"mlflow", "mlflow.opendatahub", "mlflow.opendatahub.svc", "mlflow.opendatahub.svc.cluster.local", "localhost"} {
		_, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots})
		Expect(err).NotTo(HaveOccurred(), name)
	}
}

var _ = Describe("The serving certificate without OpenShift", func() {
	It("is issued, causes no write in the steady state or after a restart, and is deleted with its MLflow", func(ctx SpecContext) {
		start := env.AuditPosition()
		mlflow := createReady(ctx, newMLflow())
		secret := certificateSecret()
		env.Get(ctx, secret)
		Expect(secret.Type).To(Equal(corev1.SecretTypeTLS))
		Expect(metav1.IsControlledBy(secret, mlflow)).To(BeTrue())
		expectValid(secret)
		Expect(env.Since(start).ByUser(manager.User).Forbidden()).To(BeEmpty())
		env.ExpectIdle(manager.User, idlePeriod)
		originalTemplate := getPodTemplate(ctx)

		By("adding a label of another client")
		env.SetLabel(ctx, secret, "touched", "yes")
		env.ExpectNoWrites(manager.User, idlePeriod)

		By("removing its labels and its owner reference")
		env.Patch(ctx, secret, map[string]any{"metadata": map[string]any{"ownerReferences": nil, "labels": map[string]any{names.OperatorLabel: nil, names.ComponentLabel: nil}}})
		Eventually(func(g Gomega) {
			live := certificateSecret()
			g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(live), live)).To(Succeed())
			g.Expect(metav1.IsControlledBy(live, mlflow)).To(BeTrue())
			g.Expect(live.Labels).To(HaveKeyWithValue(names.ComponentLabel, "mlflow"))
			g.Expect(live.Data).To(Equal(secret.Data))
		}).WithContext(ctx).WithTimeout(specTimeout).Should(Succeed())
		env.WaitIdle(manager.User, idlePeriod, specTimeout)

		By("restarting the manager")
		start = env.AuditPosition()
		manager.Restart(ctx)
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		requests := env.Since(start).ByUser(manager.User).WithoutLeases().WithoutReviews().WithoutDiscovery()
		Expect(requests.Writes()).To(BeEmpty(), "writes after a restart:\n%s", requests.Writes())
		Expect(getPodTemplate(ctx)).To(Equal(originalTemplate))

		deleteAndWait(ctx, mlflow)
		env.WaitDeleted(ctx, secret)
	}, NodeTimeout(specTimeout))

	It("is renewed when it is due, and the pods load it", func(ctx SpecContext) {
		createReady(ctx, newMLflow())
		secret := certificateSecret()
		env.Get(ctx, secret)
		originalTemplate := getPodTemplate(ctx)

		By("replacing it with a certificate that expires soon")
		expiring, err := certs.EnsureServing(nil, certs.ServingOptions{
			CACommonName: "odh-platform-operator-mlflow-ca", DNSNames: []string{"mlflow", "mlflow.opendatahub", "mlflow.opendatahub.svc", "mlflow.opendatahub.svc.cluster.local", "localhost"},
			Lifetime: time.Hour,
		}, time.Now().Add(-55*time.Minute))
		Expect(err).NotTo(HaveOccurred())
		data := map[string]any{}
		for k, v := range expiring.Data {
			data[k] = v
		}
		env.Patch(ctx, secret, map[string]any{"data": data})
		env.WaitFor(ctx, secret, func(g Gomega) { g.Expect(secret.Data["tls.crt"]).NotTo(Equal(expiring.Data["tls.crt"])) })
		expectValid(secret)
		Expect(bytes.Contains(secret.Data["ca.crt"], expiring.Data["ca.crt"])).To(BeTrue(), "clients still trust pods with the old certificate")
		Eventually(getPodTemplate).WithContext(ctx).WithArguments(ctx).WithTimeout(specTimeout).ShouldNot(Equal(originalTemplate))
		env.WaitIdle(manager.User, idlePeriod, specTimeout)

		By("deleting it")
		Expect(env.Admin.Delete(ctx, certificateSecret())).To(Succeed())
		env.WaitExists(ctx, secret)
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		env.ExpectIdle(manager.User, idlePeriod)
	}, NodeTimeout(specTimeout))

	It("of an artifact server is issued separately, and deleted with that server [mlflow-94]", func(ctx SpecContext) {
		start := env.AuditPosition()
		mlflow := createReady(ctx, newMLflow(func(s *mlflowv1.MLflowSpec) {
			s.DefaultArtifactRoot, s.ArtifactsDestination = "", "s3://bucket"
			s.ArtifactsServer = &mlflowv1.ArtifactsServerConfig{Enabled: true}
		}))
		artifactsSecret := &corev1.Secret{ObjectMeta: objectMeta("mlflow-artifacts-tls")}
		env.Get(ctx, artifactsSecret)
		Expect(metav1.IsControlledBy(artifactsSecret, mlflow)).To(BeTrue())
		pair, err := tls.X509KeyPair(artifactsSecret.Data["tls.crt"], artifactsSecret.Data["tls.key"])
		Expect(err).NotTo(HaveOccurred())
		Expect(pair.Leaf.VerifyHostname("mlflow-artifacts.opendatahub.svc")).To(Succeed())
		env.ExpectIdle(manager.User, idlePeriod)

		By("disabling the artifact server")
		env.Patch(ctx, mlflow, map[string]any{"spec": map[string]any{"defaultArtifactRoot": "s3://bucket", "artifactsServer": nil}})
		env.WaitDeleted(ctx, artifactsSecret, &appsv1.Deployment{ObjectMeta: objectMeta("mlflow-artifacts")})
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		env.Get(ctx, certificateSecret())
		Expect(env.Since(start).ByUser(manager.User).Forbidden()).To(BeEmpty())
		env.ExpectIdle(manager.User, idlePeriod)
	}, NodeTimeout(specTimeout))

	It("of the user is not changed and outlives the MLflow", func(ctx SpecContext) {
		foreign := certificateSecret()
		foreign.StringData = map[string]string{"tls.crt": "one", "tls.key": "two"}
		create(ctx, foreign)
		mlflow := createReady(ctx, newMLflow())
		env.ExpectIdle(manager.User, idlePeriod)
		deleteAndWait(ctx, mlflow)
		live := certificateSecret()
		env.Get(ctx, live)
		Expect(live.UID).To(Equal(foreign.UID))
		Expect(live.ResourceVersion).To(Equal(foreign.ResourceVersion))
	}, NodeTimeout(specTimeout))

	It("is not issued if the user provides it", func(ctx SpecContext) {
		createReady(ctx, newMLflow(func(s *mlflowv1.MLflowSpec) { s.TLS = &mlflowv1.TLSConfig{Mode: mlflowv1.TLSProvided} }))
		err := env.Admin.Get(ctx, client.ObjectKeyFromObject(certificateSecret()), certificateSecret())
		Expect(client.IgnoreNotFound(err)).To(Succeed())
		Expect(err).To(HaveOccurred())
		env.ExpectIdle(manager.User, idlePeriod)
	}, NodeTimeout(specTimeout))
})

var _ = Describe("The ServiceAccounts of a server", func() {
	It("have the annotations of the spec, are not changed if they are foreign, and are deleted when they are obsolete [D36]", func(ctx SpecContext) {
		foreign := serviceAccountOf("team-identity")
		foreign.Annotations = map[string]string{"example.com/role": "theirs"}
		create(ctx, foreign)
		withAnnotations := func(s *mlflowv1.MLflowSpec) {
			s.ServiceAccountAnnotations = map[string]string{"example.com/role": "ours"}
			s.GarbageCollection = &mlflowv1.GarbageCollectionConfig{Schedule: "@daily"}
		}
		mlflow := createReady(ctx, newMLflow(withAnnotations))
		for _, name := range []string{"mlflow-sa", "mlflow-gc-sa"} {
			serviceAccount := serviceAccountOf(name)
			env.Get(ctx, serviceAccount)
			Expect(serviceAccount.Annotations).To(HaveKeyWithValue("example.com/role", "ours"), name)
		}

		By("using another ServiceAccount")
		env.Patch(ctx, mlflow, map[string]any{"spec": map[string]any{"serviceAccountName": "team-identity"}})
		env.WaitDeleted(ctx, serviceAccountOf("mlflow-sa"))
		env.WaitIdle(manager.User, idlePeriod, specTimeout)
		serviceAccount := serviceAccountOf("team-identity")
		env.Get(ctx, serviceAccount)
		Expect(serviceAccount.ResourceVersion).To(Equal(foreign.ResourceVersion))

		By("generating the ServiceAccount again")
		env.Patch(ctx, mlflow, map[string]any{"spec": map[string]any{"serviceAccountName": "mlflow-sa"}})
		Eventually(func() error {
			return env.Admin.Get(ctx, client.ObjectKeyFromObject(serviceAccountOf("mlflow-sa")), serviceAccountOf("mlflow-sa"))
		}).
			WithContext(ctx).WithTimeout(specTimeout).Should(Succeed())
		deleteAndWait(ctx, mlflow)
		env.Get(ctx, serviceAccount)
		Expect(serviceAccount.ResourceVersion).To(Equal(foreign.ResourceVersion))
		Expect(serviceAccount.DeletionTimestamp).To(BeNil())
	}, NodeTimeout(specTimeout))
})

var _ = Describe("The external URL", func() {
	// setRouteStatus sets the status of the HTTPRoute, as a Gateway controller does.
	setRouteStatus := func(ctx context.Context, accepted metav1.ConditionStatus, reason string) {
		GinkgoHelper()
		r := httpRoute()
		env.Get(ctx, r)
		env.Patch(ctx, r, map[string]any{"status": map[string]any{"parents": []any{map[string]any{
			"parentRef":      map[string]any{"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": "openshift-ingress", "name": "data-science-gateway"},
			"controllerName": "example.com/gateway",
			"conditions": []any{map[string]any{
				"type": "Accepted", "status": string(accepted), "reason": reason, "message": "no listener accepts it",
				"observedGeneration": r.GetGeneration(), "lastTransitionTime": "2026-01-01T00:00:00Z",
			}},
		}}}}, "status")
	}

	It("is removed while the Gateway rejects the route, and other status updates of the Gateway cause no request [D30]", func(ctx SpecContext) {
		mlflow := createReady(ctx, newMLflow())
		Expect(mlflow.Status.URL).To(Equal("https://gateway.example.com/mlflow"))

		By("accepting the route for the first time")
		start := env.AuditPosition()
		setRouteStatus(ctx, metav1.ConditionTrue, "Accepted")
		env.ExpectIdle(manager.User, idlePeriod)
		Expect(env.Since(start).ByUser(manager.User).Reads()).To(BeEmpty())

		By("rejecting the route")
		setRouteStatus(ctx, metav1.ConditionFalse, "NotAllowedByListeners")
		env.WaitForCondition(ctx, mlflow, "RouteAccepted", metav1.ConditionFalse, "NotAllowedByListeners")
		env.Get(ctx, mlflow)
		Expect(mlflow.Status.URL).To(BeEmpty())
		Expect(mlflow.Status.Address.URL).NotTo(BeEmpty())
		Expect(mlflow.Status.Conditions).To(ContainElement(And(HaveField("Type", "Available"), HaveField("Status", metav1.ConditionTrue))), "the server is still available")
		env.WaitIdle(manager.User, idlePeriod, specTimeout) // Events are sent with a delay
		env.ExpectIdle(manager.User, idlePeriod)

		By("accepting the route")
		setRouteStatus(ctx, metav1.ConditionTrue, "Accepted")
		env.WaitFor(ctx, mlflow, func(g Gomega) {
			g.Expect(mlflow.Status.URL).To(Equal("https://gateway.example.com/mlflow"))
			for _, c := range mlflow.Status.Conditions {
				g.Expect(c.Type).NotTo(Equal("RouteAccepted"))
			}
		})
	}, NodeTimeout(specTimeout))
})

var _ = Describe("A password in the spec", func() {
	It("is reported in a condition without its value, until it is removed [D28]", func(ctx SpecContext) {
		mlflow := createReady(ctx, newMLflow(func(s *mlflowv1.MLflowSpec) { s.BackendStoreURI = "postgresql://tracker:hidden@db/x" }))
		env.WaitForCondition(ctx, mlflow, "CredentialsInSpec", metav1.ConditionTrue, "PasswordInURI")
		for _, c := range mlflow.Status.Conditions {
			Expect(c.Message).NotTo(ContainSubstring("hidden"))
		}
		env.Patch(ctx, mlflow, map[string]any{"spec": map[string]any{"backendStoreUri": "postgresql://tracker@db/x"}})
		env.WaitFor(ctx, mlflow, func(g Gomega) {
			for _, c := range mlflow.Status.Conditions {
				g.Expect(c.Type).NotTo(Equal("CredentialsInSpec"))
			}
		})
	}, NodeTimeout(specTimeout))
})

var _ = Describe("A child object of an MLflow", func() {
	It("gets its owner reference back after a client removes it, which on OpenShift requires the permission to delete the object", func(ctx SpecContext) {
		mlflow := createReady(ctx, newMLflow())
		children := []client.Object{
			mlflowDeployment(), &corev1.Service{ObjectMeta: objectMeta("mlflow")}, serviceAccountOf("mlflow-sa"),
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "mlflow"}}, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "mlflow"}},
		}
		policies := &networkingv1.NetworkPolicyList{}
		Expect(env.Admin.List(ctx, policies, client.InNamespace(namespace), client.MatchingLabels{"platform.opendatahub.io/component": "mlflow"})).To(Succeed())
		Expect(policies.Items).NotTo(BeEmpty())
		for i := range policies.Items {
			children = append(children, &policies.Items[i])
		}
		expectOwned := func(g Gomega, child client.Object) {
			g.Expect(child.GetOwnerReferences()).To(ContainElement(HaveField("UID", mlflow.UID)), "%T %s", child, child.GetName())
		}
		start := env.AuditPosition()
		for _, child := range children {
			env.Get(ctx, child)
			expectOwned(Default, child)
			env.Patch(ctx, child, map[string]any{"metadata": map[string]any{"ownerReferences": nil}})
			env.WaitFor(ctx, child, func(g Gomega) { expectOwned(g, child) })
		}
		Expect(env.Since(start).ByUser(manager.User).Forbidden()).To(BeEmpty())
	}, SpecTimeout(specTimeout))
})
