package platform

import (
	"context"
	"errors"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/takeover"
)

var (
	hubKey       = client.ObjectKey{Name: platformv1alpha1.AIHubName}
	registryKind = schema.GroupVersionKind{Group: "modelregistry.opendatahub.io", Version: "v1beta1", Kind: "ModelRegistry"}
)

// Deployments that the legacy operator created for an AIHub. The status names them.
const (
	legacyRegistryDeployment = "model-registry-operator-controller-manager"
	legacyCatalogDeployment  = "catalog-controller-manager"
)

// hubFixture is the AIHub controller with a fake API server that records writes.
type hubFixture struct {
	*testing.T
	server     client.WithWatch
	clock      *clocktesting.FakeClock
	logic      *aiHub
	reconciler reconcile.Reconciler

	served           capability.Set
	webhookNamespace string // the namespace that webhooks observe, or "" for spec.instancesNamespace
	writes           []string
	reads            int // get and list requests without the cache
	requestError     func(verb, kind string) error
}

func newHubFixture(t *testing.T, objects ...client.Object) *hubFixture {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(aihubv1alpha1.AddToScheme(scheme), platformv1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	h := &hubFixture{T: t, clock: clocktesting.NewFakeClock(startTime), served: capability.NewSet(aihubKind, catalogKind, registryKind)}
	h.server = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&platformv1alpha1.AIHub{}).
		WithIndex(&corev1.Namespace{}, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} }).Build()
	h.restart()
	return h
}

// restart creates a new reconciler without state, as after a restart of the manager.
func (h *hubFixture) restart() {
	cached := interceptor.NewClient(h.server, h.interceptWrites())
	live := interceptor.NewClient(h.server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			h.reads++
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			h.reads++
			if err := h.errorOf("list", "CatalogList"); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
	})
	h.logic = &aiHub{
		cached: cached, apiReader: live, clock: h.clock, served: func() capability.Set { return h.served },
		applier:  apply.New(apply.Options{Client: cached, Live: live, FieldOwner: AIHubFieldOwner, Component: ComponentName}),
		versions: cached, takeOver: takeover.None[*platformv1alpha1.AIHub]{},
		webhookNamespace: func() string {
			if h.webhookNamespace != "" {
				return h.webhookNamespace
			}
			return h.get().Spec.InstancesNamespace
		},
		settings: AIHubSettings{
			Namespace: "apps",
			Registry:  Component{Deployment: legacyRegistryDeployment, Component: "modelregistry", Enabled: true, Requires: []schema.GroupVersionKind{registryKind}},
			Catalog:   Component{Deployment: legacyCatalogDeployment, Component: "modelcatalog", Enabled: true, Requires: []schema.GroupVersionKind{catalogKind}},
			Releases:  []platformv1alpha1.Release{{Name: "Kubeflow Model Registry", Version: "v1"}},
		},
	}
	h.reconciler = reconciler.NewWith(reconciler.Options{Client: cached, Component: h.Name()}, h.logic.logic(), h.logic.conditionAccess())
}

func (h *hubFixture) errorOf(verb, kind string) error {
	if h.requestError == nil {
		return nil
	}
	return h.requestError(verb, kind)
}

// recordWrite records a write, or returns its injected error.
func (h *hubFixture) recordWrite(verb string, o client.Object) error {
	kinds, _, err := h.server.Scheme().ObjectKinds(o)
	kind := o.GetObjectKind().GroupVersionKind().Kind
	if err == nil && len(kinds) > 0 {
		kind = kinds[0].Kind
	}
	if err := h.errorOf(verb, kind); err != nil {
		return err
	}
	h.writes = append(h.writes, verb+" "+kind+" "+client.ObjectKeyFromObject(o).String())
	return nil
}

func (h *hubFixture) interceptWrites() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := h.recordWrite("create", o); err != nil {
				return err
			}
			if o.GetUID() == "" {
				o.SetUID(types.UID(o.GetName()))
			}
			return c.Create(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			var options client.DeleteOptions
			options.ApplyOptions(opts)
			if options.Preconditions == nil || options.Preconditions.UID == nil {
				h.Errorf("%T %s is deleted without a UID precondition", o, o.GetName())
			}
			if err := h.recordWrite("delete", o); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := h.recordWrite("patch", o); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := h.recordWrite("patch "+sub, o); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}
}

// reconcile reconciles once and returns the writes to objects other than the AIHub.
func (h *hubFixture) reconcile() (others []string, result ctrl.Result, err error) {
	h.Helper()
	h.writes = nil
	result, err = h.reconciler.Reconcile(h.Context(), ctrl.Request{NamespacedName: hubKey})
	for _, w := range h.writes {
		if w != "patch AIHub /default-aihub" && w != "patch status AIHub /default-aihub" {
			others = append(others, w)
		}
	}
	return others, result, err
}

// expectReconcile reconciles once, which must succeed without a requeue and with only these writes to objects other than the AIHub.
func (h *hubFixture) expectReconcile(others ...string) {
	h.Helper()
	got, result, err := h.reconcile()
	if err != nil || !result.IsZero() {
		h.Fatalf("got result %+v, error %v", result, err)
	}
	if !slices.Equal(got, others) {
		h.Errorf("writes %q, want %q", got, others)
	}
}

// expectIdle reconciles once, which must neither write nor read from the API server.
func (h *hubFixture) expectIdle() {
	h.Helper()
	reads := h.reads
	if h.expectReconcile(); len(h.writes) > 0 || h.reads != reads {
		h.Errorf("unexpected writes %q and %d live reads in the steady state", h.writes, h.reads-reads)
	}
}

func (h *hubFixture) get() *platformv1alpha1.AIHub {
	h.Helper()
	a := &platformv1alpha1.AIHub{}
	if err := h.server.Get(h.Context(), hubKey, a); err != nil {
		h.Fatal(err)
	}
	return a
}

func (h *hubFixture) update(change func(*platformv1alpha1.AIHub)) {
	h.Helper()
	a := h.get()
	change(a)
	if err := h.server.Update(h.Context(), a); err != nil {
		h.Fatal(err)
	}
}

func (h *hubFixture) condition(conditionType string) platformv1alpha1.Condition {
	h.Helper()
	for _, c := range h.get().Status.Conditions {
		if c.Type == conditionType {
			return c
		}
	}
	return platformv1alpha1.Condition{}
}

// exists reads an object into o and reports whether it exists.
func (h *hubFixture) exists(o client.Object) bool {
	h.Helper()
	return h.server.Get(h.Context(), client.ObjectKeyFromObject(o), o) == nil
}

func aiHubWith(changes ...func(*platformv1alpha1.AIHub)) *platformv1alpha1.AIHub {
	a := &platformv1alpha1.AIHub{ObjectMeta: metav1.ObjectMeta{Name: hubKey.Name, UID: "hub", Generation: 1}}
	a.Spec = platformv1alpha1.AIHubSpec{ApplicationNamespace: "apps", InstancesNamespace: "registries", Gateway: &platformv1alpha1.AIHubGateway{Domain: "apps.example.com"}}
	for _, change := range changes {
		change(a)
	}
	return a
}

func namespaceNamed(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{LabelRegistries: "true"}}}
}

// newCatalog returns a Catalog with a finalizer. owner is the UID of the AIHub that controls it, or "" for none.
func newCatalog(namespace string, owner types.UID) *aihubv1alpha1.Catalog {
	c := &aihubv1alpha1.Catalog{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "catalog", UID: "catalog-" + types.UID(namespace), Finalizers: []string{aihubv1alpha1.Finalizer}}}
	setOwner(c, owner)
	return c
}

func setOwner(o client.Object, owner types.UID) {
	if owner != "" {
		o.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: platformv1alpha1.GroupVersion.String(), Kind: "AIHub", Name: hubKey.Name, UID: owner, Controller: new(true),
		}})
	}
}
