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

// enqueued returns the requests that a handler creates for an object.
func enqueued(t *testing.T, h handler.EventHandler, o client.Object) []string {
	t.Helper()
	var out []string
	for _, request := range meshtest.Requests(t, h, o) {
		out = append(out, request.String())
	}
	slices.Sort(out)
	return out
}

func head(namespace, name string, labels map[string]string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
}

// managedLabels returns the labels of this component and further ones.
func managedLabels(more ...string) map[string]string {
	labels := map[string]string{names.OperatorLabel: names.OperatorName, names.ComponentLabel: modelmesh.ComponentName}
	for _, key := range more {
		labels[key] = "true"
	}
	return labels
}

func TestObjectsEnqueueTheirNamespace(t *testing.T) {
	if got := enqueued(t, newControllerBuilder(t, "").shared.Namespaces.Enqueue(), head("team", "x", nil)); !slices.Equal(got, []string{"/team"}) {
		t.Errorf("enqueued: %q, want %q", got, []string{"/team"})
	}
	binding := handler.EnqueueRequestsFromMapFunc(requestsForBinding)
	for name, want := range map[string][]string{
		BindingName("team"): {"/team"}, BindingName("a-b"): {"/a-b"}, BindingName(""): nil, "another-binding": nil, "team": nil,
	} {
		if got := enqueued(t, binding, head("", name, nil)); !slices.Equal(got, want) {
			t.Errorf("%s enqueues %q, want %q", name, got, want)
		}
	}
}

// settingsOf returns a source with the settings of the administrator; "" for none.
func settingsOf(t *testing.T, text string) *meshsettings.Source {
	t.Helper()
	var existing []runtime.Object
	if text != "" {
		existing = append(existing, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: meshsettings.ConfigMapName}, Data: map[string]string{meshsettings.ConfigMapKey: text},
		})
	}
	return meshsettings.NewSource(meshsettings.Options{
		Config: config.ModelMesh{Namespace: "own"}, Dynamic: dynamicfake.NewSimpleDynamicClient(clientscheme.Scheme, existing...),
		Recorder: events.NewFakeRecorder(10), Clock: testclock.NewFakeClock(time.Unix(0, 0)), Log: logr.Discard(),
	})
}

func newControllerBuilder(t *testing.T, text string) controllerBuilder {
	t.Helper()
	own, err := modelmesh.NewNamespaces(nil, "own", true)
	if err != nil {
		t.Fatal(err)
	}
	return controllerBuilder{shared: &modelmesh.Dependencies{Options: modelmesh.Options{Settings: settingsOf(t, text)}, Namespaces: own}}
}

// Only relevant Secrets pass, although the cache holds the metadata of all.
func TestSecretPredicates(t *testing.T) {
	for name, tc := range map[string]struct {
		settings         string
		secret           *metav1.PartialObjectMetadata
		namespaces, mesh bool
	}{
		"the cookie":                            {"", head("team", authproxy.CookieSecret, nil), true, false},
		"the certificate of the proxy":          {"", head("team", authproxy.TLSSecret, nil), true, false},
		"storage entries":                       {"", head("team", meshsettings.DefaultStorageSecret, nil), true, false},
		"storage entries by another name":       {"storageSecretName: mine", head("team", "mine", nil), true, false},
		"the usual name then":                   {"storageSecretName: mine", head("team", meshsettings.DefaultStorageSecret, nil), false, false},
		"managed object with the previous name": {"storageSecretName: mine", head("team", "former", managedLabels(LabelManaged)), true, false},
		"foreign object with the label":         {"", head("team", "former", map[string]string{LabelManaged: "true"}), false, false},
		"the certificate of the mesh":           {"tls: {secretName: serving}", head("team", "serving", nil), false, true},
		"something else":                        {"tls: {secretName: serving}", head("team", "other", nil), false, false},
		"invalid settings":                      {"tls: [", head("team", "serving", nil), false, false},
		"cookie Secret with invalid settings":   {"tls: [", head("team", authproxy.CookieSecret, nil), true, false},
	} {
		w := newControllerBuilder(t, tc.settings)
		if got := w.managedSecrets().Create(event.CreateEvent{Object: tc.secret}); got != tc.namespaces {
			t.Errorf("%s concerns namespaces: %t, want %t", name, got, tc.namespaces)
		}
		if got := w.meshCertificates().Create(event.CreateEvent{Object: tc.secret}); got != tc.mesh {
			t.Errorf("%s is of the mesh: %t, want %t", name, got, tc.mesh)
		}
	}
}

func TestSettingsEnqueueNamespaces(t *testing.T) {
	h := newControllerBuilder(t, "").shared.Namespaces.Enqueue()
	if got := enqueued(t, h, meshtest.Namespace("team", "")); !slices.Equal(got, []string{"/team"}) {
		t.Errorf("one namespace: %q, want %q", got, []string{"/team"})
	}
	if got := enqueued(t, h, head("", "", nil)); !slices.Equal(got, []string{"/own"}) {
		t.Errorf("all that are served: %q, want %q", got, []string{"/own"})
	}
}

func TestPredicatesByIdentity(t *testing.T) {
	for name, tc := range map[string]struct {
		predicate predicate.Predicate
		object    client.Object
		want      bool
	}{
		"object with one of the names": {hasName("a", "b"), head("team", "b", nil), true},
		"another name":                 {hasName("a", "b"), head("team", "c", nil), false},
		"no names":                     {hasName(), head("team", "", nil), false},
	} {
		for description, got := range map[string]bool{
			"create": tc.predicate.Create(event.CreateEvent{Object: tc.object}), "delete": tc.predicate.Delete(event.DeleteEvent{Object: tc.object}),
			"update": tc.predicate.Update(event.UpdateEvent{ObjectOld: tc.object, ObjectNew: tc.object}),
		} {
			if got != tc.want {
				t.Errorf("%s, %s: got %t, want %t", name, description, got, tc.want)
			}
		}
	}
}

// passesUpdate reports whether an update passes. It requires that creation and deletion always pass.
func passesUpdate(t *testing.T, p predicate.Predicate, before, after client.Object) bool {
	t.Helper()
	if !p.Create(event.CreateEvent{Object: after}) || !p.Delete(event.DeleteEvent{Object: before}) {
		t.Errorf("%T: coming and going always matters", after)
	}
	return p.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
}

func TestInferenceServicePredicates(t *testing.T) {
	now := metav1.Now()
	for name, tc := range map[string]struct {
		change func(*v1beta1.InferenceService)
		want   bool
	}{
		"no change":                  {func(*v1beta1.InferenceService) {}, false},
		"spec":                       {func(s *v1beta1.InferenceService) { s.Generation++ }, true},
		"status":                     {func(s *v1beta1.InferenceService) { s.ResourceVersion = "9" }, false},
		"recreated with another UID": {func(s *v1beta1.InferenceService) { s.UID = "other" }, true},
		"an annotation":              {func(s *v1beta1.InferenceService) { s.Annotations["a"] = "b" }, true},
		"another mode":               {func(s *v1beta1.InferenceService) { s.Annotations[v1beta1.AnnotationDeploymentMode] = "Serverless" }, true},
		"no mode":                    {func(s *v1beta1.InferenceService) { s.Annotations = nil }, true},
		"deletion begins":            {func(s *v1beta1.InferenceService) { s.DeletionTimestamp = &now }, true},
		"a label":                    {func(s *v1beta1.InferenceService) { s.Labels = map[string]string{"a": "b"} }, false},
		"a finalizer without an end": {func(s *v1beta1.InferenceService) { s.Finalizers = []string{"f"} }, false},
		"finalizer removed from a terminating object": {func(s *v1beta1.InferenceService) { s.DeletionTimestamp, s.Finalizers = &now, nil }, true},
	} {
		before := inference("digits")
		before.Generation = 1
		after := inference("digits")
		after.Generation = 1
		tc.change(after)
		if got := passesUpdate(t, modelmesh.SpecOrAnnotationsChanged(), before, after); got != tc.want {
			t.Errorf("%s matters: %t, want %t", name, got, tc.want)
		}
	}
	ending, ended := inference("digits"), inference("digits")
	ending.DeletionTimestamp, ended.DeletionTimestamp = &now, &now
	ending.Finalizers = []string{"a", "b"}
	ended.Finalizers = []string{"a"}
	if !modelmesh.SpecOrAnnotationsChanged().Update(event.UpdateEvent{ObjectOld: ending, ObjectNew: ended}) {
		t.Error("the predicate ignored the removal of the last foreign finalizer")
	}
}
