package peers

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	certutil "k8s.io/client-go/util/cert"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
)

const kserveNamespace = "kserve"

// kserveDeploy configures KServe to serve models with Deployments, because Knative is not installed.
const kserveDeploy = `{"defaultDeploymentMode": "Standard"}`

// StartKServe runs the controller of KServe with its shipped role and, except for kserveDeploy, its shipped configuration. It installs no
// webhooks, because cert-manager would issue their certificate.
func StartKServe(ctx context.Context, instance *cluster.Instance, progress io.Writer) (*cluster.Process, error) {
	files, err := cluster.PeerDir(ctx, cluster.KServeController)
	if err != nil {
		return nil, err
	}
	config, err := operator.Kustomize(filepath.Join(files, "config", "configmap"))
	if err != nil {
		return nil, err
	}
	for _, object := range config {
		object.SetNamespace(kserveNamespace)
		if err := unstructured.SetNestedField(object.Object, kserveDeploy, "data", "deploy"); err != nil {
			return nil, fmt.Errorf("changing ConfigMap %s: %w", object.GetName(), err)
		}
	}
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	namespace.SetName(kserveNamespace)
	return start(ctx, instance, peer{
		name: cluster.KServeController, drop: needsCertManager, add: append(config, namespace), args: kserveArgs,
		env: func(l *launch) []string { return []string{"TMPDIR=" + l.dir} },
	}, progress)
}

// needsCertManager reports whether an object belongs to cert-manager or needs its CA injection.
func needsCertManager(object *unstructured.Unstructured) bool {
	return slices.Contains([]string{"Certificate", "Issuer", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}, object.GetKind())
}

// kserveArgs returns the arguments of KServe. It writes a webhook certificate below TMPDIR, because KServe does not start without one.
func kserveArgs(l *launch) ([]string, error) {
	certificate, key, err := certutil.GenerateSelfSignedCertKey("kserve-webhook-server-service.kserve.svc", nil, nil)
	if err != nil {
		return nil, fmt.Errorf("issuing a certificate: %w", err)
	}
	dir := filepath.Join("k8s-webhook-server", "serving-certs")
	if err := os.MkdirAll(filepath.Join(l.dir, dir), 0o755); err != nil {
		return nil, fmt.Errorf("creating the folder of certificates: %w", err)
	}
	for name, content := range map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key} {
		if _, err := l.write(filepath.Join(dir, name), content); err != nil {
			return nil, err
		}
	}
	return []string{
		"--metrics-addr=" + l.metrics, "--health-probe-addr=" + l.health, "--leader-elect=false", fmt.Sprintf("--webhook-port=%d", l.installed.WebhookPort),
	}, nil
}
