package openshift

import (
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/test/meshtest"
)

// requestsFrom returns the requests that a handler enqueues for an object.
func requestsFrom(t *testing.T, h handler.EventHandler, o client.Object) []string {
	t.Helper()
	var requests []string
	for _, request := range meshtest.Requests(t, h, o) {
		requests = append(requests, request.String())
	}
	slices.Sort(requests)
	return requests
}

func newMetadata(namespace, name string, labels map[string]string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
}

// managedLabels returns the labels of this component and the given ones.
func managedLabels(more ...string) map[string]string {
	labels := map[string]string{names.OperatorLabel: names.OperatorName, names.ComponentLabel: modelmesh.ComponentName}
	for _, key := range more {
		labels[key] = "true"
	}
	return labels
}

func TestObjectsEnqueueTheirNamespace(t *testing.T) {
	if got := requestsFrom(t, newControllerBuilder(t, "").shared.Namespaces.Enqueue(), newMetadata("team", "x", nil)); !slices.Equal(got, []string{"/team"}) {
		t.Errorf("enqueued %q, want %q", got, []string{"/team"})
	}
	binding := handler.EnqueueRequestsFromMapFunc(requestsForBinding)
	for name, want := range map[string][]string{
		BindingName("team"): {"/team"}, BindingName("a-b"): {"/a-b"}, BindingName(""): nil, "another-binding": nil, "team": nil,
	} {
		if got := requestsFrom(t, binding, newMetadata("", name, nil)); !slices.Equal(got, want) {
			t.Errorf("%s enqueues %q, want %q", name, got, want)
		}
	}
}

// settingsOf returns a source with the settings of the administrator; "" for none.
func settingsOf(t *testing.T, yaml string) *meshsettings.Source {
	t.Helper()
	var existing []runtime.Object
	if yaml != "" {
		existing = append(existing, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: meshsettings.ConfigMapName}, Data: map[string]string{meshsettings.ConfigMapKey: yaml},
		})
	}
	return meshsettings.NewSource(meshsettings.Options{
		Config: config.ModelMesh{Namespace: "own"}, Dynamic: dynamicfake.NewSimpleDynamicClient(clientscheme.Scheme, existing...),
		Recorder: events.NewFakeRecorder(10), Clock: testclock.NewFakeClock(time.Unix(0, 0)), Log: logr.Discard(),
	})
}

func newControllerBuilder(t *testing.T, yaml string) controllerBuilder {
	t.Helper()
	namespaces, err := modelmesh.NewNamespaces(nil, "own", true)
	if err != nil {
		t.Fatal(err)
	}
	return controllerBuilder{shared: &modelmesh.Dependencies{Options: modelmesh.Options{Settings: settingsOf(t, yaml)}, Namespaces: namespaces}}
}

// Predicates select the relevant Secrets from a cache with the metadata of all Secrets.
func TestSecretPredicates(t *testing.T) {
	for name, tc := range map[string]struct {
		settings      string
		secret        *metav1.PartialObjectMetadata
		managed, mesh bool
	}{
		"cookie Secret":                         {"", newMetadata("team", authproxy.CookieSecret, nil), true, false},
		"certificate of the proxy":              {"", newMetadata("team", authproxy.TLSSecret, nil), true, false},
		"storage Secret":                        {"", newMetadata("team", meshsettings.DefaultStorageSecret, nil), true, false},
		"storage Secret with another name":      {"storageSecretName: custom", newMetadata("team", "custom", nil), true, false},
		"default name with another name set":    {"storageSecretName: custom", newMetadata("team", meshsettings.DefaultStorageSecret, nil), false, false},
		"managed Secret with the previous name": {"storageSecretName: custom", newMetadata("team", "previous", managedLabels(LabelManaged)), true, false},
		"foreign Secret with the label":         {"", newMetadata("team", "previous", map[string]string{LabelManaged: "true"}), false, false},
		"certificate of the mesh":               {"tls: {secretName: serving}", newMetadata("team", "serving", nil), false, true},
		"another Secret":                        {"tls: {secretName: serving}", newMetadata("team", "other", nil), false, false},
		"invalid settings":                      {"tls: [", newMetadata("team", "serving", nil), false, false},
		"cookie Secret with invalid settings":   {"tls: [", newMetadata("team", authproxy.CookieSecret, nil), true, false},
	} {
		builder := newControllerBuilder(t, tc.settings)
		if got := builder.managedSecrets().Create(event.CreateEvent{Object: tc.secret}); got != tc.managed {
			t.Errorf("%s: managedSecrets matches: %t, want %t", name, got, tc.managed)
		}
		if got := builder.meshCertificates().Create(event.CreateEvent{Object: tc.secret}); got != tc.mesh {
			t.Errorf("%s: meshCertificates matches: %t, want %t", name, got, tc.mesh)
		}
	}
}

func TestSettingsEnqueueNamespaces(t *testing.T) {
	h := newControllerBuilder(t, "").shared.Namespaces.Enqueue()
	if got := requestsFrom(t, h, meshtest.Namespace("team", "")); !slices.Equal(got, []string{"/team"}) {
		t.Errorf("settings of one namespace: %q, want %q", got, []string{"/team"})
	}
	if got := requestsFrom(t, h, newMetadata("", "", nil)); !slices.Equal(got, []string{"/own"}) {
		t.Errorf("settings of all namespaces: %q, want %q", got, []string{"/own"})
	}
}

func TestHasName(t *testing.T) {
	for name, tc := range map[string]struct {
		predicate predicate.Predicate
		object    client.Object
		want      bool
	}{
		"object with one of the names": {hasName("a", "b"), newMetadata("team", "b", nil), true},
		"object with another name":     {hasName("a", "b"), newMetadata("team", "c", nil), false},
		"no names":                     {hasName(), newMetadata("team", "", nil), false},
	} {
		for eventType, got := range map[string]bool{
			"create": tc.predicate.Create(event.CreateEvent{Object: tc.object}), "delete": tc.predicate.Delete(event.DeleteEvent{Object: tc.object}),
			"update": tc.predicate.Update(event.UpdateEvent{ObjectOld: tc.object, ObjectNew: tc.object}),
		} {
			if got != tc.want {
				t.Errorf("%s: %s returned %t, want %t", name, eventType, got, tc.want)
			}
		}
	}
}

// passesUpdate reports whether a predicate passes an update. It checks that create and delete events pass.
func passesUpdate(t *testing.T, p predicate.Predicate, oldObject, newObject client.Object) bool {
	t.Helper()
	if !p.Create(event.CreateEvent{Object: newObject}) || !p.Delete(event.DeleteEvent{Object: oldObject}) {
		t.Errorf("%T: the predicate dropped a create or delete event", newObject)
	}
	return p.Update(event.UpdateEvent{ObjectOld: oldObject, ObjectNew: newObject})
}

func TestSpecOrAnnotationsChanged(t *testing.T) {
	now := metav1.Now()
	for name, tc := range map[string]struct {
		change func(*v1beta1.InferenceService)
		want   bool
	}{
		"no change":                  {func(*v1beta1.InferenceService) {}, false},
		"spec":                       {func(s *v1beta1.InferenceService) { s.Generation++ }, true},
		"status":                     {func(s *v1beta1.InferenceService) { s.ResourceVersion = "9" }, false},
		"recreated object":           {func(s *v1beta1.InferenceService) { s.UID = "other" }, true},
		"annotation":                 {func(s *v1beta1.InferenceService) { s.Annotations["a"] = "b" }, true},
		"deployment mode":            {func(s *v1beta1.InferenceService) { s.Annotations[v1beta1.AnnotationDeploymentMode] = "Serverless" }, true},
		"annotations removed":        {func(s *v1beta1.InferenceService) { s.Annotations = nil }, true},
		"deletion":                   {func(s *v1beta1.InferenceService) { s.DeletionTimestamp = &now }, true},
		"label":                      {func(s *v1beta1.InferenceService) { s.Labels = map[string]string{"a": "b"} }, false},
		"finalizer without deletion": {func(s *v1beta1.InferenceService) { s.Finalizers = []string{"f"} }, false},
		"deletion, no finalizers":    {func(s *v1beta1.InferenceService) { s.DeletionTimestamp, s.Finalizers = &now, nil }, true},
	} {
		oldObject := newInferenceService("digits")
		oldObject.Generation = 1
		newObject := newInferenceService("digits")
		newObject.Generation = 1
		tc.change(newObject)
		if got := passesUpdate(t, modelmesh.SpecOrAnnotationsChanged(), oldObject, newObject); got != tc.want {
			t.Errorf("%s: the update passes: %t, want %t", name, got, tc.want)
		}
	}
	oldObject, newObject := newInferenceService("digits"), newInferenceService("digits")
	oldObject.DeletionTimestamp, newObject.DeletionTimestamp = &now, &now
	oldObject.Finalizers = []string{"a", "b"}
	newObject.Finalizers = []string{"a"}
	if !modelmesh.SpecOrAnnotationsChanged().Update(event.UpdateEvent{ObjectOld: oldObject, ObjectNew: newObject}) {
		t.Error("the predicate dropped the removal of a finalizer")
	}
}
