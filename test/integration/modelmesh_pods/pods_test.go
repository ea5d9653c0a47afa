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
		// Lists that are merged by a key have no duplicates, and all names and numbers are valid.
		It("with "+base.name+" are accepted by the API server in both forms with every variant, and are not changed by a second apply [M41]", func(ctx SpecContext) {
			for _, change := range changes {
				for _, form := range []resources.Form{resources.Current, resources.Legacy} {
					By(change.name)
					in := inputs(env.Namespace(ctx, "pods"), base, change)
					in.Form = form
					owner := namespaceOf(ctx, in.Namespace)
					Expect(applyDeployment(ctx, owner, in)).To(Succeed())
					first := deploymentOf(ctx, in)
					Expect(applyDeployment(ctx, owner, in)).To(Succeed())
					second := deploymentOf(ctx, in)
					Expect(second.Generation).To(Equal(first.Generation))
					Expect(second.Spec).To(Equal(first.Spec))
				}
			}
		}, SpecTimeout(specTimeout))

		It("with "+base.name+" are admitted by restricted Pod Security, and those of the legacy operator are not [M40]", func(ctx SpecContext) {
			namespace := restrictedNamespace(ctx)
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

	It("are rejected by restricted Pod Security if the author makes them run as root", func(ctx SpecContext) {
		in := inputs(restrictedNamespace(ctx), bases[0], changes[0])
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
			original := deploymentOf(ctx, r.in)
			takeOver(ctx, owner, r.in)
			adopted := deploymentOf(ctx, r.in)
			Expect(adopted.Spec).To(Equal(original.Spec))
			Expect(adopted.Annotations).NotTo(HaveKey(corev1.LastAppliedConfigAnnotation))
			By("rolling the pods when the template gets the current form")
			r.in.Form = resources.Current
			takeOver(ctx, owner, r.in)
			Expect(deploymentOf(ctx, r.in).Spec.Template).NotTo(Equal(original.Spec.Template))
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
			Expect(variablesOf(ctx, r.in)).To(And(HaveKeyWithValue("MM_PAYLOAD_PROCESSORS", "https://trusty:4443/consumer"),
				HaveKeyWithValue("ANOTHER", "1"), HaveKeyWithValue("MM_KVSTORE_PREFIX", "mm")))
		}
	}, SpecTimeout(specTimeout))
})

var _ = Describe("Objects of a namespace", func() {
	It("are accepted by the API server, and not written after a restart", func(ctx SpecContext) {
		namespace := env.Namespace(ctx, "front")
		owner := namespaceOf(ctx, namespace)
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
		Expect(applier().Apply(ctx, owner, desired)).To(Succeed())
		applied := versions(ctx, desired)
		Expect(applier().Apply(ctx, owner, desired)).To(Succeed())
		Expect(versions(ctx, desired)).To(Equal(applied))

		By("checking the autoscaler of the legacy operator")
		h := &autoscalingv2.HorizontalPodAutoscaler{}
		Expect(env.Admin.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "modelmesh-serving-own"}, h)).To(Succeed())
		Expect(h.Spec.Behavior.ScaleUp.Policies).To(HaveLen(2))
		Expect(*h.Spec.MinReplicas).To(BeEquivalentTo(1))
		Expect(h.Spec.MaxReplicas).To(BeEquivalentTo(3))
	}, SpecTimeout(specTimeout))
})

// namespaceOf returns the owner of objects that are shared by a namespace.
func namespaceOf(ctx SpecContext, name string) client.Object {
	GinkgoHelper()
	namespace := &corev1.Namespace{}
	Expect(env.Admin.Get(ctx, types.NamespacedName{Name: name}, namespace)).To(Succeed())
	return namespace
}

// versions returns the resourceVersions of objects by kind. The status of HorizontalPodAutoscalers changes concurrently, so their applied
// fields are returned instead.
func versions(ctx SpecContext, desired apply.Desired) map[schema.GroupVersionKind]string {
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

// takeOver applies the Deployment of a runtime, and retries on conflicts with writers of its status.
func takeOver(ctx SpecContext, owner client.Object, in resources.RuntimeInputs) {
	GinkgoHelper()
	Eventually(func() error { return applyDeployment(ctx, owner, in) }).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(poll).Should(Succeed())
}

// addVariable adds a variable to the container of ModelMesh by an update of the whole object, as other operators do.
func addVariable(ctx SpecContext, in resources.RuntimeInputs, name, value string) {
	GinkgoHelper()
	Eventually(func() error {
		d := deploymentOf(ctx, in)
		for i := range d.Spec.Template.Spec.Containers {
			if c := &d.Spec.Template.Spec.Containers[i]; c.Name == "mm" {
				c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: value})
			}
		}
		return env.Admin.Update(ctx, d, client.FieldOwner("trustyai"))
	}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(poll).Should(Succeed())
}

func variablesOf(ctx SpecContext, in resources.RuntimeInputs) map[string]string {
	GinkgoHelper()
	all := map[string]string{}
	for _, c := range deploymentOf(ctx, in).Spec.Template.Spec.Containers {
		for _, v := range c.Env {
			if c.Name == "mm" {
				all[v.Name] = v.Value
			}
		}
	}
	return all
}
