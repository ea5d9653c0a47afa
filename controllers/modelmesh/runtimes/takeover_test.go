package runtimes

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/resources"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/takeover"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/test/meshtest"
)

// takeOverEnv is an environment whose reconciler takes over from the legacy controller, also after restarts.
type takeOverEnv struct {
	*testEnv
	// cleaner is the Runnable of the take-over.
	cleaner manager.Runnable
}

func newTakeOverEnv(t *testing.T, objects ...client.Object) *takeOverEnv {
	t.Helper()
	env := &takeOverEnv{testEnv: newTestEnv(t, objects...)}
	env.afterRestart = func() {
		shared := &modelmesh.Dependencies{Options: modelmesh.Options{Applier: env.applier, Clock: env.clock}, Namespaces: env.Namespaces, Lister: env.Lister}
		env.must(takeover.Setup(t.Context(), takeOverManager{env: env}, shared))
		env.takeOver = shared.TakeOver
	}
	env.afterRestart()
	return env
}

// takeOverManager is the manager of the take-over.
type takeOverManager struct {
	ctrl.Manager
	env *takeOverEnv
}

func (m takeOverManager) GetAPIReader() client.Reader { return m.env.live }
func (m takeOverManager) GetLogger() logr.Logger      { return logr.Discard() }
func (m takeOverManager) Add(r manager.Runnable) error {
	m.env.cleaner = r
	return nil
}

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
			env.must(env.api.Patch(env.Context(), d, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+takeover.AnnotationLegacyTemplate+`":null}}}`))))
		}, wantCurrentAfterChange: true},
		"operator restart": {afterAdoption: func(env *testEnv, _ *v1alpha1.ServingRuntime, _ *appsv1.Deployment) { env.restart() }},
		"different template": {beforeAdoption: func(_ *testEnv, _ *v1alpha1.ServingRuntime, d *appsv1.Deployment) {
			d.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(30))
		}, wantCurrentAfterAdoption: true, wantCurrentAfterChange: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newServingRuntime("r", "onnx")
			env := newTakeOverEnv(t, r, newPredictor("m", "onnx"))
			d := newLegacyDeployment(t, env.testEnv, r)
			if tc.beforeAdoption != nil {
				tc.beforeAdoption(env.testEnv, r, d)
			}
			env.must(env.api.Create(t.Context(), d, client.FieldOwner(takeover.LegacyManager)))
			env.restart()
			env.reconcileUntilStable("ns")
			if got := env.hasCurrentForm("r"); got != tc.wantCurrentAfterAdoption || (env.deploymentOf("r").Annotations[takeover.AnnotationLegacyTemplate] == "") != tc.wantCurrentAfterAdoption {
				t.Errorf("after the adoption: hasCurrentForm returned %t, want %t; annotations %v", got, tc.wantCurrentAfterAdoption, env.deploymentOf("r").Annotations)
			}
			if tc.afterAdoption != nil {
				tc.afterAdoption(env.testEnv, r, env.deploymentOf("r"))
			}
			env.reconcileUntilStable("ns")
			if got := env.hasCurrentForm("r"); got != tc.wantCurrentAfterChange || (env.deploymentOf("r").Annotations[takeover.AnnotationLegacyTemplate] == "") != tc.wantCurrentAfterChange {
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
			env := newTakeOverEnv(t, r)
			if tc.model {
				env.create(newPredictor("m", "onnx"))
			}
			env.served = capability.NewSet(append(plainAPIs, capability.Route, capability.OpenShiftIngress, capability.UserGroup)...)
			tc.prepare(env.testEnv)
			d := newLegacyDeploymentWithProxy(t, env.testEnv, r)
			if tc.managed {
				maps.Copy(d.Labels, names.Labels(modelmesh.ComponentName))
				d.Annotations = map[string]string{takeover.AnnotationLegacyTemplate: "0123456789abcdef"}
				object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
				env.must(err)
				config := client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: object})
				env.must(env.api.Apply(t.Context(), config, client.FieldOwner(modelmesh.FieldOwner)))
			} else {
				env.must(env.api.Create(t.Context(), d, client.FieldOwner(takeover.LegacyManager)))
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
	env := newTakeOverEnv(t, r, newPredictor("m", "onnx"))
	env.must(env.api.Create(t.Context(), newLegacyDeployment(t, env.testEnv, r), client.FieldOwner(takeover.LegacyManager)))
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
			env := newTakeOverEnv(t, r, newPredictor("m", "onnx"))
			env.must(env.api.Create(t.Context(), newLegacyDeployment(t, env.testEnv, r), client.FieldOwner(takeover.LegacyManager)))
			change(env.testEnv, r)
			env.restart()
			env.cacheStale = true
			env.reconcileOnce("ns")
			adopted := env.deploymentOf("r")
			if !isManaged(adopted) || adopted.Annotations[takeover.AnnotationLegacyTemplate] == "" || env.hasCurrentForm("r") {
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
		env := newTakeOverEnv(t, newServingRuntime("r", "onnx"), newPredictor("m", "onnx"))
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
	env := newTakeOverEnv(t, newServingRuntime("r", "onnx"), newPredictor("m", "onnx"))
	env.reconcileUntilStable("ns")
	before := env.deploymentOf("r")
	if !env.hasCurrentForm("r") {
		t.Fatal("the new Deployment does not have the current form")
	}
	env.must(env.api.Patch(t.Context(), env.deploymentOf("r"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+names.ComponentLabel+`":null}}}`))))
	env.reconcileUntilStable("ns")
	after := env.deploymentOf("r")
	if diff := cmp.Diff(before.Spec, after.Spec); diff != "" || !isManaged(after) || after.Annotations[takeover.AnnotationLegacyTemplate] != "" {
		t.Errorf("labels %v, Deployment (-before +after):\n%s", after.Labels, diff)
	}
}

// [M30] A foreign etcd Secret is not changed; one of the legacy controller is adopted.
func TestEtcdSecretAdoption(t *testing.T) {
	foreign := newEtcdSecret("ns")
	env := newTakeOverEnv(t, newServingRuntime("r", "onnx"), foreign)
	env.settings.AllowNamespaceEtcd = true
	for _, write := range env.reconcileUntilStable("ns") {
		if strings.Contains(write, "Secret") {
			t.Error(write)
		}
	}
	if len(env.mesh.ownData["ns"]["etcd_connection"]) == 0 || env.mesh.ownData["own"] != nil {
		t.Errorf("the etcd watcher received %q, want the Secret of the namespace", env.mesh.ownData)
	}
	env.reads = nil
	env.reconcileOnce("ns")
	env.expect("reads in steady state", env.reads, nil)

	legacy := newEtcdSecret("ns")
	legacy.Labels = map[string]string{"app.kubernetes.io/managed-by": "modelmesh-controller"}
	env = newTakeOverEnv(t, newServingRuntime("r", "onnx"), legacy)
	env.reconcileUntilStable("ns")
	if got := env.copiedEtcdSecret(); !isManaged(got) || !strings.Contains(string(got.Data["etcd_connection"]), "mm_ns/ns") {
		t.Errorf("labels %v, data %q, want the adopted copy", got.Labels, got.Data)
	}
	if len(env.mesh.ownData) != 0 {
		t.Errorf("the etcd watcher received %q, want no separate connection", env.mesh.ownData)
	}
}

// [M11] [M18] [M20] Legacy objects that are not desired are deleted. All other objects are kept.
func TestLegacyCleanerDeletesUnusedObjects(t *testing.T) {
	const serviceLabel = resources.LabelService
	hpa := func(namespace, name, owner string) client.Object {
		m := legacyMeta(namespace, name, owner, resources.LabelInferenceService, "r")
		delete(m.Labels, resources.LabelManagedBy)
		return &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: m}
	}
	autoscaled := newServingRuntime("autoscaled", "onnx")
	autoscaled.Annotations = map[string]string{"serving.kserve.io/autoscalerClass": "hpa"}
	env := newTakeOverEnv(t, newServingRuntime("r", "onnx"), autoscaled, newServingRuntime("disabled", "onnx", disabled), meshtest.Namespace("disabled", "false"),
		&appsv1.Deployment{ObjectMeta: legacyMeta("ns", "modelmesh-serving-r", "ServingRuntime", serviceLabel, "modelmesh-serving")},
		&appsv1.Deployment{ObjectMeta: legacyMeta("ns", "modelmesh-serving-disabled", "ServingRuntime", serviceLabel, "modelmesh-serving")},
		&appsv1.Deployment{ObjectMeta: legacyMeta("ns", "previous-r", "ClusterServingRuntime", serviceLabel, "previous")},
		&appsv1.Deployment{ObjectMeta: legacyMeta("ns", "modelmesh-controller", "")},
		&appsv1.Deployment{ObjectMeta: legacyMeta("disabled", "modelmesh-serving-r", "ClusterServingRuntime", serviceLabel, "modelmesh-serving")},
		&corev1.Service{ObjectMeta: legacyMeta("ns", "modelmesh-serving", "Namespace", serviceLabel, "modelmesh-serving")},
		&corev1.Service{ObjectMeta: legacyMeta("ns", "previous", "Namespace", serviceLabel, "previous")},
		&corev1.Service{ObjectMeta: legacyMeta("disabled", "foreign", "", serviceLabel, "foreign")},
		&corev1.ConfigMap{ObjectMeta: legacyMeta("disabled", "tc-config", "")}, &corev1.ConfigMap{ObjectMeta: legacyMeta("ns", "tc-config", "")},
		&corev1.ConfigMap{ObjectMeta: legacyMeta("disabled", "model-serving-config-defaults", "")},
		&corev1.Secret{ObjectMeta: legacyMeta("disabled", "model-serving-etcd", "")}, &corev1.Secret{ObjectMeta: legacyMeta("disabled", "storage-config", "")},
		hpa("ns", "modelmesh-serving-r", "ServingRuntime"), hpa("ns", "modelmesh-serving-autoscaled", "ServingRuntime"),
		hpa("disabled", "foreign", "InferenceService"),
	)
	env.Config.EtcdSecretName = "model-serving-etcd"
	env.must(env.cleaner.Start(t.Context()))
	env.expect("writes", env.takeWrites(), []string{
		"delete ConfigMap disabled/tc-config", "delete Deployment disabled/modelmesh-serving-r", "delete Deployment ns/modelmesh-serving-disabled",
		"delete Deployment ns/previous-r", "delete HorizontalPodAutoscaler ns/modelmesh-serving-r", "delete Secret disabled/model-serving-etcd",
		"delete Service ns/previous",
	})
}

// The objects of a legacy controller that serves its own namespace are kept while it runs.
func TestLegacyCleanerKeepsObjectsOfRunningController(t *testing.T) {
	for replicas, want := range map[int32][]string{
		1: nil,
		0: {"delete ConfigMap legacy/tc-config", "delete Deployment legacy/modelmesh-serving-r"},
	} {
		controller := &appsv1.Deployment{ObjectMeta: legacyMeta("legacy", "modelmesh-controller", "", "control-plane", "modelmesh-controller")}
		controller.Spec.Replicas = &replicas
		env := newTakeOverEnv(t, meshtest.Namespace("legacy", ""), controller, &corev1.ConfigMap{ObjectMeta: legacyMeta("legacy", "tc-config", "")},
			&appsv1.Deployment{ObjectMeta: legacyMeta("legacy", "modelmesh-serving-r", "ServingRuntime", resources.LabelService, "modelmesh-serving")})
		env.must(env.cleaner.Start(t.Context()))
		env.expect("writes", env.takeWrites(), want)
	}
}

// A failed deletion is retried.
func TestLegacyCleanerRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newTakeOverEnv(t, &appsv1.Deployment{ObjectMeta: legacyMeta("ns", "modelmesh-serving-r", "ServingRuntime", resources.LabelService, "modelmesh-serving")})
		env.failRequest = func(verb, _, _ string) error {
			if verb == "delete" {
				return errors.New("delete failed")
			}
			return nil
		}
		done := make(chan error, 1)
		go func() { done <- env.cleaner.Start(t.Context()) }()
		synctest.Wait()
		if !env.clock.HasWaiters() {
			t.Fatal("the cleaner does not wait before its next attempt")
		}
		env.failRequest = nil
		env.clock.Step(time.Minute)
		if err := <-done; err != nil || !strings.Contains(strings.Join(env.takeWrites(), " "), "delete Deployment ns/modelmesh-serving-r") {
			t.Errorf("got error %v, want the Deployment deleted by the second attempt", err)
		}
	})
}
