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

// legacyCluster is a cluster with the replaced operator and its objects. The replaced operator does not run, although a fake kubelet reports its
// pods as Running.
type legacyCluster struct {
	// objects are the manifests of this operator.
	objects []*unstructured.Unstructured
	// originals holds the objects that must be preserved, by kind and name, as they were before the upgrade.
	originals map[string]*unstructured.Unstructured
	// fieldManager of the replaced operator; "manager" if empty.
	fieldManager string
	// afterDeploy, if set, is called when the manager runs, before the next command of the page.
	afterDeploy func(context.Context)
	// running is the manager, after the page has deployed it.
	running *framework.Manager
}

// prepareLegacyCluster prepares the cluster of an administrator before the upgrade to an overlay. The installed CRDs represent the CRDs of
// the replaced operator.
func prepareLegacyCluster(ctx context.Context, overlay string) *legacyCluster {
	GinkgoHelper()
	o := &legacyCluster{objects: renderOverlay(ctx, overlay), originals: map[string]*unstructured.Unstructured{}}
	mustMake(ctx, "install", "OVERLAY="+overlay)
	return o
}

// createOperator creates the replaced operator from a file of testdata. Objects that its webhooks validate must exist before.
func (o *legacyCluster) createOperator(ctx context.Context, file string) {
	GinkgoHelper()
	for _, object := range readOperator(file) {
		create(ctx, object)
		if object.GetKind() == "Deployment" {
			waitAvailable(ctx, object)
		}
	}
}

func readOperator(file string) []*unstructured.Unstructured {
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

func waitAvailable(ctx context.Context, object client.Object) {
	GinkgoHelper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName()}}
	env.WaitFor(ctx, d, func(g Gomega) { g.Expect(d.Status.AvailableReplicas).To(Equal(*d.Spec.Replicas)) })
}

// createOwner creates a custom resource with the status that the replaced operator has set.
func (o *legacyCluster) createOwner(ctx context.Context, object *unstructured.Unstructured) *unstructured.Unstructured {
	GinkgoHelper()
	status, reported := object.Object["status"]
	create(ctx, object)
	if reported {
		object.Object["status"] = status
		Expect(env.Admin.Status().Update(ctx, object, client.FieldOwner("manager"))).To(Succeed())
	}
	o.originals[object.GetKind()+" "+object.GetName()] = object.DeepCopy()
	DeferCleanup(func(ctx SpecContext) {
		if current := live(ctx, object); current != nil && CurrentSpecReport().Failed() {
			AddReportEntry("current state of "+object.GetName(), yamlOf(current), ReportEntryVisibilityFailureOrVerbose)
		}
	}, NodeTimeout(specTimeout))
	return object
}

// createLegacyChildren creates the children that the replaced operator has created for an owner, and stores them in originals.
func (o *legacyCluster) createLegacyChildren(ctx context.Context, owner client.Object, objects ...*unstructured.Unstructured) {
	GinkgoHelper()
	for _, object := range objects {
		if existing := live(ctx, object); existing != nil { // data of an earlier spec, which outlives its owner
			Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, existing))).To(Succeed())
			env.WaitDeleted(ctx, existing)
		}
		cleanUp(object) // registered first, because the creation of a later object may fail
	}
	env.CreateRecording(ctx, objects, framework.RecordingOptions{Owner: owner, Manager: cmp.Or(o.fieldManager, "manager")})
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			waitAvailable(ctx, object)
		}
		o.originals[object.GetKind()+" "+object.GetName()] = env.Live(ctx, object)
	}
}

// runPage runs the commands of a page. After `make deploy` it starts the manager as the deployed manifests specify.
func (o *legacyCluster) runPage(ctx context.Context, page string) *docs.Reader {
	GinkgoHelper()
	deployed := func(ctx context.Context) {
		o.running = startManager(ctx, o.objects, waitRolledOut(ctx, namespace), map[string]string{"/etc/metrics-certs": certificateDir()})
		if o.afterDeploy != nil {
			o.afterDeploy(ctx)
		}
	}
	r := &docs.Reader{
		Page: "docs/migrate/" + page, Root: root(), Folder: GinkgoT().TempDir(), Kubectl: kubectl, Kubeconfig: env.KubeconfigPath,
		After: map[string]func(context.Context){"make deploy": deployed},
	}
	DeferCleanup(func(ctx SpecContext) { r.Undo(ctx) }, NodeTimeout(specTimeout))
	r.Read(ctx)
	Expect(o.running).NotTo(BeNil(), "the page must deploy the operator")
	return r
}

// getPreserved reads an object and expects that it has not been recreated.
func (o *legacyCluster) getPreserved(ctx context.Context, name string) *unstructured.Unstructured {
	GinkgoHelper()
	Expect(o.originals).To(HaveKey(name))
	live := env.Live(ctx, o.originals[name])
	Expect(live.GetUID()).To(Equal(o.originals[name].GetUID()), name)
	return live
}

// yamlOf returns a part of an object as YAML, for a readable diff.
func yamlOf(object *unstructured.Unstructured, path ...string) string {
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
	Expect(o.originals).To(HaveKey(name))
	object := o.originals[name].DeepCopy()
	env.WaitFor(ctx, object, func(g Gomega) {
		g.Expect(object.GetLabels()).To(HaveKeyWithValue("platform.opendatahub.io/component", component), name)
	})
	Expect(object.GetUID()).To(Equal(o.originals[name].GetUID()), name)
	if len(path) > 0 {
		original, current := yamlOf(o.originals[name], path...), yamlOf(object, path...)
		Expect(current).To(Equal(original), "%s has changed from\n%s\nto\n%s", name, original, current)
	}
}

// waitOperatorDeleted waits until the objects of the replaced operator are deleted, except the given ones.
func (o *legacyCluster) waitOperatorDeleted(ctx context.Context, file string, except ...string) {
	GinkgoHelper()
	for _, object := range readOperator(file) {
		if slices.Contains(except, object.GetKind()+" "+object.GetName()) {
			Expect(live(ctx, object)).NotTo(BeNil(), "%s %s", object.GetKind(), object.GetName())
		} else {
			env.WaitDeleted(ctx, object)
		}
	}
}
