package modelmesh_resilience_test

import (
	"context"
	"fmt"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/test/modelmesh"
)

// loader loads models like [modelmesh.ByPath], and can block loads.
type loader struct {
	mu   sync.Mutex
	gate chan struct{} // closed when loads may continue; nil if they are not blocked
}

func (l *loader) load(ctx context.Context, description modelmesh.Load) error {
	l.mu.Lock()
	gate := l.gate
	l.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return modelmesh.ByPath(ctx, description)
}

// blockLoads blocks all loads until the returned function is called or the spec ends.
func (l *loader) blockLoads() (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	gate := make(chan struct{})
	l.gate = gate
	release = sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.gate = nil
		close(gate)
	})
	DeferCleanup(release)
	return release
}

// createServingNamespace creates a namespace that is enabled for ModelMesh, with a runtime for the format onnx.
func createServingNamespace(ctx SpecContext, name string) {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"modelmesh-enabled": "true"}}}
	Expect(env.Admin.Create(ctx, namespace)).To(Succeed())
	runtime := &v1alpha1.ServingRuntime{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "onnx"},
		Spec: v1alpha1.ServingRuntimeSpec{
			MultiModel: new(true), GRPCEndpoint: new("port:8085"), GRPCDataEndpoint: new("port:8001"),
			Containers:            []corev1.Container{{Name: "server", Image: "example.com/server:1"}},
			SupportedModelFormats: []v1alpha1.SupportedModelFormat{{Name: "onnx", AutoSelect: new(true)}},
		},
	}
	// The first call waits until the API server trusts the webhook.
	Eventually(func() error { return env.Admin.Create(ctx, runtime.DeepCopy()) }).Should(Succeed())
}

func predictor(namespace, name, path string) *v1alpha1.Predictor {
	return &v1alpha1.Predictor{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.PredictorSpec{
			ModelType: v1alpha1.ModelType{Name: "onnx"},
			Storage:   &v1alpha1.Storage{Key: new("localMinIO"), Path: new(path)},
		},
	}
}

// stateOf returns a function that returns the status of a Predictor in one line.
func stateOf(ctx context.Context, namespace, name string) func() (string, error) {
	return func() (string, error) {
		var p v1alpha1.Predictor
		if err := env.Admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &p); err != nil {
			return "", err
		}
		return describe(&p), nil
	}
}

func describe(p *v1alpha1.Predictor) string {
	s := p.Status
	text := fmt.Sprintf("available=%t %s/%s %s", s.Available, s.ActiveModelState, s.TargetModelState, s.TransitionStatus)
	if s.LastFailureInfo != nil {
		text += " " + string(s.LastFailureInfo.Reason)
	}
	return text
}

const (
	loadedState  = "available=true Loaded/ UpToDate"
	failedState  = "available=false FailedToLoad/ UpToDate ModelLoadFailed"
	blockedState = "available=true Loaded/FailedToLoad BlockedByFailedLoad ModelLoadFailed"
)
