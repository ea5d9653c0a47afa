package apply

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

func TestCreateWritesOnce(t *testing.T) {
	b := newBench(t)
	b.must(b.Create(t.Context(), b.owner, settings("a", "1")))
	first := b.get("a")
	if first.Labels[names.ComponentLabel] != "test" || !metav1.IsControlledBy(first, b.owner) || first.Data["key"] != "1" {
		t.Errorf("created %+v", first)
	}
	b.must(b.Create(t.Context(), b.owner, settings("a", "2")))
	if again := b.get("a"); again.UID != first.UID || again.Data["key"] != "1" {
		t.Errorf("what is made once was changed: %+v", again)
	}
	if b.seen["apply"]+b.seen["patch"] != 0 {
		t.Errorf("requests: %v", b.seen)
	}
}

func TestCreateLeavesOthersAlone(t *testing.T) {
	theirs := metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: "boss", UID: "else", Controller: new(true)}
	earlier := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "earlier life", Controller: new(true)}
	for name, c := range map[string]struct {
		change     func(*corev1.ConfigMap)
		controller string
	}{
		"of nobody":            {func(*corev1.ConfigMap) {}, ""},
		"of another":           {func(o *corev1.ConfigMap) { o.OwnerReferences = []metav1.OwnerReference{theirs} }, "Secret boss"},
		"with our labels only": {func(o *corev1.ConfigMap) { o.Labels = names.Labels("test") }, ""},
		"of an earlier life of owners": {func(o *corev1.ConfigMap) {
			o.Labels, o.OwnerReferences = names.Labels("test"), []metav1.OwnerReference{earlier}
		}, "ConfigMap owner"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, found(c.change))
			before := b.get("a")
			err := b.Create(t.Context(), b.owner, settings("a", "mine"))
			foreign, ok := errors.AsType[*ForeignError](err)
			if !ok || foreign.Name != "a" || foreign.Controller != c.controller {
				t.Errorf("error %v", err)
			}
			if b.get("a").ResourceVersion != before.ResourceVersion {
				t.Error("it was written")
			}
		})
	}
}

func TestCreatePassesErrorsOn(t *testing.T) {
	b := newBench(t, found(func(*corev1.ConfigMap) {}))
	b.failing["live"] = errors.New("gone away")
	if err := b.Create(t.Context(), b.owner, settings("a", "1")); !errors.Is(err, b.failing["live"]) {
		t.Errorf("reading the one that is there: %v", err)
	}
	for name, object := range map[string]Object{"an unknown form": {Config: odd{}}, "another namespace": {Config: corev1ac.ConfigMap("a", "elsewhere")}} {
		if failed, ok := errors.AsType[*Error](b.Create(t.Context(), b.owner, object)); !ok || failed.Err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if b.Create(t.Context(), &unknown{}, settings("a", "1")) == nil || b.Delete(t.Context(), &unknown{}) == nil {
		t.Error("an object of unknown kind: no error")
	}
}

func TestDeleteRemovesExactlyOne(t *testing.T) {
	b := newBench(t, found(func(o *corev1.ConfigMap) { o.UID = "a-uid" }))
	live := b.get("a")
	if err := b.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}); err == nil || b.seen["delete"] != 0 {
		t.Errorf("without a uid: %v", err)
	}
	for range 2 { // the second time it is gone
		b.must(b.Delete(t.Context(), live))
	}
	if err := b.server.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "a"}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("after the deletion: %v", err)
	}
	b.failing["delete"] = apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("another uid"))
	b.must(b.Delete(t.Context(), live))
	b.failing["delete"] = errors.New("gone away")
	if err := b.Delete(t.Context(), live); !errors.Is(err, b.failing["delete"]) {
		t.Errorf("error %v", err)
	}
}
