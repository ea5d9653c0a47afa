package certificates

import (
	"encoding/base64"
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
	"github.com/odh-platform/odh-platform-operator/test/raytest"
)

// The golden file contains the Secrets of a RayCluster with keys, types, labels and owners, but without random values.
func TestSecretsGolden(t *testing.T) {
	f, cluster := newFixture(t), demo(t)
	mode := byOperator
	mode.Auth = raycluster.AuthProxy
	f.mustReconcile(cluster, mode)
	var objects []*unstructured.Unstructured
	for _, name := range planCertificates(raycluster.View(cluster.Object), f.inputs(mode)).secretNames() {
		secret := f.secret(name)
		secret.SetGroupVersionKind(secretGVK)
		for key := range secret.Data {
			secret.Data[key] = []byte("PEM")
		}
		secret.Annotations[AnnotationSummary] = regexp.MustCompile(`^[0-9a-f]{64} `).ReplaceAllString(secret.Annotations[AnnotationSummary], "hash ")
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(secret)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, &unstructured.Unstructured{Object: fields})
	}
	if len(objects) != 4 || objects[0].Object["data"].(map[string]any)["ca.crt"] != base64.StdEncoding.EncodeToString([]byte("PEM")) {
		t.Fatalf("got %d Secrets, want 4 with PEM data", len(objects))
	}
	framework.Golden(t, "testdata/secrets.yaml", objects)
}

// The golden file contains the Certificates for cert-manager.
func TestCertificatesGolden(t *testing.T) {
	pods := []corev1.Pod{*raytest.Pod("h", raycluster.NodeTypeHead, "u", "10.0.0.1", "fd00::1"), *raytest.Pod("w", raycluster.NodeTypeWorker, "u", "10.0.0.2")}
	issuer := config.Issuer{Name: "team-ca", Kind: "ClusterIssuer", Group: "cert-manager.io"}
	var objects []*unstructured.Unstructured
	for _, leaf := range planCertificates(raycluster.View(demo(t).Object), Inputs{
		RayCluster: config.DefaultRayCluster(), Mode: byCertManager, Domain: "apps.example.org", CertManager: true, Pods: pods,
	}).leaves {
		raw, err := marshalJSON(buildCertificate(raycluster.View(demo(t).Object), leaf, issuer))
		u := &unstructured.Unstructured{}
		if err != nil || u.UnmarshalJSON(raw) != nil {
			t.Fatal(err)
		}
		objects = append(objects, u)
	}
	framework.Golden(t, "testdata/cert-manager.yaml", objects)
}
