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

// [M11] [M18] [M20] Unused legacy objects are deleted, other objects are kept.
func TestLegacyCleanerDeletesUnusedObjects(t *testing.T) {
	const svc = resources.LabelService
	hpa := func(namespace, name, owner string) client.Object {
		m := legacyMeta(namespace, name, owner, resources.LabelInferenceService, "r")
		delete(m.Labels, resources.LabelManagedBy)
		return &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: m}
	}
	scaled := localRuntime("scaled", "onnx")
	scaled.Annotations = map[string]string{"serving.kserve.io/autoscalerClass": "hpa"}
	w := newTestEnv(t, localRuntime("r", "onnx"), scaled, localRuntime("off", "onnx", disabled), meshtest.Namespace("no", "false"),
		&appsv1.Deployment{ObjectMeta: legacyMeta("ns", "modelmesh-serving-r", "ServingRuntime", svc, "modelmesh-serving")},
		&appsv1.Deployment{ObjectMeta: legacyMeta("ns", "modelmesh-serving-off", "ServingRuntime", svc, "modelmesh-serving")},
		&appsv1.Deployment{ObjectMeta: legacyMeta("ns", "older-r", "ClusterServingRuntime", svc, "older")},
		&appsv1.Deployment{ObjectMeta: legacyMeta("ns", "modelmesh-controller", "")},
		&appsv1.Deployment{ObjectMeta: legacyMeta("no", "modelmesh-serving-r", "ClusterServingRuntime", svc, "modelmesh-serving")},
		&corev1.Service{ObjectMeta: legacyMeta("ns", "modelmesh-serving", "Namespace", svc, "modelmesh-serving")},
		&corev1.Service{ObjectMeta: legacyMeta("ns", "older", "Namespace", svc, "older")},
		&corev1.Service{ObjectMeta: legacyMeta("no", "theirs", "", svc, "theirs")},
		&corev1.ConfigMap{ObjectMeta: legacyMeta("no", "tc-config", "")}, &corev1.ConfigMap{ObjectMeta: legacyMeta("ns", "tc-config", "")},
		&corev1.ConfigMap{ObjectMeta: legacyMeta("no", "model-serving-config-defaults", "")},
		&corev1.Secret{ObjectMeta: legacyMeta("no", "model-serving-etcd", "")}, &corev1.Secret{ObjectMeta: legacyMeta("no", "storage-config", "")},
		hpa("ns", "modelmesh-serving-r", "ServingRuntime"), hpa("ns", "modelmesh-serving-scaled", "ServingRuntime"),
		hpa("no", "theirs", "InferenceService"),
	)
	w.Config.EtcdSecretName = "model-serving-etcd"
	l := &legacyCleaner{runtimeReconciler: w.runtimeReconciler, log: logr.Discard()}
	if err := l.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.expect("removed", w.takeWrites(), []string{
		"delete ConfigMap no/tc-config", "delete Deployment no/modelmesh-serving-r", "delete Deployment ns/modelmesh-serving-off",
		"delete Deployment ns/older-r", "delete HorizontalPodAutoscaler ns/modelmesh-serving-r", "delete Secret no/model-serving-etcd",
		"delete Service ns/older",
	})
}

// Errors are retried until the cleanup succeeds or the operator stops.
func TestLegacyCleanerRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestEnv(t, &appsv1.Deployment{ObjectMeta: legacyMeta("ns", "modelmesh-serving-r", "ServingRuntime", resources.LabelService, "modelmesh-serving")})
		w.fail = func(verb, _, _ string) error {
			if verb == "delete" {
				return errors.New("not now")
			}
			return nil
		}
		done := make(chan error, 1)
		go func() {
			done <- (&legacyCleaner{runtimeReconciler: w.runtimeReconciler, log: logr.Discard()}).Start(t.Context())
		}()
		synctest.Wait()
		if !w.clock.HasWaiters() {
			t.Fatal("the cleaner does not wait before its next attempt")
		}
		w.fail = nil
		w.clock.Step(legacyCleanupRetry)
		if err := <-done; err != nil || !strings.Contains(strings.Join(w.takeWrites(), " "), "delete Deployment ns/modelmesh-serving-r") {
			t.Errorf("unexpected error: %v", err)
		}
	})
}
