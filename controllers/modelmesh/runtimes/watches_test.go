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
	"github.com/odh-platform/odh-platform-operator/pkg/caches"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/test/meshtest"
)

// enqueuedNamespaces returns the namespaces that a handler enqueues for an object, sorted.
func enqueuedNamespaces(t *testing.T, h handler.EventHandler, o client.Object) []string {
	t.Helper()
	var namespaces []string
	for _, request := range meshtest.Requests(t, h, o) {
		if request.Namespace != "" {
			t.Errorf("request %s is not a namespace", request)
		}
		namespaces = append(namespaces, request.Name)
	}
	slices.Sort(namespaces)
	return namespaces
}

// newWatchEnv returns an environment in which own, ns and other are enabled; unlabelled has no label, and disabled has the value false.
func newWatchEnv(t *testing.T) *testEnv {
	t.Helper()
	env := newTestEnv(t)
	env.Namespaces = &modelmesh.Namespaces{OperatorNamespace: "own", Cache: meshtest.Cache{Reader: meshtest.LabelledOnly(meshtest.Namespace("own", ""), meshtest.Namespace("ns", "true"),
		meshtest.Namespace("other", "true"), meshtest.Namespace("unlabelled", ""), meshtest.Namespace("disabled", "false"))}}
	return env
}

func newSecret(namespace, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// Objects of users enqueue enabled namespaces only. Managed objects enqueue any namespace, because they are deleted in disabled ones.
func TestObjectsEnqueueNamespaces(t *testing.T) {
	env := newWatchEnv(t)
	for namespace, want := range map[string]struct{ user, managed []string }{
		"ns":         {[]string{"ns"}, []string{"ns"}},
		"own":        {[]string{"own"}, []string{"own"}},
		"unlabelled": {nil, []string{"unlabelled"}},
		"disabled":   {nil, []string{"disabled"}},
		"absent":     {nil, []string{"absent"}},
	} {
		env.expect("object of a user in "+namespace, enqueuedNamespaces(t, env.Namespaces.EnqueueEnabled(), newSecret(namespace, "x")), want.user)
		env.expect("managed object in "+namespace, enqueuedNamespaces(t, env.Namespaces.Enqueue(), newSecret(namespace, "x")), want.managed)
	}
	env.expect("Namespace", enqueuedNamespaces(t, &handler.EnqueueRequestForObject{}, meshtest.Namespace("disabled", "false")), []string{"disabled"})
	env.expect("ClusterServingRuntime", enqueuedNamespaces(t, env.Namespaces.Enqueue(), newClusterServingRuntime("r", "f")), []string{"ns", "other", "own"})
}

// The operator's namespace is reconciled without an event.
func TestOperatorNamespaceIsEnqueuedAtStart(t *testing.T) {
	env := newWatchEnv(t)
	for name, namespaces := range map[string]*modelmesh.Namespaces{"all namespaces": env.Namespaces, "single namespace": {OperatorNamespace: "own"}} {
		env.Namespaces = namespaces
		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		if err := env.enqueueOperatorNamespace().Start(t.Context(), queue); err != nil {
			t.Fatal(err)
		}
		if got, _ := queue.Get(); queue.Len() != 0 || got != modelmesh.RequestFor("own") {
			t.Errorf("%s: first request %s and %d more, want only the operator's namespace", name, got, queue.Len())
		}
		queue.ShutDown()
	}
}

// If the cache fails, an object enqueues its namespace, whose reconcile retries. A cluster-scoped object enqueues none.
func TestEnqueueAfterReadError(t *testing.T) {
	env := newWatchEnv(t)
	env.Namespaces = &modelmesh.Namespaces{OperatorNamespace: "own", Cache: meshtest.Cache{Reader: failingReader{}}}
	env.expect("object of a user", enqueuedNamespaces(t, env.Namespaces.EnqueueEnabled(), newSecret("ns", "x")), []string{"ns"})
	env.expect("ClusterServingRuntime", enqueuedNamespaces(t, env.Namespaces.Enqueue(), newClusterServingRuntime("r", "f")), nil)
	env.expect("Secret", enqueuedNamespaces(t, env.enqueueForSecret(), newSecret("ns", meshsettings.DefaultStorageSecret)), []string{"ns"})
}

type failingReader struct{}

func (failingReader) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("cache is unavailable")
}

func (failingReader) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("cache is unavailable")
}

// Changed settings enqueue their namespace, or all enabled ones.
func TestSettingsEnqueueNamespaces(t *testing.T) {
	env := newWatchEnv(t)
	env.expect("settings of one namespace", enqueuedNamespaces(t, env.Namespaces.Enqueue(), meshtest.Namespace("ns", "")), []string{"ns"})
	env.expect("settings of all namespaces", enqueuedNamespaces(t, env.Namespaces.Enqueue(), &corev1.Namespace{}), []string{"ns", "other", "own"})
}

// Only Secrets that a reconcile reads enqueue namespaces. [M10] [M30] [M31]
func TestEnqueueForSecret(t *testing.T) {
	all := []string{"ns", "other", "own"}
	for name, tc := range map[string]struct {
		tls    string
		ignore bool
		secret *corev1.Secret
		want   []string
	}{
		"etcd Secret of the operator":                    {"", false, newSecret("own", meshsettings.DefaultEtcdSecret), all},
		"copy of the etcd Secret":                        {"", false, newSecret("ns", meshsettings.DefaultEtcdSecret), []string{"ns"}},
		"etcd Secret in a namespace that is not enabled": {"", false, newSecret("unlabelled", meshsettings.DefaultEtcdSecret), nil},
		"storage Secret":                                 {"", false, newSecret("ns", meshsettings.DefaultStorageSecret), []string{"ns"}},
		"storage Secret in the operator's namespace":     {"", false, newSecret("own", meshsettings.DefaultStorageSecret), []string{"own"}},
		"storage Secret with IgnoreSecrets":              {"", true, newSecret("ns", meshsettings.DefaultStorageSecret), nil},
		"storage Secret in a disabled namespace":         {"", false, newSecret("disabled", meshsettings.DefaultStorageSecret), nil},
		"TLS Secret of one namespace":                    {"serving-tls", false, newSecret("ns", "serving-tls"), []string{"ns"}},
		"TLS Secret of the operator":                     {"serving-tls", true, newSecret("own", "serving-tls"), all},
		"TLS disabled":                                   {"", false, newSecret("own", "serving-tls"), nil},
		"another Secret":                                 {"serving-tls", false, newSecret("ns", "other"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			env := newWatchEnv(t)
			env.settings.TLS.SecretName, env.Config.IgnoreSecrets = tc.tls, tc.ignore
			env.expect("namespaces", enqueuedNamespaces(t, env.enqueueForSecret(), tc.secret), tc.want)
		})
	}
	env := newWatchEnv(t)
	env.Settings = func(context.Context, string) (meshsettings.Settings, error) {
		return meshsettings.Settings{}, errors.New("settings were not read yet")
	}
	env.expect("before the settings were read", enqueuedNamespaces(t, env.enqueueForSecret(), newSecret("ns", meshsettings.DefaultStorageSecret)), nil)
}

func TestUsesClusterRuntimes(t *testing.T) {
	env := newWatchEnv(t)
	if !env.UsesClusterRuntimes() {
		t.Error("ClusterServingRuntimes are not used by default")
	}
	env.Config.IgnoreClusterServingRuntimes = true
	if env.UsesClusterRuntimes() {
		t.Error("ClusterServingRuntimes are used with IgnoreClusterServingRuntimes")
	}
	env.Config.IgnoreClusterServingRuntimes = false
	env.Namespaces = &modelmesh.Namespaces{OperatorNamespace: "own"}
	if env.UsesClusterRuntimes() {
		t.Error("ClusterServingRuntimes are used in a single-namespace installation")
	}
}

// passesUpdate reports whether a predicate passes a change.
func passesUpdate(p predicate.Predicate, change func(*v1alpha1.ServingRuntime)) bool {
	oldObject := newServingRuntime("r", "f")
	oldObject.Generation, oldObject.ResourceVersion = 1, "1"
	oldObject.Labels, oldObject.Annotations = map[string]string{"a": "b"}, map[string]string{"c": "d"}
	newObject := oldObject.DeepCopy()
	newObject.ResourceVersion = "2"
	change(newObject)
	return p.Update(event.UpdateEvent{ObjectOld: oldObject, ObjectNew: newObject})
}

func TestPredicatesFilterUpdates(t *testing.T) {
	now := metav1.Now()
	changes := map[string]func(*v1alpha1.ServingRuntime){
		"no change":        func(*v1alpha1.ServingRuntime) {},
		"spec":             func(r *v1alpha1.ServingRuntime) { r.Generation++ },
		"recreated object": func(r *v1alpha1.ServingRuntime) { r.UID = "other" },
		"deletion":         func(r *v1alpha1.ServingRuntime) { r.DeletionTimestamp = &now },
		"label":            func(r *v1alpha1.ServingRuntime) { r.Labels["a"] = "x" },
		"annotation":       func(r *v1alpha1.ServingRuntime) { r.Annotations["c"] = "x" },
		"owner":            func(r *v1alpha1.ServingRuntime) { r.OwnerReferences = []metav1.OwnerReference{{Name: "o"}} },
		"managed fields": func(r *v1alpha1.ServingRuntime) {
			r.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: modelmesh.FieldOwner}}
		},
	}
	for name, tc := range map[string]struct {
		predicate predicate.Predicate
		want      []string
	}{
		"managed objects": {metadataChanged(), []string{"annotation", "deletion", "label", "managed fields", "owner", "recreated object"}},
		"kinds of KServe": {modelmesh.SpecOrAnnotationsChanged(), []string{"annotation", "deletion", "recreated object", "spec"}},
		"claims":          {modelmesh.CreatedOrDeleted(), []string{"recreated object"}},
	} {
		var passed []string
		for description, change := range changes {
			if passesUpdate(tc.predicate, change) {
				passed = append(passed, description)
			}
		}
		slices.Sort(passed)
		if !slices.Equal(passed, tc.want) {
			t.Errorf("%s: passed %q, want %q", name, passed, tc.want)
		}
		if !tc.predicate.Create(event.CreateEvent{Object: newServingRuntime("r", "f")}) || !tc.predicate.Delete(event.DeleteEvent{Object: newServingRuntime("r", "f")}) {
			t.Errorf("%s: the predicate dropped a create or delete event", name)
		}
	}
}

func TestClaimCacheStripsMetadata(t *testing.T) {
	claim := objectmeta.New(pvcKind)
	claim.SetNamespace("ns")
	claim.SetName("data")
	claim.SetUID("u")
	claim.SetLabels(map[string]string{"a": "b"})
	claim.SetAnnotations(map[string]string{"a": "b"})
	claim.SetFinalizers([]string{"f"})
	stripped, err := caches.StripMetadata(claim)
	if err != nil {
		t.Fatal(err)
	}
	m := stripped.(*metav1.PartialObjectMetadata)
	if m.Name != "data" || m.UID != "u" || m.Labels != nil || m.Annotations != nil || m.Finalizers != nil || m.Kind != "PersistentVolumeClaim" {
		t.Errorf("metadata %+v, want only name, UID and kind", m)
	}
	if other, err := caches.StripMetadata("tombstone"); err != nil || other != "tombstone" {
		t.Errorf("StripMetadata of a tombstone returned %v, error %v, want it unchanged", other, err)
	}
}

// Secrets and ConfigMaps are cached as metadata, Deployments in full. [M10]
func TestCaches(t *testing.T) {
	for _, namespace := range []string{"", "own"} {
		for _, need := range Caches(namespace) {
			switch need.Kind.Kind {
			case "Secret", "ConfigMap":
				if need.FullObjects {
					t.Errorf("%s: full objects are cached, want metadata", need.Kind.Kind)
				}
			case "Deployment":
				if !need.FullObjects || need.IncludeForeign {
					t.Errorf("Deployments: %+v, want full managed objects", need)
				}
			}
			if need.Kind.Group != "monitoring.coreos.com" && need.Namespace != namespace {
				t.Errorf("%s: namespace %q, want %q", need.Kind.Kind, need.Namespace, namespace)
			}
		}
	}
}
