package runtimes

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// liveTemplate returns a pod template with defaults of the API server and fields of third parties.
func liveTemplate() *corev1.PodTemplateSpec {
	t := &corev1.PodTemplateSpec{}
	t.Labels = map[string]string{"name": "modelmesh-serving-r", "theirs": "x"}
	t.Spec.RestartPolicy = corev1.RestartPolicyAlways
	t.Spec.TerminationGracePeriodSeconds = new(int64(90))
	t.Spec.Tolerations = []corev1.Toleration{{Key: "gpu"}}
	t.Spec.Containers = []corev1.Container{
		{
			Name: "mm", Image: "mm:1", ImagePullPolicy: corev1.PullIfNotPresent,
			Args:         []string{"a", "b"},
			Env:          []corev1.EnvVar{{Name: "MM_SERVICE_NAME", Value: "modelmesh-serving"}, {Name: "MM_PAYLOAD_PROCESSORS", Value: "http://theirs"}},
			Resources:    corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}},
			Ports:        []corev1.ContainerPort{{Name: "grpc", ContainerPort: 8033, Protocol: corev1.ProtocolTCP}},
			VolumeMounts: []corev1.VolumeMount{{Name: "tc-config", MountPath: "/etc/watson/mmesh/config"}, {Name: "theirs", MountPath: "/etc/theirs"}},
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt32(8089), Scheme: corev1.URISchemeHTTP}},
				SuccessThreshold: 1},
		},
		{Name: "theirs", Image: "x"},
	}
	return t
}

// [M40] Defaults and additional fields of the live template are ignored.
func TestTemplateContains(t *testing.T) {
	container := func(fields string) string {
		return `{"spec":{"containers":[{"name":"mm","image":"mm:1"` + fields + `}]}}`
	}
	for name, tc := range map[string]struct {
		desired  string
		contains bool
	}{
		"empty template":                    {`{}`, true},
		"labels":                            {`{"metadata":{"labels":{"name":"modelmesh-serving-r"}}}`, true},
		"another label":                     {`{"metadata":{"labels":{"name":"modelmesh-serving-r","more":"x"}}}`, false},
		"an annotation":                     {`{"metadata":{"annotations":{"more":"x"}}}`, false},
		"the container":                     {container(``), true},
		"another image":                     {`{"spec":{"containers":[{"name":"mm","image":"mm:2"}]}}`, false},
		"another container":                 {`{"spec":{"containers":[{"name":"mm","image":"mm:1"},{"name":"puller","image":"p"}]}}`, false},
		"same quantity":                     {container(`,"resources":{"limits":{"cpu":"1000m"}}`), true},
		"another quantity":                  {container(`,"resources":{"limits":{"cpu":"1001m"}}`), false},
		"env":                               {container(`,"env":[{"name":"MM_SERVICE_NAME","value":"modelmesh-serving"}]`), true},
		"env of another value":              {container(`,"env":[{"name":"MM_SERVICE_NAME","value":"other"}]`), false},
		"missing env":                       {container(`,"env":[{"name":"MM_LABELS","value":""}]`), false},
		"mount":                             {container(`,"volumeMounts":[{"name":"tc-config","mountPath":"/etc/watson/mmesh/config"}]`), true},
		"mount of another volume":           {container(`,"volumeMounts":[{"name":"other","mountPath":"/etc/watson/mmesh/config"}]`), false},
		"port":                              {container(`,"ports":[{"name":"grpc","containerPort":8033}]`), true},
		"port without a name":               {container(`,"ports":[{"containerPort":8033}]`), true},
		"another port":                      {container(`,"ports":[{"containerPort":8034}]`), false},
		"args":                              {container(`,"args":["a","b"]`), true},
		"fewer args":                        {container(`,"args":["a"]`), false},
		"probe":                             {container(`,"readinessProbe":{"httpGet":{"path":"/ready","port":8089}}`), true},
		"another probe":                     {container(`,"readinessProbe":{"httpGet":{"path":"/ready","port":"grpc"}}`), false},
		"security context of this operator": {container(`,"securityContext":{"runAsNonRoot":true}`), false},
		"grace period":                      {`{"spec":{"terminationGracePeriodSeconds":90}}`, true},
		"another grace period":              {`{"spec":{"terminationGracePeriodSeconds":30}}`, false},
		"tolerations":                       {`{"spec":{"tolerations":[{"key":"gpu"}]}}`, true},
		"another toleration":                {`{"spec":{"tolerations":[{"key":"cpu"}]}}`, false},
		"another volume":                    {`{"spec":{"volumes":[{"name":"v","emptyDir":{}}]}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := templateContains(rawJSON(tc.desired), liveTemplate())
			if err != nil || got != tc.contains {
				t.Errorf("templateContains returned %t, error %v, want %t", got, err, tc.contains)
			}
		})
	}
	if _, err := templateContains(rawJSON(`{"spec":{"containers":[{"resources":{"limits":{"cpu":"many"}}}]}}`), liveTemplate()); err == nil {
		t.Error("want an error for an invalid pod template")
	}
	if _, err := templateContains(func() {}, liveTemplate()); err == nil {
		t.Error("want an error for a template that is not JSON")
	}
}

// rawJSON is a value that is already encoded.
type rawJSON string

func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// newLegacyDeployment returns the Deployment of the legacy controller for a runtime in ns, with a third-party container.
func newLegacyDeployment(t *testing.T, w *testEnv, r *v1alpha1.ServingRuntime) *appsv1.Deployment {
	t.Helper()
	f, err := w.collectState(t.Context(), "ns")
	if err != nil {
		t.Fatal(err)
	}
	built, err := resources.BuildDeployment(resources.RuntimeInputs{
		NamespaceInputs: resources.NamespaceInputs{Namespace: "ns", Settings: f.Settings}, Form: resources.Legacy, Name: r.Name, Spec: &r.Spec, Replicas: new(int32(2)),
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(built.Config)
	if err != nil {
		t.Fatal(err)
	}
	d := &appsv1.Deployment{}
	if err := json.Unmarshal(text, d); err != nil {
		t.Fatal(err)
	}
	d.Annotations = map[string]string{"manifestival": "new", corev1.LastAppliedConfigAnnotation: "{}"}
	d.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "serving.kserve.io/v1alpha1", Kind: "ServingRuntime", Name: r.Name, UID: r.UID, Controller: new(true), BlockOwnerDeletion: new(true),
	}}
	d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "theirs", Image: "registry.example.com/theirs:1"})
	return d
}

// hasCurrentForm reports whether the pod template of a runtime has the current form.
func (env *testEnv) hasCurrentForm(runtime string) bool {
	env.Helper()
	for _, c := range env.deploymentOf(runtime).Spec.Template.Spec.Containers {
		if c.Name == "rest-proxy" {
			return c.SecurityContext != nil && c.SecurityContext.AllowPrivilegeEscalation != nil
		}
	}
	env.Fatal("no rest-proxy")
	return false
}

// [M40] The form of the pod template of an adopted Deployment.
func TestFormOfAdoptedDeployment(t *testing.T) {
	for name, tc := range map[string]struct {
		// beforeAdoption changes the legacy Deployment, afterAdoption the adopted one, the runtime or the settings.
		beforeAdoption, afterAdoption func(*testEnv, *v1alpha1.ServingRuntime, *appsv1.Deployment)
		// The fields report whether the pods have the current form.
		currentAfterAdoption, currentAfterChange bool
	}{
		"no changes": {},
		"the runtime changes": {afterAdoption: func(w *testEnv, r *v1alpha1.ServingRuntime, _ *appsv1.Deployment) {
			r.Spec.Containers[0].Image = "registry.example.com/server:2"
			w.must(w.api.Update(w.Context(), r))
		}, currentAfterChange: true},
		"the settings change": {afterAdoption: func(w *testEnv, _ *v1alpha1.ServingRuntime, _ *appsv1.Deployment) {
			w.settings.EnableAccessLogging = true
		}, currentAfterChange: true},
		"a user removes the annotation": {afterAdoption: func(w *testEnv, _ *v1alpha1.ServingRuntime, d *appsv1.Deployment) {
			w.must(w.api.Patch(w.Context(), d, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+AnnotationLegacyTemplate+`":null}}}`))))
		}, currentAfterChange: true},
		"a restart": {afterAdoption: func(w *testEnv, _ *v1alpha1.ServingRuntime, _ *appsv1.Deployment) { w.restart() }},
		"pods roll anyway": {beforeAdoption: func(_ *testEnv, _ *v1alpha1.ServingRuntime, d *appsv1.Deployment) {
			d.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(30))
		}, currentAfterAdoption: true, currentAfterChange: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := localRuntime("r", "onnx")
			w := newTestEnv(t, r, predictorOf("m", "onnx"))
			d := newLegacyDeployment(t, w, r)
			if tc.beforeAdoption != nil {
				tc.beforeAdoption(w, r, d)
			}
			w.must(w.api.Create(t.Context(), d, client.FieldOwner("manager")))
			w.restart()
			w.reconcileUntilStable("ns")
			if got := w.hasCurrentForm("r"); got != tc.currentAfterAdoption || (w.deploymentOf("r").Annotations[AnnotationLegacyTemplate] == "") != tc.currentAfterAdoption {
				t.Errorf("hasCurrentForm is %t after the take-over, want the opposite; annotations %v", got, w.deploymentOf("r").Annotations)
			}
			if tc.afterAdoption != nil {
				tc.afterAdoption(w, r, w.deploymentOf("r"))
			}
			w.reconcileUntilStable("ns")
			if got := w.hasCurrentForm("r"); got != tc.currentAfterChange || (w.deploymentOf("r").Annotations[AnnotationLegacyTemplate] == "") != tc.currentAfterChange {
				t.Errorf("hasCurrentForm is %t after the change, want the opposite; annotations %v", got, w.deploymentOf("r").Annotations)
			}
		})
	}
}

// newLegacyDeploymentWithProxy is newLegacyDeployment with the OAuth proxy of Open Data Hub, whose cookie key is "SECRET".
func newLegacyDeploymentWithProxy(t *testing.T, w *testEnv, r *v1alpha1.ServingRuntime) *appsv1.Deployment {
	t.Helper()
	d := newLegacyDeployment(t, w, r)
	d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{
		Name: "oauth-proxy", Image: "registry.example.com/oauth:1", Args: []string{"--cookie-secret=SECRET"},
	})
	return d
}

// [M7] [O2] Pods whose proxy has a public cookie key are replaced once the cookie Secret exists, and an Event reports it. No other pod is
// replaced, and nothing is written or reported twice.
func TestAdoptionReplacesLegacyOAuthProxy(t *testing.T) {
	always := func(*testEnv) {}
	for name, tc := range map[string]struct {
		managed bool // adopted by an earlier release
		prepare func(*testEnv)
		model   bool
		// waits is set if the Deployment is written only after the cookie Secret exists. note is part of the Event.
		waits bool
		note  string
	}{
		"a model":         {prepare: always, model: true, waits: true, note: "the new key is in Secret model-serving-proxy-cookie"},
		"no model":        {prepare: always, note: "the new key is in Secret model-serving-proxy-cookie"},
		"already adopted": {managed: true, prepare: always, model: true, waits: true, note: "the new key is in Secret model-serving-proxy-cookie"},
		"OpenShift without OAuth": {prepare: func(w *testEnv) {
			w.kinds = capability.NewSet(append(plainKinds, capability.Route, capability.OpenShiftIngress)...)
		}, model: true, note: "the new proxy has no cookies"},
		"proxy disabled": {prepare: func(w *testEnv) { w.settings.AuthProxy.Mode = meshsettings.AuthProxyNever }, model: true, note: "REST has no authentication"},
	} {
		t.Run(name, func(t *testing.T) {
			r := localRuntime("r", "onnx")
			w := newTestEnv(t, r)
			if tc.model {
				w.create(predictorOf("m", "onnx"))
			}
			w.kinds = capability.NewSet(append(plainKinds, capability.Route, capability.OpenShiftIngress, capability.UserGroup)...)
			tc.prepare(w)
			d := newLegacyDeploymentWithProxy(t, w, r)
			if tc.managed {
				maps.Copy(d.Labels, names.Labels(modelmesh.ComponentName))
				d.Annotations = map[string]string{AnnotationLegacyTemplate: "0123456789abcdef"}
				object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
				w.must(err)
				config := client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: object})
				w.must(w.api.Apply(t.Context(), config, client.FieldOwner(modelmesh.FieldOwner)))
			} else {
				w.must(w.api.Create(t.Context(), d, client.FieldOwner("manager")))
			}
			w.restart()
			deployment := "apply Deployment ns/modelmesh-serving-r"
			if writes := w.reconcileUntilStable("ns"); slices.Contains(writes, deployment) == tc.waits {
				t.Errorf("the Deployment must be written only if it needs no cookie key; writes without the key: %q", writes)
			}
			w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "model-serving-proxy-cookie"}})
			w.reconcileUntilStable("ns")
			if text := strings.Join(recordedEvents(w.events), ""); strings.Count(text, ReasonReplaced) != 1 || !strings.Contains(text, tc.note) {
				t.Errorf("events %q", text)
			}
			text, err := json.Marshal(w.deploymentOf("r"))
			if err != nil || strings.Contains(string(text), "=SECRET") || !w.hasCurrentForm("r") {
				t.Errorf("got Deployment %s, error %v, want the current form without the public cookie key", text, err)
			}
			before := w.deploymentOf("r").Spec
			w.restart()
			w.reconcileUntilStable("ns")
			if diff := cmp.Diff(before, w.deploymentOf("r").Spec); diff != "" {
				t.Errorf("pods roll after a restart (-before +after):\n%s", diff)
			}
			if emitted := recordedEvents(w.events); len(emitted) > 0 {
				t.Errorf("got events %q after a restart, want none", emitted)
			}
		})
	}
}

// A runtime container with the name of the proxy is not a proxy: its pods keep the legacy form.
func TestRuntimeContainerNamedLikeProxy(t *testing.T) {
	r := localRuntime("r", "onnx", func(s *v1alpha1.ServingRuntimeSpec) {
		s.Containers = append(s.Containers, corev1.Container{Name: "oauth-proxy", Image: "registry.example.com/own:1"})
	})
	w := newTestEnv(t, r, predictorOf("m", "onnx"))
	w.must(w.api.Create(t.Context(), newLegacyDeployment(t, w, r), client.FieldOwner("manager")))
	w.restart()
	w.reconcileUntilStable("ns")
	if emitted := recordedEvents(w.events); len(emitted) > 0 || w.hasCurrentForm("r") {
		t.Errorf("events %q", emitted)
	}
}

// [M40] Reconciles with a stale cache after an adoption change neither template nor replicas. For a new Deployment there is one additional
// read from the API server.
func TestAdoptionWithStaleCache(t *testing.T) {
	for name, change := range map[string]func(*testEnv, *v1alpha1.ServingRuntime){
		"pods in use": func(*testEnv, *v1alpha1.ServingRuntime) {},
		"pods without a model": func(w *testEnv, _ *v1alpha1.ServingRuntime) {
			w.must(w.api.Delete(w.Context(), predictorOf("m", "onnx")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := localRuntime("r", "onnx")
			w := newTestEnv(t, r, predictorOf("m", "onnx"))
			w.must(w.api.Create(t.Context(), newLegacyDeployment(t, w, r), client.FieldOwner("manager")))
			change(w, r)
			w.restart()
			w.behind = true
			w.reconcileOnce("ns")
			adopted := w.deploymentOf("r")
			if !isManaged(adopted) || adopted.Annotations[AnnotationLegacyTemplate] == "" || w.hasCurrentForm("r") {
				t.Fatalf("the Deployment was not adopted in its legacy form: labels %v, annotations %v", adopted.Labels, adopted.Annotations)
			}
			for range 3 {
				w.reconcileOnce("ns")
			}
			w.behind = false
			w.reconcileUntilStable("ns")
			if diff := cmp.Diff(adopted.Spec, w.deploymentOf("r").Spec); diff != "" {
				t.Errorf("pods roll (-after the take-over +now):\n%s", diff)
			}
		})
	}
	t.Run("new Deployment", func(t *testing.T) {
		w := newTestEnv(t, localRuntime("r", "onnx"), predictorOf("m", "onnx"))
		w.behind = true
		for range 3 {
			w.reconcileOnce("ns")
		}
		var reads int
		for _, read := range w.reads {
			if strings.Contains(read, "get Deployment ns/modelmesh-serving-r") {
				reads++
			}
		}
		// The first reconcile creates the Deployment with a single read.
		if got := w.deploymentOf("r"); reads != 2*3-1 || got.Spec.Replicas == nil || *got.Spec.Replicas == 0 {
			t.Errorf("got %d reads and replicas %+v, want 5 reads and at least one replica", reads, got.Spec.Replicas)
		}
	})
}

// A Deployment whose label a user removed keeps the current form, because managedFields show that it is managed.
func TestRemovedLabelKeepsCurrentForm(t *testing.T) {
	w := newTestEnv(t, localRuntime("r", "onnx"), predictorOf("m", "onnx"))
	w.reconcileUntilStable("ns")
	before := w.deploymentOf("r")
	if !w.hasCurrentForm("r") {
		t.Fatal("want a new runtime rendered in the current form")
	}
	w.must(w.api.Patch(t.Context(), w.deploymentOf("r"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+names.ComponentLabel+`":null}}}`))))
	w.reconcileUntilStable("ns")
	after := w.deploymentOf("r")
	if diff := cmp.Diff(before.Spec, after.Spec); diff != "" || !isManaged(after) || after.Annotations[AnnotationLegacyTemplate] != "" {
		t.Errorf("labels %v, pods roll (-before +after):\n%s", after.Labels, diff)
	}
}
