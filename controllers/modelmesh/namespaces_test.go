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

	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/test/meshtest"
)

// The label enables a namespace that is not terminating; the operator's namespace is also enabled without it.
func TestNamespaceEnabledByLabel(t *testing.T) {
	terminating := meshtest.Namespace("terminating", "true")
	terminating.Finalizers, terminating.DeletionTimestamp = []string{"x/y"}, &metav1.Time{Time: time.Unix(1, 0)}
	all := []client.Object{
		meshtest.Namespace("yes", "true"), meshtest.Namespace("no", "false"), meshtest.Namespace("capitalized", "True"), meshtest.Namespace("unlabelled", ""), terminating,
	}
	for name, tc := range map[string]struct {
		operatorNamespace *corev1.Namespace
		want              []string
	}{
		"operator namespace without the label": {meshtest.Namespace("own", ""), []string{"own", "yes"}},
		"operator namespace with the label":    {meshtest.Namespace("own", "true"), []string{"own", "yes"}},
		"operator namespace with false":        {meshtest.Namespace("own", "false"), []string{"yes"}},
	} {
		t.Run(name, func(t *testing.T) {
			n := &Namespaces{OperatorNamespace: "own", Cache: meshtest.Cache{Reader: meshtest.LabelledOnly(append(slices.Clone(all), tc.operatorNamespace)...)}}
			got, err := n.List(t.Context())
			if err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("List returned %v, error %v, want %v", got, err, tc.want)
			}
			for _, namespace := range []string{"yes", "no", "capitalized", "unlabelled", "terminating", "own", "absent"} {
				enabled, err := n.Enabled(t.Context(), namespace)
				if err != nil || enabled != slices.Contains(tc.want, namespace) {
					t.Errorf("%s: Enabled returned %v, error %v", namespace, enabled, err)
				}
			}
			if requests := n.Requests(t.Context()); len(requests) != len(tc.want) || requests[0].Name != tc.want[0] || requests[0].Namespace != "" {
				t.Errorf("Requests returned %v, want the enabled namespaces", requests)
			}
			if _, watched := n.Source(nil); !watched || n.SingleNamespace() {
				t.Error("Source returned false or SingleNamespace true, want watched namespaces")
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
		t.Errorf("List returned %v, error %v, want only the operator's namespace", list, err)
	}
	for name, want := range map[string]bool{"own": true, "other": false} {
		if enabled, err := n.Enabled(t.Context(), name); err != nil || enabled != want {
			t.Errorf("%s: Enabled returned %v, error %v", name, enabled, err)
		}
	}
	if _, watched := n.Source(nil); watched || !n.SingleNamespace() {
		t.Error("namespaces are watched in single-namespace mode")
	}
}

// [M11] An error of the cache is returned; the namespace is not reported as disabled.
func TestEnabledReturnsReadErrors(t *testing.T) {
	readErr := errors.New("cache is unavailable")
	reader := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return readErr
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return readErr },
	})
	n := &Namespaces{OperatorNamespace: "own", Cache: meshtest.Cache{Reader: reader}}
	if _, err := n.Enabled(t.Context(), "own"); !errors.Is(err, readErr) {
		t.Errorf("Enabled returned error %v, want %v", err, readErr)
	}
	if _, err := n.List(t.Context()); !errors.Is(err, readErr) {
		t.Errorf("List returned error %v, want %v", err, readErr)
	}
}

func TestStripNamespace(t *testing.T) {
	m := objectmeta.New(namespaceKind)
	m.Name, m.Labels = "a", map[string]string{LabelEnabled: "true", LabelEnforce: "restricted", "more": "x"}
	m.Annotations, m.ManagedFields = map[string]string{"a": "b"}, []metav1.ManagedFieldsEntry{{}}
	out, err := stripNamespace(m)
	if err != nil || len(m.Labels) != 2 || m.Labels[LabelEnabled] != "true" || m.Labels[LabelEnforce] != "restricted" || m.Annotations != nil || m.ManagedFields != nil || out != any(m) {
		t.Errorf("stripNamespace returned %+v, error %v, want only the two labels kept", out, err)
	}
	for _, other := range []any{toolscache.DeletedFinalStateUnknown{Key: "a"}, runtime.Object(&corev1.Pod{})} {
		if got, err := stripNamespace(other); err != nil || got != other {
			t.Errorf("stripNamespace of another type returned %v, error %v, want it unchanged", got, err)
		}
	}
}

// A namespace without the label is read from the API server; the operator's namespace only once.
func TestGetMetadata(t *testing.T) {
	reads := 0
	apiServer := interceptor.NewClient(fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(meshtest.Namespace("own", "")).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			reads++
			return c.Get(ctx, key, o, opts...)
		},
	})
	n := &Namespaces{OperatorNamespace: "own", APIReader: apiServer, Cache: meshtest.Cache{Reader: meshtest.LabelledOnly(meshtest.Namespace("labelled", "false"))}}
	for _, c := range []struct {
		name, uid string
		reads     int
	}{{"labelled", "uid-of-labelled", 0}, {"own", "uid-of-own", 1}, {"own", "uid-of-own", 0}, {"absent", "", 1}} {
		reads = 0
		metadata, err := n.GetMetadata(t.Context(), c.name)
		if err != nil || (metadata == nil) != (c.uid == "") || metadata != nil && string(metadata.UID) != c.uid || reads != c.reads {
			t.Errorf("%s: %+v after %d reads, error %v, want UID %q after %d", c.name, metadata, reads, err, c.uid, c.reads)
		}
	}
	n.Cache = meshtest.Cache{Reader: failingReader{}}
	if _, err := n.GetMetadata(t.Context(), "own"); err == nil {
		t.Error("GetMetadata returned no error, want that of the cache")
	}
}

type failingReader struct{ client.Reader }

func (failingReader) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("cache is unavailable")
}
