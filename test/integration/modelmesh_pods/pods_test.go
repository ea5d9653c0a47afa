package modelmesh_pods_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	meshetcd "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/etcd"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
)

var _ = Describe("Pods of runtimes", func() {
	for _, base := range bases {
		It("with "+base.name+" are accepted by the API server in both forms with every variant, and are not changed by a second apply [M41]", func(ctx SpecContext) {
			for _, change := range changes {
				for _, form := range []resources.Form{resources.Current, resources.Legacy} {
					By(change.name)
					in := inputs(env.Namespace(ctx, "pods"), base, change)
					in.Form = form
					owner := getNamespace(ctx, in.Namespace)
					Expect(applyDeployment(ctx, owner, in)).To(Succeed())
					first := getDeployment(ctx, in)
					Expect(applyDeployment(ctx, owner, in)).To(Succeed())
					second := getDeployment(ctx, in)
					Expect(second.Generation).To(Equal(first.Generation))
					Expect(second.Spec).To(Equal(first.Spec))
				}
			}
		}, SpecTimeout(specTimeout))

		It("with "+base.name+" are admitted by restricted Pod Security, but those of the legacy controller are not [M40]", func(ctx SpecContext) {
			namespace := createRestrictedNamespace(ctx)
			for _, change := range changes {
				By(change.name)
				in := inputs(namespace, base, change)
				in.Restricted = true
				Expect(dryRunPod(ctx, in)).To(Succeed())
			}
			in := inputs(namespace, base, changes[0])
			in.Form = resources.Legacy
			Expect(dryRunPod(ctx, in)).To(MatchError(ContainSubstring("violates PodSecurity")))
		}, SpecTimeout(specTimeout))
	}

	It("are rejected by restricted Pod Security if the author allows them to run as root", func(ctx SpecContext) {
		in := inputs(createRestrictedNamespace(ctx), bases[0], changes[0])
		in.Restricted = true
		in.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsNonRoot: new(false)}
		Expect(dryRunPod(ctx, in)).To(MatchError(ContainSubstring("runAsNonRoot")))
	}, SpecTimeout(specTimeout))
})

var _ = Describe("Deployments of the legacy controller", func() {
	for _, name := range recordings() {
		It("are taken over without a rollout: "+name, func(ctx SpecContext) {
			r := loadRecording(name, env.Namespace(ctx, "takeover"))
			owner := createLegacyRuntime(ctx, r)
			original := getDeployment(ctx, r.in)
			takeOver(ctx, owner, r.in)
			adopted := getDeployment(ctx, r.in)
			Expect(adopted.Spec).To(Equal(original.Spec))
			Expect(adopted.Annotations).NotTo(HaveKey(corev1.LastAppliedConfigAnnotation))
			By("applying the current form, which replaces the pods")
			r.in.Form = resources.Current
			takeOver(ctx, owner, r.in)
			Expect(getDeployment(ctx, r.in).Spec.Template).NotTo(Equal(original.Spec.Template))
		}, SpecTimeout(specTimeout))
	}

	It("keep the fields of other clients, before and after the take-over", func(ctx SpecContext) {
		r := loadRecording("custom-runtime-unix-sockets", env.Namespace(ctx, "thirdparty"))
		owner := createLegacyRuntime(ctx, r)
		addVariable(ctx, r.in, "MM_PAYLOAD_PROCESSORS", "https://trusty:4443/consumer")
		takeOver(ctx, owner, r.in)
		addVariable(ctx, r.in, "ANOTHER", "1")
		for _, form := range []resources.Form{resources.Legacy, resources.Current} {
			r.in.Form = form
			takeOver(ctx, owner, r.in)
			Expect(getVariables(ctx, r.in)).To(And(HaveKeyWithValue("MM_PAYLOAD_PROCESSORS", "https://trusty:4443/consumer"),
				HaveKeyWithValue("ANOTHER", "1"), HaveKeyWithValue("MM_KVSTORE_PREFIX", "mm")))
		}
	}, SpecTimeout(specTimeout))
})

var _ = Describe("Objects of a namespace", func() {
	It("are accepted by the API server, and not written after a restart", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "front")
		owner := getNamespace(ctx, namespace)
		in := inputs(namespace, bases[2], changes[1])
		in.Annotations = map[string]string{modelmesh.AnnotationAutoscalerClass: "hpa", modelmesh.AnnotationMaxScale: "3"}
		scale, _ := modelmesh.ParseAutoscaling(in.Annotations)
		namespaceInputs := resources.NamespaceInputs{Namespace: namespace, Settings: in.Settings, TLS: in.TLS}
		constraints := resources.BuildConstraints(namespace, map[string]*v1alpha1.ServingRuntimeSpec{in.Name: in.Spec}, true)
		data, err := meshetcd.Copy(map[string][]byte{"etcd_connection": []byte(`{"endpoints":"http://etcd:2379"}`)}, "mesh", namespace, nil)
		Expect(err).NotTo(HaveOccurred())
		var desired apply.Desired
		desired.Add(resources.BuildService(namespaceInputs), resources.BuildServiceMonitor(namespaceInputs), constraints,
			resources.BuildEtcdSecret("model-serving-etcd", namespace, data), resources.BuildAutoscaler(in, nil, scale))
		Expect(newApplier().Apply(ctx, owner, desired)).To(Succeed())
		applied := getVersions(ctx, desired)
		Expect(newApplier().Apply(ctx, owner, desired)).To(Succeed())
		Expect(getVersions(ctx, desired)).To(Equal(applied))

		By("checking the autoscaler, which equals that of the legacy controller")
		h := &autoscalingv2.HorizontalPodAutoscaler{}
		Expect(env.Admin.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "modelmesh-serving-own"}, h)).To(Succeed())
		Expect(h.Spec.Behavior.ScaleUp.Policies).To(HaveLen(2))
		Expect(*h.Spec.MinReplicas).To(BeEquivalentTo(1))
		Expect(h.Spec.MaxReplicas).To(BeEquivalentTo(3))
	}, SpecTimeout(specTimeout))
})

// getNamespace returns a namespace, which owns the objects that its runtimes share.
func getNamespace(ctx SpecContext, name string) client.Object {
	GinkgoHelper()
	namespace := &corev1.Namespace{}
	Expect(env.Admin.Get(ctx, types.NamespacedName{Name: name}, namespace)).To(Succeed())
	return namespace
}

// getVersions returns the resourceVersions of objects by kind. The status of HorizontalPodAutoscalers changes concurrently, so their applied
// fields are returned instead.
func getVersions(ctx SpecContext, desired apply.Desired) map[schema.GroupVersionKind]string {
	GinkgoHelper()
	all := map[schema.GroupVersionKind]string{}
	for _, object := range desired {
		key := object.Key()
		kind, live := key.GroupVersionKind, &unstructured.Unstructured{}
		live.SetGroupVersionKind(kind)
		Expect(env.Admin.Get(ctx, key.NamespacedName, live)).To(Succeed())
		all[kind] = live.GetResourceVersion()
		if kind.Kind == "HorizontalPodAutoscaler" {
			all[kind] = fmt.Sprint(live.Object["spec"], live.GetLabels(), live.GetAnnotations(), nested.List(live.Object, "metadata", "ownerReferences"))
		}
	}
	return all
}

// takeOver applies the Deployment of a runtime, and retries on conflicts with the Deployment controller.
func takeOver(ctx SpecContext, owner client.Object, in resources.RuntimeInputs) {
	GinkgoHelper()
	Eventually(func() error { return applyDeployment(ctx, owner, in) }).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(pollInterval).Should(Succeed())
}

// addVariable adds a variable to the container of ModelMesh by an update of the whole object, as other controllers do.
func addVariable(ctx SpecContext, in resources.RuntimeInputs, name, value string) {
	GinkgoHelper()
	Eventually(func() error {
		d := getDeployment(ctx, in)
		for i := range d.Spec.Template.Spec.Containers {
			if c := &d.Spec.Template.Spec.Containers[i]; c.Name == "mm" {
				c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: value})
			}
		}
		return env.Admin.Update(ctx, d, client.FieldOwner("trustyai"))
	}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(pollInterval).Should(Succeed())
}

func getVariables(ctx SpecContext, in resources.RuntimeInputs) map[string]string {
	GinkgoHelper()
	all := map[string]string{}
	for _, c := range getDeployment(ctx, in).Spec.Template.Spec.Containers {
		for _, v := range c.Env {
			if c.Name == "mm" {
				all[v.Name] = v.Value
			}
		}
	}
	return all
}
