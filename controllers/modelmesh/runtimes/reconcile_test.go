package runtimes

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

func TestReconcileCreatesNamespaceObjects(t *testing.T) {
	w := newTestEnv(t, clusterRuntime("shared", "sklearn"), localRuntime("local", "onnx"), predictorOf("m", "onnx"))
	w.expect("writes", w.reconcileUntilStable("ns"), []string{
		"apply ConfigMap ns/tc-config", "apply Deployment ns/modelmesh-serving-local", "apply Deployment ns/modelmesh-serving-shared",
		"apply NetworkPolicy ns/modelmesh-runtimes", "apply Secret ns/model-serving-etcd", "apply Service ns/modelmesh-serving", "apply ServiceMonitor ns/modelmesh-metrics-monitor",
	})
	for runtime, want := range map[string]int32{"local": 2, "shared": 0} {
		if got := w.replicasOf(runtime); got != want {
			t.Errorf("%s has %d replicas, want %d", runtime, got, want)
		}
	}
	for runtime, kind := range map[string]string{"local": "ServingRuntime", "shared": "ClusterServingRuntime"} {
		owner := metav1.GetControllerOf(w.deploymentOf(runtime))
		if owner == nil || owner.Kind != kind || owner.Name != runtime {
			t.Errorf("%s belongs to %v", runtime, owner)
		}
	}
	service := &corev1.Service{}
	if !w.get(service, "ns", "modelmesh-serving") || metav1.GetControllerOf(service).Kind != "Namespace" {
		t.Errorf("the Service belongs to %v", service.OwnerReferences)
	}
	for _, unowned := range []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}} {
		name := map[bool]string{true: "tc-config", false: "model-serving-etcd"}[kindOf(unowned) == "ConfigMap"]
		if !w.get(unowned, "ns", name) || len(unowned.GetOwnerReferences()) > 0 {
			t.Errorf("%s belongs to %v", name, unowned.GetOwnerReferences())
		}
	}
	if target := w.mesh.targets["ns"]; target.Service != "modelmesh-serving" || target.Port != 8033 || target.RESTPort != 8008 || target.TLS != nil {
		t.Errorf("target %+v", target)
	}
	if w.mesh.services["ns"] != "modelmesh-serving" || string(w.mesh.data["etcd_connection"]) == "" {
		t.Errorf("the etcd watcher got %v and %q", w.mesh.services, w.mesh.data)
	}
	w.reads = nil
	w.reconcileOnce("ns")
	w.expect("live reads at rest", w.reads, nil)
	if emitted := recordedEvents(w.events); len(emitted) > 0 {
		t.Errorf("events %q", emitted)
	}
}

// [M12] [modelmesh-88] Single-model runtimes belong to KServe, regardless of their spec; a ServingRuntime hides a ClusterServingRuntime.
func TestSingleModelRuntimesAreIgnored(t *testing.T) {
	odd := func(s *v1alpha1.ServingRuntimeSpec) {
		s.Containers[0].Name, s.Containers[0].Ports = "mm", []corev1.ContainerPort{{ContainerPort: 8080}}
	}
	w := newTestEnv(t, localRuntime("single", "onnx", singleModel, odd), clusterRuntime("single-too", "onnx", singleModel, odd),
		clusterRuntime("hidden", "onnx"), localRuntime("hidden", "onnx", disabled), predictorOf("m", "onnx"))
	w.reconcileUntilStable("ns")
	for _, name := range []string{"single", "single-too", "hidden"} {
		if w.hasDeployment(name) {
			t.Errorf("%s has a Deployment", name)
		}
	}
	if emitted := recordedEvents(w.events); len(emitted) > 0 {
		t.Errorf("events %q", emitted)
	}
}

// [M1] [M28] An invalid runtime is reported and not retried; its pods are kept, and other runtimes are reconciled.
func TestInvalidRuntimeDoesNotBlockOthers(t *testing.T) {
	broken := localRuntime("broken", "onnx", func(s *v1alpha1.ServingRuntimeSpec) { s.GRPCEndpoint = nil })
	w := newTestEnv(t, broken, localRuntime("good", "onnx"), predictorOf("m", "onnx"))
	if again := w.reconcileOnce("ns"); again != 0 {
		t.Errorf("unexpected requeue after %s", again)
	}
	if w.hasDeployment("broken") || !w.hasDeployment("good") {
		t.Error("want a Deployment of the runtime good only")
	}
	emitted := recordedEvents(w.events)
	if len(emitted) != 1 || !strings.HasPrefix(emitted[0], "Warning InvalidRuntime Invalid runtime Spec: ") || !strings.Contains(emitted[0], "grpcEndpoint") {
		t.Errorf("events %q", emitted)
	}
	broken.Spec.GRPCEndpoint = new("port:8085")
	w.must(w.api.Update(t.Context(), broken))
	w.reconcileUntilStable("ns")
	if emitted := recordedEvents(w.events); !w.hasDeployment("broken") || !slices.Equal(emitted, []string{"Normal ValidRuntime the runtime is valid again"}) {
		t.Errorf("events %q", emitted)
	}
	broken.Spec.Containers[0].Name = "mm"
	w.must(w.api.Update(t.Context(), broken))
	w.expect("a served runtime that becomes invalid", w.reconcileUntilStable("ns"), nil)
	if !w.hasDeployment("broken") {
		t.Error("the Deployment of the invalid runtime was deleted")
	}
}

// The Deployment of a paused runtime is neither repaired, updated nor deleted. Other runtimes are reconciled.
func TestPausedRuntimeIsNotReconciled(t *testing.T) {
	r := localRuntime("r", "onnx")
	w := newTestEnv(t, r, predictorOf("m", "onnx"))
	w.reconcileUntilStable("ns")
	image := w.deploymentOf("r").Spec.Template.Spec.Containers
	recordedEvents(w.events)
	r.Annotations = map[string]string{names.PausedAnnotation: "true"}
	r.Spec.Containers[0].Image = "quay.io/example/other"
	w.must(w.api.Update(t.Context(), r))
	w.create(localRuntime("good", "onnx"))
	w.reconcileUntilStable("ns")
	if !equality.Semantic.DeepEqual(w.deploymentOf("r").Spec.Template.Spec.Containers, image) || !w.hasDeployment("good") {
		t.Error("want the Deployment of the paused runtime unchanged, and that of the other runtime created")
	}
	if emitted := recordedEvents(w.events); len(emitted) != 1 || !strings.HasPrefix(emitted[0], "Normal Paused annotation "+names.PausedAnnotation) {
		t.Errorf("events %q", emitted)
	}
	w.expect("writes while it is paused", w.reconcileUntilStable("ns"), nil)
	r.Spec.Disabled = new(true)
	w.must(w.api.Update(t.Context(), r))
	w.reconcileUntilStable("ns")
	if !w.hasDeployment("r") {
		t.Error("the Deployment of the paused runtime was deleted")
	}
	r.Annotations = nil
	w.must(w.api.Update(t.Context(), r))
	w.reconcileUntilStable("ns")
	if w.hasDeployment("r") {
		t.Error("the Deployment was not deleted after the runtime was resumed")
	}
}

// [M6] A field that cannot be decoded affects one runtime only.
func TestMalformedRuntimeIsReported(t *testing.T) {
	w := newTestEnv(t)
	malformed := localRuntime("odd", "onnx")
	text := RenderInputs{}.validateSpec(modelmesh.Runtime{Object: malformed, Spec: &malformed.Spec, Malformed: "spec.replicas cannot be read"})
	if text == nil || text.Error() != "Invalid runtime Spec: spec.replicas cannot be read" {
		t.Errorf("got error %v, want that of the malformed field", text)
	}
	f := &namespaceState{RenderInputs: RenderInputs{Namespace: "ns", Settings: w.settings, OperatorNamespace: "own"}}
	problem, err := w.validate(t.Context(), f, modelmesh.Runtime{Object: malformed, Spec: &malformed.Spec, Malformed: "spec.x cannot be read"})
	if problem == nil || err != nil {
		t.Errorf("unexpected problem %v, error %v", problem, err)
	}
}

// [modelmesh-19] With the annotation the ConfigMap must exist; without it no ConfigMap is read.
func TestProductConfigMapMustExist(t *testing.T) {
	r := localRuntime("r", "onnx")
	r.Annotations = map[string]string{"productConfig": "product"}
	w := newTestEnv(t, r)
	w.reconcileUntilStable("ns")
	if emitted := recordedEvents(w.events); w.hasDeployment("r") || len(emitted) != 1 || !strings.Contains(emitted[0], "Unable to access ConfigMap 'product'") {
		t.Errorf("events %q", emitted)
	}
	w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "product"}})
	w.reconcileUntilStable("ns")
	if !w.hasDeployment("r") {
		t.Error("the Deployment was not created")
	}
}

// foreignObjects returns objects of other clients with the names of managed objects.
func foreignObjects() []client.Object {
	at := func(name string, labels map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: labels}
	}
	return []client.Object{
		&corev1.Service{ObjectMeta: at("theirs", map[string]string{"modelmesh-service": "theirs"})},
		&corev1.ConfigMap{ObjectMeta: at("tc-config", nil)},
		&corev1.Secret{ObjectMeta: at("model-serving-etcd", nil), Data: map[string][]byte{"etcd_connection": []byte(`{"endpoints":"http://theirs:2379"}`)}},
		&appsv1.Deployment{ObjectMeta: at("modelmesh-serving-r", nil), Spec: appsv1.DeploymentSpec{Replicas: new(int32(1))}},
	}
}

// [M11] In a disabled namespace managed objects are deleted; foreign objects are kept, regardless of their names and labels.
func TestDeleteAllKeepsForeignObjects(t *testing.T) {
	w := newTestEnv(t, localRuntime("r", "onnx"), predictorOf("m", "onnx"))
	w.reconcileUntilStable("ns")
	namespace := &corev1.Namespace{}
	w.get(namespace, "", "ns")
	namespace.Labels[modelmesh.LabelEnabled] = "false"
	w.must(w.api.Update(t.Context(), namespace))
	foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "theirs", Labels: map[string]string{"modelmesh-service": "x"}}}
	w.create(foreign)
	w.expect("removed", w.reconcileUntilStable("ns"), []string{
		"delete ConfigMap ns/tc-config", "delete Deployment ns/modelmesh-serving-r", "delete Secret ns/model-serving-etcd", "delete Service ns/modelmesh-serving",
		"delete NetworkPolicy ns/modelmesh-runtimes",
	})
	if !w.get(foreign, "ns", "theirs") {
		t.Error("a foreign Service was deleted")
	}
	if len(w.mesh.targets)+len(w.mesh.services) > 0 {
		t.Errorf("still connected: %v, %v", w.mesh.targets, w.mesh.services)
	}

	w = newTestEnv(t, append(foreignObjects(), localRuntime("r", "onnx"))...)
	w.get(namespace, "", "ns")
	namespace.Labels[modelmesh.LabelEnabled] = "false"
	w.must(w.api.Update(t.Context(), namespace))
	w.expect("removed where nothing is ours", w.reconcileUntilStable("ns"), nil)
}

// [M11] Foreign objects with the names of managed objects are not changed, and an Event on the runtime reports them.
func TestForeignObjectsAreReported(t *testing.T) {
	w := newTestEnv(t, append(foreignObjects(), localRuntime("r", "onnx"), predictorOf("m", "onnx"))...)
	if again := w.reconcileOnce("ns"); again != reconciler.RequeueBlocked {
		t.Errorf("requeue after %s, want %s", again, reconciler.RequeueBlocked)
	}
	for _, write := range w.takeWrites() {
		if strings.Contains(write, "theirs") || strings.Contains(write, "Deployment") || strings.Contains(write, "ConfigMap") || strings.Contains(write, "Secret") {
			t.Error(write)
		}
	}
	emitted := strings.Join(recordedEvents(w.events), "\n")
	for _, want := range []string{"ConfigMap ns/tc-config", "Deployment ns/modelmesh-serving-r"} { // the Deployment is blocked by the ConfigMap
		if !strings.Contains(emitted, "RuntimeRefused applying "+want+": "+want+" exists and was not created by this operator; delete it or recreate it under another name") {
			t.Errorf("nothing about %s in %s", want, emitted)
		}
		w.reconcileOnce("ns")
		if again := recordedEvents(w.events); len(again) > 0 {
			t.Errorf("reported again: %v", again)
		}
		w.must(client.IgnoreNotFound(w.api.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "tc-config"}})))
		w.reconcileOnce("ns")
		emitted = strings.Join(recordedEvents(w.events), "\n")
	}
}

// [M11] A foreign Service with the name of the managed one is reported by an Event on each runtime until it is deleted.
func TestForeignServiceIsReported(t *testing.T) {
	foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "modelmesh-serving"}}
	w := newTestEnv(t, foreign, localRuntime("r", "onnx"), clusterRuntime("shared", "onnx"), localRuntime("off", "onnx", disabled))
	if again := w.reconcileOnce("ns"); again != reconciler.RequeueBlocked {
		t.Errorf("requeue after %s, want %s", again, reconciler.RequeueBlocked)
	}
	emitted := recordedEvents(w.events)
	var reported int
	for _, event := range emitted {
		if strings.Contains(event, "Service ns/modelmesh-serving exists and was not created by this operator") {
			reported++
		}
	}
	if reported != 2 {
		t.Errorf("%d of 2 runtimes have the event: %q", reported, emitted)
	}
	w.must(w.api.Delete(t.Context(), foreign))
	w.reconcileUntilStable("ns")
	if !w.get(&corev1.Service{}, "ns", "modelmesh-serving") {
		t.Error("the Service was not created after its name became free")
	}
	if after := recordedEvents(w.events); len(after) > 0 {
		t.Errorf("events %q", after)
	}
}

// [M19] Changes of a user to the Deployment of a ClusterServingRuntime are reverted.
func TestDeploymentDriftIsReverted(t *testing.T) {
	w := newTestEnv(t, clusterRuntime("shared", "onnx"), predictorOf("m", "onnx"))
	w.reconcileUntilStable("ns")
	w.must(w.api.Patch(t.Context(), w.deploymentOf("shared"), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":7}}`)), client.FieldOwner("kubectl")))
	w.reconcileUntilStable("ns")
	if got := w.replicasOf("shared"); got != 2 {
		t.Errorf("%d replicas", got)
	}
}

// A ServingRuntime takes over the Deployment of a ClusterServingRuntime in one reconcile, also with an autoscaler.
func TestServingRuntimeReplacesClusterServingRuntime(t *testing.T) {
	w := newTestEnv(t, clusterRuntime("r", "onnx"), predictorOf("m", "onnx"))
	w.reconcileUntilStable("ns")
	r := localRuntime("r", "onnx")
	r.Annotations = map[string]string{"serving.kserve.io/autoscalerClass": "hpa"}
	w.create(r)
	w.reconcileOnce("ns")
	if owner := metav1.GetControllerOf(w.deploymentOf("r")); owner == nil || owner.UID != r.UID {
		t.Errorf("owner %v", owner)
	}
}

// [M20] After a rename of the Service the Deployments and the Service with the old name are deleted.
func TestServiceRename(t *testing.T) {
	w := newTestEnv(t, localRuntime("r", "onnx"), predictorOf("m", "onnx"))
	w.reconcileUntilStable("ns")
	w.settings.ServiceName = "other"
	w.reconcileUntilStable("ns")
	for _, o := range []client.Object{&corev1.Service{}, &appsv1.Deployment{}} {
		old := map[string]string{"Service": "modelmesh-serving", "Deployment": "modelmesh-serving-r"}[kindOf(o)]
		renamed := strings.Replace(old, "modelmesh-serving", "other", 1)
		if w.get(o, "ns", old) || !w.get(o, "ns", renamed) {
			t.Errorf("%s %s has not become %s", kindOf(o), old, renamed)
		}
	}
	if w.mesh.services["ns"] != "other" || w.mesh.targets["ns"].Service != "other" {
		t.Errorf("the etcd watcher has %v, the pool %v", w.mesh.services, w.mesh.targets)
	}
}

// clusterIP is immutable, so the Service is recreated.
func TestHeadlessServiceIsRecreated(t *testing.T) {
	w := newTestEnv(t, localRuntime("r", "onnx"))
	w.reconcileUntilStable("ns")
	for range 2 {
		w.settings.HeadlessService = !w.settings.HeadlessService
		if writes := w.reconcileUntilStable("ns"); !slices.Equal(writes, []string{"delete Service ns/modelmesh-serving", "apply Service ns/modelmesh-serving"}) {
			t.Errorf("headless %v: %q, want %q", w.settings.HeadlessService, writes, []string{"delete Service ns/modelmesh-serving", "apply Service ns/modelmesh-serving"})
		}
		service := &corev1.Service{}
		w.get(service, "ns", "modelmesh-serving")
		if (service.Spec.ClusterIP == corev1.ClusterIPNone) != w.settings.HeadlessService {
			t.Errorf("the address is %q", service.Spec.ClusterIP)
		}
	}
}

// The ServiceMonitor exists while metrics are enabled; it is not requested if its API is not served.
func TestServiceMonitor(t *testing.T) {
	w := newTestEnv(t, localRuntime("r", "onnx"))
	w.reconcileUntilStable("ns")
	w.settings.Metrics.DisablePrometheusOperatorSupport = true
	w.expect("disabled", w.reconcileUntilStable("ns"), []string{"delete ServiceMonitor ns/modelmesh-metrics-monitor"})
	w.settings.Metrics.DisablePrometheusOperatorSupport = false
	w.expect("enabled", w.reconcileUntilStable("ns"), []string{"apply ServiceMonitor ns/modelmesh-metrics-monitor"})

	w = newTestEnv(t, localRuntime("r", "onnx"))
	w.kinds = capability.NewSet(capability.ServingRuntime)
	for _, write := range w.reconcileUntilStable("ns") {
		if strings.Contains(write, "ServiceMonitor") {
			t.Error(write)
		}
	}
}

// Without the APIs of KServe only the Service is created.
func TestReconcileWithoutKServeAPIs(t *testing.T) {
	w := newTestEnv(t)
	w.kinds = capability.NewSet()
	w.expect("writes", w.reconcileUntilStable("ns"), []string{"apply Service ns/modelmesh-serving"})
	w.kinds = capability.NewSet(plainKinds...)
	w.create(localRuntime("r", "onnx"))
	w.reconcileUntilStable("ns")
	if !w.hasDeployment("r") {
		t.Error("a runtime that was created later has no Deployment")
	}
}

// [modelmesh-99] [modelmesh-100] [modelmesh-101] [M17] [M18]
func TestAutoscalerFollowsAnnotations(t *testing.T) {
	r := localRuntime("r", "onnx")
	r.Annotations = map[string]string{"serving.kserve.io/autoscalerClass": "hpa"}
	w := newTestEnv(t, r)
	hpa := func() *autoscalingv2.HorizontalPodAutoscaler {
		h := &autoscalingv2.HorizontalPodAutoscaler{}
		if !w.get(h, "ns", "modelmesh-serving-r") {
			return nil
		}
		return h
	}
	expect := func(description string, replicas, least, most, target int32, metric string) {
		t.Helper()
		w.reconcileUntilStable("ns")
		h := hpa()
		if got := w.replicasOf("r"); got != replicas || (h == nil) != (most == 0) {
			t.Errorf("%s: %d replicas, autoscaler %v", description, got, h)
			return
		}
		if h == nil {
			return
		}
		m := h.Spec.Metrics[0].Resource
		if *h.Spec.MinReplicas != least || h.Spec.MaxReplicas != most || *m.Target.AverageUtilization != target || string(m.Name) != metric {
			t.Errorf("%s: unexpected Spec: %+v", description, h.Spec)
		}
	}
	annotate := func(annotations map[string]string) {
		r.Annotations = annotations
		w.must(w.api.Update(t.Context(), r))
	}
	expect("no model", 0, 0, 0, 0, "")
	w.create(predictorOf("m", "onnx"))
	expect("first model", 1, 1, 1, 80, "cpu")
	scaled := map[string]string{
		"serving.kserve.io/autoscalerClass": "hpa", "serving.kserve.io/min-scale": "2", "serving.kserve.io/max-scale": "4",
		"serving.kserve.io/targetUtilizationPercentage": "90", "serving.kserve.io/metrics": "memory",
	}
	annotate(scaled)
	expect("other bounds", 2, 2, 4, 90, "memory")
	w.must(w.api.Patch(t.Context(), w.deploymentOf("r"), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":3}}`)), client.FieldOwner("autoscaler")))
	expect("the autoscaler at work", 3, 2, 4, 90, "memory")
	r.Spec.Containers[0].Image = "next"
	w.must(w.api.Update(t.Context(), r))
	w.fail = func(verb, kind, _ string) error {
		if verb != "apply" || kind != "Deployment" {
			return nil
		}
		w.fail = nil
		return w.api.Patch(t.Context(), w.deploymentOf("r"), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":4}}`)), client.FieldOwner("autoscaler"))
	}
	if _, err := w.Reconcile(t.Context(), modelmesh.RequestFor("ns")); !apierrors.IsConflict(err) {
		t.Errorf("the autoscaler wrote after we had read: %v", err)
	}
	expect("the later count of the autoscaler", 4, 2, 4, 90, "memory")
	strip := `{"metadata":{"labels":{"` + names.OperatorLabel + `":null}}}`
	w.must(w.api.Patch(t.Context(), w.deploymentOf("r"), client.RawPatch("application/merge-patch+json", []byte(strip))))
	expect("our label was taken, which hides the Deployment from memory", 4, 2, 4, 90, "memory")
	annotate(map[string]string{"serving.kserve.io/autoscalerClass": "hpa"})
	expect("back", 1, 1, 1, 80, "cpu")
	annotate(map[string]string{"serving.kserve.io/autoscalerClass": "none"})
	expect("removed", 2, 0, 0, 0, "")
	annotate(map[string]string{"serving.kserve.io/autoscalerClass": "hpa"})
	expect("again", 1, 1, 1, 80, "cpu")
	r.Spec.Disabled = new(true)
	w.must(w.api.Update(t.Context(), r))
	w.reconcileUntilStable("ns")
	if hpa() != nil || w.hasDeployment("r") {
		t.Error("the disabled runtime still has a Deployment or an autoscaler")
	}
}

// [modelmesh-98] [M25] Existing pods keep the grace period, also after a restart of the operator; a runtime at zero stays there.
func TestScaleToZero(t *testing.T) {
	w := newTestEnv(t, localRuntime("r", "onnx"))
	model := predictorOf("m", "onnx")
	w.reconcileUntilStable("ns")
	if got := w.replicasOf("r"); got != 0 {
		t.Errorf("no model yet: %d replicas", got)
	}
	w.create(model)
	w.reconcileUntilStable("ns")
	w.clock.Step(time.Hour)
	w.reconcileUntilStable("ns")
	if got := w.replicasOf("r"); got != 2 {
		t.Errorf("got %d replicas with a model, want 2", got)
	}
	w.must(w.api.Delete(t.Context(), model))
	if again := w.reconcileOnce("ns"); again != time.Minute || w.replicasOf("r") != 2 {
		t.Errorf("model deleted: %d replicas, requeue after %s", w.replicasOf("r"), again)
	}
	w.clock.Step(20 * time.Second)
	if again := w.reconcileOnce("ns"); again != 40*time.Second || w.replicasOf("r") != 2 {
		t.Errorf("a third of the period: %d replicas, again after %s", w.replicasOf("r"), again)
	}
	w.restart()
	if again := w.reconcileOnce("ns"); again != time.Minute || w.replicasOf("r") != 2 {
		t.Errorf("got %d replicas after a restart and a requeue after %s, want 2 and one minute", w.replicasOf("r"), again)
	}
	w.clock.Step(time.Minute)
	if again := w.reconcileOnce("ns"); again != 0 || w.replicasOf("r") != 0 {
		t.Errorf("the end of the period: %d replicas, again after %s", w.replicasOf("r"), again)
	}
	w.restart()
	if again := w.reconcileOnce("ns"); again != 0 || w.replicasOf("r") != 0 {
		t.Errorf("a restart while it is down: %d replicas, again after %s", w.replicasOf("r"), again)
	}
}

// [M24] An invalid InferenceService does not hide other models.
func TestModelsKeepRuntimeScaled(t *testing.T) {
	service := func(name, format string, annotations map[string]string) *v1beta1.InferenceService {
		s := &v1beta1.InferenceService{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Annotations: annotations}}
		if format != "" {
			s.Spec.Predictor.Model = &v1beta1.ModelSpec{ModelFormat: v1beta1.ModelFormat{Name: format}}
			s.Spec.Predictor.Model.StorageURI = new("s3://bucket/path")
		}
		return s
	}
	mesh := map[string]string{"serving.kserve.io/deploymentMode": "ModelMesh"}
	w := newTestEnv(t, localRuntime("r", "onnx"), localRuntime("other", "sklearn"), service("a-broken", "", mesh),
		service("b-not-ours", "sklearn", nil), service("c", "onnx", mesh))
	w.reconcileUntilStable("ns")
	if w.replicasOf("r") != 2 || w.replicasOf("other") != 0 {
		t.Errorf("replicas %d and %d", w.replicasOf("r"), w.replicasOf("other"))
	}
	for label, want := range map[string]bool{"mt:onnx": true, "mt:onnx:9": false, "rt:other": true, "rt:none": false} {
		if got, err := w.HasSupportingRuntime(t.Context(), "ns", label); err != nil || got != want {
			t.Errorf("%s: HasSupportingRuntime returned %v, error %v", label, got, err)
		}
	}
	if got, err := w.HasSupportingRuntime(t.Context(), "elsewhere", "mt:onnx"); err != nil || got {
		t.Errorf("in a namespace that is not served: %v, %v", got, err)
	}
	w.Config.IgnoreInferenceServices = true
	if models, err := w.Models(t.Context(), "ns"); err != nil || len(models) > 0 {
		t.Errorf("unexpected models %v, error %v", models, err)
	}
}

// An error for one object does not block the others and is retried.
func TestErrorsDoNotBlockOtherObjects(t *testing.T) {
	broken := errors.New("not now")
	for _, kind := range []string{"Service", "ConfigMap", "Secret", "Deployment"} {
		w := newTestEnv(t, localRuntime("r", "onnx"), predictorOf("m", "onnx"))
		w.fail = func(verb, k, _ string) error {
			if verb == "apply" && k == kind {
				return broken
			}
			return nil
		}
		if _, err := w.Reconcile(t.Context(), modelmesh.RequestFor("ns")); !errors.Is(err, broken) {
			t.Errorf("%s: error %v", kind, err)
		}
		writes := w.takeWrites()
		w.fail = nil
		w.reconcileUntilStable("ns")
		if len(writes) < 3 || !w.hasDeployment("r") {
			t.Errorf("%s: wrote only %q", kind, writes)
		}
	}
}

func TestToResult(t *testing.T) {
	foreign := &apply.Error{Kind: "Service", Err: &apply.ForeignError{}}
	other := errors.New("x")
	for name, tc := range map[string]struct {
		again time.Duration
		err   error
		want  time.Duration
		fails bool
	}{
		"fine":                         {0, nil, 0, false},
		"a period":                     {time.Second, nil, time.Second, false},
		"foreign":                      {0, errors.Join(foreign, nil), reconciler.RequeueBlocked, false},
		"foreign and sooner":           {time.Second, errors.Join(errors.Join(foreign, foreign)), time.Second, false},
		"foreign and later":            {time.Hour, foreign, reconciler.RequeueBlocked, false},
		"rejected as invalid":          {0, &apply.Error{Kind: "Deployment", Err: apierrors.NewInvalid(schema.GroupKind{Kind: "Deployment"}, "d", nil)}, reconciler.RequeueBlocked, false},
		"forbidden":                    {0, apierrors.NewForbidden(schema.GroupResource{}, "d", nil), 0, true},
		"foreign object and a failure": {0, errors.Join(foreign, other), 0, true},
		"another":                      {time.Second, other, 0, true},
	} {
		result, err := toResult(tc.again, tc.err)
		if result.RequeueAfter != tc.want || (err != nil) != tc.fails {
			t.Errorf("%s: toResult returned %v, error %v", name, result, err)
		}
	}
	for _, tc := range [][3]time.Duration{{0, 0, 0}, {0, 1, 1}, {1, 0, 1}, {2, 1, 1}, {1, 2, 1}} {
		if got := modelmesh.MinNonZero(tc[0], tc[1]); got != tc[2] {
			t.Errorf("sooner of %v: %v, want %v", tc[:2], got, tc[2])
		}
	}
}

// [M28] A valid runtime whose Deployment cannot be built, or that the API server rejects, is reported once.
func TestRejectedDeploymentsAreReportedOnce(t *testing.T) {
	clash := localRuntime("clash", "onnx", func(s *v1alpha1.ServingRuntimeSpec) {
		s.Volumes = []corev1.Volume{{Name: "same"}, {Name: "same"}}
	})
	refused := localRuntime("refused", "onnx")
	w := newTestEnv(t, clash, refused, localRuntime("good", "onnx"))
	w.fail = func(verb, kind, name string) error {
		if verb == "apply" && kind == "Deployment" && strings.HasSuffix(name, "-refused") {
			return apierrors.NewInvalid(schema.GroupKind{Kind: kind}, name, nil)
		}
		return nil
	}
	for range 3 {
		if again := w.reconcileOnce("ns"); again != reconciler.RequeueBlocked {
			t.Errorf("requeue after %s, want %s", again, reconciler.RequeueBlocked)
		}
	}
	emitted := recordedEvents(w.events)
	slices.Sort(emitted)
	if len(emitted) != 2 || !strings.Contains(emitted[0], "InvalidRuntime Invalid runtime Spec: ") || !strings.Contains(emitted[1], "RuntimeRefused applying Deployment ns/modelmesh-serving-refused") {
		t.Errorf("events %q", emitted)
	}
	if w.hasDeployment("clash") || !w.hasDeployment("good") {
		t.Error("want a Deployment of the runtime good only")
	}
	for _, r := range []client.Object{clash, refused} {
		w.must(w.api.Delete(t.Context(), r))
	}
	w.reconcileOnce("ns")
	if cached, _ := w.caches.Get("ns"); len(cached.lastMessages) > 0 {
		t.Errorf("messages of deleted runtimes were kept: %d", len(cached.lastMessages))
	}
}

// The operator's namespace is enabled without a label, but gets no objects unless it has runtimes or models.
func TestUnusedOperatorNamespace(t *testing.T) {
	w := newTestEnv(t)
	w.expect("writes", w.reconcileUntilStable("own"), nil)
	if _, connected := w.mesh.targets["own"]; connected {
		t.Error("the manager connects to a namespace without pods")
	}
	r := localRuntime("r", "onnx")
	r.Namespace = "own"
	w.create(r)
	if writes := w.reconcileUntilStable("own"); !slices.Contains(writes, "apply Service own/modelmesh-serving") {
		t.Errorf("writes %q", writes)
	}
	w.must(w.api.Delete(t.Context(), r))
	if writes := w.reconcileUntilStable("own"); !slices.Contains(writes, "delete Service own/modelmesh-serving") {
		t.Errorf("writes %q", writes)
	}
}
