package settings

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
)

func mustRead(t *testing.T, over Settings, text string) Settings {
	t.Helper()
	got, notes, err := Read(over, text)
	if err != nil || len(notes) > 0 {
		t.Fatalf("got notes %q and error %v for:\n%s", notes, err, text)
	}
	return got
}

func expectRejected(t *testing.T, text string, want ...string) {
	t.Helper()
	_, _, err := Read(Default(), text)
	for _, part := range want {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v\ndoes not contain %q, for:\n%s", err, part, text)
		}
	}
}

// requireEqual compares settings, with semantic equality of quantities.
func requireEqual(t *testing.T, got, want Settings) {
	t.Helper()
	if !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("(-want +got):\n%s", cmp.Diff(want, got, cmp.Comparer(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 })))
	}
}

// allKeysDocument sets each key to a value other than its default, except the digests of images.
const allKeysDocument = `
inferenceServiceName: served
inferenceServicePort: 8034
headlessService: false
podsPerRuntime: 3
grpcMaxMessageSizeBytes: 33554432
tls: {secretName: serving-tls, clientAuth: ' optional '}
enableAccessLogging: true
modelMeshImage: {name: example.com/mm, tag: v9}
modelMeshResources: {requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 2, memory: 2Gi}}
restProxy:
  enabled: false
  port: 8009
  skipVerify: true
  image: {name: example.com/rest, tag: v9}
  resources: {requests: {cpu: 3, memory: 3Gi}, limits: {cpu: 4, memory: 4Gi}}
storageHelperImage: {name: example.com/adapter, tag: v9, command: [/bin/fetch, now]}
storageHelperResources: {requests: {cpu: 5, memory: 5Gi}, limits: {cpu: 6, memory: 6Gi}}
storageSecretName: storage
etcdSecretName: etcd
serviceAccountName: runner
metrics: {enabled: false, port: 2222, scheme: http, disablePrometheusOperatorSupport: true}
scaleToZero: {enabled: false, gracePeriodSeconds: 5}
runtimePodLabels: {Cost.Centre: 42}
runtimePodAnnotations: {Example.com/Scrape: "no"}
imagePullSecrets: [{name: one}, {name: two}]
allowAnyPVC: true
allowNamespaceEtcd: true
etcdUserPerNamespace: true
builtInServerTypes: [own]
payloadProcessors: [logger://log, http://collector:8080/v1]
internalModelMeshEnvVars: [{name: A, value: 1.0}, {name: B}]
modelMeshEndpoint: localhost:8033
runtimeArchitectures: [ppc64le]
authProxy:
  mode: always
  image: {name: example.com/oauth, tag: v9}
  rbacImage: {name: example.com/rbac, tag: v9}
  resources: {requests: {cpu: 7, memory: 7Gi}, limits: {cpu: 8, memory: 8Gi}}
  extraArgs: [--debug]
networkPolicy: {enabled: false, restricted: true}
`

func everySetting() Settings {
	image := func(name string) Image { return Image{Name: "example.com/" + name, Tag: "v9"} }
	return Settings{
		ServiceName: "served", ServicePort: 8034, PodsPerRuntime: 3, GRPCMaxMessageSizeBytes: 33554432,
		TLS: TLS{SecretName: "serving-tls", ClientAuth: "optional"}, EnableAccessLogging: true,
		ModelMeshImage: image("mm"), ModelMeshResources: resources("1", "1Gi", "2", "2Gi"),
		RESTProxy:         RESTProxy{Port: 8009, SkipVerify: true, Image: image("rest"), Resources: resources("3", "3Gi", "4", "4Gi")},
		StorageHelper:     StorageHelper{Image: image("adapter"), Command: []string{"/bin/fetch", "now"}, Resources: resources("5", "5Gi", "6", "6Gi")},
		StorageSecretName: "storage", EtcdSecretName: "etcd", ServiceAccountName: "runner",
		Metrics:                  Metrics{Port: 2222, Scheme: "http", DisablePrometheusOperatorSupport: true},
		ScaleToZero:              ScaleToZero{GracePeriod: 5 * time.Second},
		RuntimePodLabels:         map[string]string{"Cost.Centre": "42"},
		RuntimePodAnnotations:    map[string]string{"Example.com/Scrape": "no"},
		ImagePullSecrets:         []corev1.LocalObjectReference{{Name: "one"}, {Name: "two"}},
		AllowAnyPVC:              true,
		AllowNamespaceEtcd:       true,
		EtcdUserPerNamespace:     true,
		BuiltInServerTypes:       []string{"own"},
		PayloadProcessors:        []string{"logger://log", "http://collector:8080/v1"},
		InternalModelMeshEnvVars: []corev1.EnvVar{{Name: "A", Value: "1.0"}, {Name: "B"}},
		ModelMeshEndpoint:        "localhost:8033",
		RuntimeArchitectures:     []string{"ppc64le"},
		AuthProxy: AuthProxy{Mode: AuthProxyAlways, Image: image("oauth"), RBACImage: image("rbac"),
			Resources: resources("7", "7Gi", "8", "8Gi"), ExtraArgs: []string{"--debug"}},
		NetworkPolicyRestricted: true,
	}
}

func TestEveryKeyIsRead(t *testing.T) {
	requireEqual(t, mustRead(t, Default(), allKeysDocument), everySetting())
}

// [M36] Keys are case-insensitive; the keys of labels and annotations keep their case.
func TestKeysAreCaseInsensitive(t *testing.T) {
	var upperCase strings.Builder
	for line := range strings.Lines(allKeysDocument) {
		if key, rest, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, " ") {
			line = strings.ToUpper(key) + ":" + rest
		}
		upperCase.WriteString(line)
	}
	requireEqual(t, mustRead(t, Default(), upperCase.String()), everySetting())
	got := mustRead(t, Default(), "RestProxy: {SKIPVERIFY: true, Image: {TAG: v2}}\nrunTimePodLabels: {App: Mine, app: yours}")
	if !got.RESTProxy.SkipVerify || got.RESTProxy.Image.Tag != "v2" || got.RuntimePodLabels["App"] != "Mine" || got.RuntimePodLabels["app"] != "yours" {
		t.Errorf("unexpected restProxy %+v or runtimePodLabels %v", got.RESTProxy, got.RuntimePodLabels)
	}
	expectRejected(t, "podsPerRuntime: 1\nPodsPerRuntime: 2", "podsPerRuntime is set as PodsPerRuntime and as podsPerRuntime: remove one of them")
	expectRejected(t, "podsPerRuntime: 1\npodsPerRuntime: 2", `line 2: mapping key "podsPerRuntime" already defined at line 1`)
}

// [modelmesh-38] Keys that a document does not set keep their defaults.
func TestUntouchedKeysKeepDefaults(t *testing.T) {
	got := mustRead(t, Default(), `storageHelperImage: {name: override, tag: "1.0"}`)
	if got.StorageHelper.Image.Reference() != "override:1.0" || got.PodsPerRuntime != 2 || !slices.Equal(got.StorageHelper.Command, []string{"/opt/app/puller"}) {
		t.Errorf("got %+v, want the defaults and the changed image", got)
	}
	for _, text := range []string{"", "# nothing", "{}", "null", "---\n", "podsPerRuntime:\nrestProxy: ~\nmetrics: {port: null}"} {
		requireEqual(t, mustRead(t, Default(), text), Default())
	}
}

// [modelmesh-39] A key of a label or annotation can contain dots.
func TestKeysWithDots(t *testing.T) {
	got := mustRead(t, Default(), "runtimePodLabels: {foo.bar: one}\nrunTimePodAnnotations: {a.b/c.d: two}")
	if got.RuntimePodLabels["foo.bar"] != "one" || got.RuntimePodAnnotations["a.b/c.d"] != "two" {
		t.Errorf("unexpected runtimePodLabels %v or runtimePodAnnotations %v", got.RuntimePodLabels, got.RuntimePodAnnotations)
	}
}

// Maps are merged by key, null deletes a key, and the base settings are not modified.
func TestMapsMerge(t *testing.T) {
	base := Default()
	base.RuntimePodLabels = map[string]string{"a": "1", "b": "2"}
	got := mustRead(t, base, "runtimePodLabels: {b: 3, c: 4, a: null}")
	if diff := cmp.Diff(map[string]string{"b": "3", "c": "4"}, got.RuntimePodLabels); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "2"}, base.RuntimePodLabels); diff != "" {
		t.Errorf("the base settings were changed: %s", diff)
	}
	got = mustRead(t, base, "modelMeshResources: {limits: {cpu: 9}}")
	if got.ModelMeshResources.Limits.Cpu().String() != "9" || got.ModelMeshResources.Limits.Memory().String() != "448Mi" || base.ModelMeshResources.Limits.Cpu().String() != "3" {
		t.Errorf("unexpected resources %v, or changed base settings %v", got.ModelMeshResources, base.ModelMeshResources)
	}
}

// [modelmesh-41] A value of another type is an error.
func TestValueTypes(t *testing.T) {
	expectRejected(t, `podsPerRuntime: "none"`, `podsPerRuntime "none": must be a whole number from 0 to 65535`)
	expectRejected(t, `modelMeshResources: {requests: {memory: "1e-2000000000"}}`, "Invalid config for 'modelMeshResources': ", "quantity")
	expectRejected(t, "modelMeshResources: {requests: {memory: asdf}}", "Invalid config for 'modelMeshResources': ", `requests.memory "asdf"`, "quantity")
	// Quotes around numbers and booleans have no effect.
	got := mustRead(t, Default(), `{podsPerRuntime: "3", headlessService: "no", enableAccessLogging: 'True', runtimePodLabels: {on: 007}}`)
	if got.PodsPerRuntime != 3 || got.HeadlessService || !got.EnableAccessLogging || got.RuntimePodLabels["on"] != "007" {
		t.Errorf("got %+v, want quoted and unquoted values decoded", got)
	}
}

// [modelmesh-42]
func TestMetricsAndMessageSize(t *testing.T) {
	got := mustRead(t, builtIn(), "metrics: {enabled: true}\ngrpcMaxMessageSizeBytes: 33554432")
	if !got.Metrics.Enabled || got.GRPCMaxMessageSizeBytes != 33554432 {
		t.Errorf("got %+v, want metrics and the message size", got)
	}
}

// [modelmesh-43] A list replaces the previous list.
func TestListsReplace(t *testing.T) {
	got := mustRead(t, Default(), "builtInServerTypes: [one, two]")
	if !slices.Equal(got.BuiltInServerTypes, []string{"one", "two"}) {
		t.Errorf("builtInServerTypes is %v, want it replaced", got.BuiltInServerTypes)
	}
	if got = mustRead(t, got, "builtInServerTypes: []\npayloadProcessors: ''"); len(got.BuiltInServerTypes) != 0 || len(got.PayloadProcessors) != 0 {
		t.Errorf("got %v, want both lists emptied", got)
	}
	base := Default()
	base.PayloadProcessors, base.ImagePullSecrets = []string{"a"}, []corev1.LocalObjectReference{{Name: "x"}}
	if got = mustRead(t, base, "payloadProcessors: \"\"\nimagePullSecrets: []"); len(got.PayloadProcessors) != 0 || len(got.ImagePullSecrets) != 0 {
		t.Errorf("got %+v, want empty lists", got)
	}
}

// [modelmesh-44] Quantities are compared by value. Invalid quantities, and requests above their limits, are errors.
func TestQuantitiesAreComparedByValue(t *testing.T) {
	a := mustRead(t, Default(), "modelMeshResources: {requests: {cpu: 15000m, memory: 0.5Gi}, limits: {cpu: 15000m, memory: 0.5Gi}}")
	b := mustRead(t, Default(), "modelMeshResources: {requests: {cpu: 15, memory: 512Mi}, limits: {cpu: 15, memory: 512Mi}}")
	requireEqual(t, a, b)
	for _, text := range []string{"invalid", "''", "-1", "[1]", "{}", "1Kg"} {
		for _, section := range []string{"modelMeshResources", "storageHelperResources"} {
			expectRejected(t, section+": {limits: {cpu: "+text+"}}", "Invalid config for '"+section+"'", "must be a quantity")
		}
		expectRejected(t, "restProxy: {resources: {limits: {cpu: "+text+"}}}", "Invalid config for 'restProxy.resources'")
	}
	expectRejected(t, "modelMeshResources: {requests: {cpu: 4}}", "Invalid config for 'modelMeshResources'", "requests.cpu 4 is more than limits.cpu 3")
}

// [modelmesh-45]
func TestKubernetesTypes(t *testing.T) {
	got := mustRead(t, Default(), "internalModelMeshEnvVars: [{name: X, value: y}]\nimagePullSecrets: [{name: pull}]")
	if diff := cmp.Diff([]corev1.EnvVar{{Name: "X", Value: "y"}}, got.InternalModelMeshEnvVars); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]corev1.LocalObjectReference{{Name: "pull"}}, got.ImagePullSecrets); diff != "" {
		t.Error(diff)
	}
}

// [modelmesh-36] A payload processor needs no scheme, and spaces around it are removed.
func TestPayloadProcessors(t *testing.T) {
	got := mustRead(t, Default(), "payloadProcessors: ['example:8080/consumer/kserve/v2', ' example2:8080/consumer/kserve/v2 ']")
	if s := strings.Join(got.PayloadProcessors, " "); s != "example:8080/consumer/kserve/v2 example2:8080/consumer/kserve/v2" {
		t.Errorf("unexpected payloadProcessors: %s", s)
	}
}

// [modelmesh-37]
func TestPayloadProcessorWithBlank(t *testing.T) {
	for _, blank := range []string{" ", "\\t", "\\n"} {
		expectRejected(t, `payloadProcessors: [ok, "a`+blank+`b"]`, "Error parsing payload processor 'a", "endpoint must not contain spaces.")
	}
}
