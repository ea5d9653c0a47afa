package runtimes

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/test/meshtest"
)

// enqueuedNamespaces returns the namespaces that a handler enqueues for an object, sorted.
func enqueuedNamespaces(t *testing.T, h handler.EventHandler, o client.Object) []string {
	t.Helper()
	var out []string
	for _, request := range meshtest.Requests(t, h, o) {
		if request.Namespace != "" {
			t.Errorf("a request for %s: requests are namespaces", request)
		}
		out = append(out, request.Name)
	}
	slices.Sort(out)
	return out
}

// newWatchWorld enables own, ns and other; stranger has no label, and closed is disabled by its label.
func newWatchWorld(t *testing.T) *testEnv {
	t.Helper()
	w := newTestEnv(t)
	w.Namespaces = &modelmesh.Namespaces{OperatorNamespace: "own", Cache: meshtest.Cache{Reader: meshtest.LabelledOnly(meshtest.Namespace("own", ""), meshtest.Namespace("ns", "true"),
		meshtest.Namespace("other", "true"), meshtest.Namespace("stranger", ""), meshtest.Namespace("closed", "false"))}}
	return w
}

func secretNamed(namespace, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// Objects of users are enqueued in enabled namespaces only, managed objects everywhere, because they are deleted in disabled ones.
func TestObjectsEnqueueNamespaces(t *testing.T) {
	w := newWatchWorld(t)
	for namespace, want := range map[string]struct{ users, managed []string }{
		"ns":       {[]string{"ns"}, []string{"ns"}},
		"own":      {[]string{"own"}, []string{"own"}},
		"stranger": {nil, []string{"stranger"}},
		"closed":   {nil, []string{"closed"}},
		"gone":     {nil, []string{"gone"}},
	} {
		w.expect("an object of a user in "+namespace, enqueuedNamespaces(t, w.Namespaces.EnqueueEnabled(), secretNamed(namespace, "x")), want.users)
		w.expect("an object of ours in "+namespace, enqueuedNamespaces(t, w.Namespaces.Enqueue(), secretNamed(namespace, "x")), want.managed)
	}
	w.expect("a namespace", enqueuedNamespaces(t, &handler.EnqueueRequestForObject{}, meshtest.Namespace("closed", "false")), []string{"closed"})
	w.expect("something of the cluster", enqueuedNamespaces(t, w.Namespaces.Enqueue(), clusterRuntime("r", "f")), []string{"ns", "other", "own"})
}

// The operator's namespace is reconciled without an event.
func TestOperatorNamespaceIsEnqueuedAtStart(t *testing.T) {
	w := newWatchWorld(t)
	for name, namespaces := range map[string]*modelmesh.Namespaces{"one of several": w.Namespaces, "the only one": {OperatorNamespace: "own"}} {
		w.Namespaces = namespaces
		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		if err := w.enqueueOperatorNamespace().Start(t.Context(), queue); err != nil {
			t.Fatal(err)
		}
		if got, _ := queue.Get(); queue.Len() != 0 || got != modelmesh.RequestFor("own") {
			t.Errorf("%s: %d more requests, and the first for %s", name, queue.Len(), got)
		}
		queue.ShutDown()
	}
}

// If Enabled fails, the namespace is enqueued: the reconcile retries.
func TestEnqueueAfterReadError(t *testing.T) {
	w := newWatchWorld(t)
	w.Namespaces = &modelmesh.Namespaces{OperatorNamespace: "own", Cache: meshtest.Cache{Reader: brokenReader{}}}
	w.expect("an object of a user", enqueuedNamespaces(t, w.Namespaces.EnqueueEnabled(), secretNamed("ns", "x")), []string{"ns"})
	w.expect("all", enqueuedNamespaces(t, w.Namespaces.Enqueue(), clusterRuntime("r", "f")), nil)
	w.expect("a Secret", enqueuedNamespaces(t, w.enqueueForSecret(), secretNamed("ns", meshsettings.DefaultStorageSecret)), []string{"ns"})
}

type brokenReader struct{}

func (brokenReader) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("no memory")
}

func (brokenReader) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("no memory")
}

// Changed settings enqueue their namespace, or all enabled ones.
func TestSettingsEnqueueNamespaces(t *testing.T) {
	w := newWatchWorld(t)
	w.expect("of one namespace", enqueuedNamespaces(t, w.Namespaces.Enqueue(), meshtest.Namespace("ns", "")), []string{"ns"})
	w.expect("of all", enqueuedNamespaces(t, w.Namespaces.Enqueue(), &corev1.Namespace{}), []string{"ns", "other", "own"})
}

// Few of the Secrets, which are cached as metadata, are relevant [M10] [M30] [M31].
func TestEnqueueForSecret(t *testing.T) {
	all := []string{"ns", "other", "own"}
	for name, tc := range map[string]struct {
		tls    string
		ignore bool
		secret *corev1.Secret
		want   []string
	}{
		"etcd in the manager's namespace":                 {"", false, secretNamed("own", meshsettings.DefaultEtcdSecret), all},
		"the copy of it":                                  {"", false, secretNamed("ns", meshsettings.DefaultEtcdSecret), []string{"ns"}},
		"etcd Secret of a namespace without ModelMesh":    {"", false, secretNamed("stranger", meshsettings.DefaultEtcdSecret), nil},
		"storage entries":                                 {"", false, secretNamed("ns", meshsettings.DefaultStorageSecret), []string{"ns"}},
		"those of the manager's own namespace":            {"", false, secretNamed("own", meshsettings.DefaultStorageSecret), []string{"own"}},
		"those that are not to be followed":               {"", true, secretNamed("ns", meshsettings.DefaultStorageSecret), nil},
		"storage Secret of a namespace without ModelMesh": {"", false, secretNamed("closed", meshsettings.DefaultStorageSecret), nil},
		"TLS of one namespace":                            {"serving-tls", false, secretNamed("ns", "serving-tls"), []string{"ns"}},
		"TLS Secret that all namespaces copy":             {"serving-tls", true, secretNamed("own", "serving-tls"), all},
		"TLS that is off":                                 {"", false, secretNamed("own", "serving-tls"), nil},
		"anything else":                                   {"serving-tls", false, secretNamed("ns", "something"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatchWorld(t)
			w.settings.TLS.SecretName, w.Config.IgnoreSecrets = tc.tls, tc.ignore
			w.expect("woken", enqueuedNamespaces(t, w.enqueueForSecret(), tc.secret), tc.want)
		})
	}
	w := newWatchWorld(t)
	w.Settings = func(context.Context, string) (meshsettings.Settings, error) {
		return meshsettings.Settings{}, errors.New("not read yet")
	}
	w.expect("before the settings are known", enqueuedNamespaces(t, w.enqueueForSecret(), secretNamed("ns", meshsettings.DefaultStorageSecret)), nil)
}

func TestUsesClusterRuntimes(t *testing.T) {
	w := newWatchWorld(t)
	if !w.UsesClusterRuntimes() {
		t.Error("want ClusterServingRuntimes used by default")
	}
	w.Config.IgnoreClusterServingRuntimes = true
	if w.UsesClusterRuntimes() {
		t.Error("ClusterServingRuntimes are used although the settings disable them")
	}
	w.Config.IgnoreClusterServingRuntimes = false
	w.Namespaces = &modelmesh.Namespaces{OperatorNamespace: "own"}
	if w.UsesClusterRuntimes() {
		t.Error("ClusterServingRuntimes are used in single-namespace mode")
	}
}

// admitsUpdate reports whether a predicate admits a change.
func admitsUpdate(p predicate.Predicate, change func(*v1alpha1.ServingRuntime)) bool {
	before := localRuntime("r", "f")
	before.Generation, before.ResourceVersion = 1, "1"
	before.Labels, before.Annotations = map[string]string{"a": "b"}, map[string]string{"c": "d"}
	after := before.DeepCopy()
	after.ResourceVersion = "2"
	change(after)
	return p.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
}

func TestPredicatesFilterUpdates(t *testing.T) {
	now := metav1.Now()
	changes := map[string]func(*v1alpha1.ServingRuntime){
		"no change":                  func(*v1alpha1.ServingRuntime) {},
		"spec":                       func(r *v1alpha1.ServingRuntime) { r.Generation++ },
		"recreated with another UID": func(r *v1alpha1.ServingRuntime) { r.UID = "other" },
		"deletion":                   func(r *v1alpha1.ServingRuntime) { r.DeletionTimestamp = &now },
		"a label":                    func(r *v1alpha1.ServingRuntime) { r.Labels["a"] = "x" },
		"an annotation":              func(r *v1alpha1.ServingRuntime) { r.Annotations["c"] = "x" },
		"an owner":                   func(r *v1alpha1.ServingRuntime) { r.OwnerReferences = []metav1.OwnerReference{{Name: "o"}} },
		"our fields": func(r *v1alpha1.ServingRuntime) {
			r.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: modelmesh.FieldOwner}}
		},
	}
	for name, tc := range map[string]struct {
		predicate predicate.Predicate
		lets      []string
	}{
		"managed objects": {metadataChanged(), []string{"a label", "an annotation", "an owner", "deletion", "our fields", "recreated with another UID"}},
		"kinds of KServe": {modelmesh.SpecOrAnnotationsChanged(), []string{"an annotation", "deletion", "recreated with another UID", "spec"}},
		"claims":          {modelmesh.CreatedOrDeleted(), []string{"recreated with another UID"}},
	} {
		var lets []string
		for description, change := range changes {
			if admitsUpdate(tc.predicate, change) {
				lets = append(lets, description)
			}
		}
		slices.Sort(lets)
		if !slices.Equal(lets, tc.lets) {
			t.Errorf("%s: got %q, want %q", name, lets, tc.lets)
		}
		if !tc.predicate.Create(event.CreateEvent{Object: localRuntime("r", "f")}) || !tc.predicate.Delete(event.DeleteEvent{Object: localRuntime("r", "f")}) {
			t.Errorf("%s: coming and going always matters", name)
		}
	}
}

func TestClaimCacheStripsMetadata(t *testing.T) {
	claim := capability.MetadataOf(pvcKind)
	claim.SetNamespace("ns")
	claim.SetName("data")
	claim.SetUID("u")
	claim.SetLabels(map[string]string{"a": "b"})
	claim.SetAnnotations(map[string]string{"a": "b"})
	claim.SetFinalizers([]string{"f"})
	kept, err := component.StripMetadata(claim)
	if err != nil {
		t.Fatal(err)
	}
	m := kept.(*metav1.PartialObjectMetadata)
	if m.Name != "data" || m.UID != "u" || m.Labels != nil || m.Annotations != nil || m.Finalizers != nil || m.Kind != "PersistentVolumeClaim" {
		t.Errorf("got metadata %+v, want only name, UID and kind", m)
	}
	if other, err := component.StripMetadata("tombstone"); err != nil || other != "tombstone" {
		t.Errorf("StripMetadata of a tombstone returned %v, error %v, want it unchanged", other, err)
	}
}

// Only models and runtimes of users are cached as whole objects [M10].
func TestCaches(t *testing.T) {
	for _, namespace := range []string{"", "own"} {
		for _, need := range Caches(namespace) {
			switch need.Kind.Kind {
			case "Secret", "ConfigMap":
				if need.FullObjects {
					t.Errorf("%s are held whole", need.Kind.Kind)
				}
			case "Deployment":
				if !need.FullObjects || need.IncludeForeign {
					t.Errorf("Deployments: %+v", need)
				}
			}
			if need.Kind.Group != "monitoring.coreos.com" && need.Namespace != namespace {
				t.Errorf("%s of namespace %q, want %q", need.Kind.Kind, need.Namespace, namespace)
			}
		}
	}
}
