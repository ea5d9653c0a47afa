package settings

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/reference"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/redact"
	"github.com/odh-platform/odh-platform-operator/test/poll"
)

func TestDefaultsWithoutConfigMaps(t *testing.T) {
	f := newFixture(t, config.ModelMesh{})
	for _, namespace := range []string{home, "any"} {
		requireEqual(t, f.settingsFor(t, namespace), Default())
	}
	if f.lists.Load() != 2 {
		t.Errorf("got %d list requests, want one for each ConfigMap name", f.lists.Load())
	}
}

// A document overrides only the keys that it sets in documents of lower precedence.
func TestDocumentsOverrideOnlyKeysTheySet(t *testing.T) {
	images := config.ModelMeshImages{ModelMesh: "env/mm:1", RESTProxy: "env/rest:1"}
	f := newFixture(t, config.ModelMesh{Images: images, Defaults: "podsPerRuntime: 90\nheadlessService: true", DefaultsFile: "/file"},
		defaults("podsPerRuntime: 3\nmodelMeshImage: {name: default/mm, tag: old}\nstorageHelperImage: {name: default/helper}\nmetrics: {port: 2222}\nrunTimePodLabels: {a: d, b: d, c: d}"),
		settingsConfigMap(home, "restProxy: {image: {tag: admin}}\nmetrics: {enabled: true, scheme: http}\nrunTimePodLabels: {b: a, c: a}"),
		settingsConfigMap("tenant", "metrics: {scheme: https}\nenableAccessLogging: true\nscaleToZero: {gracePeriodSeconds: 7}"))
	admin, tenant := f.settingsFor(t, "other"), f.settingsFor(t, "tenant")
	if admin.PodsPerRuntime != 3 || admin.HeadlessService || admin.RESTProxy.Enabled || admin.Metrics.Port != 2222 || admin.Metrics.Scheme != "http" {
		t.Errorf("unexpected settings of the administrators: %+v", admin)
	}
	for want, image := range map[string]Image{"env/mm:1": admin.ModelMeshImage, "env/rest:admin": admin.RESTProxy.Image, "default/helper:latest": admin.StorageHelper.Image} {
		if image.Reference() != want {
			t.Errorf("got %q, want %q", image.Reference(), want)
		}
	}
	labels := func(s Settings) string {
		return s.RuntimePodLabels["a"] + s.RuntimePodLabels["b"] + s.RuntimePodLabels["c"]
	}
	if labels(admin) != "daa" || labels(tenant) != "daa" {
		t.Errorf("got labels %s and %s, want daa for both", labels(admin), labels(tenant))
	}
	if !tenant.EnableAccessLogging || tenant.Metrics.Scheme != "https" || !tenant.Metrics.Enabled || tenant.ScaleToZero.GracePeriod != 7*time.Second || admin.ScaleToZero.GracePeriod != time.Minute {
		t.Errorf("unexpected settings of the tenant %+v or of the administrator %+v", tenant, admin)
	}
	own, err := f.Admin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	requireEqual(t, own, admin)
	if f.lists.Load() != 2 {
		t.Errorf("got %d list requests, want one for each ConfigMap name", f.lists.Load())
	}
}

func TestDefaultsFile(t *testing.T) {
	f := newFixture(t, config.ModelMesh{Defaults: "podsPerRuntime: 5", DefaultsFile: "/d.yaml"})
	got := f.settingsFor(t, "any")
	if got.PodsPerRuntime != 5 || got.HeadlessService || got.RESTProxy.Enabled || got.Metrics.Enabled {
		t.Errorf("got %+v, want the built-in settings for keys that the defaults do not contain", got)
	}
	_, err := newFixture(t, config.ModelMesh{Defaults: "podsPerRuntime: x", DefaultsFile: "/d.yaml"}).For(t.Context(), "any")
	if err == nil || !strings.Contains(err.Error(), `/d.yaml: podsPerRuntime "x"`) {
		t.Errorf("unexpected error: %v", err)
	}
}

// The name of the etcd Secret in the environment takes precedence, unless it is the default.
func TestEtcdSecretName(t *testing.T) {
	for _, tc := range []struct{ env, key, want string }{
		{"", "", DefaultEtcdSecret}, {DefaultEtcdSecret, "by-key", "by-key"}, {"by-env", "by-key", "by-env"}, {"by-env", "", "by-env"},
	} {
		text := ""
		if tc.key != "" {
			text = "etcdSecretName: " + tc.key
		}
		if got := newFixture(t, config.ModelMesh{EtcdSecretName: tc.env}, settingsConfigMap(home, text)).settingsFor(t, "any").EtcdSecretName; got != tc.want {
			t.Errorf("%+v: got %q, want %q", tc, got, tc.want)
		}
	}
}

// There are no settings before the first valid version of a document, because the defaults could change names of Services and Deployments.
func TestNoSettingsBeforeFirstValidDocument(t *testing.T) {
	f := newFixture(t, config.ModelMesh{}, settingsConfigMap(home, "podsPerRuntime: none"))
	for range 3 {
		_, err := f.For(t.Context(), "any")
		if err == nil || !strings.Contains(err.Error(), `ConfigMap serving/model-serving-config: podsPerRuntime "none"`) {
			t.Errorf("unexpected error: %v", err)
		}
	}
	if message := f.nextEvent(t); !strings.Contains(message, "Warning "+ReasonRefused) || !strings.Contains(message, keptNone) {
		t.Error(message)
	}
	f.expectNoEvents(t)
	f.start(t)
	f.apply(t, settingsConfigMap(home, "podsPerRuntime: 4"))
	poll.Until(t, 10*time.Second, "the corrected settings are in effect", func() bool { got, err := f.For(t.Context(), "any"); return err == nil && got.PodsPerRuntime == 4 })

	f = newFixture(t, config.ModelMesh{}, configMap(home, ConfigMapName, map[string]string{"config.yml": "{}"}))
	if _, err := f.For(t.Context(), "any"); err == nil || !strings.Contains(err.Error(), "User ConfigMap must contain a key named config.yaml") {
		t.Errorf("got error %v, want one containing 'User ConfigMap must contain a key named config.yaml'", err)
	}
	f = newFixture(t, config.ModelMesh{}, configMap(home, DefaultsName, nil))
	if _, err := f.For(t.Context(), "any"); err == nil || !strings.Contains(err.Error(), "model-serving-config-defaults: User ConfigMap must contain a key named config-defaults.yaml") {
		t.Errorf("unexpected error: %v", err)
	}
}

func TestAPIServerErrors(t *testing.T) {
	f := newFixture(t, config.ModelMesh{}, settingsConfigMap(home, "podsPerRuntime: 4"))
	listErr := errors.New("refused")
	f.listErr.Store(&listErr)
	if _, err := f.For(t.Context(), "any"); err == nil || !strings.Contains(err.Error(), "reading ConfigMaps model-serving-config: listing configmaps: refused") {
		t.Errorf("got error %v, want one containing 'reading ConfigMaps model-serving-config: listing configmaps: refused'", err)
	}
	f.listErr.Store(nil)
	if got := f.settingsFor(t, "any"); got.PodsPerRuntime != 4 {
		t.Errorf("got %+v, want the settings of the administrators", got)
	}
	f.listErr.Store(&listErr)
	if got := f.settingsFor(t, "other"); got.PodsPerRuntime != 4 {
		t.Error("want the cached settings, without another read")
	}
	f.expectNoEvents(t)
}

// A change of the administrators' ConfigMap or of the defaults takes effect without a restart. An invalid one is reported once on its
// ConfigMap, and the last valid version is kept.
func TestChangesTakeEffect(t *testing.T) {
	f := newFixture(t, config.ModelMesh{}, settingsConfigMap(home, "podsPerRuntime: 3")).start(t)
	f.expectPods(t, "any", 3)
	f.apply(t, settingsConfigMap(home, "podsPerRuntime: 4"))
	f.expectPods(t, "any", 4)

	f.apply(t, settingsConfigMap(home, "podsPerRuntime: 70000"))
	message := f.nextEvent(t)
	for _, part := range []string{"Warning " + ReasonRefused, keptPrevious, "ConfigMap serving/model-serving-config", `podsPerRuntime "70000": must be a whole number from 0 to 65535`} {
		if !strings.Contains(message, part) {
			t.Errorf("%q does not contain %q", message, part)
		}
	}
	f.expectPods(t, "any", 4)

	f.apply(t, defaults("podsPerRuntime: 9\nmetrics: {port: 2222}"))
	f.remove(t, settingsConfigMap(home, ""))
	f.expectPods(t, "any", 9)
	f.apply(t, defaults("metrics: {port: x}"))
	if message := f.nextEvent(t); !strings.Contains(message, `metrics.port "x"`) || !strings.Contains(message, DefaultsName) {
		t.Error(message)
	}
	f.apply(t, settingsConfigMap(home, "enableAccessLogging: true"))
	poll.Until(t, 10*time.Second, "the document of the administrators takes effect", func() bool { return f.settingsFor(t, "any").EnableAccessLogging })
	if got := f.settingsFor(t, "any"); got.PodsPerRuntime != 9 || got.Metrics.Port != 2222 {
		t.Errorf("got %+v, want the last valid defaults with the document of the administrators", got)
	}
	f.remove(t, defaults(""))
	f.expectPods(t, "any", 2)
	f.expectNoEvents(t)
	if f.lists.Load() != 2 {
		t.Errorf("got %d list requests, want one for each ConfigMap name", f.lists.Load())
	}
}

// Changes of a namespace's document take effect, and its errors affect that namespace only.
func TestNamespaceDocumentChanges(t *testing.T) {
	f := newFixture(t, config.ModelMesh{}, settingsConfigMap(home, "podsPerRuntime: 3"), settingsConfigMap("tenant", "podsPerRuntime: 5")).start(t)
	f.expectPods(t, "tenant", 5)
	f.expectPods(t, "other", 3)
	f.apply(t, settingsConfigMap("other", "podsPerRuntime: 6"))
	f.expectPods(t, "other", 6)

	f.apply(t, settingsConfigMap("tenant", "podsPerRuntime: many"))
	poll.Until(t, 10*time.Second, "the error is reported", func() bool { f.settingsFor(t, "tenant"); return len(f.recorder.Events) == 1 })
	if message := f.nextEvent(t); !strings.Contains(message, "ConfigMap tenant/model-serving-config") || !strings.Contains(message, `podsPerRuntime "many"`) || !strings.Contains(message, keptPrevious) {
		t.Error(message)
	}
	f.expectPods(t, "tenant", 5) // the last valid settings
	f.apply(t, settingsConfigMap(home, "podsPerRuntime: 3\nenableAccessLogging: true"))
	poll.Until(t, 10*time.Second, "the settings of the administrators are in effect", func() bool { return f.settingsFor(t, "other").EnableAccessLogging })
	if got := f.settingsFor(t, "tenant"); got.PodsPerRuntime != 5 || got.EnableAccessLogging {
		t.Errorf("the settings of the namespace changed although its document is invalid: %+v", got)
	}
	f.apply(t, settingsConfigMap("tenant", "metrics: {port: 2113}"))
	poll.Until(t, 10*time.Second, "the corrected document is in effect", func() bool { return f.settingsFor(t, "tenant").Metrics.Port == 2113 })
	if got := f.settingsFor(t, "tenant"); got.PodsPerRuntime != 3 || !got.EnableAccessLogging {
		t.Errorf("got %+v, want the settings of the namespace", got)
	}
	f.remove(t, settingsConfigMap("tenant", ""))
	f.remove(t, settingsConfigMap("other", ""))
	f.expectPods(t, "other", 3)
	poll.Until(t, 10*time.Second, "the settings of the administrators are in effect again", func() bool { return f.settingsFor(t, "tenant").Metrics.Port == 2112 })
	f.expectNoEvents(t)
}

// A namespace whose document was never valid gets the settings of the administrators. Nothing is reported until its settings are
// requested: the ConfigMap of a disabled namespace may belong to another application.
func TestInvalidNamespaceDocuments(t *testing.T) {
	f := newFixture(t, config.ModelMesh{}, settingsConfigMap("tenant", "inferenceServiceName: mine"), settingsConfigMap("disabled", "[{"),
		configMap("keyless", ConfigMapName, map[string]string{"x": "y"}))
	requireEqual(t, f.settingsFor(t, "tenant"), Default())
	if message := f.nextEvent(t); !strings.Contains(message, "inferenceServiceName cannot be set for a single namespace: set it in ConfigMap model-serving-config of the namespace with the ModelMesh configuration") {
		t.Error(message)
	}
	requireEqual(t, f.settingsFor(t, "tenant"), Default())
	f.expectNoEvents(t)
	requireEqual(t, f.settingsFor(t, "keyless"), Default())
	if message := f.nextEvent(t); !strings.Contains(message, "ConfigMap keyless/model-serving-config: User ConfigMap must contain a key named config.yaml") {
		t.Error(message)
	}
	f.expectNoEvents(t)
}

// Keys without effect are reported once, and again when they change.
func TestKeysWithoutEffectAreReported(t *testing.T) {
	f := newFixture(t, config.ModelMesh{}, settingsConfigMap(home, "podPerRuntime: 3"))
	f.settingsFor(t, "any")
	if message := f.nextEvent(t); !strings.Contains(message, "Warning "+ReasonIgnored) || !strings.Contains(message, "podPerRuntime is unknown and has no effect (did you mean podsPerRuntime?)") {
		t.Error(message)
	}
	f.start(t)
	f.apply(t, defaults("podsPerRuntime: 7"))
	f.expectPods(t, "any", 7)
	f.expectNoEvents(t)
	long := map[string]string{}
	for i := range 40 {
		long[strings.Repeat("long", 10)+strings.Repeat("x", i)] = "1"
	}
	var text strings.Builder
	for key, value := range long {
		text.WriteString(key + ": " + value + "\n")
	}
	f.apply(t, settingsConfigMap(home, text.String()))
	if message := f.nextEvent(t); len(message) > redact.MaxNote+len("Warning "+ReasonIgnored+" ") || !strings.HasSuffix(message, "...") {
		t.Errorf("got a message of %d bytes, want a note of at most %d that ends in ...", len(message), redact.MaxNote)
	}
}

// Listeners are called only for namespaces whose settings changed, or once for all namespaces.
func TestChangesEnqueuesNamespaces(t *testing.T) {
	f := newFixture(t, config.ModelMesh{}, settingsConfigMap(home, "podsPerRuntime: 3"), settingsConfigMap("tenant", "podsPerRuntime: 5"))
	f.settingsFor(t, "any")
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	if err := f.Changes(&handler.EnqueueRequestForObject{}).Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	f.listeners.Subscribe(ctx, func(string) { t.Error("the listener was called after its context ended") })
	cancel()
	poll.Until(t, 10*time.Second, "the listener is removed", func() bool { return f.listeners.Len() == 1 })
	f.start(t)
	next := func() string {
		t.Helper()
		poll.Until(t, 10*time.Second, "a namespace is enqueued", func() bool { return queue.Len() > 0 })
		request, _ := queue.Get()
		queue.Done(request)
		return request.Name
	}
	f.apply(t, settingsConfigMap("other", "podsPerRuntime: 1"))
	if got := next(); got != "other" {
		t.Errorf("got request %q, want %q", got, "other")
	}
	f.apply(t, settingsConfigMap(home, "podsPerRuntime:   3 # unchanged")) // no effect
	f.apply(t, settingsConfigMap("tenant", "podsPerRuntime: 6"))
	if got := next(); got != "tenant" {
		t.Errorf("got request %q, want %q", got, "tenant")
	}
	f.remove(t, settingsConfigMap("other", ""))
	if got := next(); got != "other" {
		t.Errorf("got request %q, want %q", got, "other")
	}
	f.apply(t, settingsConfigMap(home, "podsPerRuntime: 8"))
	request, _ := queue.Get()
	if request.Name != "" {
		t.Errorf("got request %q, want the empty name for all namespaces", request.Name)
	}
}

// In a single-namespace installation only the namespace of the operator is read.
func TestNamespaceScope(t *testing.T) {
	f := newFixture(t, config.ModelMesh{NamespaceScope: true}, settingsConfigMap(home, "podsPerRuntime: 3"), settingsConfigMap("tenant", "podsPerRuntime: 5"))
	if got := f.settingsFor(t, "tenant"); got.PodsPerRuntime != 3 {
		t.Errorf("got %+v, want the settings of the administrators", got)
	}
	f.start(t)
	for _, action := range f.dynamic.Actions() {
		if action.GetNamespace() != home {
			t.Errorf("got a %s request in namespace %q, want requests only in %q", action.GetVerb(), action.GetNamespace(), home)
		}
	}
	if f.NeedLeaderElection() {
		t.Error("NeedLeaderElection reports true, although standby replicas read the settings")
	}
}

// Concurrent reads before and during changes return consistent settings.
func TestConcurrentReads(t *testing.T) {
	texts := []string{"podsPerRuntime: 1\nmetrics: {port: 2001}", "podsPerRuntime: 2\nmetrics: {port: 2002}"}
	f := newFixture(t, config.ModelMesh{}, settingsConfigMap(home, texts[0]), settingsConfigMap("tenant", "enableAccessLogging: true")).start(t)
	var readers sync.WaitGroup
	for _, namespace := range []string{"tenant", "other", "tenant", home} {
		readers.Go(func() {
			for range 200 {
				got, err := f.For(t.Context(), namespace)
				if err != nil || got.PodsPerRuntime+2000 != got.Metrics.Port || got.EnableAccessLogging != (namespace == "tenant") {
					t.Errorf("namespace %s: got %d pods per runtime, metrics port %d, access logging %t, error %v", namespace, got.PodsPerRuntime, got.Metrics.Port, got.EnableAccessLogging, err)
				}
			}
		})
	}
	for i := range 200 {
		f.onConfigs([]*unstructured.Unstructured{toUnstructured(t, settingsConfigMap(home, texts[i%2])), toUnstructured(t, settingsConfigMap("tenant", "enableAccessLogging: true"))})
	}
	readers.Wait()
}

// Documents that a watch delivered are not read again.
func TestWatchedDocumentsAreNotReadAgain(t *testing.T) {
	f := newFixture(t, config.ModelMesh{}, settingsConfigMap(home, "podsPerRuntime: 4")).start(t)
	if got := f.settingsFor(t, "any"); got.PodsPerRuntime != 4 || f.lists.Load() != 2 {
		t.Errorf("got %d pods per runtime after %d list requests, want 4 after 2", got.PodsPerRuntime, f.lists.Load())
	}
	if !slices.Equal(f.settingsFor(t, "any").BuiltInServerTypes, Default().BuiltInServerTypes) {
		t.Error("want the default server types")
	}
}

// Each Event refers to one version of the ConfigMap, because Kubernetes aggregates Events of the same object and reason.
func TestEventsHaveResourceVersion(t *testing.T) {
	f := newFixture(t, config.ModelMesh{})
	var regarding []corev1.ObjectReference
	f.Recorder = recorder(func(o runtime.Object) {
		reference, err := reference.GetReference(clientgoscheme.Scheme, o)
		if err != nil {
			t.Fatal(err)
		}
		regarding = append(regarding, *reference)
	})
	f.onDefaults(nil)
	for _, step := range []struct{ version, text string }{{"1", "podsPerRuntime: a"}, {"2", "podsPerRuntime: a"}, {"3", "podsPerRuntime: b"}} {
		m := settingsConfigMap(home, step.text)
		m.ResourceVersion = step.version
		f.onConfigs([]*unstructured.Unstructured{toUnstructured(t, m)})
	}
	if len(regarding) != 2 || regarding[0].ResourceVersion != "1" || regarding[1].ResourceVersion != "3" ||
		regarding[0].Kind != "ConfigMap" || regarding[0].APIVersion != "v1" || regarding[0].Namespace != home || regarding[0].Name != ConfigMapName || regarding[0].UID == "" {
		t.Errorf("got events for %+v, want one for each invalid document, with the first resourceVersion that has it", regarding)
	}
}

type recorder func(runtime.Object)

func (r recorder) Eventf(regarding, _ runtime.Object, _, _, _, _ string, _ ...any) { r(regarding) }
