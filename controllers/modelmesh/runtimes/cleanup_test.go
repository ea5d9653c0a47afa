package runtimes

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/resources"
	"github.com/odh-platform/odh-platform-operator/test/meshtest"
)

// legacyMeta returns the metadata of a legacy object with an owner of the given kind, or without one.
func legacyMeta(namespace, name, ownerKind string, labels ...string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{resources.LabelManagedBy: resources.ControllerName}}
	for i := 0; i < len(labels); i += 2 {
		m.Labels[labels[i]] = labels[i+1]
	}
	if ownerKind != "" {
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "x/v1", Kind: ownerKind, Name: "r", UID: types.UID("uid-of-r"), Controller: new(true)}}
	}
	return m
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
	env := newTestEnv(t, newServingRuntime("r", "onnx"), autoscaled, newServingRuntime("disabled", "onnx", disabled), meshtest.Namespace("disabled", "false"),
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
	cleaner := &legacyCleaner{runtimeReconciler: env.runtimeReconciler, log: logr.Discard()}
	if err := cleaner.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
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
		env := newTestEnv(t, meshtest.Namespace("legacy", ""), controller, &corev1.ConfigMap{ObjectMeta: legacyMeta("legacy", "tc-config", "")},
			&appsv1.Deployment{ObjectMeta: legacyMeta("legacy", "modelmesh-serving-r", "ServingRuntime", resources.LabelService, "modelmesh-serving")})
		if err := (&legacyCleaner{runtimeReconciler: env.runtimeReconciler, log: logr.Discard()}).Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		env.expect("writes", env.takeWrites(), want)
	}
}

// A failed deletion is retried.
func TestLegacyCleanerRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newTestEnv(t, &appsv1.Deployment{ObjectMeta: legacyMeta("ns", "modelmesh-serving-r", "ServingRuntime", resources.LabelService, "modelmesh-serving")})
		env.failRequest = func(verb, _, _ string) error {
			if verb == "delete" {
				return errors.New("delete failed")
			}
			return nil
		}
		done := make(chan error, 1)
		go func() {
			done <- (&legacyCleaner{runtimeReconciler: env.runtimeReconciler, log: logr.Discard()}).Start(t.Context())
		}()
		synctest.Wait()
		if !env.clock.HasWaiters() {
			t.Fatal("the cleaner does not wait before its next attempt")
		}
		env.failRequest = nil
		env.clock.Step(legacyCleanupRetry)
		if err := <-done; err != nil || !strings.Contains(strings.Join(env.takeWrites(), " "), "delete Deployment ns/modelmesh-serving-r") {
			t.Errorf("got error %v, want the Deployment deleted by the second attempt", err)
		}
	})
}
