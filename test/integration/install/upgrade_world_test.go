package install_test

import (
	"context"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/test/docs"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// older is a cluster in which the operator before runs, and what it made. Its program is not there: others play its pods.
type older struct {
	// objects are those that this operator consists of.
	objects []*unstructured.Unstructured
	// before are objects that have to stay, by kind and name, as they were before the page was read.
	before map[string]*unstructured.Unstructured
	// running is the manager, once the page has deployed it.
	running *framework.Manager
}

// arrange makes the cluster of somebody who is about to move: CRDs, and the installation of the operator before from a file of testdata.
func arrange(ctx context.Context, installation string) *older {
	GinkgoHelper()
	o := &older{objects: rendered(ctx, "odh"), before: map[string]*unstructured.Unstructured{}}
	mustMake(ctx, "install", "OVERLAY=odh")
	for _, object := range framework.Recording(filepath.Join("testdata", installation)) {
		create(ctx, object)
		if object.GetKind() == "Deployment" {
			available(ctx, object)
		}
	}
	return o
}

// create has an object removed at the end of the spec, if the spec itself has not.
func create(ctx context.Context, object client.Object) {
	GinkgoHelper()
	Eventually(func() error { return env.Admin.Create(ctx, object, client.FieldOwner("manager")) }).WithContext(ctx).Should(Succeed(), "%T %s", object, object.GetName())
	DeferCleanup(func(ctx SpecContext) {
		err := env.Admin.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground))
		Expect(err == nil || apierrors.IsNotFound(err) || meta.IsNoMatchError(err)).To(BeTrue(), "%v", err)
	}, NodeTimeout(specTimeout))
}

// available waits until the pods of a Deployment run.
func available(ctx context.Context, object client.Object) {
	GinkgoHelper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName()}}
	env.WaitFor(ctx, d, func(g Gomega) { g.Expect(d.Status.AvailableReplicas).To(Equal(*d.Spec.Replicas)) })
}

// left plants what the operator before made for an owner, and remembers what it was.
func (o *older) left(ctx context.Context, owner client.Object, objects ...*unstructured.Unstructured) {
	GinkgoHelper()
	kind := owner.GetObjectKind().GroupVersionKind()
	for _, object := range objects {
		reference := *metav1.NewControllerRef(owner, kind)
		if object.GetNamespace() == "" {
			reference.Controller, reference.BlockOwnerDeletion = nil, nil
		}
		object.SetOwnerReferences([]metav1.OwnerReference{reference})
		create(ctx, object)
	}
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			available(ctx, object)
		}
		o.before[object.GetKind()+" "+object.GetName()] = env.Live(ctx, object)
	}
}

// read does what a page says. After `make deploy` the manager is started from what is deployed, as a kubelet would.
func (o *older) read(ctx context.Context, page string) *docs.Reader {
	GinkgoHelper()
	r := &docs.Reader{Page: "docs/upgrade/" + page, Root: root(), Folder: GinkgoT().TempDir(), Kubectl: kubectl, Kubeconfig: env.KubeconfigPath, After: map[string]func(context.Context){
		"make deploy": func(ctx context.Context) {
			o.running = manager(ctx, o.objects, settled(ctx, namespace), map[string]string{"/etc/metrics-certs": certificate()})
		},
	}}
	DeferCleanup(func(ctx SpecContext) { r.Undo(ctx) }, NodeTimeout(specTimeout))
	r.Read(ctx)
	Expect(o.running).NotTo(BeNil(), "the page deploys the operator")
	return r
}

// now reads an object that has to be the one that it was.
func (o *older) now(ctx context.Context, name string) *unstructured.Unstructured {
	GinkgoHelper()
	Expect(o.before).To(HaveKey(name))
	live := env.Live(ctx, o.before[name])
	Expect(live.GetUID()).To(Equal(o.before[name].GetUID()), name)
	return live
}

// text is a part of an object, in YAML: what differs is seen at once.
func text(object *unstructured.Unstructured, path ...string) string {
	GinkgoHelper()
	value, found, err := unstructured.NestedFieldCopy(object.Object, path...)
	Expect(err).NotTo(HaveOccurred())
	Expect(found).To(BeTrue(), "%s has no %v", object.GetName(), path)
	written, err := yaml.Marshal(value)
	Expect(err).NotTo(HaveOccurred())
	return string(written)
}

// taken waits until the manager has made objects its own, and expects that parts of them are what they were.
func (o *older) taken(ctx context.Context, component, name string, path ...string) {
	GinkgoHelper()
	Expect(o.before).To(HaveKey(name))
	object := o.before[name].DeepCopy()
	env.WaitFor(ctx, object, func(g Gomega) {
		g.Expect(object.GetLabels()).To(HaveKeyWithValue("platform.opendatahub.io/component", component), name)
	})
	Expect(object.GetUID()).To(Equal(o.before[name].GetUID()), name)
	if len(path) > 0 {
		Expect(text(object, path...)).To(Equal(text(o.before[name], path...)), name)
	}
}
