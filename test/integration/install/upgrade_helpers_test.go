package install_test

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"

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

// legacyCluster is a cluster with the replaced operator and its objects. The program of that operator does not run; a fake kubelet
// reports its pods as Running.
type legacyCluster struct {
	// objects are the manifests of this operator.
	objects []*unstructured.Unstructured
	// before holds the objects that must be preserved, by kind and name, as they were before the upgrade.
	before map[string]*unstructured.Unstructured
	// writer is the field manager of the replaced operator, "manager" if empty.
	writer string
	// Called, if set, when the manager runs, before the next command of the page.
	meanwhile func(context.Context)
	// running is the manager, after the page has deployed it.
	running *framework.Manager
}

// prepareLegacyCluster prepares the cluster of an administrator before the upgrade to an overlay. The installed CRDs represent those of the
// replaced operator.
func prepareLegacyCluster(ctx context.Context, overlay string) *legacyCluster {
	GinkgoHelper()
	o := &legacyCluster{objects: renderOverlay(ctx, overlay), before: map[string]*unstructured.Unstructured{}}
	mustMake(ctx, "install", "OVERLAY="+overlay)
	return o
}

// installed creates the replaced operator from a file of testdata. Objects that its webhooks would validate must exist already.
func (o *legacyCluster) installed(ctx context.Context, file string) {
	GinkgoHelper()
	for _, object := range installation(file) {
		create(ctx, object)
		if object.GetKind() == "Deployment" {
			available(ctx, object)
		}
	}
}

func installation(file string) []*unstructured.Unstructured {
	GinkgoHelper()
	return framework.Recording(filepath.Join("testdata", file))
}

// create creates an object and deletes it at the end of the spec.
func create(ctx context.Context, object *unstructured.Unstructured) {
	GinkgoHelper()
	Eventually(func() error { return env.Admin.Create(ctx, object, client.FieldOwner("manager")) }).WithContext(ctx).Should(Succeed(), "%s %s", object.GetKind(), object.GetName())
	cleanUp(object)
}

// cleanUp deletes an object at the end of the spec, if it exists.
func cleanUp(object client.Object) {
	GinkgoHelper()
	DeferCleanup(func(ctx SpecContext) {
		err := env.Admin.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
			Expect(err).NotTo(HaveOccurred())
		}
	}, NodeTimeout(specTimeout))
}

func available(ctx context.Context, object client.Object) {
	GinkgoHelper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName()}}
	env.WaitFor(ctx, d, func(g Gomega) { g.Expect(d.Status.AvailableReplicas).To(Equal(*d.Spec.Replicas)) })
}

// owner creates a custom resource with the status that the replaced operator has set.
func (o *legacyCluster) owner(ctx context.Context, object *unstructured.Unstructured) *unstructured.Unstructured {
	GinkgoHelper()
	status, reported := object.Object["status"]
	create(ctx, object)
	if reported {
		object.Object["status"] = status
		Expect(env.Admin.Status().Update(ctx, object, client.FieldOwner("manager"))).To(Succeed())
	}
	o.before[object.GetKind()+" "+object.GetName()] = object.DeepCopy()
	DeferCleanup(func(ctx SpecContext) {
		if now := live(ctx, object); now != nil && CurrentSpecReport().Failed() {
			AddReportEntry("what became of "+object.GetName(), text(now), ReportEntryVisibilityFailureOrVerbose)
		}
	}, NodeTimeout(specTimeout))
	return object
}

// createLegacyChildren creates the children that the replaced operator has created for an owner, and stores them in before.
func (o *legacyCluster) createLegacyChildren(ctx context.Context, owner client.Object, objects ...*unstructured.Unstructured) {
	GinkgoHelper()
	for _, object := range objects {
		if left := live(ctx, object); left != nil { // data of an earlier spec, which outlives its owner
			Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, left))).To(Succeed())
			env.WaitDeleted(ctx, left)
		}
		cleanUp(object) // registered first: creating a later object may fail
	}
	env.CreateRecording(ctx, objects, framework.RecordingOptions{Owner: owner, Manager: cmp.Or(o.writer, "manager")})
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			available(ctx, object)
		}
		o.before[object.GetKind()+" "+object.GetName()] = env.Live(ctx, object)
	}
}

// read runs the commands of a page. After `make deploy` it starts the manager as the deployed manifests specify.
func (o *legacyCluster) read(ctx context.Context, page string) *docs.Reader {
	GinkgoHelper()
	deployed := func(ctx context.Context) {
		o.running = manager(ctx, o.objects, waitRolledOut(ctx, namespace), map[string]string{"/etc/metrics-certs": certificate()})
		if o.meanwhile != nil {
			o.meanwhile(ctx)
		}
	}
	r := &docs.Reader{
		Page: "docs/migrate/" + page, Root: root(), Folder: GinkgoT().TempDir(), Kubectl: kubectl, Kubeconfig: env.KubeconfigPath,
		After: map[string]func(context.Context){"make deploy": deployed},
	}
	DeferCleanup(func(ctx SpecContext) { r.Undo(ctx) }, NodeTimeout(specTimeout))
	r.Read(ctx)
	Expect(o.running).NotTo(BeNil(), "the page deploys the operator")
	return r
}

// now reads an object and expects the UID that it had before.
func (o *legacyCluster) now(ctx context.Context, name string) *unstructured.Unstructured {
	GinkgoHelper()
	Expect(o.before).To(HaveKey(name))
	live := env.Live(ctx, o.before[name])
	Expect(live.GetUID()).To(Equal(o.before[name].GetUID()), name)
	return live
}

// text returns a part of an object as YAML, for a readable diff.
func text(object *unstructured.Unstructured, path ...string) string {
	GinkgoHelper()
	value, found, err := unstructured.NestedFieldCopy(object.Object, path...)
	Expect(err).NotTo(HaveOccurred())
	Expect(found).To(BeTrue(), "%s has no %v", object.GetName(), path)
	written, err := yaml.Marshal(value)
	Expect(err).NotTo(HaveOccurred())
	return string(written)
}

// waitAdopted waits until the manager has adopted an object, and expects that the part at path is unchanged.
func (o *legacyCluster) waitAdopted(ctx context.Context, component, name string, path ...string) {
	GinkgoHelper()
	Expect(o.before).To(HaveKey(name))
	object := o.before[name].DeepCopy()
	env.WaitFor(ctx, object, func(g Gomega) {
		g.Expect(object.GetLabels()).To(HaveKeyWithValue("platform.opendatahub.io/component", component), name)
	})
	Expect(object.GetUID()).To(Equal(o.before[name].GetUID()), name)
	if len(path) > 0 {
		was, is := text(o.before[name], path...), text(object, path...)
		Expect(is).To(Equal(was), "%s was\n%s\nand is\n%s", name, was, is)
	}
}

// expectGone expects that no object of the replaced operator is left but those listed.
func (o *legacyCluster) expectGone(ctx context.Context, file string, but ...string) {
	GinkgoHelper()
	for _, object := range installation(file) {
		if slices.Contains(but, object.GetKind()+" "+object.GetName()) {
			Expect(live(ctx, object)).NotTo(BeNil(), "%s %s", object.GetKind(), object.GetName())
		} else {
			env.WaitDeleted(ctx, object)
		}
	}
}
