package mlflow

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/test/mlflowtest"
)

func withMode(mode mlflowv1.TLSMode) func(*mlflowv1.MLflowSpec) {
	return func(s *mlflowv1.MLflowSpec) { s.TLS = &mlflowv1.TLSConfig{Mode: mode} }
}

func TestCertificateIsIssued(t *testing.T) {
	for name, c := range map[string]struct {
		m        *mlflowv1.MLflow
		platform string
		issued   bool
	}{
		"no spec.tls":            {mlflowtest.MLflow(), "plain", true},
		"empty mode":             {mlflowtest.MLflow(withMode("")), "plain", true},
		"automatic":              {mlflowtest.MLflow(withMode(mlflowv1.TLSAutomatic)), "plain", true},
		"provided":               {mlflowtest.MLflow(withMode(mlflowv1.TLSProvided)), "plain", false},
		"on OpenShift":           {mlflowtest.MLflow(), "openshift", false},
		"on OpenShift, provided": {mlflowtest.MLflow(withMode(mlflowv1.TLSProvided)), "openshift", false},
	} {
		t.Run(name, func(t *testing.T) {
			w, in, secret := newFixture(t, c.m), platformInputs[c.platform], &corev1.Secret{}
			w.inputs = func() resources.Inputs { return in }
			if err := w.reconcileCertificates(t.Context(), c.m); err != nil {
				t.Fatal(err)
			}
			if w.get(resources.TLSSecretName, secret) != c.issued {
				t.Fatalf("certificate issued: %t, want %t", !c.issued, c.issued)
			}
			if !c.issued {
				return
			}
			if secret.Type != corev1.SecretTypeTLS || !metav1.IsControlledBy(secret, c.m) || secret.Labels[resources.LabelApp] != "mlflow" || len(secret.Data) != 3 {
				t.Errorf("got type %s, owners %v, labels %v, %d keys", secret.Type, secret.OwnerReferences, secret.Labels, len(secret.Data))
			}
		})
	}
}

func TestCertificateErrors(t *testing.T) {
	w, m := newFixture(t), mlflowtest.MLflow()
	readErr := errors.New("connection refused")
	w.Certificates.Live = fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return readErr
		},
	}).Build()
	w.inputs = func() resources.Inputs { return platformInputs["plain"] }
	err := w.reconcileCertificates(t.Context(), m)
	if c, _ := conditions.Get(m.Status.Conditions, ConditionCertificate); !errors.Is(err, readErr) || c.Reason != ReasonCertificateFailed {
		t.Errorf("got error %v, condition %+v", err, c)
	}
}
