package appwrapper

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func restoredMap(change func(*corev1.ConfigMap)) *corev1.ConfigMap {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: awKey.Namespace, Name: "a", UID: "restored"}, Data: map[string]string{"key": "1"}}
	change(object)
	return object
}

func mapFromTemplate() *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"key": "1"}}}
	object.SetNamespace(awKey.Namespace)
	object.SetName("a")
	object.SetGenerateName("a-")
	return object
}

func TestSetControllerAddsOnlyTheReference(t *testing.T) {
	friend := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "friend", UID: "friend-uid"}
	foreign := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "other", Controller: new(true)}
	for name, tc := range map[string]struct {
		live func(*corev1.ConfigMap)
		want error
	}{
		"equal":             {func(*corev1.ConfigMap) {}, nil},
		"with additions":    {func(c *corev1.ConfigMap) { c.Annotations = map[string]string{"of": "a-backup"} }, nil},
		"of a friend":       {func(c *corev1.ConfigMap) { c.OwnerReferences = []metav1.OwnerReference{friend} }, nil},
		"another value":     {func(c *corev1.ConfigMap) { c.Data["key"] = "2" }, errNotAdoptable},
		"without the value": {func(c *corev1.ConfigMap) { c.Data = nil }, errNotAdoptable},
		"controlled":        {func(c *corev1.ConfigMap) { c.OwnerReferences = []metav1.OwnerReference{foreign} }, errNotAdoptable},
		"terminating": {func(c *corev1.ConfigMap) {
			c.Finalizers, c.DeletionTimestamp = []string{"example.com/hold"}, &metav1.Time{Time: time.Unix(1700000000, 0)}
		}, errNotAdoptable},
	} {
		t.Run(name, func(t *testing.T) {
			aw := wrapper([]string{wrappedPod("p")})
			w := newFixture(t, aw, restoredMap(tc.live))
			get := func() *corev1.ConfigMap {
				live := &corev1.ConfigMap{}
				if err := w.server.Get(t.Context(), client.ObjectKey{Namespace: awKey.Namespace, Name: "a"}, live); err != nil {
					t.Fatal(err)
				}
				return live
			}
			before := get()
			if uid, err := w.setController(t.Context(), aw, mapFromTemplate()); !errors.Is(err, tc.want) || err == nil && uid != "restored" {
				t.Fatalf("uid %q, error %v, want %v", uid, err, tc.want)
			}
			after := get()
			if metav1.IsControlledBy(after, aw) != (tc.want == nil) || tc.want == nil && len(after.OwnerReferences) != len(before.OwnerReferences)+1 {
				t.Errorf("owner references %+v", after.OwnerReferences)
			}
			after.OwnerReferences, after.ResourceVersion, after.ManagedFields = before.OwnerReferences, before.ResourceVersion, before.ManagedFields
			if !equality.Semantic.DeepEqual(before, after) {
				t.Errorf("more was written: %+v", after)
			}
		})
	}
}

// An object that another client writes between the dry run and the patch is not adopted.
func TestSetControllerConflictsWithConcurrentWrite(t *testing.T) {
	aw := wrapper([]string{wrappedPod("p")})
	w := newFixture(t, aw, restoredMap(func(*corev1.ConfigMap) {}))
	key := client.ObjectKey{Namespace: awKey.Namespace, Name: "a"}
	w.before = func(request string) error {
		if request != "patch ConfigMap a" {
			return nil
		}
		live := &corev1.ConfigMap{}
		if err := w.server.Get(t.Context(), key, live); err != nil {
			return err
		}
		live.Labels = map[string]string{"new": "1"}
		return w.server.Update(t.Context(), live)
	}
	if _, err := w.setController(t.Context(), aw, mapFromTemplate()); !apierrors.IsConflict(err) {
		t.Errorf("error %v", err)
	}
	live := &corev1.ConfigMap{}
	if err := w.server.Get(t.Context(), key, live); err != nil || metav1.IsControlledBy(live, aw) {
		t.Errorf("error %v, owner references %+v", err, live.OwnerReferences)
	}
}

// A terminating AppWrapper adopts nothing: the object would be collected with it.
func TestTerminatingAppWrapperAdoptsNothing(t *testing.T) {
	aw := wrapper([]string{wrappedPod("p")})
	terminating := aw.DeepCopy()
	terminating.Finalizers, terminating.DeletionTimestamp = []string{"example.com/hold"}, &metav1.Time{Time: noon}
	w := newFixture(t, terminating, restoredMap(func(*corev1.ConfigMap) {}))
	if _, err := w.setController(t.Context(), aw, mapFromTemplate()); err != nil {
		t.Fatal(err)
	}
	if count(w.writes, "patch ConfigMap a") != 0 {
		t.Errorf("got requests %q", w.writes)
	}
}
