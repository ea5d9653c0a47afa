package main

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// population is a set of objects of one kind. KubeRay does not run, so its requests are not measured.
type population struct {
	name      string
	namespace string
	// prepare creates the shared dependencies of all objects.
	prepare func(ctx context.Context) error
	// manifest returns the object with a number, without its namespace.
	manifest func(number int) string
	// ready reports whether an object is ready; nil if its status does not contain this.
	ready func(object *unstructured.Unstructured) bool
	// target of the writes and live reads per object.
	target string

	size int // number of created objects
}

// populations returns a population for each component with many objects in a cluster.
func (b *bench) populations() []*population {
	return []*population{
		{
			name: "ModelRegistry", namespace: "scale-registries", prepare: b.createDatabasePassword, ready: isAvailable, target: "children + 1, 0",
			manifest: func(number int) string {
				return fmt.Sprintf(`{apiVersion: modelregistry.opendatahub.io/v1beta1, kind: ModelRegistry, metadata: {name: r%d}, spec: {rest: {serviceRoute: disabled}, postgres:
					{host: database, username: registry, database: registry, passwordSecret: {name: database, key: password}}}}`, number)
			},
		},
		{
			name: "RayCluster", namespace: "scale-rayclusters", prepare: func(ctx context.Context) error { return b.newNamespace(ctx, "scale-rayclusters") }, target: "children + 1, 0",
			manifest: func(number int) string {
				return fmt.Sprintf(`{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: c%d}, spec: {headGroupSpec: {rayStartParams: {}, template: {spec:
					{containers: [{name: ray-head, image: 'registry.example.com/ray:1', resources: {requests: {cpu: 10m}}}]}}}}}`, number)
			},
		},
		{
			name: "AppWrapper", namespace: "scale-workloads", prepare: func(ctx context.Context) error { return b.newNamespace(ctx, "scale-workloads") }, target: "1 child + 1, 0", ready: hasSucceeded,
			manifest: func(number int) string {
				return fmt.Sprintf(`{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: w%d}, spec: {components: [{template: {apiVersion: batch/v1, kind: Job,
					metadata: {name: w%d}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: 'registry.example.com/step:1'}]}}}}}]}}`, number, number)
			},
		},
		{
			name: "Predictor", namespace: "scale-models", prepare: b.createRunningMesh, ready: isLoaded, target: "0 children + 1, 0",
			manifest: func(number int) string {
				return fmt.Sprintf(`{apiVersion: serving.kserve.io/v1alpha1, kind: Predictor, metadata: {name: m%d},
					spec: {modelType: {name: onnx}, storage: {key: localMinIO, path: models/a}}}`, number)
			},
		},
	}
}

// wrappedPods returns AppWrappers of one Pod that keeps running. They need fewer requests than AppWrappers with a Job.
func (b *bench) wrappedPods() *population {
	const podNamespace = "scale-pods"
	return &population{
		name: "AppWrapper", namespace: podNamespace, ready: hasReadyPods, target: "1 child + 3, 0",
		prepare: func(ctx context.Context) error {
			if err := b.newNamespace(ctx, podNamespace); err != nil {
				return err
			}
			return b.waitUntil(ctx, pollInterval, func() (bool, error) { // Pods are rejected without their ServiceAccount
				err := b.admin.Get(ctx, client.ObjectKey{Namespace: podNamespace, Name: "default"}, &corev1.ServiceAccount{})
				return err == nil, client.IgnoreNotFound(err)
			})
		},
		manifest: func(number int) string {
			return fmt.Sprintf(`{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: w%d}, spec: {components: [{template: {apiVersion: v1, kind: Pod,
				metadata: {name: w%d}, spec: {containers: [{name: main, image: 'registry.example.com/server:1'}]}}}]}}`, number, number)
		},
	}
}

// createRunningMesh creates the settings of ModelMesh, the namespace of the Predictors, the storage that they reference, and a runtime, and
// waits for its pod.
func (b *bench) createRunningMesh(ctx context.Context) error {
	const modelNamespace = "scale-models"
	settings := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "model-serving-config"}, Data: map[string]string{"config.yaml": "scaleToZero: {enabled: false}"},
	}
	storage := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: modelNamespace, Name: "storage-config"}, StringData: map[string]string{
		"localMinIO": `{"type": "s3", "access_key_id": "key", "secret_access_key": "secret", "endpoint_url": "http://minio:9000", "default_bucket": "models", "region": "us-south"}`,
	}}
	if err := b.admin.Create(ctx, settings); err != nil {
		return fmt.Errorf("creating the settings of ModelMesh: %w", err)
	}
	if err := b.createMesh(ctx, modelNamespace); err != nil {
		return err
	}
	if err := b.admin.Create(ctx, storage); err != nil {
		return fmt.Errorf("creating the storage of models: %w", err)
	}
	return b.waitUntil(ctx, 10*pollInterval, func() (bool, error) {
		d := &appsv1.Deployment{}
		err := b.admin.Get(ctx, client.ObjectKey{Namespace: modelNamespace, Name: "modelmesh-serving-onnx"}, d)
		return d.Status.ReadyReplicas > 0, client.IgnoreNotFound(err)
	})
}

// object returns the object with a number.
func (p *population) object(number int) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(p.manifest(number)), &object.Object); err != nil {
		return nil, fmt.Errorf("decoding a %s: %w", p.name, err)
	}
	object.SetNamespace(p.namespace)
	return object, nil
}

// allReady reports whether all objects of a population exist and are ready. It returns true if their status does not contain this.
func (b *bench) allReady(ctx context.Context, p *population) (bool, error) {
	if p.ready == nil {
		return true, nil
	}
	first, err := p.object(0)
	if err != nil {
		return false, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(first.GroupVersionKind().GroupVersion().WithKind(first.GetKind() + "List"))
	if err := b.admin.List(ctx, list, client.InNamespace(p.namespace)); err != nil {
		return false, fmt.Errorf("listing each %s: %w", p.name, err)
	}
	for i := range list.Items {
		if !p.ready(&list.Items[i]) {
			return false, nil
		}
	}
	return len(list.Items) == p.size, nil
}

func isAvailable(object *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, condition := range conditions {
		if fields, ok := condition.(map[string]any); ok && fields["type"] == "Available" {
			return fields["status"] == string(metav1.ConditionTrue)
		}
	}
	return false
}

func hasSucceeded(object *unstructured.Unstructured) bool {
	phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
	return phase == "Succeeded"
}

func hasReadyPods(object *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(condition any) bool {
		fields, _ := condition.(map[string]any)
		return fields["type"] == "PodsReady" && fields["status"] == string(metav1.ConditionTrue)
	})
}

func isLoaded(object *unstructured.Unstructured) bool {
	state, _, _ := unstructured.NestedString(object.Object, "status", "activeModelState")
	return state == "Loaded"
}

func (b *bench) newNamespace(ctx context.Context, name string) error {
	if err := b.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		return fmt.Errorf("creating namespace %s: %w", name, err)
	}
	return nil
}

// createDatabasePassword creates the Secret that the registries reference.
func (b *bench) createDatabasePassword(ctx context.Context) error {
	if err := b.newNamespace(ctx, "scale-registries"); err != nil {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "scale-registries", Name: "database"}, StringData: map[string]string{"password": "secret"},
	}
	if err := b.admin.Create(ctx, secret); err != nil {
		return fmt.Errorf("creating the password of the database: %w", err)
	}
	return nil
}
