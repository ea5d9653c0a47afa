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
		refusal  error
		replaced []string
	}{
		"value for valueFrom":          {invalid(container.Child("env").Index(1).Child("valueFrom")), []string{template}},
		"a strategy with parameters":   {invalid(field.NewPath("spec", "strategy", "rollingUpdate")), []string{strategy}},
		"two conflicts":                {invalid(pod.Child("volumes").Index(0).Child("secret"), container.Child("livenessProbe"), field.NewPath("spec", "strategy")), []string{template, strategy}},
		"a field that we do not apply": {invalid(field.NewPath("spec", "replicas")), nil},
		"other field is invalid":       {invalid(field.NewPath("metadata", "annotations").Key("a.b/c"), field.NewPath("spec")), nil},
		"an error without causes":      {errors.New("no"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			live := &unstructured.Unstructured{Object: tree(t, `{spec: {replicas: 2, strategy: {rollingUpdate: {}}, template: {spec: {containers: []}}}}`)}
			want := live.DeepCopy()
			for _, name := range test.replaced {
				want.Object["spec"].(map[string]any)[name] = desired.Object["spec"].(map[string]any)[name]
			}
			if got := replaceInvalidFields(live, desired, test.refusal); got != (len(test.replaced) > 0) {
				t.Errorf("reported %v", got)
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

// uidOf returns the uid of an apply request.
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

// An immutable ConfigMap is recreated, by uid and once. Data and foreign objects are not recreated.
func TestImmutableObjects(t *testing.T) {
	const sticks, renewed = "old", "1"
	for name, test := range map[string]struct {
		change func(*Object, *corev1.ConfigMap)
		want   string
		fails  bool
	}{
		"recreated":         {func(*Object, *corev1.ConfigMap) {}, renewed, false},
		"not when it keeps": {func(o *Object, _ *corev1.ConfigMap) { o.NeverDelete = true }, sticks, true},
		"object that outlives its owner": {func(o *Object, c *corev1.ConfigMap) {
			o.Ownership, c.OwnerReferences = Unowned, nil
		}, sticks, true},
		"rejected for another reason": {func(_ *Object, c *corev1.ConfigMap) { c.Immutable = nil }, sticks, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestApplier(t)
			object := settings("a", renewed)
			live := existingConfigMap(func(c *corev1.ConfigMap) {
				c.Immutable = new(true)
				c.OwnerReferences = []metav1.OwnerReference{ownerReference("owner", "owner-uid", true)}
			})
			test.change(&object, live)
			b.must(b.server.Create(t.Context(), live, client.FieldOwner(us)))
			b.refuseChanges()
			err := b.Apply(t.Context(), b.owner, Desired{object})
			if (err != nil) != test.fails || b.get("a").Data["key"] != test.want {
				t.Errorf("data %v, error %v", b.get("a").Data, err)
			}
			if deletions := b.seen["delete"]; deletions > 0 == test.fails {
				t.Errorf("%d deletions", deletions)
			}
		})
	}
}

// refuseChanges makes the server reject each apply to an existing ConfigMap, like a real one does for immutable ones.
func (b *testApplier) refuseChanges() {
	b.Helper()
	inner, ok := b.Client.(client.WithWatch)
	if !ok {
		b.Fatal("the client of the bench cannot watch")
	}
	b.Client = interceptor.NewClient(inner, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			k := Object{Config: config}.Key()
			if err := b.server.Get(ctx, k.NamespacedName, &corev1.ConfigMap{}); err == nil {
				return invalid(field.NewPath("data"))
			}
			return c.Apply(ctx, config, opts...)
		},
	})
}

// An update has the uid of the object, so it fails for a recreated one.
func TestUpdateHasUID(t *testing.T) {
	b := newTestApplier(t)
	b.must(b.server.Create(t.Context(), existingConfigMap(func(c *corev1.ConfigMap) {
		c.UID = "the-first"
		c.OwnerReferences = []metav1.OwnerReference{ownerReference("owner", "owner-uid", true)}
	}), client.FieldOwner(us)))
	var sent []string
	inner, _ := b.Client.(client.WithWatch)
	b.Client = interceptor.NewClient(inner, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			sent = append(sent, uidOf(t, config))
			return c.Apply(ctx, config, opts...)
		},
	})
	b.must(b.Apply(t.Context(), b.owner, Desired{settings("a", "1"), settings("b", "1")})) // looked at, and made
	b.must(b.Apply(t.Context(), b.owner, Desired{settings("a", "2")}))                     // from memory
	if diff := cmp.Diff([]string{"the-first", "", "the-first"}, sent); diff != "" {
		t.Errorf("uids in the requests (-want +got):\n%s", diff)
	}
}

// An object that another client creates concurrently is not overwritten, and reported.
func TestApplyConflictsWithConcurrentCreate(t *testing.T) {
	for name, foreignData := range map[string]map[string]string{"nothing in common": {"theirs": "1"}, "the same field": {"key": "theirs"}} {
		t.Run(name, func(t *testing.T) {
			b := newTestApplier(t)
			inner, _ := b.Client.(client.WithWatch)
			first := true
			b.Client = interceptor.NewClient(inner, interceptor.Funcs{
				Apply: func(ctx context.Context, c client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
					if first {
						first = false
						b.must(b.server.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}, Data: foreignData}, client.FieldOwner("them")))
					}
					return c.Apply(ctx, config, opts...)
				},
			})
			if err := b.Apply(t.Context(), b.owner, Desired{settings("a", "ours")}); err == nil {
				t.Error("want the error of the repair reported")
			}
			got := b.get("a")
			if diff := cmp.Diff(foreignData, got.Data); diff != "" || len(got.Labels) > 0 || len(got.OwnerReferences) > 0 {
				t.Errorf("labels %v, owners %v, data (-want +got):\n%s", got.Labels, got.OwnerReferences, diff)
			}
			if err := b.Apply(t.Context(), b.owner, Desired{settings("a", "ours")}); !IsBlocked(err) {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}
