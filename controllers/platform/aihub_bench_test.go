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
)

var (
	hubKey       = client.ObjectKey{Name: platformv1alpha1.AIHubName}
	registryKind = schema.GroupVersionKind{Group: "modelregistry.opendatahub.io", Version: "v1beta1", Kind: "ModelRegistry"}
)

// hubBench is the controller of AIHub before an API server of its own, which notes every write.
type hubBench struct {
	*testing.T
	server client.WithWatch
	clock  *clocktesting.FakeClock
	logic  *aiHub
	shell  reconcile.Reconciler

	served  capability.Set
	decided string // what webhooks know; that of the AIHub when empty
	writes  []string
	reads   int
	failing func(verb, kind string) error
}

func newHubBench(t *testing.T, objects ...client.Object) *hubBench {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(aihubv1alpha1.AddToScheme(scheme), platformv1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	b := &hubBench{T: t, clock: clocktesting.NewFakeClock(began), served: capability.NewSet(aihubKind, catalogKind, registryKind)}
	b.server = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&platformv1alpha1.AIHub{}).
		WithIndex(&corev1.Namespace{}, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} }).Build()
	b.restart()
	return b
}

// restart builds the reconciler again, as a new process would.
func (b *hubBench) restart() {
	cached := interceptor.NewClient(b.server, b.writing())
	live := interceptor.NewClient(b.server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			b.reads++
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			b.reads++
			if err := b.fails("list", "CatalogList"); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
	})
	b.logic = &aiHub{
		cached: cached, apiReader: live, clock: b.clock, served: func() capability.Set { return b.served },
		applier:  apply.New(apply.Options{Client: cached, Live: live, FieldOwner: AIHubFieldOwner, Component: ComponentName}),
		versions: cached, legacy: &legacyDeployments{operatorNamespace: "manager", readers: map[string]client.Reader{legacyRegistryDeployment: cached, legacyCatalogDeployment: cached}},
		webhookNamespace: func() string {
			if b.decided != "" {
				return b.decided
			}
			return b.get().Spec.InstancesNamespace
		},
		settings: AIHubSettings{
			Namespace: "apps",
			Registry:  Program{Deployment: legacyRegistryDeployment, Component: "modelregistry", Enabled: true, Requires: []schema.GroupVersionKind{registryKind}},
			Catalog:   Program{Deployment: legacyCatalogDeployment, Component: "modelcatalog", Enabled: true, Requires: []schema.GroupVersionKind{catalogKind}},
			Releases:  []platformv1alpha1.Release{{Name: "Kubeflow Model Registry", Version: "v1"}},
		},
	}
	b.shell = reconciler.NewWith(reconciler.Options{Client: cached, Component: b.Name()}, b.logic.logic(), b.logic.conditionAccess())
}

func (b *hubBench) fails(verb, kind string) error {
	if b.failing == nil {
		return nil
	}
	return b.failing(verb, kind)
}

// note writes a request down, unless it is to fail.
func (b *hubBench) note(verb string, o client.Object) error {
	kinds, _, err := b.server.Scheme().ObjectKinds(o)
	kind := o.GetObjectKind().GroupVersionKind().Kind
	if err == nil && len(kinds) > 0 {
		kind = kinds[0].Kind
	}
	if err := b.fails(verb, kind); err != nil {
		return err
	}
	b.writes = append(b.writes, verb+" "+kind+" "+client.ObjectKeyFromObject(o).String())
	return nil
}

func (b *hubBench) writing() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := b.note("create", o); err != nil {
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
				b.Errorf("%T %s is deleted the one that it is", o, o.GetName())
			}
			if err := b.note("delete", o); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := b.note("patch", o); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := b.note("patch "+sub, o); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}
}

// reconcile runs one reconcile and returns its writes to other objects than the AIHub.
func (b *hubBench) reconcile() (others []string, result ctrl.Result, err error) {
	b.Helper()
	b.writes = nil
	result, err = b.shell.Reconcile(b.Context(), ctrl.Request{NamespacedName: hubKey})
	for _, w := range b.writes {
		if w != "patch AIHub /default-aihub" && w != "patch status AIHub /default-aihub" {
			others = append(others, w)
		}
	}
	return others, result, err
}

// reconciles runs a reconcile that must succeed, without a requeue, and with only these writes to other objects than the AIHub.
func (b *hubBench) reconciles(others ...string) {
	b.Helper()
	got, result, err := b.reconcile()
	if err != nil || !result.IsZero() {
		b.Fatalf("result %+v, error %v", result, err)
	}
	if !slices.Equal(got, others) {
		b.Errorf("writes %q, want %q", got, others)
	}
}

// rests runs a reconcile that must neither write nor read live.
func (b *hubBench) rests() {
	b.Helper()
	reads := b.reads
	if b.reconciles(); len(b.writes) > 0 || b.reads != reads {
		b.Errorf("at rest: writes %q, %d live reads", b.writes, b.reads-reads)
	}
}

func (b *hubBench) get() *platformv1alpha1.AIHub {
	b.Helper()
	a := &platformv1alpha1.AIHub{}
	if err := b.server.Get(b.Context(), hubKey, a); err != nil {
		b.Fatal(err)
	}
	return a
}

func (b *hubBench) change(change func(*platformv1alpha1.AIHub)) {
	b.Helper()
	a := b.get()
	change(a)
	if err := b.server.Update(b.Context(), a); err != nil {
		b.Fatal(err)
	}
}

func (b *hubBench) condition(kind string) platformv1alpha1.Condition {
	b.Helper()
	for _, c := range b.get().Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return platformv1alpha1.Condition{}
}

func (b *hubBench) exists(o client.Object) bool {
	b.Helper()
	return b.server.Get(b.Context(), client.ObjectKeyFromObject(o), o) == nil
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

// catalogOf is a Catalog that an owner of the uid controls; no one when it is empty.
func catalogOf(namespace string, owner types.UID) *aihubv1alpha1.Catalog {
	c := &aihubv1alpha1.Catalog{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "catalog", UID: "catalog-" + types.UID(namespace), Finalizers: []string{aihubv1alpha1.Finalizer}}}
	ownedBy(c, owner)
	return c
}

func programOf(name string, uid, owner types.UID) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: name, UID: uid}}
	ownedBy(d, owner)
	return d
}

func ownedBy(o client.Object, owner types.UID) {
	if owner != "" {
		o.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: platformv1alpha1.GroupVersion.String(), Kind: "AIHub", Name: hubKey.Name, UID: owner, Controller: new(true),
		}})
	}
}
