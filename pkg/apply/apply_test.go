package apply

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/test/fakeapi"
)

var (
	deploymentKind = appsv1.SchemeGroupVersion.WithKind("Deployment")
	configMapKind  = corev1.SchemeGroupVersion.WithKind("ConfigMap")
)

// testApplier is an Applier with a fake API server. Reads from its cache can lag or fail.
type testApplier struct {
	*testing.T
	*Applier
	server client.Client
	owner  *corev1.ConfigMap
	// cached, if set, replaces reads from the cache.
	cached func(name string, into client.Object) error
	// failing holds the errors that requests return, by verb.
	failing map[string]error
	// mu guards seen in the concurrent test.
	mu sync.Mutex
	// seen counts requests by verb: "apply", "patch", "delete", and the uncached reads "live" (get) and "list".
	seen map[string]int
	// policies holds the propagation policies of the deletions.
	policies []metav1.DeletionPropagation
	clock    *clocktesting.FakePassiveClock
}

func newTestApplier(t *testing.T, objects ...client.Object) *testApplier {
	a := &testApplier{T: t, failing: map[string]error{}, seen: map[string]int{},
		clock: clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	a.owner = newOwnerObject("owner", "owner-uid")
	a.server = fake.NewClientBuilder().WithTypeConverters(schemas{applyconfigurations.NewTypeConverter(scheme.Scheme)}, managedfields.NewDeducedTypeConverter()).
		WithReturnManagedFields().WithRESTMapper(mapper()).WithObjects(objects...).WithObjects(a.owner.DeepCopy()).
		WithIndex(&corev1.ConfigMap{}, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} }).Build()
	a.restart()
	return a
}

func newOwnerObject(name, uid string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid)}}
}

// createOwner creates another owner on the server.
func (a *testApplier) createOwner(name, uid string) *corev1.ConfigMap {
	a.Helper()
	a.must(a.server.Create(a.Context(), newOwnerObject(name, uid)))
	return newOwnerObject(name, uid)
}

func (a *testApplier) restart() {
	server, ok := a.server.(client.WithWatch)
	if !ok {
		a.Fatal("the fake client cannot watch")
	}
	count := func(verb string) error {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.seen[verb]++
		return a.failing[verb]
	}
	clientFuncs := interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
			if a.cached != nil {
				return a.cached(key.Name, into)
			}
			return c.Get(ctx, key, into)
		},
		Apply: func(ctx context.Context, c client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if err := count("apply"); err != nil {
				return err
			}
			return fakeapi.Apply(ctx, c, config, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := count("patch"); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := count("delete"); err != nil {
				return err
			}
			var options client.DeleteOptions
			options.ApplyOptions(opts)
			if options.PropagationPolicy != nil {
				a.policies = append(a.policies, *options.PropagationPolicy)
			}
			if preconditions := options.Preconditions; preconditions != nil && preconditions.UID != nil { // the fake client ignores the UID
				live := o.DeepCopyObject().(client.Object)
				if err := c.Get(ctx, client.ObjectKeyFromObject(o), live); err == nil && live.GetUID() != *preconditions.UID {
					return apierrors.NewConflict(schema.GroupResource{}, o.GetName(), errors.New("the object has another UID"))
				}
			}
			return c.Delete(ctx, o, opts...)
		},
	}
	liveFuncs := interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
			if err := count("live"); err != nil {
				return err
			}
			return c.Get(ctx, key, into, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := count("list"); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
	}
	a.Applier = New(Options{
		Client: interceptor.NewClient(server, clientFuncs), Live: interceptor.NewClient(server, liveFuncs),
		FieldOwner: us, Component: "test", LegacyManagers: []string{"old"}, FullObjectKinds: []schema.GroupVersionKind{deploymentKind},
		Clock: a.clock,
	})
}

// tryApply applies, checks the number of requests, such as "live=1 apply=1", and returns the error.
func (a *testApplier) tryApply(requests string, desired ...Object) error {
	a.Helper()
	clear(a.seen)
	err := a.Apply(a.Context(), a.owner, desired)
	got := fmt.Sprintf("live=%d apply=%d patch=%d", a.seen["live"], a.seen["apply"], a.seen["patch"])
	if got != requests {
		a.Errorf("requests: %s, want %s (error: %v)", got, requests, err)
	}
	return err
}

// expectApply applies without an error, and checks the number of requests.
func (a *testApplier) expectApply(requests string, desired ...Object) {
	a.Helper()
	if err := a.tryApply(requests, desired...); err != nil {
		a.Fatal(err)
	}
}

const (
	noRequests        = "live=0 apply=0 patch=0"
	oneRead           = "live=1 apply=0 patch=0"
	oneApply          = "live=0 apply=1 patch=0"
	readAndApply      = "live=1 apply=1 patch=0"
	readPatchAndApply = "live=1 apply=1 patch=1"
)

func (a *testApplier) get(name string) *corev1.ConfigMap {
	a.Helper()
	object := &corev1.ConfigMap{}
	if err := a.server.Get(a.Context(), types.NamespacedName{Namespace: "ns", Name: name}, object); err != nil {
		a.Fatal(err)
	}
	return object
}

func (a *testApplier) must(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

func newConfigMap(name, value string) Object {
	return Object{Config: corev1ac.ConfigMap(name, "ns").WithData(map[string]string{"key": value})}
}

func newDeployment(image string) Object {
	labels := map[string]string{"app": "server"}
	return Object{Config: appsv1ac.Deployment("server", "ns").WithSpec(appsv1ac.DeploymentSpec().
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(labels)).
		WithTemplate(corev1ac.PodTemplateSpec().WithLabels(labels).WithSpec(corev1ac.PodSpec().WithContainers(
			corev1ac.Container().WithName("server").WithImage(image)))))}
}

func TestApplyWritesOnce(t *testing.T) {
	a := newTestApplier(t)
	a.expectApply("live=0 apply=2 patch=0", newConfigMap("a", "1"), newDeployment("one")) // new objects are not read first
	a.expectApply(noRequests, newConfigMap("a", "1"), newDeployment("one"))
	a.expectApply(oneApply, newConfigMap("a", "2"), newDeployment("one")) // recorded, so it is not read first
	a.expectApply(oneApply, newConfigMap("a", "2"), newDeployment("two"))
	a.expectApply(noRequests, newConfigMap("a", "2"), newDeployment("two"))
	a.restart()
	a.expectApply(oneRead, newConfigMap("a", "2")) // not the Deployment: the fake server also records ownership of its status
	a.expectApply(noRequests, newConfigMap("a", "2"))

	object := a.get("a")
	if object.Labels[names.OperatorLabel] != names.OperatorName || object.Labels[names.ComponentLabel] != "test" {
		t.Errorf("unexpected labels: %v", object.Labels)
	}
	want := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "owner-uid",
		Controller: new(true), BlockOwnerDeletion: new(true)}
	if len(object.OwnerReferences) != 1 || object.OwnerReferences[0].String() != want.String() {
		t.Errorf("unexpected owner references: %v", object.OwnerReferences)
	}
}

// A foreign object that the cache does not hold is not overwritten. After the first apply it is only read.
func TestApplyDetectsForeignObjectOnCreate(t *testing.T) {
	a := newTestApplier(t, existingConfigMap(func(*corev1.ConfigMap) {}))
	a.cached = func(name string, _ client.Object) error {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
	}
	before := a.get("a")
	for _, requests := range []string{readAndApply, oneRead, oneRead} {
		err := a.tryApply(requests, newConfigMap("a", "1"))
		if _, foreign := errors.AsType[*ForeignError](err); !foreign {
			t.Errorf("got error %v, want a ForeignError", err)
		}
	}
	if got := a.get("a"); got.ResourceVersion != before.ResourceVersion {
		t.Errorf("the object was written: %+v", got)
	}
}

// A write with the resourceVersion of an earlier read fails after a change, for example of the replicas by an autoscaler.
func TestApplyFailsForOutdatedVersion(t *testing.T) {
	a := newTestApplier(t)
	a.expectApply(oneApply, newConfigMap("a", "1"))
	read := a.get("a")
	a.must(a.server.Patch(t.Context(), a.get("a"), client.RawPatch(types.MergePatchType, []byte(`{"data":{"theirs":"1"}}`))))
	late := newConfigMap("a", "2")
	late.ResourceVersion = read.ResourceVersion
	if err := a.tryApply(oneApply, late); !apierrors.IsConflict(err) {
		t.Fatalf("got error %v, want a Conflict", err)
	}
	late.ResourceVersion = a.get("a").ResourceVersion
	a.expectApply(readAndApply, late)
	if got := a.get("a").Data; got["key"] != "2" || got["theirs"] != "1" {
		t.Errorf("unexpected data: %v", got)
	}
}

func TestApplyRevertsForeignChanges(t *testing.T) {
	for name, change := range map[string]func(*corev1.ConfigMap){
		"value changed":           func(c *corev1.ConfigMap) { c.Data["key"] = "theirs" },
		"value removed":           func(c *corev1.ConfigMap) { c.Data = nil },
		"managed label removed":   func(c *corev1.ConfigMap) { delete(c.Labels, names.OperatorLabel) },
		"owner reference removed": func(c *corev1.ConfigMap) { c.OwnerReferences = nil },
	} {
		t.Run(name, func(t *testing.T) {
			a := newTestApplier(t)
			a.expectApply(oneApply, newConfigMap("a", "1"))
			before := a.get("a")
			object := before.DeepCopy()
			change(object)
			a.must(a.server.Update(t.Context(), object, client.FieldOwner("them")))
			a.expectApply(readAndApply, newConfigMap("a", "1"))
			a.expectApply(noRequests, newConfigMap("a", "1"))
			after := a.get("a")
			if after.Data["key"] != "1" || len(after.Labels) != 2 || len(after.OwnerReferences) != 1 {
				t.Errorf("the change was not reverted: %v", after)
			}
		})
	}
}

func TestApplyKeepsForeignFields(t *testing.T) {
	a := newTestApplier(t)
	a.expectApply(oneApply, newConfigMap("a", "1"))
	object := a.get("a")
	object.Data["theirs"] = "1"
	object.Labels["theirs"] = "1"
	a.must(a.server.Update(t.Context(), object, client.FieldOwner("them")))
	a.expectApply(noRequests, newConfigMap("a", "1"))
	a.expectApply(oneApply, newConfigMap("a", "2"))
	if got := a.get("a"); got.Data["theirs"] != "1" || got.Labels["theirs"] != "1" {
		t.Errorf("foreign fields were removed: %v", got)
	}
}

func TestApplyReadsRecreatedObject(t *testing.T) {
	a := newTestApplier(t)
	a.expectApply(oneApply, newConfigMap("a", "1"))
	a.must(a.server.Delete(t.Context(), a.get("a")))
	a.expectApply(readAndApply, newConfigMap("a", "1"))

	a.cached = func(_ string, into client.Object) error {
		into.SetUID("another")
		return nil
	}
	a.expectApply(oneRead, newConfigMap("a", "1"))
}

func TestApplyDoesNotWriteTerminatingObject(t *testing.T) {
	a := newTestApplier(t)
	a.expectApply(oneApply, newConfigMap("a", "1"))
	object := a.get("a")
	object.Finalizers = []string{"test.opendatahub.io/hold"}
	a.must(a.server.Update(t.Context(), object, client.FieldOwner("them")))
	a.must(a.server.Delete(t.Context(), object))
	a.expectApply(noRequests, newConfigMap("a", "2"))
	a.expectApply(oneRead, newConfigMap("a", "2"))

	object = a.get("a")
	object.Labels = nil // the cache does not hold objects without labels, so the end of the deletion causes no event
	a.must(a.server.Update(t.Context(), object, client.FieldOwner("them")))
	err := a.tryApply(oneRead, newConfigMap("a", "2"))
	if _, ok := errors.AsType[*TerminatingError](err); !ok {
		t.Errorf("got %v, want a TerminatingError", err)
	}
}

func TestApplyReturnsErrors(t *testing.T) {
	invalid := apierrors.NewInvalid(configMapKind.GroupKind(), "a", nil)
	for name, test := range map[string]struct {
		verb, requests string
		err            error
	}{
		"write fails":   {"apply", "live=0 apply=2 patch=0", invalid},
		"reading fails": {"live", "live=2 apply=0 patch=0", apierrors.NewInternalError(errors.New("no"))},
	} {
		t.Run(name, func(t *testing.T) {
			a := newTestApplier(t)
			if test.verb == "live" {
				a.owner.CreationTimestamp = metav1.NewTime(a.clock.Now()) // its objects may exist
			}
			a.failing[test.verb] = test.err
			err := a.tryApply(test.requests, newConfigMap("a", "1"), newConfigMap("b", "1")) // an error does not stop the next object
			failed, ok := errors.AsType[*Error](err)
			if !ok || failed.Kind != "ConfigMap" || failed.Namespace != "ns" || failed.Name != "a" {
				t.Fatalf("got %v, want an Error that names the object", err)
			}
			if !errors.Is(err, test.err) {
				t.Errorf("error %v does not wrap %v", err, test.err)
			}
			delete(a.failing, test.verb)
			a.expectApply("live=2 apply=2 patch=0", newConfigMap("a", "1"), newConfigMap("b", "1"))
		})
	}
	t.Run("cache fails", func(t *testing.T) {
		a := newTestApplier(t)
		a.expectApply(oneApply, newConfigMap("a", "1"))
		a.cached = func(string, client.Object) error { return errors.New("not started") }
		err := a.tryApply(noRequests, newConfigMap("a", "1"))
		if want := "applying ConfigMap ns/a: reading it from the cache: not started"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	})
	t.Run("context ends", func(t *testing.T) {
		a := newTestApplier(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := a.Apply(ctx, a.owner, Desired{newConfigMap("a", "1")}); !errors.Is(err, context.Canceled) {
			t.Errorf("got error %v, want context.Canceled", err)
		}
	})
}

// unknownConfig is an apply configuration of an unknown type.
type unknownConfig struct{}

func (unknownConfig) IsApplyConfiguration() {}

func TestApplyRejectsInvalidObjects(t *testing.T) {
	nameless := &unstructured.Unstructured{}
	nameless.SetGroupVersionKind(configMapKind)
	badVersion := corev1ac.ConfigMap("a", "ns").WithAPIVersion("a/b/c")
	for name, test := range map[string]struct {
		object Object
		want   string
	}{
		"unknown type": {Object{Config: unknownConfig{}}, "applying  /: the apply configuration has no valid apiVersion, kind or name"},
		"no name": {Object{Config: client.ApplyConfigurationFromUnstructured(nameless)},
			"applying ConfigMap /: the apply configuration has no valid apiVersion, kind or name"},
		"invalid apiVersion": {Object{Config: badVersion}, "applying ConfigMap ns/a: the apply configuration has no valid apiVersion, kind or name"},
		"owner in another namespace": {Object{Config: corev1ac.ConfigMap("a", "elsewhere")},
			"applying ConfigMap elsewhere/a: ConfigMap ns/owner cannot own an object outside its namespace"},
		"namespaced owner of a cluster-scoped object": {Object{Config: corev1ac.Namespace("a"), Ownership: Owned},
			"applying Namespace /a: ConfigMap ns/owner cannot own an object outside its namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newTestApplier(t)
			if err := a.tryApply(noRequests, test.object); err == nil || err.Error() != test.want {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
	a := newTestApplier(t)
	a.expectApply(oneApply, Object{Config: corev1ac.Namespace("a"), Ownership: Unowned})
}

func TestForgetDeletesRecords(t *testing.T) {
	a := newTestApplier(t)
	a.expectApply(oneApply, newConfigMap("a", "1"))
	a.expectApply(noRequests, newConfigMap("a", "1"))
	a.Forget("another-uid")
	a.expectApply(noRequests, newConfigMap("a", "1"))
	a.Forget(a.owner.UID)
	a.expectApply(oneRead, newConfigMap("a", "1"))
	a.Forget(a.owner.UID)
	a.records.Range(func(k, _ any) bool {
		t.Errorf("the record of %v was not deleted", k)
		return true
	})
}
