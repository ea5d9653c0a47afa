package resources

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
)

func TestBuildEtcdSecret(t *testing.T) {
	namespace := &corev1.Namespace{}
	namespace.Name, namespace.UID = "vision", "1"
	s := decode[corev1.Secret](t, renderObject(t, namespace, apply.Object{
		Config: BuildEtcdSecret("model-serving-etcd", "vision", map[string][]byte{"etcd_connection": []byte("{}")}), Ownership: apply.Unowned,
	}))
	if s.Labels["app.kubernetes.io/managed-by"] != "modelmesh-controller" || string(s.Data["etcd_connection"]) != "{}" || s.Name != "model-serving-etcd" {
		t.Errorf("Secret %+v, want its name, label and connection", s)
	}
}
