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
	env := newTestEnv(t, newClusterServingRuntime("shared", "sklearn"), newServingRuntime("local", "onnx"), newPredictor("m", "onnx"))
	env.expect("writes", env.reconcileUntilStable("ns"), []string{
		"apply ConfigMap ns/tc-config", "apply Deployment ns/modelmesh-serving-local", "apply Deployment ns/modelmesh-serving-shared",
		"apply NetworkPolicy ns/modelmesh-runtimes", "apply Secret ns/model-serving-etcd", "apply Service ns/modelmesh-serving", "apply ServiceMonitor ns/modelmesh-metrics-monitor",
	})
	for runtime, want := range map[string]int32{"local": 2, "shared": 0} {
		if got := env.replicasOf(runtime); got != want {
			t.Errorf("%s has %d replicas, want %d", runtime, got, want)
		}
	}
	for runtime, kind := range map[string]string{"local": "ServingRuntime", "shared": "ClusterServingRuntime"} {
		owner := metav1.GetControllerOf(env.deploymentOf(runtime))
		if owner == nil || owner.Kind != kind || owner.Name != runtime {
			t.Errorf("Deployment of %s: owner %v, want %s", runtime, owner, kind)
		}
	}
	service := &corev1.Service{}
	if !env.get(service, "ns", "modelmesh-serving") || metav1.GetControllerOf(service).Kind != "Namespace" {
		t.Errorf("Service: owners %v, want the Namespace", service.OwnerReferences)
	}
	for _, unowned := range []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}} {
		name := map[bool]string{true: "tc-config", false: "model-serving-etcd"}[kindOf(unowned) == "ConfigMap"]
		if !env.get(unowned, "ns", name) || len(unowned.GetOwnerReferences()) > 0 {
			t.Errorf("%s: owners %v, want none", name, unowned.GetOwnerReferences())
		}
	}
	if target := env.mesh.targets["ns"]; target.Service != "modelmesh-serving" || target.Port != 8033 || target.RESTPort != 8008 || target.TLS != nil {
		t.Errorf("target %+v", target)
	}
	if env.mesh.services["ns"] != "modelmesh-serving" || string(env.mesh.data["etcd_connection"]) == "" {
		t.Errorf("the etcd watcher received services %v and data %q", env.mesh.services, env.mesh.data)
	}
	env.reads = nil
	env.reconcileOnce("ns")
	env.expect("reads in steady state", env.reads, nil)
	if emitted := recordedEvents(env.events); len(emitted) > 0 {
		t.Errorf("got events %q, want none", emitted)
	}
}

// [M12] [modelmesh-88] Single-model runtimes are ignored, even if their spec is invalid. A ServingRuntime takes precedence over a
// ClusterServingRuntime of the same name.
func TestSingleModelRuntimesAreIgnored(t *testing.T) {
	reservedName := func(s *v1alpha1.ServingRuntimeSpec) {
		s.Containers[0].Name, s.Containers[0].Ports = "mm", []corev1.ContainerPort{{ContainerPort: 8080}}
	}
	env := newTestEnv(t, newServingRuntime("single", "onnx", singleModel, reservedName), newClusterServingRuntime("cluster-single", "onnx", singleModel, reservedName),
		newClusterServingRuntime("overridden", "onnx"), newServingRuntime("overridden", "onnx", disabled), newPredictor("m", "onnx"))
	env.reconcileUntilStable("ns")
	for _, name := range []string{"single", "cluster-single", "overridden"} {
		if env.hasDeployment(name) {
			t.Errorf("%s has a Deployment", name)
		}
	}
	if emitted := recordedEvents(env.events); len(emitted) > 0 {
		t.Errorf("got events %q, want none", emitted)
	}
}

// [M1] [M28] An invalid runtime is reported and not retried. Its pods are kept, and other runtimes are reconciled.
func TestInvalidRuntimeDoesNotBlockOthers(t *testing.T) {
	invalid := newServingRuntime("invalid", "onnx", func(s *v1alpha1.ServingRuntimeSpec) { s.GRPCEndpoint = nil })
	env := newTestEnv(t, invalid, newServingRuntime("valid", "onnx"), newPredictor("m", "onnx"))
	if requeueAfter := env.reconcileOnce("ns"); requeueAfter != 0 {
		t.Errorf("requeue after %s, want none", requeueAfter)
	}
	if env.hasDeployment("invalid") || !env.hasDeployment("valid") {
		t.Error("want a Deployment only for the valid runtime")
	}
	emitted := recordedEvents(env.events)
	if len(emitted) != 1 || !strings.HasPrefix(emitted[0], "Warning InvalidRuntime Invalid runtime Spec: ") || !strings.Contains(emitted[0], "grpcEndpoint") {
		t.Errorf("got events %q, want one InvalidRuntime for grpcEndpoint", emitted)
	}
	invalid.Spec.GRPCEndpoint = new("port:8085")
	env.must(env.api.Update(t.Context(), invalid))
	env.reconcileUntilStable("ns")
	if emitted := recordedEvents(env.events); !env.hasDeployment("invalid") || !slices.Equal(emitted, []string{"Normal ValidRuntime the runtime is valid again"}) {
		t.Errorf("got events %q, want ValidRuntime and a Deployment", emitted)
	}
	invalid.Spec.Containers[0].Name = "mm"
	env.must(env.api.Update(t.Context(), invalid))
	env.expect("writes after the runtime became invalid", env.reconcileUntilStable("ns"), nil)
	if !env.hasDeployment("invalid") {
		t.Error("the Deployment of the invalid runtime was deleted")
	}
}

// The Deployment of a paused runtime is neither updated nor deleted. Other runtimes are reconciled.
func TestPausedRuntimeIsNotReconciled(t *testing.T) {
	r := newServingRuntime("r", "onnx")
	env := newTestEnv(t, r, newPredictor("m", "onnx"))
	env.reconcileUntilStable("ns")
	containers := env.deploymentOf("r").Spec.Template.Spec.Containers
	recordedEvents(env.events)
	r.Annotations = map[string]string{names.PausedAnnotation: "true"}
	r.Spec.Containers[0].Image = "quay.io/example/other"
	env.must(env.api.Update(t.Context(), r))
	env.create(newServingRuntime("other", "onnx"))
	env.reconcileUntilStable("ns")
	if !equality.Semantic.DeepEqual(env.deploymentOf("r").Spec.Template.Spec.Containers, containers) || !env.hasDeployment("other") {
		t.Error("want the Deployment of the paused runtime unchanged, and that of the other runtime created")
	}
	if emitted := recordedEvents(env.events); len(emitted) != 1 || !strings.HasPrefix(emitted[0], "Normal Paused annotation "+names.PausedAnnotation) {
		t.Errorf("got events %q, want one Paused", emitted)
	}
	env.expect("writes for a paused runtime", env.reconcileUntilStable("ns"), nil)
	env.settings.ServiceName = "renamed"
	env.reconcileUntilStable("ns")
	if err := env.api.Get(t.Context(), namespacedName("ns", "modelmesh-serving-r"), &appsv1.Deployment{}); err != nil {
		t.Errorf("the Deployment of the paused runtime after the Service was renamed: %v", err)
	}
	if err := env.api.Get(t.Context(), namespacedName("ns", "modelmesh-serving-other"), &appsv1.Deployment{}); !apierrors.IsNotFound(err) {
		t.Errorf("the previous Deployment of the other runtime: error %v, want NotFound", err)
	}
	env.settings.ServiceName = "modelmesh-serving"
	env.reconcileUntilStable("ns")
	r.Spec.Disabled = new(true)
	env.must(env.api.Update(t.Context(), r))
	env.reconcileUntilStable("ns")
	if !env.hasDeployment("r") {
		t.Error("the Deployment of the paused runtime was deleted")
	}
	r.Annotations = nil
	env.must(env.api.Update(t.Context(), r))
	env.reconcileUntilStable("ns")
	if env.hasDeployment("r") {
		t.Error("the Deployment was not deleted after the runtime was resumed")
	}
}

// [M6] A field that cannot be decoded makes its runtime invalid.
func TestMalformedRuntimeIsInvalid(t *testing.T) {
	env := newTestEnv(t)
	malformed := newServingRuntime("malformed", "onnx")
	specErr := RenderInputs{}.validateSpec(modelmesh.Runtime{Object: malformed, Spec: &malformed.Spec, DecodeError: "spec.replicas cannot be read"})
	if specErr == nil || specErr.Error() != "Invalid runtime Spec: spec.replicas cannot be read" {
		t.Errorf("error %v, want that of the malformed field", specErr)
	}
	state := &namespaceState{RenderInputs: RenderInputs{Namespace: "ns", Settings: env.settings, OperatorNamespace: "own"}}
	problem, err := env.validate(t.Context(), state, modelmesh.Runtime{Object: malformed, Spec: &malformed.Spec, DecodeError: "spec.x cannot be read"})
	if problem == nil || err != nil {
		t.Errorf("validate returned problem %v, error %v, want a problem", problem, err)
	}
}

// [modelmesh-19] A runtime with annotation productConfig gets a Deployment only if the ConfigMap exists.
func TestProductConfigMapMustExist(t *testing.T) {
	r := newServingRuntime("r", "onnx")
	r.Annotations = map[string]string{"productConfig": "product"}
	env := newTestEnv(t, r)
	env.reconcileUntilStable("ns")
	if emitted := recordedEvents(env.events); env.hasDeployment("r") || len(emitted) != 1 || !strings.Contains(emitted[0], "Unable to access ConfigMap 'product'") {
		t.Errorf("got events %q, want one for the missing ConfigMap and no Deployment", emitted)
	}
	env.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "product"}})
	env.reconcileUntilStable("ns")
	if !env.hasDeployment("r") {
		t.Error("the Deployment was not created")
	}
}

// foreignObjects returns objects of other clients with the names or labels of managed objects.
func foreignObjects() []client.Object {
	meta := func(name string, labels map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: labels}
	}
	return []client.Object{
		&corev1.Service{ObjectMeta: meta("foreign", map[string]string{"modelmesh-service": "foreign"})},
		&corev1.ConfigMap{ObjectMeta: meta("tc-config", nil)},
		&corev1.Secret{ObjectMeta: meta("model-serving-etcd", nil), Data: map[string][]byte{"etcd_connection": []byte(`{"endpoints":"http://foreign:2379"}`)}},
		&appsv1.Deployment{ObjectMeta: meta("modelmesh-serving-r", nil), Spec: appsv1.DeploymentSpec{Replicas: new(int32(1))}},
	}
}

// [M11] In a disabled namespace managed objects are deleted; foreign objects are kept, regardless of their names and labels.
func TestDeleteAllKeepsForeignObjects(t *testing.T) {
	env := newTestEnv(t, newServingRuntime("r", "onnx"), newPredictor("m", "onnx"))
	env.reconcileUntilStable("ns")
	namespace := &corev1.Namespace{}
	env.get(namespace, "", "ns")
	namespace.Labels[modelmesh.LabelEnabled] = "false"
	env.must(env.api.Update(t.Context(), namespace))
	foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "foreign", Labels: map[string]string{"modelmesh-service": "x"}}}
	env.create(foreign)
	env.expect("writes", env.reconcileUntilStable("ns"), []string{
		"delete ConfigMap ns/tc-config", "delete Deployment ns/modelmesh-serving-r", "delete Secret ns/model-serving-etcd", "delete Service ns/modelmesh-serving",
		"delete NetworkPolicy ns/modelmesh-runtimes",
	})
	if !env.get(foreign, "ns", "foreign") {
		t.Error("the foreign Service was deleted")
	}
	if len(env.mesh.targets)+len(env.mesh.services) > 0 {
		t.Errorf("clients after the namespace was disabled: %v, %v, want none", env.mesh.targets, env.mesh.services)
	}

	env = newTestEnv(t, append(foreignObjects(), newServingRuntime("r", "onnx"))...)
	env.get(namespace, "", "ns")
	namespace.Labels[modelmesh.LabelEnabled] = "false"
	env.must(env.api.Update(t.Context(), namespace))
	env.expect("writes with only foreign objects", env.reconcileUntilStable("ns"), nil)
}

// [M11] Foreign objects with the names of managed objects are not changed, and an Event on the runtime reports them.
func TestForeignObjectsAreReported(t *testing.T) {
	env := newTestEnv(t, append(foreignObjects(), newServingRuntime("r", "onnx"), newPredictor("m", "onnx"))...)
	if requeueAfter := env.reconcileOnce("ns"); requeueAfter != reconciler.RequeueBlocked {
		t.Errorf("requeue after %s, want %s", requeueAfter, reconciler.RequeueBlocked)
	}
	for _, write := range env.takeWrites() {
		if strings.Contains(write, "foreign") || strings.Contains(write, "Deployment") || strings.Contains(write, "ConfigMap") || strings.Contains(write, "Secret") {
			t.Error(write)
		}
	}
	expectOneReport := func(object string) {
		emitted := strings.Join(recordedEvents(env.events), "\n")
		if !strings.Contains(emitted, "RuntimeRefused applying "+object+": "+object+" exists and was not created by this operator; delete it or recreate it under another name") {
			t.Errorf("got events %s, want one about %s", emitted, object)
		}
		env.reconcileOnce("ns")
		if repeated := recordedEvents(env.events); len(repeated) > 0 {
			t.Errorf("got events %v again, want none", repeated)
		}
	}
	expectOneReport("ConfigMap ns/tc-config") // it blocks the Deployment
	env.must(env.api.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "tc-config"}}))
	env.must(env.api.Delete(t.Context(), newEtcdSecret("ns")))
	env.reconcileOnce("ns")
	expectOneReport("Deployment ns/modelmesh-serving-r")
}

// [M11] A foreign Service with the name of the managed one is reported by an Event on each enabled runtime until it is deleted.
func TestForeignServiceIsReported(t *testing.T) {
	foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "modelmesh-serving"}}
	env := newTestEnv(t, foreign, newServingRuntime("r", "onnx"), newClusterServingRuntime("shared", "onnx"), newServingRuntime("disabled", "onnx", disabled))
	if requeueAfter := env.reconcileOnce("ns"); requeueAfter != reconciler.RequeueBlocked {
		t.Errorf("requeue after %s, want %s", requeueAfter, reconciler.RequeueBlocked)
	}
	emitted := recordedEvents(env.events)
	var reported int
	for _, event := range emitted {
		if strings.Contains(event, "Service ns/modelmesh-serving exists and was not created by this operator") {
			reported++
		}
	}
	if reported != 2 {
		t.Errorf("%d runtimes have the Event, want 2: %q", reported, emitted)
	}
	env.must(env.api.Delete(t.Context(), foreign))
	env.reconcileUntilStable("ns")
	if !env.get(&corev1.Service{}, "ns", "modelmesh-serving") {
		t.Error("the Service was not created after the foreign one was deleted")
	}
	if emitted := recordedEvents(env.events); len(emitted) > 0 {
		t.Errorf("events %q, want none", emitted)
	}
}

// [M19] Changes by a user to the Deployment of a ClusterServingRuntime are reverted.
func TestDeploymentDriftIsReverted(t *testing.T) {
	env := newTestEnv(t, newClusterServingRuntime("shared", "onnx"), newPredictor("m", "onnx"))
	env.reconcileUntilStable("ns")
	env.must(env.api.Patch(t.Context(), env.deploymentOf("shared"), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":7}}`)), client.FieldOwner("kubectl")))
	env.reconcileUntilStable("ns")
	if got := env.replicasOf("shared"); got != 2 {
		t.Errorf("%d replicas, want 2", got)
	}
}

// A ServingRuntime replaces a ClusterServingRuntime as the owner of the Deployment in one reconcile, even with an autoscaler.
func TestServingRuntimeReplacesClusterServingRuntime(t *testing.T) {
	env := newTestEnv(t, newClusterServingRuntime("r", "onnx"), newPredictor("m", "onnx"))
	env.reconcileUntilStable("ns")
	r := newServingRuntime("r", "onnx")
	r.Annotations = map[string]string{"serving.kserve.io/autoscalerClass": "hpa"}
	env.create(r)
	env.reconcileOnce("ns")
	if owner := metav1.GetControllerOf(env.deploymentOf("r")); owner == nil || owner.UID != r.UID {
		t.Errorf("owner %v, want the ServingRuntime", owner)
	}
}

// [M20] When serviceName changes, the Service and the Deployments with the old name are deleted.
func TestServiceRename(t *testing.T) {
	env := newTestEnv(t, newServingRuntime("r", "onnx"), newPredictor("m", "onnx"))
	env.reconcileUntilStable("ns")
	env.settings.ServiceName = "other"
	env.reconcileUntilStable("ns")
	for _, o := range []client.Object{&corev1.Service{}, &appsv1.Deployment{}} {
		oldName := map[string]string{"Service": "modelmesh-serving", "Deployment": "modelmesh-serving-r"}[kindOf(o)]
		newName := strings.Replace(oldName, "modelmesh-serving", "other", 1)
		if env.get(o, "ns", oldName) || !env.get(o, "ns", newName) {
			t.Errorf("%s: want %s deleted and %s created", kindOf(o), oldName, newName)
		}
	}
	if env.mesh.services["ns"] != "other" || env.mesh.targets["ns"].Service != "other" {
		t.Errorf("the etcd watcher received %v, the pool %v, want the new name", env.mesh.services, env.mesh.targets)
	}
}

// The Service is recreated when headlessService changes, because clusterIP is immutable.
func TestHeadlessServiceIsRecreated(t *testing.T) {
	env := newTestEnv(t, newServingRuntime("r", "onnx"))
	env.reconcileUntilStable("ns")
	for range 2 {
		env.settings.HeadlessService = !env.settings.HeadlessService
		if writes := env.reconcileUntilStable("ns"); !slices.Equal(writes, []string{"delete Service ns/modelmesh-serving", "apply Service ns/modelmesh-serving"}) {
			t.Errorf("headless %v: %q, want %q", env.settings.HeadlessService, writes, []string{"delete Service ns/modelmesh-serving", "apply Service ns/modelmesh-serving"})
		}
		service := &corev1.Service{}
		env.get(service, "ns", "modelmesh-serving")
		if (service.Spec.ClusterIP == corev1.ClusterIPNone) != env.settings.HeadlessService {
			t.Errorf("headless %v: cluster IP %q", env.settings.HeadlessService, service.Spec.ClusterIP)
		}
	}
}

// The ServiceMonitor exists if its API is served, unless a setting disables it.
func TestServiceMonitor(t *testing.T) {
	env := newTestEnv(t, newServingRuntime("r", "onnx"))
	env.reconcileUntilStable("ns")
	env.settings.Metrics.DisablePrometheusOperatorSupport = true
	env.expect("writes after the ServiceMonitor was disabled", env.reconcileUntilStable("ns"), []string{"delete ServiceMonitor ns/modelmesh-metrics-monitor"})
	env.settings.Metrics.DisablePrometheusOperatorSupport = false
	env.expect("writes after the ServiceMonitor was enabled", env.reconcileUntilStable("ns"), []string{"apply ServiceMonitor ns/modelmesh-metrics-monitor"})

	env = newTestEnv(t, newServingRuntime("r", "onnx"))
	env.served = capability.NewSet(capability.ServingRuntime)
	for _, write := range env.reconcileUntilStable("ns") {
		if strings.Contains(write, "ServiceMonitor") {
			t.Error(write)
		}
	}
}

// If the runtime APIs are not served, only the Service is created.
func TestReconcileWithoutKServeAPIs(t *testing.T) {
	env := newTestEnv(t)
	env.served = capability.NewSet()
	env.expect("writes", env.reconcileUntilStable("ns"), []string{"apply Service ns/modelmesh-serving"})
	env.served = capability.NewSet(plainAPIs...)
	env.create(newServingRuntime("r", "onnx"))
	env.reconcileUntilStable("ns")
	if !env.hasDeployment("r") {
		t.Error("the runtime has no Deployment after its API is served")
	}
}

// [modelmesh-99] [modelmesh-100] [modelmesh-101] [M17] [M18] The annotations of the runtime determine the autoscaler.
func TestAutoscalerFollowsAnnotations(t *testing.T) {
	r := newServingRuntime("r", "onnx")
	r.Annotations = map[string]string{"serving.kserve.io/autoscalerClass": "hpa"}
	env := newTestEnv(t, r)
	getHPA := func() *autoscalingv2.HorizontalPodAutoscaler {
		h := &autoscalingv2.HorizontalPodAutoscaler{}
		if !env.get(h, "ns", "modelmesh-serving-r") {
			return nil
		}
		return h
	}
	expect := func(description string, replicas, minReplicas, maxReplicas, target int32, metric string) {
		t.Helper()
		env.reconcileUntilStable("ns")
		h := getHPA()
		if got := env.replicasOf("r"); got != replicas || (h == nil) != (maxReplicas == 0) {
			t.Errorf("%s: %d replicas, autoscaler %v", description, got, h)
			return
		}
		if h == nil {
			return
		}
		m := h.Spec.Metrics[0].Resource
		if *h.Spec.MinReplicas != minReplicas || h.Spec.MaxReplicas != maxReplicas || *m.Target.AverageUtilization != target || string(m.Name) != metric {
			t.Errorf("%s: autoscaler spec %+v", description, h.Spec)
		}
	}
	annotate := func(annotations map[string]string) {
		r.Annotations = annotations
		env.must(env.api.Update(t.Context(), r))
	}
	expect("no model", 0, 0, 0, 0, "")
	env.create(newPredictor("m", "onnx"))
	expect("first model", 1, 1, 1, 80, "cpu")
	bounded := map[string]string{
		"serving.kserve.io/autoscalerClass": "hpa", "serving.kserve.io/min-scale": "2", "serving.kserve.io/max-scale": "4",
		"serving.kserve.io/targetUtilizationPercentage": "90", "serving.kserve.io/metrics": "memory",
	}
	annotate(bounded)
	expect("bounds changed", 2, 2, 4, 90, "memory")
	env.must(env.api.Patch(t.Context(), env.deploymentOf("r"), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":3}}`)), client.FieldOwner("autoscaler")))
	expect("scaled by the autoscaler", 3, 2, 4, 90, "memory")
	r.Spec.Containers[0].Image = "next"
	env.must(env.api.Update(t.Context(), r))
	env.failRequest = func(verb, kind, _ string) error {
		if verb != "apply" || kind != "Deployment" {
			return nil
		}
		env.failRequest = nil
		return env.api.Patch(t.Context(), env.deploymentOf("r"), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":4}}`)), client.FieldOwner("autoscaler"))
	}
	if _, err := env.Reconcile(t.Context(), modelmesh.RequestFor("ns")); !apierrors.IsConflict(err) {
		t.Errorf("error %v, want a conflict because the autoscaler wrote after the read", err)
	}
	expect("scaled again by the autoscaler", 4, 2, 4, 90, "memory")
	removeLabel := `{"metadata":{"labels":{"` + names.OperatorLabel + `":null}}}`
	env.must(env.api.Patch(t.Context(), env.deploymentOf("r"), client.RawPatch("application/merge-patch+json", []byte(removeLabel))))
	expect("managed label removed, so the Deployment is not cached", 4, 2, 4, 90, "memory")
	annotate(map[string]string{"serving.kserve.io/autoscalerClass": "hpa"})
	expect("default bounds", 1, 1, 1, 80, "cpu")
	annotate(map[string]string{"serving.kserve.io/autoscalerClass": "none"})
	expect("autoscaler disabled", 2, 0, 0, 0, "")
	annotate(map[string]string{"serving.kserve.io/autoscalerClass": "hpa"})
	expect("autoscaler enabled again", 1, 1, 1, 80, "cpu")
	r.Spec.Disabled = new(true)
	env.must(env.api.Update(t.Context(), r))
	env.reconcileUntilStable("ns")
	if getHPA() != nil || env.hasDeployment("r") {
		t.Error("the disabled runtime still has a Deployment or an autoscaler")
	}
}

// [modelmesh-98] [M25] A runtime without models is scaled to zero after the grace period, if it has pods. A restart starts a new period.
func TestScaleToZero(t *testing.T) {
	env := newTestEnv(t, newServingRuntime("r", "onnx"))
	model := newPredictor("m", "onnx")
	env.reconcileUntilStable("ns")
	if got := env.replicasOf("r"); got != 0 {
		t.Errorf("no model: %d replicas, want 0", got)
	}
	env.create(model)
	env.reconcileUntilStable("ns")
	env.clock.Step(time.Hour)
	env.reconcileUntilStable("ns")
	if got := env.replicasOf("r"); got != 2 {
		t.Errorf("with a model: %d replicas, want 2", got)
	}
	env.must(env.api.Delete(t.Context(), model))
	if requeueAfter := env.reconcileOnce("ns"); requeueAfter != time.Minute || env.replicasOf("r") != 2 {
		t.Errorf("model deleted: %d replicas, requeue after %s", env.replicasOf("r"), requeueAfter)
	}
	env.clock.Step(20 * time.Second)
	if requeueAfter := env.reconcileOnce("ns"); requeueAfter != 40*time.Second || env.replicasOf("r") != 2 {
		t.Errorf("a third of the period: %d replicas, requeue after %s", env.replicasOf("r"), requeueAfter)
	}
	env.restart()
	if requeueAfter := env.reconcileOnce("ns"); requeueAfter != time.Minute || env.replicasOf("r") != 2 {
		t.Errorf("after a restart: %d replicas, requeue after %s, want 2 and one minute", env.replicasOf("r"), requeueAfter)
	}
	env.clock.Step(time.Minute)
	if requeueAfter := env.reconcileOnce("ns"); requeueAfter != 0 || env.replicasOf("r") != 0 {
		t.Errorf("after the period: %d replicas, requeue after %s", env.replicasOf("r"), requeueAfter)
	}
	env.restart()
	if requeueAfter := env.reconcileOnce("ns"); requeueAfter != 0 || env.replicasOf("r") != 0 {
		t.Errorf("scaled to zero, after a restart: %d replicas, requeue after %s", env.replicasOf("r"), requeueAfter)
	}
}

// [M24] A runtime is scaled up for its models even if another InferenceService is invalid.
func TestModelsKeepRuntimeScaled(t *testing.T) {
	inferenceService := func(name, format string, annotations map[string]string) *v1beta1.InferenceService {
		s := &v1beta1.InferenceService{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Annotations: annotations}}
		if format != "" {
			s.Spec.Predictor.Model = &v1beta1.ModelSpec{ModelFormat: v1beta1.ModelFormat{Name: format}}
			s.Spec.Predictor.Model.StorageURI = new("s3://bucket/path")
		}
		return s
	}
	meshMode := map[string]string{"serving.kserve.io/deploymentMode": "ModelMesh"}
	env := newTestEnv(t, newServingRuntime("r", "onnx"), newServingRuntime("other", "sklearn"), inferenceService("a-invalid", "", meshMode),
		inferenceService("b-other-mode", "sklearn", nil), inferenceService("c", "onnx", meshMode))
	env.reconcileUntilStable("ns")
	if env.replicasOf("r") != 2 || env.replicasOf("other") != 0 {
		t.Errorf("replicas %d and %d, want 2 and 0", env.replicasOf("r"), env.replicasOf("other"))
	}
	for label, want := range map[string]bool{"mt:onnx": true, "mt:onnx:9": false, "rt:other": true, "rt:none": false} {
		if got, err := env.HasSupportingRuntime(t.Context(), "ns", label); err != nil || got != want {
			t.Errorf("%s: HasSupportingRuntime returned %v, error %v", label, got, err)
		}
	}
	if got, err := env.HasSupportingRuntime(t.Context(), "not-enabled", "mt:onnx"); err != nil || got {
		t.Errorf("namespace that is not enabled: HasSupportingRuntime returned %v, error %v", got, err)
	}
	env.Config.IgnoreInferenceServices = true
	if models, err := env.Models(t.Context(), "ns"); err != nil || len(models) > 0 {
		t.Errorf("with IgnoreInferenceServices: models %v, error %v, want none", models, err)
	}
}

// An error for one object is retried and does not block objects that do not depend on it.
func TestErrorsDoNotBlockOtherObjects(t *testing.T) {
	writeErr := errors.New("write failed")
	for _, kind := range []string{"Service", "ConfigMap", "Secret", "Deployment"} {
		env := newTestEnv(t, newServingRuntime("r", "onnx"), newPredictor("m", "onnx"))
		env.failRequest = func(verb, k, _ string) error {
			if verb == "apply" && k == kind {
				return writeErr
			}
			return nil
		}
		if _, err := env.Reconcile(t.Context(), modelmesh.RequestFor("ns")); !errors.Is(err, writeErr) {
			t.Errorf("%s: error %v, want that of the write", kind, err)
		}
		writes := env.takeWrites()
		env.failRequest = nil
		env.reconcileUntilStable("ns")
		if len(writes) < 3 || !env.hasDeployment("r") {
			t.Errorf("%s: writes %q, want the other objects", kind, writes)
		}
	}
}

func TestToResult(t *testing.T) {
	foreign := &apply.Error{Kind: "Service", Err: &apply.ForeignError{}}
	terminating := &apply.Error{Kind: "Service", Err: &apply.TerminatingError{}}
	other := errors.New("x")
	for name, tc := range map[string]struct {
		requeueAfter time.Duration
		err          error
		want         time.Duration
		wantErr      bool
	}{
		"no error":                       {0, nil, 0, false},
		"requeue":                        {time.Second, nil, time.Second, false},
		"foreign object":                 {0, errors.Join(foreign, nil), reconciler.RequeueBlocked, false},
		"foreign object, sooner requeue": {time.Second, errors.Join(errors.Join(foreign, foreign)), time.Second, false},
		"foreign object, later requeue":  {time.Hour, foreign, reconciler.RequeueBlocked, false},
		"terminating object":             {0, terminating, reconciler.RequeueSoon, false},
		"rejected as invalid":            {0, &apply.Error{Kind: "Deployment", Err: apierrors.NewInvalid(schema.GroupKind{Kind: "Deployment"}, "d", nil)}, reconciler.RequeueBlocked, false},
		"forbidden":                      {0, apierrors.NewForbidden(schema.GroupResource{}, "d", nil), 0, true},
		"foreign object and failure":     {0, errors.Join(foreign, other), 0, true},
		"requeue and failure":            {time.Second, other, 0, true},
	} {
		result, err := toResult(tc.requeueAfter, tc.err)
		if result.RequeueAfter != tc.want || (err != nil) != tc.wantErr {
			t.Errorf("%s: toResult returned %v, error %v", name, result, err)
		}
	}
}

// [M28] A Deployment that cannot be built, or that the API server rejects, is reported by exactly one Event.
func TestRejectedDeploymentsAreReportedOnce(t *testing.T) {
	duplicate := newServingRuntime("duplicate", "onnx", func(s *v1alpha1.ServingRuntimeSpec) {
		s.Volumes = []corev1.Volume{{Name: "same"}, {Name: "same"}}
	})
	rejected := newServingRuntime("rejected", "onnx")
	env := newTestEnv(t, duplicate, rejected, newServingRuntime("valid", "onnx"))
	env.failRequest = func(verb, kind, name string) error {
		if verb == "apply" && kind == "Deployment" && strings.HasSuffix(name, "-rejected") {
			return apierrors.NewInvalid(schema.GroupKind{Kind: kind}, name, nil)
		}
		return nil
	}
	for range 3 {
		if requeueAfter := env.reconcileOnce("ns"); requeueAfter != reconciler.RequeueBlocked {
			t.Errorf("requeue after %s, want %s", requeueAfter, reconciler.RequeueBlocked)
		}
	}
	emitted := recordedEvents(env.events)
	slices.Sort(emitted)
	if len(emitted) != 2 || !strings.Contains(emitted[0], "InvalidRuntime Invalid runtime Spec: ") || !strings.Contains(emitted[1], "RuntimeRefused applying Deployment ns/modelmesh-serving-rejected") {
		t.Errorf("got events %q, want one InvalidRuntime and one RuntimeRefused", emitted)
	}
	if env.hasDeployment("duplicate") || !env.hasDeployment("valid") {
		t.Error("want a Deployment only for the valid runtime")
	}
	for _, r := range []client.Object{duplicate, rejected} {
		env.must(env.api.Delete(t.Context(), r))
	}
	env.reconcileOnce("ns")
	if cached, _ := env.caches.Get("ns"); len(cached.lastMessages) > 0 {
		t.Errorf("%d messages of deleted runtimes are stored, want none", len(cached.lastMessages))
	}
}

// The operator's namespace is enabled without a label, but gets no objects unless it has multi-model runtimes or models.
func TestUnusedOperatorNamespace(t *testing.T) {
	ofKServe := newServingRuntime("kserve", "onnx", singleModel)
	ofKServe.Namespace = "own"
	env := newTestEnv(t, ofKServe)
	env.expect("writes", env.reconcileUntilStable("own"), nil)
	if _, connected := env.mesh.targets["own"]; connected {
		t.Error("the operator connects to an unused namespace")
	}
	r := newServingRuntime("r", "onnx")
	r.Namespace = "own"
	env.create(r)
	if writes := env.reconcileUntilStable("own"); !slices.Contains(writes, "apply Service own/modelmesh-serving") {
		t.Errorf("writes %q", writes)
	}
	env.must(env.api.Delete(t.Context(), r))
	if writes := env.reconcileUntilStable("own"); !slices.Contains(writes, "delete Service own/modelmesh-serving") {
		t.Errorf("writes %q", writes)
	}
}

// The state of a deleted runtime is dropped while its namespace stays enabled.
func TestStateOfDeletedRuntimeIsDropped(t *testing.T) {
	r := newServingRuntime("r", "onnx")
	env := newTestEnv(t, r, newServingRuntime("other", "onnx"))
	env.reconcileUntilStable("ns")
	env.must(env.api.Delete(t.Context(), r))
	env.reconcileUntilStable("ns")
	cache, _ := env.caches.Get("ns")
	if _, found := cache.idleSince["r"]; found || len(cache.idleSince) != 1 {
		t.Errorf("idleSince %v, want that of the other runtime only", cache.idleSince)
	}
}
