//go:build operands

package operands

import (
	"crypto/tls"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/tlsprofile"
)

// rendered contains rendered objects.
type rendered struct {
	t       *testing.T
	objects []*unstructured.Unstructured
}

// render renders an MLflow as `manager render` does for a cluster with ServiceMonitors and only TLS 1.3.
func render(t *testing.T, spec mlflowv1.MLflowSpec, changes ...func(*resources.Inputs)) rendered {
	t.Helper()
	m := &mlflowv1.MLflow{Spec: spec}
	m.SetGroupVersionKind(mlflowv1.GroupVersion.WithKind("MLflow"))
	m.Name = mlflowv1.SingletonName
	m.UID = "7f0c2f5e-0000-4000-8000-000000000001"
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m)
	if err != nil {
		t.Fatal(err)
	}
	delete(object, "status")
	settings := mlflow.Settings{Inputs: resources.Inputs{
		Namespace: "opendatahub", Image: "quay.io/example/mlflow:v3", Version: oldest, TLS: tlsprofile.Profile{MinVersion: tls.VersionTLS13},
	}}
	for _, change := range changes {
		change(&settings.Inputs)
	}
	objects, err := mlflow.Render(settings, capability.NewSet(capability.ServiceMonitor), &unstructured.Unstructured{Object: object})
	if err != nil {
		t.Fatal(err)
	}
	return rendered{t, objects}
}

// read decodes an object into a Go type and fails for unknown fields.
func (r rendered) read(kind, name string, into any) {
	r.t.Helper()
	for _, o := range r.objects {
		if o.GetKind() == kind && o.GetName() == name {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, into, true); err != nil {
				r.t.Fatal(err)
			}
			return
		}
	}
	r.t.Fatalf("%s %s was not rendered", kind, name)
}

func (r rendered) server() corev1.PodSpec {
	r.t.Helper()
	var d appsv1.Deployment
	r.read("Deployment", "mlflow", &d)
	return d.Spec.Template.Spec
}

func (r rendered) cronJobPod(name string) corev1.PodSpec {
	r.t.Helper()
	var c batchv1.CronJob
	r.read("CronJob", name, &c)
	return c.Spec.JobTemplate.Spec.Template.Spec
}

func (r rendered) configMap(name string) map[string]string {
	r.t.Helper()
	var c corev1.ConfigMap
	r.read("ConfigMap", name, &c)
	return c.Data
}
