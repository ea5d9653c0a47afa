package modelmesh

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/test/meshtest"
)

// The label enables a namespace; the operator's namespace is enabled without it.
func TestNamespaceEnabledByLabel(t *testing.T) {
	going := meshtest.Namespace("going", "true")
	going.Finalizers, going.DeletionTimestamp = []string{"x/y"}, &metav1.Time{Time: time.Unix(1, 0)}
	all := []client.Object{
		meshtest.Namespace("yes", "true"), meshtest.Namespace("no", "false"), meshtest.Namespace("odd", "True"), meshtest.Namespace("plain", ""), going,
	}
	for name, tc := range map[string]struct {
		own  *corev1.Namespace
		want []string
	}{
		"the manager's own without a label": {meshtest.Namespace("own", ""), []string{"own", "yes"}},
		"with the label":                    {meshtest.Namespace("own", "true"), []string{"own", "yes"}},
		"with another value":                {meshtest.Namespace("own", "false"), []string{"yes"}},
	} {
		t.Run(name, func(t *testing.T) {
			n := &Namespaces{OperatorNamespace: "own", Cache: meshtest.Cache{Reader: meshtest.LabelledOnly(append(slices.Clone(all), tc.own)...)}}
			got, err := n.List(t.Context())
			if err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("%v, %v, want %v", got, err, tc.want)
			}
			for _, namespace := range []string{"yes", "no", "odd", "plain", "going", "own", "absent"} {
				on, err := n.Enabled(t.Context(), namespace)
				if err != nil || on != slices.Contains(tc.want, namespace) {
					t.Errorf("%s: Enabled returned %v, error %v", namespace, on, err)
				}
			}
			if all := n.Requests(t.Context()); len(all) != len(tc.want) || all[0].Name != tc.want[0] || all[0].Namespace != "" {
				t.Errorf("Requests returned %v, want the enabled namespaces", all)
			}
			if _, watched := n.Source(nil); !watched || n.SingleNamespace() {
				t.Error("the namespaces are not watched")
			}
		})
	}
}

// In a single-namespace installation no namespace is read.
func TestSingleNamespaceIgnoresLabels(t *testing.T) {
	n, err := NewNamespaces(nil, "own", true)
	if err != nil {
		t.Fatal(err)
	}
	list, err := n.List(t.Context())
	if err != nil || !slices.Equal(list, []string{"own"}) {
		t.Errorf("unexpected list %v, error %v", list, err)
	}
	for name, want := range map[string]bool{"own": true, "other": false} {
		if on, err := n.Enabled(t.Context(), name); err != nil || on != want {
			t.Errorf("%s: Enabled returned %v, error %v", name, on, err)
		}
	}
	if _, watched := n.Source(nil); watched || !n.SingleNamespace() {
		t.Error("namespaces are watched in single-namespace mode")
	}
}

// [M11] A namespace that cannot be read does not count as disabled.
func TestEnabledReturnsReadErrors(t *testing.T) {
	broken := errors.New("no cache")
	reader := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return broken
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return broken },
	})
	n := &Namespaces{OperatorNamespace: "own", Cache: meshtest.Cache{Reader: reader}}
	if _, err := n.Enabled(t.Context(), "own"); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if _, err := n.List(t.Context()); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

func TestStripNamespace(t *testing.T) {
	m := capability.MetadataOf(namespaceKind)
	m.Name, m.Labels = "a", map[string]string{LabelEnabled: "true", LabelEnforce: "restricted", "more": "x"}
	m.Annotations, m.ManagedFields = map[string]string{"a": "b"}, []metav1.ManagedFieldsEntry{{}}
	out, err := stripNamespace(m)
	if err != nil || len(m.Labels) != 2 || m.Annotations != nil || m.ManagedFields != nil || out != any(m) {
		t.Errorf("stripNamespace returned %+v, error %v, want only the labels kept", out, err)
	}
	for _, other := range []any{toolscache.DeletedFinalStateUnknown{Key: "a"}, runtime.Object(&corev1.Pod{})} {
		if got, err := stripNamespace(other); err != nil || got == nil {
			t.Errorf("stripNamespace of another type returned %v, error %v, want it unchanged", got, err)
		}
	}
}

// A namespace without the label is read from the API server; the operator's namespace only once.
func TestGetMetadata(t *testing.T) {
	reads := 0
	live := interceptor.NewClient(fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(meshtest.Namespace("own", "")).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			reads++
			return c.Get(ctx, key, o, opts...)
		},
	})
	n := &Namespaces{OperatorNamespace: "own", APIReader: live, Cache: meshtest.Cache{Reader: meshtest.LabelledOnly(meshtest.Namespace("labelled", "false"))}}
	for _, c := range []struct {
		name, uid string
		reads     int
	}{{"labelled", "uid-of-labelled", 0}, {"own", "uid-of-own", 1}, {"own", "uid-of-own", 0}, {"gone", "", 1}} {
		reads = 0
		head, err := n.GetMetadata(t.Context(), c.name)
		if err != nil || (head == nil) != (c.uid == "") || head != nil && string(head.UID) != c.uid || reads != c.reads {
			t.Errorf("%s: %+v after %d reads, error %v", c.name, head, reads, err)
		}
	}
	n.Cache = meshtest.Cache{Reader: brokenReader{}}
	if _, err := n.GetMetadata(t.Context(), "own"); err == nil {
		t.Error("want the error of the cache returned")
	}
}

type brokenReader struct{ client.Reader }

func (brokenReader) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("no memory")
}
