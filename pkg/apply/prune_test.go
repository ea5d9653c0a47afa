package apply

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// expectPrune calls Prune for two kinds and checks the number of requests, such as "live=0 list=0 patch=0 delete=1".
func (a *testApplier) expectPrune(requests string, legacy client.ListOption, desired ...Object) {
	a.Helper()
	clear(a.seen)
	a.must(a.Prune(a.Context(), a.owner, desired, []schema.GroupVersionKind{configMapKind, deploymentKind}, legacy))
	got := fmt.Sprintf("live=%d list=%d patch=%d delete=%d", a.seen["live"], a.seen["list"], a.seen["patch"], a.seen["delete"])
	if got != requests {
		a.Errorf("requests: %s, want %s", got, requests)
	}
}

func (a *testApplier) exists(name string) bool {
	a.Helper()
	err := a.server.Get(a.Context(), client.ObjectKey{Namespace: "ns", Name: name}, &corev1.ConfigMap{})
	a.must(client.IgnoreNotFound(err))
	return err == nil
}

const noPruneRequests = "live=0 list=0 patch=0 delete=0"

func TestPruneDeletesUndesiredObjects(t *testing.T) {
	a := newTestApplier(t)
	data := newConfigMap("data", "1")
	data.Ownership = Unowned
	a.expectApply("live=0 apply=4 patch=0", newConfigMap("keep", "1"), newConfigMap("drop", "1"), data, newDeployment("one"))
	a.expectPrune(noPruneRequests, nil, newConfigMap("keep", "1"), newConfigMap("drop", "1"), data, newDeployment("one"))
	a.expectPrune("live=0 list=0 patch=0 delete=2", nil, newConfigMap("keep", "2"))
	if !a.exists("keep") || a.exists("drop") || !a.exists("data") {
		t.Error("the wrong objects were deleted")
	}
	a.expectPrune(noPruneRequests, nil, newConfigMap("keep", "1"))
	a.expectApply(oneApply, newConfigMap("drop", "1")) // the records of deleted objects were removed
}

func TestPruneKeepsForeignAndTerminatingObjects(t *testing.T) {
	owned := []metav1.OwnerReference{ownerReference("owner", "owner-uid", true)}
	for name, change := range map[string]func(*corev1.ConfigMap){
		"without labels":          func(c *corev1.ConfigMap) { c.OwnerReferences = owned },
		"of another component":    func(c *corev1.ConfigMap) { c.OwnerReferences, c.Labels = owned, names.Labels("other") },
		"without owner reference": func(c *corev1.ConfigMap) { c.Labels = names.Labels("test") },
		"of another owner": func(c *corev1.ConfigMap) {
			c.OwnerReferences, c.Labels = []metav1.OwnerReference{ownerReference("o", "o-uid", true)}, names.Labels("test")
		},
		"of a previous owner of the same name": func(c *corev1.ConfigMap) {
			c.OwnerReferences, c.Labels = []metav1.OwnerReference{ownerReference("owner", "earlier", true)}, names.Labels("test")
		},
		"terminating": func(c *corev1.ConfigMap) {
			c.OwnerReferences, c.Labels, c.Finalizers = owned, names.Labels("test"), []string{"test.opendatahub.io/hold"}
			c.DeletionTimestamp = new(metav1.Now())
		},
		"in another namespace": func(c *corev1.ConfigMap) {
			c.OwnerReferences, c.Labels, c.Namespace = owned, names.Labels("test"), "elsewhere"
		},
	} {
		t.Run(name, func(t *testing.T) { newTestApplier(t, existingConfigMap(change)).expectPrune(noPruneRequests, nil) })
	}
}

func TestPruneSearchesAllNamespacesForClusterScopedOwner(t *testing.T) {
	a := newTestApplier(t, existingConfigMap(func(c *corev1.ConfigMap) {
		ref := ownerReference("owner", "cluster-uid", true)
		ref.Kind = "Namespace"
		c.OwnerReferences, c.Labels, c.Namespace = []metav1.OwnerReference{ref}, names.Labels("test"), "elsewhere"
	}))
	owner := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "owner", UID: "cluster-uid"}}
	a.must(a.Prune(t.Context(), owner, nil, []schema.GroupVersionKind{configMapKind}, nil))
	if a.seen["delete"] != 1 {
		t.Errorf("unexpected requests: %v", a.seen)
	}
}

func TestPruneListsLegacyObjectsOnce(t *testing.T) {
	legacyObject := func(name string, refs ...metav1.OwnerReference) client.Object {
		return existingConfigMap(func(c *corev1.ConfigMap) {
			c.Name, c.OwnerReferences, c.Labels = name, refs, map[string]string{"app": "old"}
		})
	}
	a := newTestApplier(t, legacyObject("gone", ownerReference("owner", "owner-uid", true)), legacyObject("kept", ownerReference("owner", "owner-uid", true)), legacyObject("foreign"))
	legacy := client.MatchingLabels{"app": "old"}
	a.expectPrune("live=0 list=2 patch=0 delete=1", legacy, newConfigMap("kept", "1"))
	if a.exists("gone") || !a.exists("kept") || !a.exists("foreign") {
		t.Error("the wrong objects were deleted")
	}
	a.expectPrune(noPruneRequests, legacy, newConfigMap("kept", "1"))
	a.Forget(a.owner.UID)
	a.expectPrune("live=0 list=2 patch=0 delete=0", legacy, newConfigMap("kept", "1"))
}

// ownerWithConditions is an owner of a kind with conditions.
type ownerWithConditions struct {
	*corev1.ConfigMap
	conditions []metav1.Condition
}

func (o *ownerWithConditions) ConditionsRef() *[]metav1.Condition { return &o.conditions }

// A new owner without conditions cannot have objects of a legacy operator.
func TestPruneListsNoLegacyObjectsOfNewOwner(t *testing.T) {
	for name, tc := range map[string]struct {
		age        time.Duration
		conditions []metav1.Condition
		lists      int
	}{
		"new":                                {-time.Minute, nil, 0},
		"new, with conditions":               {-time.Minute, []metav1.Condition{{Type: "Available"}}, 1},
		"created before the process started": {time.Minute, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			a := newTestApplier(t)
			owner := &ownerWithConditions{ConfigMap: a.owner, conditions: tc.conditions}
			owner.SetGroupVersionKind(configMapKind)
			owner.CreationTimestamp = metav1.NewTime(a.clock.Now().Add(-tc.age))
			for range 2 { // the second call lists nothing, although conditions were reported in between
				a.must(a.Prune(t.Context(), owner, nil, []schema.GroupVersionKind{configMapKind}, client.MatchingLabels{"app": "old"}))
				owner.conditions = []metav1.Condition{{Type: "Available"}}
			}
			if a.seen["list"] != tc.lists {
				t.Errorf("listed %d times, want %d", a.seen["list"], tc.lists)
			}
		})
	}
}

func TestPruneListsLegacyObjectsUntilSuccess(t *testing.T) {
	a := newTestApplier(t)
	legacy := client.MatchingLabels{"app": "old"}
	a.failing["list"] = errors.New("no")
	err := a.Prune(t.Context(), a.owner, nil, []schema.GroupVersionKind{configMapKind}, legacy)
	if want := "pruning ConfigMap: listing the objects of legacy operators: no"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	a.failing["list"] = apierrors.NewNotFound(schema.GroupResource{}, "") // the kind was just removed
	a.expectPrune("live=0 list=2 patch=0 delete=0", legacy)
	a.expectPrune(noPruneRequests, legacy)
}

// The legacy objects of a kind that only a later call prunes are listed by that call.
func TestPruneListsLegacyObjectsOfEachKind(t *testing.T) {
	a := newTestApplier(t)
	legacy := client.MatchingLabels{"app": "old"}
	a.must(a.Prune(t.Context(), a.owner, nil, []schema.GroupVersionKind{deploymentKind}, legacy))
	a.expectPrune("live=0 list=1 patch=0 delete=0", legacy)
	a.expectPrune(noPruneRequests, legacy)
}

func TestPruneOfOwnedObjects(t *testing.T) {
	a := newTestApplier(t)
	object := newConfigMap("a", "1")
	object.Ownership = Owned
	a.expectApply(oneApply, object)
	owned := a.get("a")
	owned.OwnerReferences = append(owned.OwnerReferences, ownerReference("other", "other-uid", false))
	a.must(a.server.Update(t.Context(), owned, client.FieldOwner("them")))
	a.expectPrune(noPruneRequests, nil)
	owned = a.get("a")
	owned.OwnerReferences = owned.OwnerReferences[:1]
	a.must(a.server.Update(t.Context(), owned, client.FieldOwner("them")))
	a.expectPrune("live=0 list=0 patch=0 delete=1", nil)
	if a.exists("a") {
		t.Error("the object exists, although its only owner no longer needs it")
	}
}

func TestPruneReportsErrors(t *testing.T) {
	a := newTestApplier(t)
	a.expectApply(oneApply, newConfigMap("a", "1"))
	a.failing["delete"] = errors.New("no")
	err := a.Prune(t.Context(), a.owner, nil, []schema.GroupVersionKind{configMapKind}, nil)
	if want := "pruning ConfigMap: deleting ns/a: no"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	a.failing["delete"] = apierrors.NewNotFound(corev1.Resource("configmaps"), "a")
	a.expectPrune("live=0 list=0 patch=0 delete=1", nil)

	clear(a.seen)
	err = a.Prune(t.Context(), a.owner, Desired{{Config: unknownConfig{}}}, []schema.GroupVersionKind{configMapKind}, nil)
	if err == nil || a.seen["delete"] > 0 {
		t.Errorf("got error %v and requests %v, want an error, and nothing pruned, while the desired state is unknown", err, a.seen)
	}
}

func TestPruneSkipsUnservedKinds(t *testing.T) {
	a := newTestApplier(t)
	unserved := schema.GroupVersionKind{Group: "nowhere.example.com", Version: "v1", Kind: "Nothing"}
	server := interceptor.NewClient(fake.NewClientBuilder().WithRESTMapper(mapper()).Build(), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return &meta.NoKindMatchError{GroupKind: unserved.GroupKind()}
		},
	})
	applier := New(Options{Client: server, Live: server, FieldOwner: us, Component: "test"})
	a.must(applier.Prune(t.Context(), a.owner, nil, []schema.GroupVersionKind{unserved}, nil))
}

func TestRender(t *testing.T) {
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "owner", UID: "owner-uid"}}
	config := corev1ac.ConfigMap("a", "ns").WithLabels(map[string]string{"app": "x", names.ComponentLabel: "wrong"})
	var desired Desired
	desired.Add(config, corev1ac.ConfigMap("b", "ns"))
	desired = append(desired, Object{Config: config, Ownership: Owned}, Object{Config: config, Ownership: Unowned})
	objects, err := Render(desired, "test", owner)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		name         string
		labels, refs int
		controls     bool
	}{{"a", 3, 1, true}, {"b", 2, 1, true}, {"a", 3, 1, false}, {"a", 3, 0, false}} {
		got := objects[i]
		if got.GetName() != want.name || len(got.GetLabels()) != want.labels || got.GetLabels()[names.ComponentLabel] != "test" {
			t.Errorf("unexpected object %d: %v", i, got)
		}
		if len(got.GetOwnerReferences()) != want.refs || metav1.IsControlledBy(got, owner) != want.controls {
			t.Errorf("unexpected owner references of object %d: %v", i, got.GetOwnerReferences())
		}
	}
	if config.Labels[names.ComponentLabel] != "wrong" || len(config.OwnerReferences) > 0 {
		t.Error("rendering changed the configuration")
	}
}

func TestRenderReportsErrors(t *testing.T) {
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "owner"}}
	for name, object := range map[string]Object{
		"unknown type":      {Config: unknownConfig{}},
		"another namespace": {Config: corev1ac.ConfigMap("a", "elsewhere")},
	} {
		if _, err := Render(Desired{object}, "test", owner); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
}
