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
	// meshes is the number of namespaces with models.
	meshes = 10
	// shared is the prefix of the names of these namespaces.
	shared = "mesh-"
)

// routing installs the dependencies of models: the CRDs of KServe, an etcd, and the fake routing layers. It returns the variables
// that direct the manager to the fakes.
func (b *bench) routing(ctx context.Context, secretNamespace string) ([]string, error) {
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
		return nil, fmt.Errorf("creating the Secret of etcd: %w", err)
	}
	if b.network, err = modelmesh.Start(ctx, modelmesh.Options{Config: config}); err != nil {
		return nil, err
	}
	return b.network.Env(), nil
}

// loadedModels creates many Predictors, waits until they are loaded, observes them in the steady state, and restarts the manager.
func (b *bench) loadedModels(ctx context.Context) error {
	if b.models == 0 {
		return nil
	}
	for i := range meshes {
		if err := b.mesh(ctx, fmt.Sprintf("%s%d", shared, i)); err != nil {
			return err
		}
	}
	begin, err := b.audit.Position()
	if err != nil {
		return err
	}
	start := b.clock.Now()
	for i := range b.models {
		if err := b.admin.Create(ctx, onnx(i)); err != nil {
			return fmt.Errorf("creating a Predictor: %w", err)
		}
	}
	if err := b.until(ctx, 50*poll, func() (bool, error) { return b.allLoaded(ctx) }); err != nil {
		return err
	}
	took := b.clock.Since(start)
	if err := b.waitIdle(ctx); err != nil {
		return err
	}
	description := fmt.Sprintf("%d Predictors in %d namespaces until loaded, in %s", b.models, meshes, took.Round(time.Second))
	if err := b.noteRequests(description, b.models, begin, ""); err != nil {
		return err
	}
	rss, err := b.residentMemory()
	if err != nil {
		return err
	}
	b.note(fmt.Sprintf("resident memory with %d Predictors", b.models), mebibytes(rss), "", "")
	if err := b.restOfModels(ctx); err != nil {
		return err
	}
	return b.restartWithModels(ctx)
}

// mesh creates a namespace for ModelMesh, with a runtime of one pod.
func (b *bench) mesh(ctx context.Context, name string) error {
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

func onnx(number int) *v1alpha1.Predictor {
	return &v1alpha1.Predictor{
		ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("%s%d", shared, number%meshes), Name: fmt.Sprintf("model-%d", number)},
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
	return len(list.Items) == b.models, nil
}

// calls returns the number of calls to the routing layers.
func (b *bench) calls() int {
	sum := 0
	for i := range meshes {
		for _, count := range b.network.Calls(fmt.Sprintf("%s%d", shared, i)) {
			sum += count
		}
	}
	return sum
}

func (b *bench) restOfModels(ctx context.Context) error {
	start, err := b.audit.Position()
	if err != nil {
		return err
	}
	before := b.calls()
	if err := b.pause(ctx, b.window); err != nil {
		return err
	}
	reads, writes, _, err := b.requests(start)
	b.note(fmt.Sprintf("loaded models at rest, %s", b.window),
		fmt.Sprintf("%d reads, %d writes, %d gRPC calls", reads, writes, b.calls()-before), "0", "")
	return err
}

func (b *bench) restartWithModels(ctx context.Context) error {
	start, err := b.audit.Position()
	if err != nil {
		return err
	}
	before := b.calls()
	if err := b.manager.Restart(ctx); err != nil {
		return err
	}
	if err := b.waitIdle(ctx); err != nil {
		return err
	}
	if err := b.noteRequests("restart with them", b.models, start, "0 writes"); err != nil {
		return err
	}
	b.note("gRPC calls of that", fmt.Sprint(b.calls()-before), "one for each", "")
	return nil
}
