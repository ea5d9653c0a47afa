package artifactstore

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	mlflowconfigv1 "github.com/odh-platform/odh-platform-operator/apis/mlflowconfig/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

func configOf(namespace string) *mlflowconfigv1.MLflowConfig {
	return &mlflowconfigv1.MLflowConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: mlflowconfigv1.Name, Generation: 3, UID: "u"},
		Spec:       mlflowconfigv1.MLflowConfigSpec{ArtifactRootSecret: artifactSecret},
	}
}

// [mlflow-98]
func TestReport(t *testing.T) {
	both := mlflowconfigv1.MLflowConfigSpec{ArtifactRootSecret: artifactSecret, ArchiveRootSecret: archiveSecret, TraceArchivalRetention: "7d"}
	for name, tc := range map[string]struct {
		spec    mlflowconfigv1.MLflowConfigSpec // only artifactRootSecret if empty
		data    map[string][]byte
		status  metav1.ConditionStatus
		reason  string
		message string
	}{
		"no Secret": {mlflowconfigv1.MLflowConfigSpec{}, nil, metav1.ConditionFalse, reference.ReasonMissing,
			"In namespace team: Secret mlflow-artifact-connection does not exist; create it; until then artifacts go to the bucket of the server"},
		"no bucket": {mlflowconfigv1.MLflowConfigSpec{}, map[string][]byte{"AWS_ACCESS_KEY_ID": nil}, metav1.ConditionFalse, reference.ReasonMissing,
			"In namespace team: Secret mlflow-artifact-connection has no key AWS_S3_BUCKET; add it; until then artifacts go to the bucket of the server"},
		"empty name of the bucket": {mlflowconfigv1.MLflowConfigSpec{}, map[string][]byte{bucketKey: {}}, metav1.ConditionFalse, reference.ReasonMissing,
			"In namespace team: Secret mlflow-artifact-connection has no value for key AWS_S3_BUCKET; set it; until then artifacts go to the bucket of the server"},
		"bucket": {mlflowconfigv1.MLflowConfigSpec{}, map[string][]byte{bucketKey: []byte("b")}, metav1.ConditionTrue, ReasonFound, "Secret mlflow-artifact-connection names a bucket"},
		"no archive Secret": {both, map[string][]byte{bucketKey: []byte("b")}, metav1.ConditionFalse, reference.ReasonMissing,
			"In namespace team: Secret mlflow-archive-secret does not exist; create it; until then archived traces go to the bucket of the server"},
		"neither Secret": {both, nil, metav1.ConditionFalse, reference.ReasonMissing,
			"In namespace team: Secret mlflow-archive-secret does not exist; create it; Secret mlflow-artifact-connection does not exist; create it; " +
				"until then artifacts and archived traces go to the bucket of the server"},
		"only a retention": {mlflowconfigv1.MLflowConfigSpec{TraceArchivalRetention: "7d"}, nil, metav1.ConditionTrue, ReasonFound,
			"No Secret is configured; artifacts and archived traces go to the buckets of the server"},
	} {
		b := fake.NewClientBuilder().WithObjects(
			// The Secret of another namespace is ignored.
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: artifactSecret}, Data: map[string][]byte{bucketKey: nil}})
		if tc.data != nil {
			b.WithObjects(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: artifactSecret}, Data: tc.data})
		}
		c := b.Build()
		config := configOf("team")
		if tc.spec != (mlflowconfigv1.MLflowConfigSpec{}) {
			config.Spec = tc.spec
		}
		if err := (&configReconciler{references: reference.NewTracker(c, c)}).report(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		got, _ := conditions.Get(config.Status.Conditions, reference.Condition)
		if got.Status != tc.status || got.Reason != tc.reason || got.Message != tc.message || got.ObservedGeneration != 3 {
			t.Errorf("%s: got condition %+v, want the expected status, reason and message for generation 3", name, got)
		}
	}
}

// If a Secret cannot be read, the condition does not change. [mlflow-98]
func TestReportReturnsReadError(t *testing.T) {
	refused := errors.New("refused")
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return refused
		},
	}).Build()
	config := configOf("team")
	if err := (&configReconciler{references: reference.NewTracker(c, c)}).report(t.Context(), config); !errors.Is(err, refused) {
		t.Errorf("got error %v", err)
	}
	if len(config.Status.Conditions) != 0 {
		t.Errorf("got conditions %+v", config.Status.Conditions)
	}
}
