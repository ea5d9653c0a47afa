package apply

import (
	"cmp"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// existingConfigMap returns a ConfigMap that exists before the first apply.
func existingConfigMap(change func(*corev1.ConfigMap)) *corev1.ConfigMap {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}, Data: map[string]string{"key": "old", "old": "1"}}
	change(object)
	return object
}

func ownerReference(name string, uid types.UID, controls bool) metav1.OwnerReference {
	ref := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: uid}
	if controls {
		ref.Controller = new(true)
	}
	return ref
}

func TestCheckForeign(t *testing.T) {
	for name, test := range map[string]struct {
		change    func(*corev1.ConfigMap)
		manager   string // the field manager that created it; default: them
		ownership Ownership
		adoptable bool
		want      string // the error; empty if the object is adopted
	}{
		"created by another client": {change: func(*corev1.ConfigMap) {},
			want: "ConfigMap ns/a exists and was not created by this operator; delete it or recreate it under another name, and the operator will create its own"},
		"only the field manager of a legacy operator": {change: func(*corev1.ConfigMap) {}, manager: "old",
			want: "ConfigMap ns/a exists and was not created by this operator; delete it or recreate it under another name, and the operator will create its own"},
		"created by another client, AdoptIf returns true": {change: func(*corev1.ConfigMap) {}, adoptable: true},
		"controlled by the owner": {change: func(c *corev1.ConfigMap) {
			c.OwnerReferences = []metav1.OwnerReference{ownerReference("owner", "owner-uid", true)}
		}},
		"owned by the owner": {change: func(c *corev1.ConfigMap) {
			c.OwnerReferences = []metav1.OwnerReference{ownerReference("owner", "owner-uid", false)}
		}},
		"owned by a previous owner of the same name": {change: func(c *corev1.ConfigMap) {
			c.OwnerReferences = []metav1.OwnerReference{ownerReference("owner", "earlier", true)}
		}},
		"managed labels": {change: func(c *corev1.ConfigMap) { c.Labels = names.Labels("test") }},
		"unknown component label": {change: func(c *corev1.ConfigMap) { c.Labels = names.Labels("other") },
			want: "ConfigMap ns/a exists and was not created by this operator; delete it or recreate it under another name, and the operator will create its own"},
		"created by our field manager": {change: func(*corev1.ConfigMap) {}, manager: us},
		"labels of another component, created by our field manager": {change: func(c *corev1.ConfigMap) { c.Labels = names.Labels("mlflow") }, manager: us,
			want: "ConfigMap ns/a exists and belongs to component mlflow; delete it or recreate it under another name, and the operator will create its own"},
		"labels of another component, AdoptIf returns true": {change: func(c *corev1.ConfigMap) { c.Labels = names.Labels("mlflow") }, adoptable: true,
			want: "ConfigMap ns/a exists and belongs to component mlflow; delete it or recreate it under another name, and the operator will create its own"},
		"unknown component label, created by our field manager": {change: func(c *corev1.ConfigMap) { c.Labels = names.Labels("nonsense") }, manager: us},
		"managed labels, controlled by another object, AdoptIf returns true": {change: func(c *corev1.ConfigMap) {
			c.Labels = names.Labels("test")
			c.OwnerReferences = []metav1.OwnerReference{ownerReference("another", "another-uid", true)}
		}, adoptable: true, want: "ConfigMap ns/a exists and belongs to ConfigMap another; delete it or recreate it under another name, and the operator will create its own"},
		"managed labels, controlled by another object, Owned": {change: func(c *corev1.ConfigMap) {
			c.Labels = names.Labels("test")
			c.OwnerReferences = []metav1.OwnerReference{ownerReference("another", "another-uid", true)}
		}, ownership: Owned},
		"owned by an object of another group": {change: func(c *corev1.ConfigMap) {
			ref := ownerReference("owner", "another-uid", false)
			ref.APIVersion = "example.com/v1"
			c.OwnerReferences = []metav1.OwnerReference{ref}
		}, want: "ConfigMap ns/a exists and was not created by this operator; delete it or recreate it under another name, and the operator will create its own"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newTestApplier(t)
			a.must(a.server.Create(t.Context(), existingConfigMap(test.change), client.FieldOwner(cmp.Or(test.manager, "them"))))
			object := newConfigMap("a", "1")
			object.Ownership = test.ownership
			if test.adoptable {
				object.AdoptIf = func(live *unstructured.Unstructured) bool { return live.GetName() == "a" }
			}
			clear(a.seen)
			err := a.Apply(t.Context(), a.owner, Desired{object})
			if test.want == "" {
				if err != nil || a.get("a").Data["key"] != "1" {
					t.Fatalf("the object was not adopted: %v", err)
				}
				a.expectApply(noRequests, object)
				return
			}
			foreign, ok := errors.AsType[*ForeignError](err)
			if !ok || foreign.Error() != test.want {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
			if a.seen["apply"]+a.seen["patch"] > 0 || a.get("a").Data["key"] != "old" {
				t.Error("a foreign object was written")
			}
		})
	}
}

func TestApplyIgnoresForeignObjectWithIgnoreIfForeign(t *testing.T) {
	a := newTestApplier(t)
	optional := newConfigMap("a", "1")
	optional.IgnoreIfForeign = true
	a.must(a.server.Create(t.Context(), existingConfigMap(func(*corev1.ConfigMap) {}), client.FieldOwner("them")))
	for range 2 {
		a.expectApply(oneRead, optional)
	}
	if live := a.get("a"); live.Data["key"] != "old" || len(live.Labels)+len(live.OwnerReferences) > 0 {
		t.Errorf("a foreign object was written: %+v", live)
	}
	a.must(a.server.Delete(t.Context(), a.get("a")))
	a.expectApply(readAndApply, optional)
	a.expectApply(noRequests, optional)
	if a.get("a").Data["key"] != "1" {
		t.Error("the object was not created after its name became free")
	}
}

func TestAdoptionRemovesFieldsOfLegacyManagers(t *testing.T) {
	owned := func(c *corev1.ConfigMap) {
		c.OwnerReferences = []metav1.OwnerReference{ownerReference("owner", "owner-uid", true)}
	}
	for name, test := range map[string]struct {
		manager, requests string
		pruned            bool
	}{
		"legacy manager":  {"old", readPatchAndApply, true},
		"own updates":     {us, readPatchAndApply, true},
		"foreign manager": {"them", readAndApply, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := newTestApplier(t)
			a.must(a.server.Create(t.Context(), existingConfigMap(owned), client.FieldOwner(test.manager)))
			a.expectApply(test.requests, newConfigMap("a", "1"))
			if _, found := a.get("a").Data["old"]; found == test.pruned {
				t.Errorf("unexpected data: %v", a.get("a").Data)
			}
			a.restart()
			a.expectApply(oneRead, newConfigMap("a", "1"))
		})
	}
}

func TestAdoptionHappensOnce(t *testing.T) {
	a := newTestApplier(t)
	a.expectApply(oneApply, newConfigMap("a", "1"))
	object := a.get("a")
	object.Data["theirs"] = "1"
	a.must(a.server.Update(t.Context(), object, client.FieldOwner("old"))) // another client with the name of a legacy manager
	a.restart()
	a.expectApply(oneRead, newConfigMap("a", "1"))
	if a.get("a").Data["theirs"] != "1" {
		t.Error("a later addition of a legacy manager was removed")
	}
}

func TestAdoptionOfAppliedObjectNeedsOneWrite(t *testing.T) {
	a := newTestApplier(t)
	older := corev1ac.ConfigMap("a", "ns").WithData(map[string]string{"key": "1", "old": "1"})
	a.must(a.server.Apply(t.Context(), older, client.FieldOwner(us)))
	a.expectApply(readAndApply, newConfigMap("a", "1"))
	if data := a.get("a").Data; len(data) != 1 {
		t.Errorf("unexpected data: %v", data)
	}
}

func TestAdoptionDropsStaleOwnerReferences(t *testing.T) {
	for name, test := range map[string]struct {
		refs      []metav1.OwnerReference
		ownership Ownership
		want      []types.UID
	}{
		"previous owner of the same name": {[]metav1.OwnerReference{ownerReference("owner", "earlier", true)}, Controlled, []types.UID{"owner-uid"}},
		"owner of an Unowned object":      {[]metav1.OwnerReference{ownerReference("owner", "owner-uid", true)}, Unowned, nil},
		"foreign and previous owner": {[]metav1.OwnerReference{ownerReference("other", "other-uid", false), ownerReference("owner", "earlier", false)},
			Owned, []types.UID{"other-uid", "owner-uid"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newTestApplier(t)
			a.must(a.server.Create(t.Context(), existingConfigMap(func(c *corev1.ConfigMap) { c.OwnerReferences = test.refs }), client.FieldOwner("velero")))
			object := newConfigMap("a", "1")
			object.Ownership = test.ownership
			a.expectApply(readPatchAndApply, object)
			var got []types.UID
			for _, ref := range a.get("a").OwnerReferences {
				got = append(got, ref.UID)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got owners %v, want %v", got, test.want)
			}
			a.expectApply(noRequests, object)
		})
	}
}

// The patch of the adoption removes the references that DropOwnerReferences selects. A legacy controller does not make the object foreign.
func TestAdoptionDropsOwnerReferences(t *testing.T) {
	for name, test := range map[string]struct {
		refs      []metav1.OwnerReference
		ownership Ownership
		want      []types.UID
	}{
		"legacy owner":                      {[]metav1.OwnerReference{ownerReference("legacy", "legacy-uid", false)}, Controlled, []types.UID{"owner-uid"}},
		"legacy controller":                 {[]metav1.OwnerReference{ownerReference("legacy", "legacy-uid", true)}, Controlled, []types.UID{"owner-uid"}},
		"legacy owner of an Unowned object": {[]metav1.OwnerReference{ownerReference("legacy", "legacy-uid", false)}, Unowned, nil},
		"legacy and foreign owner":          {[]metav1.OwnerReference{ownerReference("legacy", "f", false), ownerReference("other", "o", false)}, Owned, []types.UID{"o", "owner-uid"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newTestApplier(t)
			a.must(a.server.Create(t.Context(), existingConfigMap(func(c *corev1.ConfigMap) { c.OwnerReferences = test.refs }), client.FieldOwner("them")))
			object := newConfigMap("a", "1")
			object.Ownership = test.ownership
			object.AdoptIf = func(*unstructured.Unstructured) bool { return true }
			object.DropOwnerReferences = func(ref metav1.OwnerReference) bool { return ref.Name == "legacy" }
			a.expectApply(readPatchAndApply, object)
			var got []types.UID
			for _, ref := range a.get("a").OwnerReferences {
				got = append(got, ref.UID)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got owners %v, want %v", got, test.want)
			}
			a.expectApply(noRequests, object)
		})
	}
}

func TestAdoptionStripsLegacyAnnotations(t *testing.T) {
	a := newTestApplier(t)
	a.StripAnnotations = []string{"example.com/last~applied", "example.com/absent"}
	a.must(a.server.Create(t.Context(), existingConfigMap(func(c *corev1.ConfigMap) {
		c.Labels = names.Labels("test")
		c.Annotations = map[string]string{"example.com/last~applied": "x", "theirs": "1"}
	}), client.FieldOwner("them")))
	a.expectApply(readPatchAndApply, newConfigMap("a", "1"))
	if got := a.get("a").Annotations; len(got) != 1 || got["theirs"] != "1" {
		t.Errorf("unexpected annotations: %v", got)
	}
	a.restart()
	a.StripAnnotations = []string{"example.com/last~applied"}
	a.expectApply(oneRead, newConfigMap("a", "1"))
}

func TestAdoptionReportsErrors(t *testing.T) {
	a := newTestApplier(t)
	a.must(a.server.Create(t.Context(), existingConfigMap(func(c *corev1.ConfigMap) {
		c.OwnerReferences = []metav1.OwnerReference{ownerReference("owner", "owner-uid", true)}
	}), client.FieldOwner("old")))
	a.failing["patch"] = errors.New("no")
	err := a.tryApply("live=1 apply=0 patch=1", newConfigMap("a", "1"))
	if want := "applying ConfigMap ns/a: patching it: no"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
