package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/modelmesh"
)

const (
	// meshCount is the number of namespaces with models.
	meshCount = 10
	// meshPrefix is the prefix of the names of these namespaces.
	meshPrefix = "mesh-"
)

// installModelMesh installs the dependencies of models: the CRDs of KServe, an etcd, and the fake routing layers. It returns the
// environment variables that direct the manager to the fakes.
func (b *bench) installModelMesh(ctx context.Context, secretNamespace string) ([]string, error) {
	config, err := b.instance.Config()
	if err != nil {
		return nil, err
	}
	if err := cluster.InstallSet(ctx, config, cluster.KServe); err != nil {
		return nil, err
	}
	etcd, err := modelmesh.StartEtcd(ctx, b.instance)
	if err != nil {
		return nil, err
	}
	data, err := modelmesh.SecretData(etcd.URL, "modelmesh-serving")
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secretNamespace, Name: "model-serving-etcd"}, Data: data}
	if err := b.admin.Create(ctx, secret); err != nil {
		return nil, fmt.Errorf("creating the etcd Secret: %w", err)
	}
	if b.network, err = modelmesh.Start(ctx, modelmesh.Options{Config: config}); err != nil {
		return nil, err
	}
	return b.network.Env(), nil
}

// measurePredictors creates many Predictors, waits until they are loaded, observes the steady state, and restarts the manager.
func (b *bench) measurePredictors(ctx context.Context) error {
	if b.predictors == 0 {
		return nil
	}
	for i := range meshCount {
		if err := b.createMesh(ctx, fmt.Sprintf("%s%d", meshPrefix, i)); err != nil {
			return err
		}
	}
	begin, err := b.audit.Position()
	if err != nil {
		return err
	}
	start := b.clock.Now()
	for i := range b.predictors {
		if err := b.admin.Create(ctx, newPredictor(i)); err != nil {
			return fmt.Errorf("creating a Predictor: %w", err)
		}
	}
	if err := b.waitUntil(ctx, 50*pollInterval, func() (bool, error) { return b.allLoaded(ctx) }); err != nil {
		return err
	}
	took := b.clock.Since(start)
	if err := b.waitIdle(ctx); err != nil {
		return err
	}
	description := fmt.Sprintf("loading %d Predictors in %d namespaces, %s", b.predictors, meshCount, took.Round(time.Second))
	if err := b.addRequestsSince(description, b.predictors, begin, ""); err != nil {
		return err
	}
	rss, err := b.residentMemory()
	if err != nil {
		return err
	}
	b.addFigure(fmt.Sprintf("resident memory with %d Predictors", b.predictors), mebibytes(rss), "", "")
	if err := b.measureIdlePredictors(ctx); err != nil {
		return err
	}
	return b.measureRestartWithPredictors(ctx)
}

// createMesh creates a namespace for ModelMesh, with a runtime of one pod.
func (b *bench) createMesh(ctx context.Context, name string) error {
	runtime := &v1alpha1.ServingRuntime{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "onnx"},
		Spec: v1alpha1.ServingRuntimeSpec{
			MultiModel: new(true), GRPCEndpoint: new("port:8085"), GRPCDataEndpoint: new("port:8001"), Replicas: new(int64(1)),
			Containers:            []corev1.Container{{Name: "server", Image: "registry.example.com/server:1"}},
			SupportedModelFormats: []v1alpha1.SupportedModelFormat{{Name: "onnx", AutoSelect: new(true)}},
		},
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"modelmesh-enabled": "true"}}}
	for _, object := range []client.Object{namespace, runtime} {
		if err := b.admin.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}

func newPredictor(number int) *v1alpha1.Predictor {
	return &v1alpha1.Predictor{
		ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("%s%d", meshPrefix, number%meshCount), Name: fmt.Sprintf("model-%d", number)},
		Spec: v1alpha1.PredictorSpec{
			ModelType: v1alpha1.ModelType{Name: "onnx"}, Storage: &v1alpha1.Storage{Key: new("localMinIO"), Path: new("models/a")},
		},
	}
}

func (b *bench) allLoaded(ctx context.Context) (bool, error) {
	var list v1alpha1.PredictorList
	if err := b.admin.List(ctx, &list); err != nil {
		return false, fmt.Errorf("listing Predictors: %w", err)
	}
	for i := range list.Items {
		if list.Items[i].Status.ActiveModelState != v1alpha1.Loaded {
			return false, nil
		}
	}
	return len(list.Items) == b.predictors, nil
}

// countCalls returns the number of calls to the routing layers.
func (b *bench) countCalls() int {
	sum := 0
	for i := range meshCount {
		for _, count := range b.network.Calls(fmt.Sprintf("%s%d", meshPrefix, i)) {
			sum += count
		}
	}
	return sum
}

func (b *bench) measureIdlePredictors(ctx context.Context) error {
	start, err := b.audit.Position()
	if err != nil {
		return err
	}
	before := b.countCalls()
	if err := b.pause(ctx, b.window); err != nil {
		return err
	}
	reads, writes, _, err := b.requests(start)
	if err != nil {
		return err
	}
	b.addFigure(fmt.Sprintf("loaded models, idle for %s", b.window),
		fmt.Sprintf("%d reads, %d writes, %d gRPC calls", reads, writes, b.countCalls()-before), "0", "")
	return nil
}

func (b *bench) measureRestartWithPredictors(ctx context.Context) error {
	start, err := b.audit.Position()
	if err != nil {
		return err
	}
	before := b.countCalls()
	if err := b.manager.Restart(ctx); err != nil {
		return err
	}
	if err := b.waitIdle(ctx); err != nil {
		return err
	}
	if err := b.addRequestsSince("restart with the Predictors", b.predictors, start, "0 writes"); err != nil {
		return err
	}
	b.addFigure("gRPC calls of the restart", fmt.Sprint(b.countCalls()-before), "one for each Predictor", "")
	return nil
}
