package managercache

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
)

var (
	deployments = appsv1.SchemeGroupVersion.WithKind("Deployment")
	secrets     = corev1.SchemeGroupVersion.WithKind("Secret")
	ownKind     = schema.GroupVersionKind{Group: "mlflow.opendatahub.io", Version: "v1", Kind: "MLflow"}
)

const operatorSelector = "platform.opendatahub.io/operator=odh-platform-operator"

// byKind returns the cache options of a kind.
func byKind(t interface{ Fatalf(string, ...any) }, options cache.Options, kind schema.GroupVersionKind) (cache.ByObject, bool) {
	var found []cache.ByObject
	for obj, by := range options.ByObject {
		if obj.GetObjectKind().GroupVersionKind() == kind {
			found = append(found, by)
		}
	}
	if len(found) > 1 {
		t.Fatalf("%s has %d cache options, want at most one", kind, len(found))
	}
	if len(found) == 0 {
		return cache.ByObject{}, false
	}
	return found[0], true
}

func TestOptions(t *testing.T) {
	marker := func(in any) (any, error) { return "seen", nil }
	options := Options([]Need{
		{Kind: deployments, Namespace: "one", FullObjects: true}, {Kind: deployments, Namespace: "two"},
		{Kind: secrets, Namespace: "one"}, {Kind: secrets, IncludeForeign: true},
		{Kind: ownKind, FullObjects: true, IncludeForeign: true}, {Kind: capability.HTTPRoute},
	}, nil, marker)
	if out, err := options.DefaultTransform(nil); err != nil || out != "seen" {
		t.Error("DefaultTransform did not call the given function")
	}
	by, ok := byKind(t, options, deployments)
	if !ok || by.Namespaces["one"].LabelSelector.String() != operatorSelector || by.Namespaces["two"].LabelSelector.String() != operatorSelector || !slices.Equal(slices.Sorted(maps.Keys(by.Namespaces)), []string{"one", "two"}) {
		t.Errorf("unexpected cache options of Deployments: %+v", by)
	}
	if by, _ := byKind(t, options, ownKind); !reflect.ValueOf(by).IsZero() {
		t.Errorf("%s has cache options %+v, want the default", ownKind.Kind, by)
	}
	if by, ok := byKind(t, options, secrets); !ok || by.Label != nil || len(by.Namespaces) > 0 {
		t.Errorf("unexpected cache options of Secrets: %+v", by)
	}
	// The cache fails to start if a kind in ByObject is not served.
	if by, ok := byKind(t, options, capability.HTTPRoute); ok {
		t.Errorf("the optional kind has cache options %+v, want none", by)
	}
}

// A component that needs all Secrets of one namespace must not make the cache store all Secrets of the cluster.
func TestForeignObjectsOfOneNamespaceOnly(t *testing.T) {
	options := Options([]Need{{Kind: secrets, Namespace: "apps", IncludeForeign: true}, {Kind: secrets, Namespace: "two"}, {Kind: secrets}}, nil)
	by, ok := byKind(t, options, secrets)
	if !ok || by.Label != nil || !slices.Equal(slices.Sorted(maps.Keys(by.Namespaces)), []string{"", "apps"}) {
		t.Fatalf("unexpected cache options of Secrets: %+v", by)
	}
	if allNamespaces := by.Namespaces[""]; allNamespaces.LabelSelector.String() != operatorSelector {
		t.Errorf("got selection in all namespaces %+v, want the managed objects", allNamespaces)
	}
	if apps := by.Namespaces["apps"]; apps.LabelSelector != nil {
		t.Errorf("got selection in namespace apps %+v, want all objects", apps)
	}
}

// recordingServer records the selectors of list and watch requests.
type recordingServer struct{ selectors []string }

func (r *recordingServer) listWatch() toolscache.ListerWatcher {
	return toolscache.ToListWatcherWithWatchListSemantics(&toolscache.ListWatch{
		ListWithContextFunc: func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
			r.selectors = append(r.selectors, "list "+o.LabelSelector)
			return &metav1.PartialObjectMetadataList{}, nil
		},
		WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
			r.selectors = append(r.selectors, "watch "+o.LabelSelector)
			return watch.NewFake(), nil
		},
	}, r)
}

// IsWatchListSemanticsUnSupported makes informers list, because there are no bookmarks.
func (r *recordingServer) IsWatchListSemanticsUnSupported() bool { return true }

// Foreign objects of built-in kinds keep only their identity. Other objects are unchanged.
func TestStripForeign(t *testing.T) {
	head := func(kind schema.GroupVersionKind, labels map[string]string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{TypeMeta: objectmeta.New(kind).TypeMeta, ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "a", UID: "u", ResourceVersion: "7", Labels: labels,
			Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "a Secret"},
			Finalizers:  []string{"example.com/x"}, OwnerReferences: []metav1.OwnerReference{{Name: "owner"}},
		}}
	}
	dropManagedFields := func(in any) (any, error) {
		in.(metav1.Object).SetManagedFields(nil)
		return in, nil
	}
	transform := Options(nil, nil, dropManagedFields).DefaultTransform
	foreign := map[string]string{"owner": "helm"}
	out, err := transform(head(secrets, foreign))
	want := objectmeta.New(secrets)
	want.ObjectMeta = metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "u", ResourceVersion: "7"}
	if err != nil || !equality.Semantic.DeepEqual(out, want) {
		t.Errorf("unexpected fields remain of a foreign object: %+v, error %v", out, err)
	}
	managed := map[string]string{"platform.opendatahub.io/operator": "odh-platform-operator"}
	for name, object := range map[string]*metav1.PartialObjectMetadata{"managed": head(secrets, managed), "custom": head(capability.RayCluster, foreign)} {
		if out, err := transform(object.DeepCopy()); err != nil || !equality.Semantic.DeepEqual(out, object) {
			t.Errorf("got the %s object %+v, error %v, want it unchanged", name, out, err)
		}
	}
	tombstone := toolscache.DeletedFinalStateUnknown{Key: "ns/a"}
	if out, err := stripForeign(tombstone); err != nil || out != any(tombstone) {
		t.Errorf("stripForeign of a tombstone returned %+v, error %v, want it unchanged", out, err)
	}
}

func TestListWatchWithSelector(t *testing.T) {
	r := &recordingServer{}
	lw := toolscache.ToListerWatcherWithContext(listWatchCustomResources(r.listWatch(), operatorSelector, clock.RealClock{}, nil))
	if _, err := lw.ListWithContext(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	w, err := lw.WatchWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.Stop()
	if want := []string{"list " + operatorSelector, "watch " + operatorSelector}; !slices.Equal(r.selectors, want) {
		t.Errorf("got requests with selectors %q, want %q", r.selectors, want)
	}
}

// Informers of the optional kinds that a component caches select managed objects, unless it includes foreign ones.
func TestInformersOfOptionalKinds(t *testing.T) {
	options := Options([]Need{{Kind: capability.HTTPRoute}, {Kind: capability.Route, IncludeForeign: true}}, nil)
	for kind, want := range map[schema.GroupVersionKind]string{
		capability.HTTPRoute: operatorSelector, capability.Route: "", capability.ServiceMonitor: "", deployments: "",
	} {
		t.Run(kind.Kind, func(t *testing.T) {
			obj := &metav1.PartialObjectMetadata{}
			obj.SetGroupVersionKind(kind)
			r := &recordingServer{}
			informer := options.NewInformer(r.listWatch(), obj, 0, toolscache.Indexers{})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				informer.RunWithContext(ctx)
			}()
			if !toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
				t.Error("the informer has not synced")
			}
			cancel()
			<-done
			if len(r.selectors) == 0 {
				t.Error("no list request reached the server")
			}
			for _, got := range r.selectors {
				if got != "list "+want && got != "watch "+want {
					t.Errorf("got request %q, want selector %q", got, want)
				}
			}
		})
	}
}

func TestFullObjectKinds(t *testing.T) {
	got := FullObjectKinds([]Need{
		{Kind: ownKind, FullObjects: true}, {Kind: deployments, FullObjects: true}, {Kind: secrets}, {Kind: deployments, FullObjects: true},
	})
	if want := []schema.GroupVersionKind{ownKind, deployments}; len(got) != 2 || !slices.Contains(got, ownKind) || !slices.Contains(got, deployments) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The options cover all needs, in any order.
func TestMergeCoversEveryNeed(t *testing.T) {
	need := rapid.Custom(func(t *rapid.T) Need {
		return Need{
			Kind:           rapid.SampledFrom([]schema.GroupVersionKind{deployments, secrets}).Draw(t, "kind"),
			Namespace:      rapid.SampledFrom([]string{"", "one", "two", "three"}).Draw(t, "namespace"),
			IncludeForeign: rapid.Bool().Draw(t, "include foreign"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		needs := rapid.SliceOf(need).Draw(t, "needs")
		options := Options(needs, nil)
		for _, n := range needs {
			by, limited := byKind(t, options, n.Kind)
			if !limited {
				continue
			}
			config, allNamespaces := by.Namespaces[n.Namespace], by.Namespaces[""]
			_, found := by.Namespaces[n.Namespace]
			_, foundAll := by.Namespaces[""]
			switch {
			case len(by.Namespaces) == 0: // one selector for all namespaces
				config.LabelSelector = by.Label
			case !found && !foundAll:
				t.Fatalf("%+v is not covered by the namespaces %v", n, by.Namespaces)
			case !found:
				config = allNamespaces
			}
			if n.IncludeForeign && config.LabelSelector != nil {
				t.Fatalf("%+v is limited to %s", n, config.LabelSelector)
			}
		}
		again := Options(rapid.Permutation(needs).Draw(t, "shuffled"), nil)
		for _, kind := range []schema.GroupVersionKind{deployments, secrets} {
			a, inA := byKind(t, options, kind)
			b, inB := byKind(t, again, kind)
			if inA != inB || (a.Label == nil) != (b.Label == nil) || !maps.EqualFunc(a.Namespaces, b.Namespaces, func(x, y cache.Config) bool { return (x.LabelSelector == nil) == (y.LabelSelector == nil) }) {
				t.Fatalf("%s: cache options %+v and %+v depend on the order", kind.Kind, a, b)
			}
		}
	})
}
