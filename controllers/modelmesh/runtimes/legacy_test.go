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

// liveTemplate returns a pod template with defaults of the API server and fields of other clients.
func liveTemplate() *corev1.PodTemplateSpec {
	t := &corev1.PodTemplateSpec{}
	t.Labels = map[string]string{"name": "modelmesh-serving-r", "foreign": "x"}
	t.Spec.RestartPolicy = corev1.RestartPolicyAlways
	t.Spec.TerminationGracePeriodSeconds = new(int64(90))
	t.Spec.Tolerations = []corev1.Toleration{{Key: "gpu"}}
	t.Spec.Containers = []corev1.Container{
		{
			Name: "mm", Image: "mm:1", ImagePullPolicy: corev1.PullIfNotPresent,
			Args:         []string{"a", "b"},
			Env:          []corev1.EnvVar{{Name: "MM_SERVICE_NAME", Value: "modelmesh-serving"}, {Name: "MM_PAYLOAD_PROCESSORS", Value: "http://foreign"}},
			Resources:    corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}},
			Ports:        []corev1.ContainerPort{{Name: "grpc", ContainerPort: 8033, Protocol: corev1.ProtocolTCP}},
			VolumeMounts: []corev1.VolumeMount{{Name: "tc-config", MountPath: "/etc/watson/mmesh/config"}, {Name: "foreign", MountPath: "/etc/foreign"}},
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt32(8089), Scheme: corev1.URISchemeHTTP}},
				SuccessThreshold: 1},
		},
		{Name: "foreign", Image: "x"},
	}
	return t
}

// [M40] Defaults and additional fields of the live template are ignored.
func TestTemplateContains(t *testing.T) {
	container := func(fields string) string {
		return `{"spec":{"containers":[{"name":"mm","image":"mm:1"` + fields + `}]}}`
	}
	for name, tc := range map[string]struct {
		desired string
		want    bool
	}{
		"empty template":                    {`{}`, true},
		"labels":                            {`{"metadata":{"labels":{"name":"modelmesh-serving-r"}}}`, true},
		"another label":                     {`{"metadata":{"labels":{"name":"modelmesh-serving-r","more":"x"}}}`, false},
		"annotation":                        {`{"metadata":{"annotations":{"more":"x"}}}`, false},
		"container":                         {container(``), true},
		"another image":                     {`{"spec":{"containers":[{"name":"mm","image":"mm:2"}]}}`, false},
		"another container":                 {`{"spec":{"containers":[{"name":"mm","image":"mm:1"},{"name":"puller","image":"p"}]}}`, false},
		"same quantity":                     {container(`,"resources":{"limits":{"cpu":"1000m"}}`), true},
		"another quantity":                  {container(`,"resources":{"limits":{"cpu":"1001m"}}`), false},
		"env":                               {container(`,"env":[{"name":"MM_SERVICE_NAME","value":"modelmesh-serving"}]`), true},
		"env with another value":            {container(`,"env":[{"name":"MM_SERVICE_NAME","value":"other"}]`), false},
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
			if err != nil || got != tc.want {
				t.Errorf("templateContains returned %t, error %v, want %t", got, err, tc.want)
			}
		})
	}
	if _, err := templateContains(rawJSON(`{"spec":{"containers":[{"resources":{"limits":{"cpu":"many"}}}]}}`), liveTemplate()); err == nil {
		t.Error("templateContains accepted an invalid pod template")
	}
	if _, err := templateContains(func() {}, liveTemplate()); err == nil {
		t.Error("templateContains accepted a template that cannot be encoded")
	}
}

// rawJSON is a JSON document that encodes to itself.
type rawJSON string

func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// newLegacyDeployment returns the Deployment of the legacy controller for a runtime in ns, with an additional container.
func newLegacyDeployment(t *testing.T, env *testEnv, r *v1alpha1.ServingRuntime) *appsv1.Deployment {
	t.Helper()
	state, err := env.collectState(t.Context(), "ns")
	if err != nil {
		t.Fatal(err)
	}
	built, err := resources.BuildDeployment(resources.RuntimeInputs{
		NamespaceInputs: resources.NamespaceInputs{Namespace: "ns", Settings: state.Settings}, Form: resources.Legacy, Name: r.Name, Spec: &r.Spec, Replicas: new(int32(2)),
	})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(built.Config)
	if err != nil {
		t.Fatal(err)
	}
	d := &appsv1.Deployment{}
	if err := json.Unmarshal(data, d); err != nil {
		t.Fatal(err)
	}
	d.Annotations = map[string]string{"manifestival": "new", corev1.LastAppliedConfigAnnotation: "{}"}
	d.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "serving.kserve.io/v1alpha1", Kind: "ServingRuntime", Name: r.Name, UID: r.UID, Controller: new(true), BlockOwnerDeletion: new(true),
	}}
	d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "foreign", Image: "registry.example.com/foreign:1"})
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
	env.Fatal("the pods have no container rest-proxy")
	return false
}

// [M40] An adopted Deployment keeps the legacy form of its pod template until the template changes or a user removes the annotation.
func TestFormOfAdoptedDeployment(t *testing.T) {
	for name, tc := range map[string]struct {
		// beforeAdoption changes the legacy Deployment, afterAdoption the adopted one, the runtime or the settings.
		beforeAdoption, afterAdoption func(*testEnv, *v1alpha1.ServingRuntime, *appsv1.Deployment)
		// wantCurrentAfterAdoption and wantCurrentAfterChange are true if the pods then have the current form.
		wantCurrentAfterAdoption, wantCurrentAfterChange bool
	}{
		"no changes": {},
		"changed runtime": {afterAdoption: func(env *testEnv, r *v1alpha1.ServingRuntime, _ *appsv1.Deployment) {
			r.Spec.Containers[0].Image = "registry.example.com/server:2"
			env.must(env.api.Update(env.Context(), r))
		}, wantCurrentAfterChange: true},
		"changed settings": {afterAdoption: func(env *testEnv, _ *v1alpha1.ServingRuntime, _ *appsv1.Deployment) {
			env.settings.EnableAccessLogging = true
		}, wantCurrentAfterChange: true},
		"annotation removed": {afterAdoption: func(env *testEnv, _ *v1alpha1.ServingRuntime, d *appsv1.Deployment) {
			env.must(env.api.Patch(env.Context(), d, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+AnnotationLegacyTemplate+`":null}}}`))))
		}, wantCurrentAfterChange: true},
		"operator restart": {afterAdoption: func(env *testEnv, _ *v1alpha1.ServingRuntime, _ *appsv1.Deployment) { env.restart() }},
		"different template": {beforeAdoption: func(_ *testEnv, _ *v1alpha1.ServingRuntime, d *appsv1.Deployment) {
			d.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(30))
		}, wantCurrentAfterAdoption: true, wantCurrentAfterChange: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newServingRuntime("r", "onnx")
			env := newTestEnv(t, r, newPredictor("m", "onnx"))
			d := newLegacyDeployment(t, env, r)
			if tc.beforeAdoption != nil {
				tc.beforeAdoption(env, r, d)
			}
			env.must(env.api.Create(t.Context(), d, client.FieldOwner("manager")))
			env.restart()
			env.reconcileUntilStable("ns")
			if got := env.hasCurrentForm("r"); got != tc.wantCurrentAfterAdoption || (env.deploymentOf("r").Annotations[AnnotationLegacyTemplate] == "") != tc.wantCurrentAfterAdoption {
				t.Errorf("after the adoption: hasCurrentForm returned %t, want %t; annotations %v", got, tc.wantCurrentAfterAdoption, env.deploymentOf("r").Annotations)
			}
			if tc.afterAdoption != nil {
				tc.afterAdoption(env, r, env.deploymentOf("r"))
			}
			env.reconcileUntilStable("ns")
			if got := env.hasCurrentForm("r"); got != tc.wantCurrentAfterChange || (env.deploymentOf("r").Annotations[AnnotationLegacyTemplate] == "") != tc.wantCurrentAfterChange {
				t.Errorf("after the change: hasCurrentForm returned %t, want %t; annotations %v", got, tc.wantCurrentAfterChange, env.deploymentOf("r").Annotations)
			}
		})
	}
}

// newLegacyDeploymentWithProxy returns a legacy Deployment with the OAuth proxy of Open Data Hub, whose cookie key is "SECRET".
func newLegacyDeploymentWithProxy(t *testing.T, env *testEnv, r *v1alpha1.ServingRuntime) *appsv1.Deployment {
	t.Helper()
	d := newLegacyDeployment(t, env, r)
	d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{
		Name: "oauth-proxy", Image: "registry.example.com/oauth:1", Args: []string{"--cookie-secret=SECRET"},
	})
	return d
}

// [M7] [O2] Pods whose proxy has a public cookie key are replaced once, and one Event reports it. If a model exists and the new proxy needs
// the cookie Secret, the Deployment waits for it.
func TestAdoptionReplacesLegacyOAuthProxy(t *testing.T) {
	noChange := func(*testEnv) {}
	for name, tc := range map[string]struct {
		managed bool // adopted by an earlier release
		prepare func(*testEnv)
		model   bool
		// waitsForSecret is true if the Deployment is applied only after the cookie Secret exists. note is a part of the Event.
		waitsForSecret bool
		note           string
	}{
		"model":           {prepare: noChange, model: true, waitsForSecret: true, note: "the new key is in Secret model-serving-proxy-cookie"},
		"no model":        {prepare: noChange, note: "the new key is in Secret model-serving-proxy-cookie"},
		"already adopted": {managed: true, prepare: noChange, model: true, waitsForSecret: true, note: "the new key is in Secret model-serving-proxy-cookie"},
		"OpenShift without OAuth": {prepare: func(env *testEnv) {
			env.served = capability.NewSet(append(plainAPIs, capability.Route, capability.OpenShiftIngress)...)
		}, model: true, note: "the new proxy has no cookies"},
		"proxy disabled": {prepare: func(env *testEnv) { env.settings.AuthProxy.Mode = meshsettings.AuthProxyNever }, model: true, note: "REST has no authentication"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newServingRuntime("r", "onnx")
			env := newTestEnv(t, r)
			if tc.model {
				env.create(newPredictor("m", "onnx"))
			}
			env.served = capability.NewSet(append(plainAPIs, capability.Route, capability.OpenShiftIngress, capability.UserGroup)...)
			tc.prepare(env)
			d := newLegacyDeploymentWithProxy(t, env, r)
			if tc.managed {
				maps.Copy(d.Labels, names.Labels(modelmesh.ComponentName))
				d.Annotations = map[string]string{AnnotationLegacyTemplate: "0123456789abcdef"}
				object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
				env.must(err)
				config := client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: object})
				env.must(env.api.Apply(t.Context(), config, client.FieldOwner(modelmesh.FieldOwner)))
			} else {
				env.must(env.api.Create(t.Context(), d, client.FieldOwner("manager")))
			}
			env.restart()
			deployment := "apply Deployment ns/modelmesh-serving-r"
			if writes := env.reconcileUntilStable("ns"); slices.Contains(writes, deployment) == tc.waitsForSecret {
				t.Errorf("without the cookie Secret: writes %q, waitsForSecret %t", writes, tc.waitsForSecret)
			}
			env.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "model-serving-proxy-cookie"}})
			env.reconcileUntilStable("ns")
			if emitted := strings.Join(recordedEvents(env.events), ""); strings.Count(emitted, ReasonReplaced) != 1 || !strings.Contains(emitted, tc.note) {
				t.Errorf("events %q, want one with %q", emitted, tc.note)
			}
			data, err := json.Marshal(env.deploymentOf("r"))
			if err != nil || strings.Contains(string(data), "=SECRET") || !env.hasCurrentForm("r") {
				t.Errorf("Deployment %s, error %v, want the current form without the public cookie key", data, err)
			}
			specBefore := env.deploymentOf("r").Spec
			env.restart()
			env.reconcileUntilStable("ns")
			if diff := cmp.Diff(specBefore, env.deploymentOf("r").Spec); diff != "" {
				t.Errorf("the restart changed the Deployment (-before +after):\n%s", diff)
			}
			if emitted := recordedEvents(env.events); len(emitted) > 0 {
				t.Errorf("events %q after the restart, want none", emitted)
			}
		})
	}
}

// A container of the runtime with the name of the proxy is not a legacy proxy: the pods keep the legacy form.
func TestRuntimeContainerNamedLikeProxy(t *testing.T) {
	r := newServingRuntime("r", "onnx", func(s *v1alpha1.ServingRuntimeSpec) {
		s.Containers = append(s.Containers, corev1.Container{Name: "oauth-proxy", Image: "registry.example.com/own:1"})
	})
	env := newTestEnv(t, r, newPredictor("m", "onnx"))
	env.must(env.api.Create(t.Context(), newLegacyDeployment(t, env, r), client.FieldOwner("manager")))
	env.restart()
	env.reconcileUntilStable("ns")
	if emitted := recordedEvents(env.events); len(emitted) > 0 || env.hasCurrentForm("r") {
		t.Errorf("events %q, want none and the legacy form", emitted)
	}
}

// [M40] Reconciles with a stale cache after an adoption change neither the template nor the replicas. Without the Deployment in the cache,
// each reconcile reads it from the API server.
func TestAdoptionWithStaleCache(t *testing.T) {
	for name, change := range map[string]func(*testEnv, *v1alpha1.ServingRuntime){
		"pods with a model": func(*testEnv, *v1alpha1.ServingRuntime) {},
		"pods without a model": func(env *testEnv, _ *v1alpha1.ServingRuntime) {
			env.must(env.api.Delete(env.Context(), newPredictor("m", "onnx")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newServingRuntime("r", "onnx")
			env := newTestEnv(t, r, newPredictor("m", "onnx"))
			env.must(env.api.Create(t.Context(), newLegacyDeployment(t, env, r), client.FieldOwner("manager")))
			change(env, r)
			env.restart()
			env.cacheStale = true
			env.reconcileOnce("ns")
			adopted := env.deploymentOf("r")
			if !isManaged(adopted) || adopted.Annotations[AnnotationLegacyTemplate] == "" || env.hasCurrentForm("r") {
				t.Fatalf("the Deployment was not adopted in its legacy form: labels %v, annotations %v", adopted.Labels, adopted.Annotations)
			}
			for range 3 {
				env.reconcileOnce("ns")
			}
			env.cacheStale = false
			env.reconcileUntilStable("ns")
			if diff := cmp.Diff(adopted.Spec, env.deploymentOf("r").Spec); diff != "" {
				t.Errorf("the Deployment changed after the adoption (-before +after):\n%s", diff)
			}
		})
	}
	t.Run("new Deployment", func(t *testing.T) {
		env := newTestEnv(t, newServingRuntime("r", "onnx"), newPredictor("m", "onnx"))
		env.cacheStale = true
		for range 3 {
			env.reconcileOnce("ns")
		}
		var reads int
		for _, read := range env.reads {
			if strings.Contains(read, "get Deployment ns/modelmesh-serving-r") {
				reads++
			}
		}
		// The first reconcile creates the Deployment with a single read.
		if got := env.deploymentOf("r"); reads != 2*3-1 || got.Spec.Replicas == nil || *got.Spec.Replicas == 0 {
			t.Errorf("%d reads, replicas %+v, want 5 reads and at least one replica", reads, got.Spec.Replicas)
		}
	})
}

// A Deployment whose label a user removed keeps the current form, because managedFields show that it is managed.
func TestRemovedLabelKeepsCurrentForm(t *testing.T) {
	env := newTestEnv(t, newServingRuntime("r", "onnx"), newPredictor("m", "onnx"))
	env.reconcileUntilStable("ns")
	before := env.deploymentOf("r")
	if !env.hasCurrentForm("r") {
		t.Fatal("the new Deployment does not have the current form")
	}
	env.must(env.api.Patch(t.Context(), env.deploymentOf("r"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+names.ComponentLabel+`":null}}}`))))
	env.reconcileUntilStable("ns")
	after := env.deploymentOf("r")
	if diff := cmp.Diff(before.Spec, after.Spec); diff != "" || !isManaged(after) || after.Annotations[AnnotationLegacyTemplate] != "" {
		t.Errorf("labels %v, Deployment (-before +after):\n%s", after.Labels, diff)
	}
}
