package kind

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
)

// combinations returns all combinations of the backend store and the artifact storage, and a few with other options.
func combinations() map[string]Options {
	all := map[string]Options{"all options": allOptions()}
	for _, backend := range []string{SQLite, Postgres} {
		for _, artifacts := range []string{File, S3} {
			all[backend+" and "+artifacts] = withOptions(func(o *Options) { o.BackendStore, o.ArtifactStorage = backend, artifacts })
		}
	}
	all["mixed"] = withOptions(func(o *Options) {
		o.BackendStore, o.RegistryStore, o.ArtifactStorage, o.ServeArtifacts, o.Namespace = Postgres, SQLite, S3, false, "other-namespace"
		o.MLflowImage, o.Image, o.CABundleConfigMap = "registry.example.com/mlflow:1", "registry.example.com/manager:dev", "own"
	})
	all["models in PostgreSQL"] = withOptions(func(o *Options) { o.RegistryStore = Postgres })
	return all
}

type manifests struct {
	mlflow mlflowv1.MLflow
	pods   map[string]corev1.PodSpec
	names  []string
}

func read(t *testing.T, objects []*unstructured.Unstructured) manifests {
	t.Helper()
	r := manifests{pods: map[string]corev1.PodSpec{}}
	convert := func(object *unstructured.Unstructured, into any) {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, into, true); err != nil {
			t.Fatalf("%s %s: unexpected error: %v", object.GetKind(), object.GetName(), err)
		}
	}
	for _, object := range objects {
		r.names = append(r.names, object.GetKind()+"/"+object.GetName())
		switch object.GetKind() {
		case "MLflow":
			convert(object, &r.mlflow)
		case "Deployment":
			var deployment appsv1.Deployment
			convert(object, &deployment)
			r.pods[object.GetName()] = deployment.Spec.Template.Spec
		case "Job":
			var job batchv1.Job
			convert(object, &job)
			r.pods[object.GetName()] = job.Spec.Template.Spec
		}
	}
	return r
}

// renders caches the rendered combinations, because rendering is slow and two tests use each combination.
var renders sync.Map

// render returns the objects of a combination.
func render(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	once, _ := renders.LoadOrStore(name, sync.OnceValues(func() ([]*unstructured.Unstructured, error) {
		return Render(combinations()[name])
	}))
	objects, err := once.(func() ([]*unstructured.Unstructured, error))()
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// references returns the Secrets, except optional ones, and the ConfigMap with CAs that pods and MLflow reference, as name or name/key.
func (r manifests) references() []string {
	var all []string
	spec := r.mlflow.Spec
	for _, ref := range []*corev1.SecretKeySelector{spec.BackendStoreURIFrom, spec.RegistryStoreURIFrom} {
		if ref != nil {
			all = append(all, ref.Name+"/"+ref.Key)
		}
	}
	sources := slices.Clone(spec.EnvFrom)
	if spec.CABundleConfigMap != nil {
		all = append(all, spec.CABundleConfigMap.Name)
	}
	for _, pod := range r.pods {
		for _, container := range pod.Containers {
			sources = append(sources, container.EnvFrom...)
		}
		for _, volume := range pod.Volumes {
			if volume.Secret != nil && (volume.Secret.Optional == nil || !*volume.Secret.Optional) {
				all = append(all, volume.Secret.SecretName)
			}
		}
	}
	for _, source := range sources {
		all = append(all, source.SecretRef.Name)
	}
	return all
}

func TestReferencedObjectsAreGenerated(t *testing.T) {
	for name, o := range combinations() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := render(t, name)
			r := read(t, objects)
			generatedObjects := generate(t, o, noSecret)
			referenced := map[string]bool{}
			for _, reference := range r.references() {
				name, key, _ := strings.Cut(reference, "/")
				referenced[name] = true
				if name == o.CABundleConfigMap {
					continue
				}
				secret, _ := generatedObjects[name].(*corev1.Secret)
				if generatedObjects[name] == nil || key != "" && len(secret.Data[key]) == 0 {
					t.Errorf("%s is referenced, but not generated", reference)
				}
			}
			for name := range generatedObjects {
				if !referenced[name] {
					t.Errorf("%s is generated, but not referenced", name)
				}
			}
			expectNoGeneratedValues(t, objects, generatedObjects)
		})
	}
}

// expectNoGeneratedValues checks that the manifests contain no Secret, and no value of a generated Secret that is longer than 12 bytes.
func expectNoGeneratedValues(t *testing.T, objects []*unstructured.Unstructured, generatedObjects map[string]client.Object) {
	t.Helper()
	text, err := json.Marshal(objects)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range generatedObjects {
		secret, ok := object.(*corev1.Secret)
		if !ok {
			continue
		}
		for key, value := range secret.Data {
			if len(value) > 12 && strings.Contains(string(text), string(value)) {
				t.Errorf("the manifests contain %s of Secret %s", key, secret.Name)
			}
		}
	}
	for _, object := range objects {
		if object.GetKind() == "Secret" {
			t.Errorf("the manifests contain Secret %s", object.GetName())
		}
	}
}

func TestRender(t *testing.T) {
	for name, want := range map[string]string{
		"sqlite and file":      "backend sqlite:////mlflow/mlflow.db registry - destination file:///mlflow/artifacts root - serve true storage true ca - image -",
		"sqlite and s3":        "backend sqlite:////mlflow/mlflow.db registry - destination s3://mlpipeline/mlflow root - serve true storage true ca - image -",
		"postgres and file":    "backend mlflow-db-credentials registry - destination file:///mlflow/artifacts root - serve true storage true ca - image -",
		"postgres and s3":      "backend mlflow-db-credentials registry - destination s3://mlpipeline/mlflow root - serve true storage false ca - image -",
		"all options":          "backend mlflow-db-credentials registry - destination s3://mlpipeline/mlflow root - serve true storage false ca mlflow-ca-bundle image -",
		"models in PostgreSQL": "backend sqlite:////mlflow/mlflow.db registry mlflow-db-credentials destination file:///mlflow/artifacts root - serve true storage true ca - image -",
		"mixed":                "backend mlflow-db-credentials registry sqlite:////mlflow/registry.db destination - root s3://mlpipeline/mlflow serve false storage true ca own image registry.example.com/mlflow:1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := combinations()[name]
			objects := render(t, name)
			r := read(t, objects)
			if got := summary(r.mlflow.Spec); got != want {
				t.Errorf("got MLflow %s\nwant %s", got, want)
			}
			for name, want := range map[string]bool{
				"Deployment/postgres-deployment": o.needsDatabase(), "Service/postgres-service": o.needsDatabase(),
				"Deployment/seaweedfs": o.needsS3(), "Service/minio-service": o.needsS3(), "Job/seaweedfs-bucket": o.needsS3(),
				"Deployment/" + managerName: true, "Namespace/" + o.Namespace: true,
			} {
				if slices.Contains(r.names, name) != want {
					t.Errorf("%s exists: %t, want %t", name, !want, want)
				}
			}
			for _, object := range objects {
				if namespace := object.GetNamespace(); namespace != "" && namespace != o.Namespace {
					t.Errorf("got %s %s in namespace %s, want %s", object.GetKind(), object.GetName(), namespace, o.Namespace)
				}
			}
			manager := r.pods[managerName].Containers[0]
			if o.Image != "" && (manager.Image != o.Image || manager.ImagePullPolicy != corev1.PullIfNotPresent) {
				t.Errorf("got image %s and pull policy %s of the manager, want %s and IfNotPresent", manager.Image, manager.ImagePullPolicy, o.Image)
			}
		})
	}
}

func summary(spec mlflowv1.MLflowSpec) string {
	or := func(text string, ref *corev1.SecretKeySelector) string {
		if ref != nil {
			return ref.Name
		}
		if text == "" {
			return "-"
		}
		return text
	}
	ca, image := "-", "-"
	if spec.CABundleConfigMap != nil {
		ca = spec.CABundleConfigMap.Name
	}
	if spec.Image != nil {
		image = spec.Image.Image
	}
	return fmt.Sprintf("backend %s registry %s destination %s root %s serve %t storage %t ca %s image %s",
		or(spec.BackendStoreURI, spec.BackendStoreURIFrom), or(spec.RegistryStoreURI, spec.RegistryStoreURIFrom),
		or(spec.ArtifactsDestination, nil), or(spec.DefaultArtifactRoot, nil), spec.ServeArtifacts, spec.Storage != nil, ca, image)
}
