package apply

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"
)

// invalid returns the error of the API server for invalid fields.
func invalid(fields ...*field.Path) error {
	var list field.ErrorList
	for _, path := range fields {
		list = append(list, field.Forbidden(path, "no"))
	}
	return apierrors.NewInvalid(configMapKind.GroupKind(), "a", list)
}

func TestReplaceInvalidFields(t *testing.T) {
	pod := field.NewPath("spec", "template", "spec")
	container := pod.Child("containers").Index(0)
	desired := &unstructured.Unstructured{Object: tree(t, `{spec: {strategy: {type: Recreate}, template: {spec: {volumes: [{name: keys}]}}}}`)}
	const strategy, template = "strategy", "template"
	for name, test := range map[string]struct {
		err      error
		replaced []string
	}{
		"value for valueFrom":             {invalid(container.Child("env").Index(1).Child("valueFrom")), []string{template}},
		"strategy with parameters":        {invalid(field.NewPath("spec", "strategy", "rollingUpdate")), []string{strategy}},
		"two conflicts":                   {invalid(pod.Child("volumes").Index(0).Child("secret"), container.Child("livenessProbe"), field.NewPath("spec", "strategy")), []string{template, strategy}},
		"field that is not applied":       {invalid(field.NewPath("spec", "replicas")), nil},
		"fields that are not below spec":  {invalid(field.NewPath("metadata", "annotations").Key("a.b/c"), field.NewPath("spec")), nil},
		"error that is not a StatusError": {errors.New("no"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			live := &unstructured.Unstructured{Object: tree(t, `{spec: {replicas: 2, strategy: {rollingUpdate: {}}, template: {spec: {containers: []}}}}`)}
			want := live.DeepCopy()
			for _, name := range test.replaced {
				want.Object["spec"].(map[string]any)[name] = desired.Object["spec"].(map[string]any)[name]
			}
			if got := replaceInvalidFields(live, desired, test.err); got != (len(test.replaced) > 0) {
				t.Errorf("replaceInvalidFields returned %v, want %v", got, !got)
			}
			if diff := cmp.Diff(want, live); diff != "" {
				t.Errorf("object (-want +got):\n%s", diff)
			}
		})
	}
}

func tree(t *testing.T, text string) map[string]any {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte("{apiVersion: v1, kind: X, "+strings.TrimPrefix(text, "{")), &u); err != nil {
		t.Fatal(err)
	}
	return u.Object
}

// uidOf returns the UID in an apply request.
func uidOf(t *testing.T, config runtime.ApplyConfiguration) string {
	t.Helper()
	data, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	var head metav1.PartialObjectMetadata
	if err := json.Unmarshal(data, &head); err != nil {
		t.Fatal(err)
	}
	return string(head.UID)
}

// An immutable ConfigMap is deleted and recreated unless it is Unowned or has NeverDelete. A mutable one is not recreated.
func TestImmutableObjects(t *testing.T) {
	const oldValue, newValue = "old", "1"
	for name, test := range map[string]struct {
		change func(*Object, *corev1.ConfigMap)
		want   string
		fails  bool
	}{
		"recreated":   {func(*Object, *corev1.ConfigMap) {}, newValue, false},
		"NeverDelete": {func(o *Object, _ *corev1.ConfigMap) { o.NeverDelete = true }, oldValue, true},
		"Unowned": {func(o *Object, c *corev1.ConfigMap) {
			o.Ownership, c.OwnerReferences = Unowned, nil
		}, oldValue, true},
		"rejected for another reason": {func(_ *Object, c *corev1.ConfigMap) { c.Immutable = nil }, oldValue, true},
	} {
		t.Run(name, func(t *testing.T) {
			a := newTestApplier(t)
			object := newConfigMap("a", newValue)
			live := existingConfigMap(func(c *corev1.ConfigMap) {
				c.Immutable = new(true)
				c.OwnerReferences = []metav1.OwnerReference{ownerReference("owner", "owner-uid", true)}
			})
			test.change(&object, live)
			a.must(a.server.Create(t.Context(), live, client.FieldOwner(us)))
			a.rejectChanges()
			err := a.Apply(t.Context(), a.owner, Desired{object})
			if (err != nil) != test.fails || a.get("a").Data["key"] != test.want {
				t.Errorf("unexpected data %v or error %v", a.get("a").Data, err)
			}
			if got, want := a.seen["delete"], map[bool]int{false: 1}[test.fails]; got != want {
				t.Errorf("got %d deletions, want %d", got, want)
			}
		})
	}
}

// rejectChanges makes the server reject each apply to an existing ConfigMap, as the API server does for immutable ConfigMaps.
func (a *testApplier) rejectChanges() {
	a.Helper()
	inner, ok := a.Client.(client.WithWatch)
	if !ok {
		a.Fatal("the client cannot watch")
	}
	a.Client = interceptor.NewClient(inner, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			k := Object{Config: config}.Key()
			if err := a.server.Get(ctx, k.NamespacedName, &corev1.ConfigMap{}); err == nil {
				return invalid(field.NewPath("data"))
			}
			return c.Apply(ctx, config, opts...)
		},
	})
}

// An update contains the UID of the object, so it fails for a recreated object.
func TestUpdateHasUID(t *testing.T) {
	a := newTestApplier(t)
	a.must(a.server.Create(t.Context(), existingConfigMap(func(c *corev1.ConfigMap) {
		c.UID = "the-first"
		c.OwnerReferences = []metav1.OwnerReference{ownerReference("owner", "owner-uid", true)}
	}), client.FieldOwner(us)))
	var sent []string
	inner, _ := a.Client.(client.WithWatch)
	a.Client = interceptor.NewClient(inner, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			sent = append(sent, uidOf(t, config))
			return c.Apply(ctx, config, opts...)
		},
	})
	a.must(a.Apply(t.Context(), a.owner, Desired{newConfigMap("a", "1"), newConfigMap("b", "1")})) // an update after a read, and a create
	a.must(a.Apply(t.Context(), a.owner, Desired{newConfigMap("a", "2")}))                         // an update with a record
	if diff := cmp.Diff([]string{"the-first", "", "the-first"}, sent); diff != "" {
		t.Errorf("UIDs in the requests (-want +got):\n%s", diff)
	}
}

// An object that another client creates concurrently is reported and not overwritten.
func TestApplyConflictsWithConcurrentCreate(t *testing.T) {
	for name, foreignData := range map[string]map[string]string{"different fields": {"theirs": "1"}, "the same field": {"key": "theirs"}} {
		t.Run(name, func(t *testing.T) {
			a := newTestApplier(t)
			inner, _ := a.Client.(client.WithWatch)
			first := true
			a.Client = interceptor.NewClient(inner, interceptor.Funcs{
				Apply: func(ctx context.Context, c client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
					if first {
						first = false
						a.must(a.server.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}, Data: foreignData}, client.FieldOwner("them")))
					}
					return c.Apply(ctx, config, opts...)
				},
			})
			if err := a.Apply(t.Context(), a.owner, Desired{newConfigMap("a", "ours")}); err == nil {
				t.Error("want an error for the concurrent create")
			}
			got := a.get("a")
			if diff := cmp.Diff(foreignData, got.Data); diff != "" || len(got.Labels) > 0 || len(got.OwnerReferences) > 0 {
				t.Errorf("labels %v, owners %v, data (-want +got):\n%s", got.Labels, got.OwnerReferences, diff)
			}
			if err := a.Apply(t.Context(), a.owner, Desired{newConfigMap("a", "ours")}); !IsBlocked(err) {
				t.Errorf("got error %v from the next apply, want a blocked object", err)
			}
		})
	}
}
