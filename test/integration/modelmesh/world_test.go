package modelmesh_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// served creates a namespace that serves models.
func served(ctx context.Context) string {
	GinkgoHelper()
	name := env.Namespace(ctx, "mesh")
	label(ctx, name, "true")
	return name
}

// label sets the label that enables a namespace for models; nil removes it.
func label(ctx context.Context, namespace string, value any) {
	GinkgoHelper()
	env.Patch(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		map[string]any{"metadata": map[string]any{"labels": map[string]any{"modelmesh-enabled": value}}})
}

func etcdSecret(namespace, endpoints string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "model-serving-etcd"},
		StringData: map[string]string{"etcd_connection": `{"endpoints":"` + endpoints + `","root_prefix":"models"}`},
	}
}

type change func(*v1alpha1.ServingRuntime)

// spec returns a runtime for a format, whose pods fit on no node.
func spec(format string) v1alpha1.ServingRuntimeSpec {
	return v1alpha1.ServingRuntimeSpec{
		MultiModel: new(true), GRPCEndpoint: new("port:8085"), GRPCDataEndpoint: new("port:8001"), ProtocolVersions: []string{"grpc-v2"},
		SupportedModelFormats: []v1alpha1.SupportedModelFormat{{Name: format, Version: new("1"), AutoSelect: new(true)}},
		Containers:            []corev1.Container{{Name: "server", Image: "registry.example.com/server:1"}},
		NodeSelector:          map[string]string{"example.com/none": "such"},
	}
}

func runtimeOf(ctx context.Context, namespace, name, format string, changes ...change) *v1alpha1.ServingRuntime {
	GinkgoHelper()
	r := &v1alpha1.ServingRuntime{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec(format)}
	for _, c := range changes {
		c(r)
	}
	Expect(env.Admin.Create(ctx, r)).To(Succeed())
	return r
}

// runtimeNamed returns a reference to an existing runtime.
func runtimeNamed(namespace, name string) *v1alpha1.ServingRuntime {
	return &v1alpha1.ServingRuntime{ObjectMeta: at(namespace, name)}
}

// clusterRuntime creates a ClusterServingRuntime until the end of the spec.
func clusterRuntime(ctx context.Context, name, format string) *v1alpha1.ClusterServingRuntime {
	GinkgoHelper()
	r := &v1alpha1.ClusterServingRuntime{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec(format)}
	Expect(env.Admin.Create(ctx, r)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, r))).To(Succeed())
		env.WaitGone(ctx, r)
	}, NodeTimeout(specTimeout))
	return r
}

// annotated adds annotations to a runtime.
func annotated(pairs ...string) change {
	return func(r *v1alpha1.ServingRuntime) {
		r.Annotations = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			r.Annotations[pairs[i]] = pairs[i+1]
		}
	}
}

func predictor(ctx context.Context, namespace, name, format string) *v1alpha1.Predictor {
	GinkgoHelper()
	p := &v1alpha1.Predictor{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	p.Spec.ModelType.Name = format
	Expect(env.Admin.Create(ctx, p)).To(Succeed())
	return p
}

func at(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func deployment(namespace, runtime string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: at(namespace, "modelmesh-serving-"+runtime)}
}

func autoscaler(namespace, runtime string) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: at(namespace, "modelmesh-serving-"+runtime)}
}

func service(namespace string) *corev1.Service {
	return &corev1.Service{ObjectMeta: at(namespace, "modelmesh-serving")}
}

func constraints(namespace string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: at(namespace, "tc-config")}
}

func etcdCopy(namespace string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: at(namespace, "model-serving-etcd")}
}

func monitor(namespace string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(capability.ServiceMonitor)
	u.SetNamespace(namespace)
	u.SetName("modelmesh-metrics-monitor")
	return u
}

// appear waits until objects exist, and reads them.
func appear(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, o := range objects {
		Eventually(func() error { return env.Admin.Get(ctx, client.ObjectKeyFromObject(o), o) }).WithContext(ctx).WithTimeout(patience).
			Should(Succeed(), "%T %s", o, o.GetName())
	}
}

// absent checks that objects do not exist. Call it after an event that would follow their creation.
func absent(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, o := range objects {
		err := env.Admin.Get(ctx, client.ObjectKeyFromObject(o), o)
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%T %s: %v", o, o.GetName(), err)
	}
}

// scaled waits until the Deployment of a runtime has a number of replicas.
func scaled(ctx context.Context, d *appsv1.Deployment, replicas int32) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(d), d)).To(Succeed())
		g.Expect(d.Spec.Replicas).To(HaveValue(Equal(replicas)))
	}).WithContext(ctx).WithTimeout(patience).Should(Succeed())
}

// container returns a container of the pod template.
func container(d *appsv1.Deployment, name string) *corev1.Container {
	GinkgoHelper()
	for i := range d.Spec.Template.Spec.Containers {
		if c := &d.Spec.Template.Spec.Containers[i]; c.Name == name {
			return c
		}
	}
	Fail("there is no container " + name)
	return nil
}

// variable returns the value of a container's variable, or "".
func variable(c *corev1.Container, name string) string {
	for _, v := range c.Env {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

// requests returns the writes and live reads of the manager in a namespace since a mark.
func requests(mark framework.Mark, namespace string) framework.Entries {
	return framework.AtRest(env.Since(mark), manager.User).Where(func(e framework.Entry) bool { return e.Namespace == namespace })
}

// settled waits until nothing is sent for a namespace.
func settled(ctx context.Context, namespace string) {
	GinkgoHelper()
	env.SettleOn(ctx, func(mark framework.Mark) framework.Entries { return requests(mark, namespace) }, quiet, patience)
}

// expectRest checks that nothing is sent for a namespace.
func expectRest(namespace string) {
	GinkgoHelper()
	env.ExpectNone(func(mark framework.Mark) framework.Entries { return requests(mark, namespace) }, quiet)
}

// expectEvent waits for an Event of an object whose note contains a text.
func expectEvent(ctx context.Context, o client.Object, reason, text string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		list := &eventsv1.EventList{}
		g.Expect(env.Admin.List(ctx, list)).To(Succeed())
		var notes []string
		for _, e := range list.Items {
			if e.Reason == reason && e.Regarding.UID == o.GetUID() {
				notes = append(notes, e.Note)
			}
		}
		g.Expect(notes).To(ContainElement(ContainSubstring(text)), "no event %s", reason)
	}).WithContext(ctx).WithTimeout(patience).Should(Succeed())
}

// configure writes settings until the end of the spec: for all namespaces in the namespace of the manager, or else for the given namespace.
func configure(ctx context.Context, namespace, text string) *corev1.ConfigMap {
	GinkgoHelper()
	m := &corev1.ConfigMap{ObjectMeta: at(namespace, "model-serving-config"), Data: map[string]string{"config.yaml": text}}
	err := env.Admin.Create(ctx, m)
	if apierrors.IsAlreadyExists(err) {
		env.Patch(ctx, m, map[string]any{"data": map[string]any{"config.yaml": text}})
		return m
	}
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, m))).To(Succeed()) }, NodeTimeout(specTimeout))
	return m
}
