package install_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const controllers = "../../../controllers/"

var _ = Describe("The page about the upgrade", func() {
	It("from mlflow-operator has commands that work", func(ctx SpecContext) {
		o := prepareLegacyCluster(ctx, "odh")
		minimal := framework.Recording("../takeover/testdata/minimal.yaml", // with the values of params.env of both operators
			"quay.io/example/mlflow:v3", "quay.io/opendatahub/mlflow:odh-stable",
			"https://mlflow.example.com", "https://www.gateway-hostname-placeholder-with-mlflow-path.com")
		minimal[0].Object["status"] = map[string]any{"version": "3.14.0", "conditions": []any{
			condition("Available", "DeploymentReady"), condition("Migration", "MigrationSucceeded"),
		}}
		server := o.createOwner(ctx, minimal[0])
		children := append(framework.Recording("../takeover/testdata/common.yaml"), minimal[1:]...)
		for _, child := range children {
			reference := *metav1.NewControllerRef(server, server.GroupVersionKind())
			if child.GetNamespace() == "" {
				reference.Controller, reference.BlockOwnerDeletion = nil, nil
			}
			child.SetOwnerReferences([]metav1.OwnerReference{reference})
		}
		o.createLegacyChildren(ctx, server, children...)
		o.createOperator(ctx, "mlflow-operator.yaml")

		r := o.runPage(ctx, "mlflow-operator.md")

		Expect(os.ReadFile(r.Saved["mlflow-before.yaml"])).To(ContainSubstring("sqlite:////mlflow/mlflow.db"))
		o.waitAdopted(ctx, "mlflow", "Deployment mlflow", "spec", "selector")
		o.waitAdopted(ctx, "mlflow", "Service mlflow", "spec", "clusterIP")
		for _, name := range []string{"ServiceAccount mlflow-sa", "NetworkPolicy mlflow", "HTTPRoute mlflow", "ClusterRole mlflow", "ClusterRoleBinding mlflow"} {
			o.waitAdopted(ctx, "mlflow", name)
		}
		o.waitAdopted(ctx, "mlflow", "PersistentVolumeClaim mlflow-pvc", "spec")
		Expect(o.getPreserved(ctx, "PersistentVolumeClaim mlflow-pvc").GetOwnerReferences()).To(BeEmpty())
		env.WaitForCondition(ctx, &mlflowv1.MLflow{ObjectMeta: metav1.ObjectMeta{Name: server.GetName()}}, "Available", metav1.ConditionTrue, "DeploymentReady")
		o.waitOperatorDeleted(ctx, "mlflow-operator.yaml", "ClusterRole mlflow-operator-mlflow-view") // belongs to this operator now

		By("deleting the server, which leaves its data")
		Expect(env.Admin.Delete(ctx, server)).To(Succeed())
		env.WaitDeleted(ctx, o.originals["Deployment mlflow"])
		o.getPreserved(ctx, "PersistentVolumeClaim mlflow-pvc")
	}, SpecTimeout(specTimeout))

	It("from model-registry-operator has commands that work", func(ctx SpecContext) {
		o := prepareLegacyCluster(ctx, "odh")
		recorded := framework.Recording(controllers+"modelregistry/resources/testdata/recordings/generated-database-plain.yaml",
			"lab-registries", env.Namespace(ctx, "registries"), "auto-db", "team-a",
			"quay.io/example/model-registry:v1", "quay.io/opendatahub/model-registry:v0.3.14",
			"quay.io/example/postgresql:16", "quay.io/sclorg/postgresql-16-c10s:20260610")
		registry := o.createOwner(ctx, recorded[0])
		o.createLegacyChildren(ctx, registry, recorded[1:]...)
		o.createOperator(ctx, "model-registry-operator.yaml")

		o.afterDeploy = func(ctx context.Context) { // like the router and the service CA
			Expect(env.Admin.Create(ctx, object("v1", "Secret", registry.GetNamespace(), "team-a-kube-rbac-proxy", map[string]any{
				"type": "kubernetes.io/tls", "stringData": map[string]any{"tls.crt": "certificate", "tls.key": "key"},
			}))).To(Succeed())
			route := object("route.openshift.io/v1", "Route", registry.GetNamespace(), "team-a-https", nil)
			env.WaitFor(ctx, route, nil)
			env.Patch(ctx, route, map[string]any{"status": map[string]any{"ingress": []any{map[string]any{
				"host": "h", "routerName": "default", "conditions": []any{map[string]any{"type": "Admitted", "status": "True"}},
			}}}}, "status")
		}

		r := o.runPage(ctx, "model-registry-operator.md")

		Expect(os.ReadFile(r.Saved["registries-before.yaml"])).To(ContainSubstring("name: team-a"))
		Eventually(func() string { return yamlOf(o.getPreserved(ctx, "Deployment team-a"), "spec", "template") }).WithContext(ctx).
			Should(ContainSubstring("kube-rbac-proxy"), "the registry must get a proxy")
		for name, part := range map[string][]string{
			"Deployment team-a":                             {"spec", "selector"},
			"Deployment team-a-postgres":                    {"spec", "template", "spec", "volumes"},
			"Service team-a":                                {"spec", "clusterIP"},
			"Service team-a-postgres":                       {"spec"},
			"PersistentVolumeClaim team-a-postgres-storage": {"spec"},
			"Secret team-a-postgres-credentials":            {"data"},
		} {
			o.waitAdopted(ctx, "modelregistry", name, part...)
		}
		o.waitOperatorDeleted(ctx, "model-registry-operator.yaml", "ServiceAccount model-registry-operator-controller-manager",
			"ServiceAccount catalog-controller-manager", "ServiceAccount aihub-controller-manager", // their bindings are deleted
			"MutatingWebhookConfiguration model-registry-operator-mutating-webhook-configuration",
			"ValidatingWebhookConfiguration model-registry-operator-validating-webhook-configuration")

		By("deleting the registry, which leaves its data")
		Expect(env.Admin.Delete(ctx, registry)).To(Succeed())
		env.WaitDeleted(ctx, o.originals["Deployment team-a"], registry)
		o.getPreserved(ctx, "PersistentVolumeClaim team-a-postgres-storage")
	}, SpecTimeout(specTimeout))

	It("from codeflare-operator has commands that work", func(ctx SpecContext) {
		o := prepareLegacyCluster(ctx, "odh")
		create(ctx, object("v1", "Namespace", "", "team2", nil)) // names in the recording contain the hash of this namespace
		recorded := framework.Recording(controllers + "raycluster/testdata/original/openshift-oauth-mtls.yaml")
		index := slices.IndexFunc(recorded, func(u *unstructured.Unstructured) bool { return u.GetKind() == "RayCluster" })
		cluster := o.createOwner(ctx, recorded[index])
		children := slices.Delete(recorded, index, index+1)
		o.fieldManager = "codeflare-raycluster-controller" // the field manager of the replaced operator
		o.createLegacyChildren(ctx, cluster, children...)
		caSecret := o.originals["Secret board-ca-secret-3b57509c"]
		env.Patch(ctx, caSecret, map[string]any{"data": caData()})
		o.createOperator(ctx, "codeflare-operator.yaml")

		r := o.runPage(ctx, "codeflare-operator.md")

		Expect(os.ReadFile(r.Saved["workloads-before.yaml"])).To(ContainSubstring("name: board"))
		Expect(os.ReadFile(r.Saved["codeflare-operator-config.yaml"])).To(ContainSubstring("mTLSEnabled: true"))
		for _, child := range children {
			part := map[string][]string{"Secret": {"data"}, "Service": {"spec"}, "Route": {"spec"}}[child.GetKind()]
			o.waitAdopted(ctx, "raycluster", child.GetKind()+" "+child.GetName(), part...)
		}
		Expect(yamlOf(o.getPreserved(ctx, "RayCluster board"), "spec")).To(Equal(yamlOf(o.originals["RayCluster board"], "spec")), "no pod must be replaced")
		o.waitOperatorDeleted(ctx, "codeflare-operator.yaml", "ConfigMap codeflare-operator-config",
			"MutatingWebhookConfiguration codeflare-operator-mutating-webhook-configuration",
			"ValidatingWebhookConfiguration codeflare-operator-validating-webhook-configuration")

		By("deleting the RayCluster, which deletes its objects")
		Expect(env.Admin.Delete(ctx, cluster)).To(Succeed())
		env.WaitDeleted(ctx, cluster)
		for _, child := range children {
			env.WaitDeleted(ctx, child)
		}
	}, SpecTimeout(specTimeout))

	It("from the AppWrapper operator has commands that work", func(ctx SpecContext) {
		o := prepareLegacyCluster(ctx, "odh")
		jobs := env.Namespace(ctx, "jobs")
		template := object("v1", "Pod", "", "step", map[string]any{"spec": map[string]any{
			"restartPolicy": "Never", "containers": []any{map[string]any{"name": "step", "image": "registry.example.com/step:1"}},
		}})
		podSets := []any{map[string]any{"path": "template", "replicas": int64(1)}}
		wrapper := o.createOwner(ctx, object("workload.codeflare.dev/v1beta2", "AppWrapper", jobs, "batch-run", map[string]any{
			"metadata": map[string]any{"finalizers": []any{"workload.codeflare.dev/finalizer"}},
			"spec":     map[string]any{"components": []any{map[string]any{"template": template.Object}}},
			"status": map[string]any{
				"phase": "Running", "resettingCount": int64(2),
				"conditions": []any{condition("QuotaReserved", "Resuming"), condition("ResourcesDeployed", "Resuming"), condition("PodsReady", "SufficientPodsReady")},
				"componentStatus": []any{map[string]any{
					"apiVersion": "v1", "kind": "Pod", "name": "step", "podSets": podSets,
					"conditions": []any{condition("ResourcesDeployed", "ComponentCreatedSuccessfully")},
				}},
			},
		}))
		pod := template.DeepCopy()
		pod.SetNamespace(jobs)
		pod.SetLabels(map[string]string{"workload.codeflare.dev/appwrapper": wrapper.GetName()})
		pod.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(wrapper, wrapper.GroupVersionKind())})
		o.createLegacyChildren(ctx, wrapper, pod)
		o.createOperator(ctx, "appwrapper.yaml")

		r := o.runPage(ctx, "appwrapper.md")

		Expect(os.ReadFile(r.Saved["appwrappers-before.yaml"])).To(ContainSubstring("name: batch-run"))
		Expect(mustKubectl(ctx, "-n", namespace, "get", "configmap", "appwrapper-operator-config", "-o", "yaml")).To(ContainSubstring("retryLimit: 5"))
		o.waitOperatorDeleted(ctx, "appwrapper.yaml", "Namespace appwrapper-system", "ConfigMap appwrapper-operator-config", "ClusterRole appwrapper-manager-role",
			"MutatingWebhookConfiguration appwrapper-mutating-webhook-configuration", "ValidatingWebhookConfiguration appwrapper-validating-webhook-configuration")

		By("suspending a running AppWrapper, whose pods the new manager must delete")
		Expect(yamlOf(o.getPreserved(ctx, "AppWrapper batch-run"), "status", "resettingCount")).To(Equal("2\n"))
		o.getPreserved(ctx, "Pod step")
		Eventually(func() error { // the API server may still call the replaced webhooks
			_, err := command(ctx, kubectl, "-n", jobs, "patch", "appwrapper", "batch-run", "--type=merge", "--patch", `{"spec":{"suspend":true}}`)
			return err
		}).WithContext(ctx).Should(Succeed())
		mustKubectl(ctx, "-n", jobs, "wait", "appwrapper/batch-run", "--for=jsonpath={.status.phase}=Suspended", "--timeout=120s")
		env.WaitDeleted(ctx, o.originals["Pod step"])
		Expect(env.Admin.Delete(ctx, wrapper)).To(Succeed())
		env.WaitDeleted(ctx, wrapper)
	}, SpecTimeout(specTimeout))
})

// condition returns a condition as the replaced operators write it.
func condition(conditionType, reason string) map[string]any {
	return map[string]any{"type": conditionType, "status": "True", "reason": reason, "message": "", "lastTransitionTime": "2023-11-14T22:13:20Z"}
}

// object returns an object with additional fields.
func object(apiVersion, kind, namespace, name string, fields map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	for key, value := range fields {
		o.Object[key] = value
	}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// caData returns the Secret data of a cluster CA as the replaced operator stores it.
func caData() map[string][]byte {
	GinkgoHelper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "root-ca"}, NotBefore: time.Now(), NotAfter: time.Now().AddDate(1, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	Expect(err).NotTo(HaveOccurred())
	return map[string][]byte{
		"ca.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		"ca.key": pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
	}
}
