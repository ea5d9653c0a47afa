package modelmesh_settings_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// awake keeps the pods of runtimes without models.
const awake = "scaleToZero: {enabled: false}\n"

func etcdSecret() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: meshsettings.DefaultEtcdSecret},
		StringData: map[string]string{"etcd_connection": `{"endpoints":"http://127.0.0.1:1","root_prefix":"models"}`},
	}
}

// served creates a namespace that serves models, with a runtime.
func served(ctx context.Context) string {
	GinkgoHelper()
	name := env.Namespace(ctx, "settings")
	env.Patch(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		map[string]any{"metadata": map[string]any{"labels": map[string]any{"modelmesh-enabled": "true"}}})
	Expect(env.Admin.Create(ctx, &v1alpha1.ServingRuntime{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "demo"},
		Spec: v1alpha1.ServingRuntimeSpec{
			MultiModel: new(true), GRPCEndpoint: new("port:8085"),
			SupportedModelFormats: []v1alpha1.SupportedModelFormat{{Name: "sklearn", AutoSelect: new(true)}},
			Containers:            []corev1.Container{{Name: "server", Image: "registry.example.com/server:1"}},
		},
	})).To(Succeed())
	return name
}

// write writes a ConfigMap with one key until the end of the spec.
func write(ctx context.Context, namespace, name, key, text string) *corev1.ConfigMap {
	GinkgoHelper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{key: text}}
	err := env.Admin.Create(ctx, m)
	if apierrors.IsAlreadyExists(err) {
		env.Patch(ctx, m, map[string]any{"data": map[string]any{key: text}})
		return m
	}
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, m))).To(Succeed()) }, NodeTimeout(specTimeout))
	return m
}

// configure writes the settings of administrators, or of one namespace.
func configure(ctx context.Context, namespace, text string) *corev1.ConfigMap {
	GinkgoHelper()
	return write(ctx, namespace, meshsettings.ConfigMapName, meshsettings.ConfigMapKey, text)
}

func deployment(namespace string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: meshsettings.DefaultServiceName + "-demo"}}
}

func service(namespace string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: meshsettings.DefaultServiceName}}
}

// becomes waits until an object passes a check.
func becomes(ctx context.Context, o client.Object, check func(g Gomega)) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
		check(g)
	}).WithContext(ctx).WithTimeout(patience).Should(Succeed())
}

// scaled waits until the runtime of a namespace has a number of replicas, and returns its Deployment.
func scaled(ctx context.Context, namespace string, replicas int32) *appsv1.Deployment {
	GinkgoHelper()
	d := deployment(namespace)
	becomes(ctx, d, func(g Gomega) { g.Expect(d.Spec.Replicas).To(HaveValue(Equal(replicas))) })
	return d
}

// container returns a container of the pod template.
func container(d *appsv1.Deployment, name string) corev1.Container {
	for _, c := range d.Spec.Template.Spec.Containers {
		if c.Name == name {
			return c
		}
	}
	return corev1.Container{}
}

// variable returns the value of a container's variable, or "".
func variable(c corev1.Container, name string) string {
	for _, v := range c.Env {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

// notes returns the notes of the Events of an object.
func notes(ctx context.Context, o client.Object) (all []string, err error) {
	list := &eventsv1.EventList{}
	if err := env.Admin.List(ctx, list, client.InNamespace(o.GetNamespace())); err != nil {
		return nil, err
	}
	for _, e := range list.Items {
		if e.Regarding.UID == o.GetUID() {
			all = append(all, e.Type+" "+e.Reason+" "+e.Note)
		}
	}
	return all, nil
}

// expectEvent waits for an Event of a ConfigMap whose note contains a part.
func expectEvent(ctx context.Context, m *corev1.ConfigMap, reason, part string) {
	GinkgoHelper()
	env.Get(ctx, m)
	Eventually(notes).WithContext(ctx).WithArguments(ctx, m).WithTimeout(patience).
		Should(ContainElement(SatisfyAll(HavePrefix("Warning "+reason), ContainSubstring(part))))
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

// unmoved checks that UID, generation and labels of an object are unchanged.
func unmoved(ctx context.Context, o client.Object) {
	GinkgoHelper()
	// Other controllers write the status.
	ours := func() []any {
		return []any{o.GetUID(), o.GetGeneration(), o.GetLabels()}
	}
	before := ours()
	env.Get(ctx, o)
	Expect(ours()).To(Equal(before), "%T %s", o, o.GetName())
}
