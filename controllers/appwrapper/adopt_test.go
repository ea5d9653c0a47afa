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

func restoredConfigMap(change func(*corev1.ConfigMap)) *corev1.ConfigMap {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: awKey.Namespace, Name: "a", UID: "restored"}, Data: map[string]string{"key": "1"}}
	change(object)
	return object
}

func configMapFromTemplate() *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"key": "1"}}}
	object.SetNamespace(awKey.Namespace)
	object.SetName("a")
	object.SetGenerateName("a-")
	return object
}

func TestSetControllerAddsOnlyTheReference(t *testing.T) {
	ownerReference := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "owner-uid"}
	controllerReference := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "other", Controller: new(true)}
	for name, tc := range map[string]struct {
		live func(*corev1.ConfigMap)
		want error
	}{
		"equal to the template":          {func(*corev1.ConfigMap) {}, nil},
		"additional annotation":          {func(c *corev1.ConfigMap) { c.Annotations = map[string]string{"of": "a-backup"} }, nil},
		"owner that is not a controller": {func(c *corev1.ConfigMap) { c.OwnerReferences = []metav1.OwnerReference{ownerReference} }, nil},
		"different value":                {func(c *corev1.ConfigMap) { c.Data["key"] = "2" }, errNotAdoptable},
		"missing value":                  {func(c *corev1.ConfigMap) { c.Data = nil }, errNotAdoptable},
		"another controller":             {func(c *corev1.ConfigMap) { c.OwnerReferences = []metav1.OwnerReference{controllerReference} }, errNotAdoptable},
		"terminating": {func(c *corev1.ConfigMap) {
			c.Finalizers, c.DeletionTimestamp = []string{"example.com/hold"}, &metav1.Time{Time: time.Unix(1700000000, 0)}
		}, errNotAdoptable},
	} {
		t.Run(name, func(t *testing.T) {
			aw := newAppWrapper([]string{podJSON("p")})
			f := newFixture(t, aw, restoredConfigMap(tc.live))
			get := func() *corev1.ConfigMap {
				live := &corev1.ConfigMap{}
				if err := f.server.Get(t.Context(), client.ObjectKey{Namespace: awKey.Namespace, Name: "a"}, live); err != nil {
					t.Fatal(err)
				}
				return live
			}
			before := get()
			if uid, err := f.setController(t.Context(), aw, configMapFromTemplate()); !errors.Is(err, tc.want) || err == nil && uid != "restored" {
				t.Fatalf("got UID %q, error %v, want error %v", uid, err, tc.want)
			}
			after := get()
			if metav1.IsControlledBy(after, aw) != (tc.want == nil) || tc.want == nil && len(after.OwnerReferences) != len(before.OwnerReferences)+1 {
				t.Errorf("got owner references %+v, want one more: %t", after.OwnerReferences, tc.want == nil)
			}
			after.OwnerReferences, after.ResourceVersion, after.ManagedFields = before.OwnerReferences, before.ResourceVersion, before.ManagedFields
			if !equality.Semantic.DeepEqual(before, after) {
				t.Errorf("got %+v, want no other change", after)
			}
		})
	}
}

// An object that another client writes between the dry run and the patch is not adopted.
func TestSetControllerConflictsWithConcurrentWrite(t *testing.T) {
	aw := newAppWrapper([]string{podJSON("p")})
	f := newFixture(t, aw, restoredConfigMap(func(*corev1.ConfigMap) {}))
	key := client.ObjectKey{Namespace: awKey.Namespace, Name: "a"}
	f.beforeRequest = func(request string) error {
		if request != "patch ConfigMap a" {
			return nil
		}
		live := &corev1.ConfigMap{}
		if err := f.server.Get(t.Context(), key, live); err != nil {
			return err
		}
		live.Labels = map[string]string{"new": "1"}
		return f.server.Update(t.Context(), live)
	}
	if _, err := f.setController(t.Context(), aw, configMapFromTemplate()); !apierrors.IsConflict(err) {
		t.Errorf("got error %v, want a conflict", err)
	}
	live := &corev1.ConfigMap{}
	if err := f.server.Get(t.Context(), key, live); err != nil || metav1.IsControlledBy(live, aw) {
		t.Errorf("got error %v, owner references %+v, want the object not controlled by the AppWrapper", err, live.OwnerReferences)
	}
}

// A terminating AppWrapper adopts no object: garbage collection would delete the object.
func TestTerminatingAppWrapperAdoptsNothing(t *testing.T) {
	aw := newAppWrapper([]string{podJSON("p")})
	terminating := aw.DeepCopy()
	terminating.Finalizers, terminating.DeletionTimestamp = []string{"example.com/hold"}, &metav1.Time{Time: noon}
	f := newFixture(t, terminating, restoredConfigMap(func(*corev1.ConfigMap) {}))
	if _, err := f.setController(t.Context(), aw, configMapFromTemplate()); err != nil {
		t.Fatal(err)
	}
	if countRequests(f.writes, "patch ConfigMap a") != 0 {
		t.Errorf("got writes %q, want no patch of the ConfigMap", f.writes)
	}
}
