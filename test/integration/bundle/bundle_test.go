package bundle_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

var dryRun = client.DryRunAll

// registry is one with a database of its own.
func registry(name string) *v1beta1.ModelRegistry {
	m := &v1beta1.ModelRegistry{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	m.Spec.Postgres = &v1beta1.PostgresConfig{GenerateDeployment: new(true)}
	return m
}

// unfinished is a registry without a database, which the schema lets pass.
func unfinished(name string) *unstructured.Unstructured {
	return object(v1beta1.GroupVersion.String(), v1beta1.Kind, name, `{"rest": {}}`)
}

// older reads a registry in the version that is not stored.
func older(ctx context.Context, name string) map[string]any {
	GinkgoHelper()
	o := object(v1alpha1.GroupVersion.String(), v1beta1.Kind, name, "null")
	env.Get(ctx, o)
	spec, _ := o.Object["spec"].(map[string]any)
	return spec
}

// object reads one that is written as JSON would be.
func object(apiVersion, kind, name, spec string) *unstructured.Unstructured {
	GinkgoHelper()
	var fields any
	Expect(json.Unmarshal([]byte(spec), &fields)).To(Succeed())
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "spec": fields}}
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

var _ = Describe("an installation by OLM", Ordered, func() {
	It("has the Deployment of the CSV", func(ctx SpecContext) {
		d := lcm.deployment()
		env.WaitFor(ctx, d, func(g Gomega) { g.Expect(d.Status.ReadyReplicas).To(Equal(*d.Spec.Replicas)) })
	}, NodeTimeout(specTimeout))

	It("installs on a cluster without the APIs of monitoring and the console, where the manager creates nothing of these", createsNothing, NodeTimeout(specTimeout))
	It("creates examples as soon as the console's API appears, and repairs them", createsExamples, NodeTimeout(specTimeout))
	It("creates monitors, and leaves a foreign alert alone", createsMonitors, NodeTimeout(specTimeout))

	It("is admitted and refused by the manager, with the certificate of OLM", func(ctx SpecContext) {
		Expect(env.Admin.Create(ctx, unfinished("bad"), dryRun)).To(MatchError(ContainSubstring("modelregistry.opendatahub.io")))
		good := registry("good")
		Expect(env.Admin.Create(ctx, good, dryRun)).To(Succeed())
		Expect(good.Spec.Rest.Port).NotTo(BeNil(), "the mutating webhook fills in defaults")

		Expect(env.Admin.Create(ctx, object("aihub.opendatahub.io/v1alpha1", "Catalog", "other", "{}"), dryRun)).
			To(MatchError(ContainSubstring("catalog resource name must be 'catalog'")))
		Expect(env.Admin.Create(ctx, object("aihub.opendatahub.io/v1alpha1", "Catalog", "catalog", "{}"), dryRun)).To(Succeed())

		Expect(env.Admin.Create(ctx, object("workload.codeflare.dev/v1beta2", "AppWrapper", "empty", `{"components":[]}`), dryRun)).
			To(MatchError(ContainSubstring("vappwrapper")))
		secured := object("ray.io/v1", "RayCluster", "ray", `{"headGroupSpec":{"rayStartParams":{},"template":{"spec":{"containers":[{"name":"head","image":"r/ray:2"}]}}}}`)
		Expect(env.Admin.Create(ctx, secured, dryRun)).To(Succeed())
		Expect(secured.GetAnnotations()).To(HaveKey(raycluster.AnnotationVersion), "the mutating webhook secures it")
	}, NodeTimeout(specTimeout))

	It("calls its webhooks in the order that Kueue relies on", func(ctx SpecContext) {
		all := &admissionregistrationv1.MutatingWebhookConfigurationList{}
		Expect(env.Admin.List(ctx, all)).To(Succeed())
		var before []string
		for _, c := range all.Items {
			if c.Name < "kueue-mutating-webhook-configuration" {
				before = append(before, *c.Webhooks[0].ClientConfig.Service.Path)
			}
		}
		Expect(before).To(ContainElements("/mutate-workload-codeflare-dev-v1beta2-appwrapper", "/mutate-ray-io-v1-raycluster"))
	}, NodeTimeout(specTimeout))

	It("takes every example of the CSV", func(ctx SpecContext) {
		var examples []map[string]any
		Expect(json.Unmarshal([]byte(lcm.csv.Annotations["alm-examples"]), &examples)).To(Succeed())
		Expect(examples).To(HaveLen(len(lcm.csv.Spec.CustomResourceDefinitions.Owned)))
		for _, fields := range examples {
			o := &unstructured.Unstructured{Object: fields}
			o.SetNamespace(namespace)
			Expect(client.WithFieldValidation(env.Admin, "Strict").Create(ctx, o, dryRun)).To(Succeed(), o.GetKind())
		}
	}, NodeTimeout(specTimeout))

	It("converts registries, and runs what the resources describe", func(ctx SpecContext) {
		m := registry("kept")
		Expect(env.Admin.Create(ctx, m)).To(Succeed())
		Expect(older(ctx, m.Name)).To(And(HaveKey("postgres"), HaveKey("grpc")), "grpc is what the conversion adds")
		env.WaitForCondition(ctx, m, "Available", metav1.ConditionTrue, "")

		samples, err := framework.ReadObjects("../../../config/samples/mlflow_minimal.yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(env.Admin.Create(ctx, samples[0])).To(Succeed())
		server := &mlflowv1.MLflow{ObjectMeta: metav1.ObjectMeta{Name: "mlflow"}}
		env.WaitForCondition(ctx, server, "Available", metav1.ConditionTrue, "")
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mlflow"}}
		env.Get(ctx, d)
		image := d.Spec.Template.Spec.Containers[0].Image
		Expect(slices.ContainsFunc(lcm.csv.Spec.RelatedImages, func(i olmv1alpha1.RelatedImage) bool { return i.Image == image })).To(BeTrue(), image)
	}, NodeTimeout(specTimeout))

	It("leaves to OLM what is OLM's", func(ctx SpecContext) {
		for _, e := range env.Since(0).ByUser(manager.User).Writes() {
			Expect(e.Resource).NotTo(HaveSuffix("webhookconfigurations"))
			Expect(e.Resource + e.Subresource).NotTo(Equal("customresourcedefinitions"))
			Expect(e.Name).NotTo(ContainSubstring("webhook-cert"))
		}
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "modelregistries.modelregistry.opendatahub.io"}}
		env.Get(ctx, crd)
		Expect(crd.Spec.Conversion.Webhook.ClientConfig.CABundle).To(Equal(lcm.ca))
		own := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "odh-platform-operator-webhook-cert"}}
		Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(own), own)).To(MatchError(ContainSubstring("not found")))
	}, NodeTimeout(specTimeout))

	It("switches a component off by the Subscription", func(ctx SpecContext) {
		manager.Stop(ctx)
		manager = start(ctx, "subscription", corev1.EnvVar{Name: "ENABLE_MODELREGISTRY", Value: "false"})
		Eventually(func() []metav1.PartialObjectMetadata { return examples(ctx) }).WithContext(ctx).
			Should(And(HaveLen(allExamples-5), Not(ContainElement(HaveField("Name", ContainSubstring("modelregistry"))))))
		Eventually(func() error { return env.Admin.Create(ctx, unfinished("bad"), dryRun) }).WithContext(ctx).Should(Succeed(),
			"no webhook judges registries while the component is off")
		Expect(older(ctx, "kept")).To(HaveKey("grpc"), "conversion stays on: stored objects remain")

		manager.Stop(ctx)
		off := func(component string) corev1.EnvVar {
			return corev1.EnvVar{Name: "ENABLE_" + component, Value: "false"}
		}
		manager = start(ctx, "nothing", off("APPWRAPPER"), off("MLFLOW"), off("MODELCATALOG"), off("MODELMESH"), off("MODELREGISTRY"), off("RAYCLUSTER"))
		Eventually(func() []metav1.PartialObjectMetadata { return examples(ctx) }).WithContext(ctx).Should(BeEmpty())
		env.Get(ctx, serviceMonitor())
	}, NodeTimeout(specTimeout))

	It("leaves CRDs, custom resources and what runs for them when the CSV goes", func(ctx SpecContext) {
		if manager.Process.Running() { // the one of the Subscription ended with its spec
			manager.Stop(ctx)
		}
		lcm.uninstall(ctx)
		Expect(leftOver(ctx)).To(BeEmpty())
		env.WaitGone(ctx, serviceMonitor())
		env.WaitGone(ctx, alerts())
		crds := &apiextensionsv1.CustomResourceDefinitionList{}
		Expect(env.Admin.List(ctx, crds)).To(Succeed())
		for _, d := range lcm.csv.Spec.CustomResourceDefinitions.Owned {
			Expect(crds.Items).To(ContainElement(HaveField("Name", d.Name)))
		}
		env.Get(ctx, registry("kept"))
		env.Get(ctx, &mlflowv1.MLflow{ObjectMeta: metav1.ObjectMeta{Name: "mlflow"}})
		for _, name := range []string{"kept", "mlflow"} {
			env.Get(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
		}
		claims := &corev1.PersistentVolumeClaimList{}
		Expect(env.Admin.List(ctx, claims, client.InNamespace(namespace))).To(Succeed())
		Expect(len(claims.Items)).To(BeNumerically(">=", 2), "the data of both")
	}, NodeTimeout(specTimeout))
})

// leftOver are objects that should have gone with the operator.
func leftOver(ctx context.Context) []string {
	GinkgoHelper()
	var found []string
	for _, list := range []client.ObjectList{
		&rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &corev1.ServiceAccountList{},
		&corev1.ServiceList{}, &appsv1.DeploymentList{}, &admissionregistrationv1.MutatingWebhookConfigurationList{},
		&admissionregistrationv1.ValidatingWebhookConfigurationList{}, &corev1.SecretList{},
	} {
		Expect(env.Admin.List(ctx, list, client.HasLabels{ownerLabel})).To(Succeed())
		items, err := json.Marshal(list)
		Expect(err).NotTo(HaveOccurred())
		var names struct {
			Items []struct{ Metadata metav1.ObjectMeta }
		}
		Expect(json.Unmarshal(items, &names)).To(Succeed())
		for _, i := range names.Items {
			if strings.Contains(i.Metadata.Labels[ownerLabel], "odh-platform-operator") {
				found = append(found, i.Metadata.Name)
			}
		}
	}
	return found
}
