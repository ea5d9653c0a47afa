package mlflow

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/apis/server"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/test/mlflowtest"
)

// [D19] The references contain the Secrets and ConfigMaps that pods read only when they start.
func TestReferences(t *testing.T) {
	m := &mlflowv1.MLflow{}
	always := []reference.Reference{
		{Kind: reference.ConfigMap, Name: "odh-trusted-ca-bundle", Optional: true},
		{Kind: reference.Secret, Name: "mlflow-tls", Keys: []string{"tls.crt", "tls.key"}},
	}
	if diff := cmp.Diff(always, reference.Merge(references(m, resources.Servers(m)...))); diff != "" {
		t.Errorf("references without user settings (-want +got):\n%s", diff)
	}

	m.Spec.BackendStoreURIFrom = mlflowtest.SecretKey("db", "uri")
	m.Spec.RegistryStoreURIFrom = mlflowtest.SecretKey("db", "registry")
	m.Spec.ReadReplicaBackendStoreURIFrom = mlflowtest.SecretKey("replica", "uri")
	m.Spec.Env = []corev1.EnvVar{{Name: "TOKEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: mlflowtest.SecretKey("token", "t")}}}
	m.Spec.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "s3"}}}}
	m.Spec.CABundleConfigMap = &mlflowv1.CABundleConfigMapRef{Name: "corporate"}
	want := []reference.Reference{
		{Kind: reference.ConfigMap, Name: "corporate"},
		{Kind: reference.ConfigMap, Name: "odh-trusted-ca-bundle", Optional: true},
		{Kind: reference.Secret, Name: "db", Keys: []string{"registry", "uri"}},
		{Kind: reference.Secret, Name: "mlflow-tls", Keys: []string{"tls.crt", "tls.key"}},
		{Kind: reference.Secret, Name: "replica", Keys: []string{"uri"}},
		{Kind: reference.Secret, Name: "s3"},
		{Kind: reference.Secret, Name: "token", Keys: []string{"t"}},
	}
	if diff := cmp.Diff(want, reference.Merge(references(m, resources.Servers(m)...))); diff != "" {
		t.Errorf("references differ (-want +got):\n%s", diff)
	}
	for _, r := range want {
		if !consumes(m, r.Kind, r.Name) {
			t.Errorf("consumes(%s) = false", r.ID())
		}
	}
	if consumes(m, reference.ConfigMap, "db") || consumes(m, reference.Secret, "other") {
		t.Error("consumes is true for objects that no pod consumes")
	}
}

// A Deployment without the operator label is not in the cache. Its stored hash is still kept until a referenced object changes. [D19]
func TestRolloutHashOfUncachedDeployment(t *testing.T) {
	m := observedMLflow()
	m.Status.Conditions = []metav1.Condition{{Type: "Available", Status: metav1.ConditionTrue}}
	m.Spec.BackendStoreURI = ""
	m.Spec.BackendStoreURIFrom = &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}, Key: "uri"}
	db := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "opendatahub", Name: "db", ResourceVersion: "1"}, Data: map[string][]byte{"uri": []byte("a")}}
	hashOf := func(r *mlflowReconciler) reference.RolloutHash {
		t.Helper()
		hashes, err := r.rolloutHashes(t.Context(), m, "opendatahub")
		if err != nil {
			t.Fatal(err)
		}
		return hashes["mlflow"]
	}
	first := hashOf(newObserver(t, nil, db))
	if first.Hashes == "" || first.Rollout != "" {
		t.Fatalf("hash of a new Deployment: %+v", first)
	}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "opendatahub", Name: "mlflow"}}
	d.Annotations = map[string]string{reference.HashesAnnotation: first.Hashes}
	d.Spec.Template.Annotations = map[string]string{reference.RolloutAnnotation: "previous"}
	for name, tc := range map[string]struct {
		uri       string
		unchanged bool
	}{"unchanged Secret": {"a", true}, "changed Secret": {"b", false}} {
		secret := db.DeepCopy()
		secret.Data["uri"] = []byte(tc.uri)
		r := newObserver(t, nil, secret)
		r.APIReader = newObserver(t, nil, secret, d).APIReader
		if got := hashOf(r); (got.Rollout == "previous") != tc.unchanged || got.Rollout == "" || (got.Hashes == first.Hashes) != tc.unchanged {
			t.Errorf("%s: got %+v, want the stored rollout hash only if the references are unchanged", name, got)
		}
	}
}

// A missing object that the spec references is reported before pods fail.
func TestMissingReferences(t *testing.T) {
	m := mlflowtest.MLflow(func(s *mlflowv1.MLflowSpec) {
		s.BackendStoreURI, s.BackendStoreURIFrom = "", mlflowtest.SecretKey("db", "uri")
		optional := mlflowtest.SecretKey("db", "options")
		optional.Optional = new(true)
		s.Env = []corev1.EnvVar{{Name: "OPTIONS", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: optional}}}
		s.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "files"}}}}
		s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}}
		s.Volumes = []server.Volume{{Name: "a", ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "files"}}}}
	})
	secret := func(name, key string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "opendatahub", Name: name}, Data: map[string][]byte{key: []byte("x")}}
	}
	files := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "opendatahub", Name: "files"}}
	for name, c := range map[string]struct {
		objects []client.Object
		want    []string
	}{
		"no objects exist": {nil, []string{"ReferencesReady=False ReferencesMissing: In namespace opendatahub: ConfigMap files does not exist; create it; Secret db does not exist; create it; Secret pull does not exist; create it"}},
		"key is missing": {[]client.Object{secret("db", "url"), secret("pull", "x"), files},
			[]string{"ReferencesReady=False ReferencesMissing: In namespace opendatahub: Secret db has no key uri; add it"}},
		"all objects exist": {[]client.Object{secret("db", "uri"), secret("pull", "x"), files}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := m.DeepCopy()
			setCondition(m, reference.Condition, metav1.ConditionFalse, reference.ReasonMissing, "previous")
			if _, err := newObserver(t, nil, c.objects...).rolloutHashes(t.Context(), m, "opendatahub"); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, stateOf(m)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
	if !consumes(m, reference.Secret, "pull") || consumes(m, reference.ConfigMap, "pull") || !consumes(m, reference.ConfigMap, "files") {
		t.Error("want the Secret pull and the ConfigMap files consumed, and no ConfigMap pull")
	}
}
