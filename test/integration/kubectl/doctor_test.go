package kubectl_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// finding is an entry in the JSON output of doctor.
type finding struct{ Check, Result, Subject, Found, Why, Fix string }

// runDoctor runs doctor and returns its exit code and findings.
func runDoctor(ctx context.Context, as user) (int, []finding) {
	GinkgoHelper()
	got := odh(ctx, as, "doctor", "-o", "json")
	Expect(got.stderr).To(BeEmpty())
	var report struct{ Findings []finding }
	Expect(json.Unmarshal([]byte(got.stdout), &report)).To(Succeed(), got.stdout)
	return got.code, report.Findings
}

// findingsAbout returns the findings of a check whose subject contains the text.
func findingsAbout(findings []finding, check, subject string) []finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f finding) bool { return f.Check != check || !strings.Contains(f.Subject, subject) })
}

// findingAbout returns the single finding of a check about a subject.
func findingAbout(findings []finding, check, subject string) finding {
	GinkgoHelper()
	found := findingsAbout(findings, check, subject)
	Expect(found).To(HaveLen(1), "%s about %s: %+v", check, subject, findings)
	return found[0]
}

func administrator() user { return user{kubeconfig: env.Instance.Kubeconfig()} }

var _ = Describe("doctor", func() {
	It("finds no problem in a new installation", func(ctx SpecContext) {
		code, found := runDoctor(ctx, administrator())
		Expect(code).To(BeZero())
		for _, f := range found {
			Expect(f.Result).NotTo(Or(Equal("fail"), Equal("unknown")), "%+v", f)
		}
		for _, check := range []string{"rights", "crds", "certificate"} {
			Expect(findingsAbout(found, check, "")).To(HaveEach(HaveField("Result", "ok")), check)
		}
	}, SpecTimeout(specTimeout))

	It("reports the missing permission if the role view is insufficient", func(ctx SpecContext) {
		_, found := runDoctor(ctx, viewer)
		Expect(findingAbout(found, "certificate", "").Found).To(Equal("not allowed to get secrets/odh-platform-operator-webhook-cert in namespace opendatahub"))
		Expect(findingsAbout(found, "rights", "")).To(HaveEach(HaveField("Result", "unknown")))
	}, SpecTimeout(specTimeout))

	It("finds a legacy operator that is still running", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "legacy")
		labels := map[string]string{"app": "legacy"}
		legacy := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "codeflare-operator-manager"}, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "quay.io/example/old:v1"}}}},
		}}
		Expect(env.Admin.Create(ctx, legacy)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(env.Admin.Delete(ctx, legacy)).To(Succeed()) })
		code, found := runDoctor(ctx, administrator())
		Expect(code).To(Equal(1))
		f := findingAbout(found, "legacy", "Deployment "+namespace+"/codeflare-operator-manager")
		Expect(f.Result).To(Equal("fail"))
		Expect(f.Fix).To(ContainSubstring("kubectl -n " + namespace + " scale deployment codeflare-operator-manager --replicas=0"))
	}, SpecTimeout(specTimeout))

	It("finds a permission that was revoked", func(ctx SpecContext) {
		// The suite has no RayCluster, so the manager does not need the permission.
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "odh-platform-operator-raycluster"}}
		env.Get(ctx, role)
		original := role.DeepCopy()
		role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "rayclusters/finalizers") })
		Expect(len(role.Rules)).To(BeNumerically("<", len(original.Rules)))
		Expect(env.Admin.Update(ctx, role)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			original.ResourceVersion = ""
			Expect(env.Admin.Update(ctx, original)).To(Succeed())
		})
		_, found := runDoctor(ctx, administrator())
		f := findingAbout(found, "rights", "role odh-platform-operator-raycluster")
		Expect(f.Result).To(Equal("fail"))
		Expect(f.Found).To(ContainSubstring("cannot update rayclusters.ray.io/finalizers"))
	}, SpecTimeout(specTimeout))

	It("finds a CRD of another release", func(ctx SpecContext) {
		crd := &unstructured.Unstructured{}
		crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		crd.SetName("mlflowconfigs.mlflow.kubeflow.org")
		env.Get(ctx, crd)
		setDescription := func(ctx context.Context, text string) string {
			versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
			Expect(err).NotTo(HaveOccurred())
			original, _, err := unstructured.NestedString(versions[0].(map[string]any), "schema", "openAPIV3Schema", "description")
			Expect(err).NotTo(HaveOccurred())
			Expect(unstructured.SetNestedField(versions[0].(map[string]any), text, "schema", "openAPIV3Schema", "description")).To(Succeed())
			Expect(unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions")).To(Succeed())
			Expect(env.Admin.Patch(ctx, crd, client.RawPatch("application/merge-patch+json", mustJSON(map[string]any{"spec": map[string]any{"versions": versions}})))).To(Succeed())
			return original
		}
		original := setDescription(ctx, "Another release.")
		DeferCleanup(func(ctx SpecContext) { setDescription(ctx, original) })
		_, found := runDoctor(ctx, administrator())
		f := findingAbout(found, "crds", "CRD mlflowconfigs.mlflow.kubeflow.org")
		Expect(f.Result).To(Equal("warn"))
		Expect(f.Found).To(ContainSubstring("differs from the CRD of this release"))
	}, SpecTimeout(specTimeout))

	It("finds webhooks without a Service or with another CA", func(ctx SpecContext) {
		ignore, none := admissionregistrationv1.Ignore, admissionregistrationv1.SideEffectClassNone
		hook := func(name, service string) admissionregistrationv1.ValidatingWebhook {
			return admissionregistrationv1.ValidatingWebhook{
				Name: name + ".example.com", AdmissionReviewVersions: []string{"v1"}, FailurePolicy: &ignore, SideEffects: &none,
				ClientConfig: admissionregistrationv1.WebhookClientConfig{
					CABundle: env.Config.CAData, Service: &admissionregistrationv1.ServiceReference{Namespace: managerNamespace, Name: service},
				},
				// The resource does not exist, so the webhook is never called.
				Rules: []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{"CREATE"},
					Rule: admissionregistrationv1.Rule{APIGroups: []string{"mlflow.opendatahub.io"}, APIVersions: []string{"v1"}, Resources: []string{"nothing"}}}},
			}
		}
		leftBehind := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "left-behind"},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{hook("no-service", "missing"), hook("other-ca", "odh-platform-operator-webhook")}}
		Expect(env.Admin.Create(ctx, leftBehind)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(env.Admin.Delete(ctx, leftBehind)).To(Succeed()) })
		_, found := runDoctor(ctx, administrator())
		Expect(findingAbout(found, "webhooks", "no-service.example.com").Found).To(ContainSubstring("calls Service opendatahub/missing, which does not exist"))
		Expect(findingAbout(found, "webhooks", "other-ca.example.com").Found).To(ContainSubstring("does not verify the certificate of the manager"))
	}, SpecTimeout(specTimeout))
})

func mustJSON(value any) []byte {
	GinkgoHelper()
	raw, err := json.Marshal(value)
	Expect(err).NotTo(HaveOccurred())
	return raw
}
