package mlflow

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/test/fakeapi"
	"github.com/odh-platform/odh-platform-operator/test/framework"
	"github.com/odh-platform/odh-platform-operator/test/mlflowtest"
)

// split is everything with a server for artifacts.
func split() *mlflowv1.MLflow {
	m := mlflowtest.MLflow(mlflowtest.WithGarbageCollection, mlflowtest.WithTraceArchival, func(s *mlflowv1.MLflowSpec) {
		s.ServeArtifacts, s.ArtifactsServer = false, &mlflowv1.ArtifactsServerConfig{Enabled: true, Replicas: new(int32(2))}
	})
	m.Generation = 1
	return m
}

// unite switches the server for artifacts of a running MLflow off.
func unite(t testing.TB, s *fakeapi.Server, more ...func(*mlflowv1.MLflow)) {
	t.Helper()
	m := getMLflow(t, s)
	m.Spec.ServeArtifacts, m.Spec.ArtifactsServer.Enabled = true, false
	for _, change := range more {
		change(m)
	}
	if err := s.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

func (w *fixture) reconcileUntilIdle() {
	w.t.Helper()
	for range 20 {
		if _, err := w.once(); err != nil {
			w.t.Fatal(err)
		}
		runWorkloads(w.t, w.server)
	}
}

// [mlflow-82] The deletion of the server for artifacts has the same result if any write fails or the manager crashes after it.
func TestFaultsWhileArtifactsServerTerminates(t *testing.T) {
	scenario(t, func(t testing.TB) *fakeapi.Server {
		s := reconciledServer(t, newServer(t, split()))
		unite(t, s)
		return s
	}).SurvivesFaults(t)
}

// [mlflow-82]
func TestTwoServers(t *testing.T) {
	w := newFixture(t, split())
	w.reconcileUntilIdle()
	m := getMLflow(t, w.server)
	if got := w.condition(ConditionAvailable); got.Status != metav1.ConditionTrue || got.Message != messageBothReady {
		t.Errorf("Available=%s: %s", got.Status, got.Message)
	}
	if want := "https://gateway.apps.example.com/mlflow-artifacts/api/2.0/mlflow-artifacts/artifacts"; m.Status.ArtifactsURL != want {
		t.Errorf("artifactsUrl %q", m.Status.ArtifactsURL)
	}
	route := framework.Unstructured(capability.HTTPRoute, "", "")
	d := &appsv1.Deployment{}
	if !w.get("mlflow-artifacts", d) || *d.Spec.Replicas != 2 || !w.get("mlflow-artifacts", &corev1.Service{}) || !w.get("mlflow-artifacts", route) {
		t.Errorf("Deployment %+v", d.Spec.Replicas)
	}
	before := len(w.server.Writes)
	w.reconcileUntilIdle()
	if rest := w.server.Writes[before:]; len(rest) > 0 {
		t.Errorf("writes at rest: %+v", rest)
	}

	unite(t, w.server)
	w.reconcileUntilIdle()
	for _, gone := range []client.Object{d, &corev1.Service{}} { // routes are listed by a real API server only
		if w.get("mlflow-artifacts", gone) {
			t.Errorf("%T is still there", gone)
		}
	}
	if m := getMLflow(t, w.server); m.Status.ArtifactsURL != "" || w.condition(ConditionAvailable).Message != messageReady {
		t.Errorf("artifactsUrl %q, %s", m.Status.ArtifactsURL, w.condition(ConditionAvailable).Message)
	}
	if !w.get("mlflow", d) || !strings.Contains(strings.Join(d.Spec.Template.Spec.Containers[0].Args, " "), "--serve-artifacts") {
		t.Error("want --serve-artifacts again on the tracking server")
	}
}

// One of the two that is not ready is named. It makes the MLflow unavailable when no pod of it serves. [mlflow-83]
func TestReadinessOfTwoServers(t *testing.T) {
	w := newFixture(t, split())
	w.reconcileUntilIdle()
	for _, step := range []struct {
		serving int32
		want    metav1.ConditionStatus
		message string
	}{
		{1, metav1.ConditionTrue, "MLflow is available; MLflow artifacts deployment not ready: 1/2 replicas ready"},
		{0, metav1.ConditionFalse, "MLflow artifacts deployment not ready: 0/2 replicas ready"},
		{1, metav1.ConditionFalse, "MLflow artifacts deployment not ready: 1/2 replicas ready"},
	} {
		d := &appsv1.Deployment{}
		w.get("mlflow-artifacts", d)
		d.Status.ReadyReplicas, d.Status.AvailableReplicas = step.serving, step.serving
		d.Status.Conditions = nil
		if err := w.server.Status().Update(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		if _, err := w.once(); err != nil {
			t.Fatal(err)
		}
		if c := w.condition(ConditionAvailable); c.Status != step.want || !strings.HasPrefix(c.Message, step.message) {
			t.Errorf("Available=%s: %s", c.Status, c.Message)
		}
		if c := w.condition(ConditionProgressing); c.Status != metav1.ConditionTrue {
			t.Errorf("Progressing=%s: %s", c.Status, c.Message)
		}
	}
}

// A server for artifacts that is disabled while a migration is requested uses the database until it is stopped: the Job waits for
// that, and the Deployment goes after it. [mlflow-84]
func TestMigrationWaitsForTerminatingArtifactsServer(t *testing.T) {
	w := newFixture(t, split())
	w.reconcileUntilIdle()
	unite(t, w.server, func(m *mlflowv1.MLflow) { m.Spec.BackendStoreURI = "postgresql://other/x" })
	d := &appsv1.Deployment{}
	var waited, stopped bool
	for range 20 {
		before := len(migrationJobs(t, w.server))
		if _, err := w.once(); err != nil {
			t.Fatal(err)
		}
		found := w.get("mlflow-artifacts", d)
		if c := w.condition("Migration"); strings.Contains(c.Message, "mlflow=1, mlflow-artifacts=2") {
			waited = true
		}
		if len(migrationJobs(t, w.server)) > before && (!found || *d.Spec.Replicas != 0 || d.Status.Replicas != 0) {
			t.Fatalf("the Job was made while the server for artifacts ran: Deployment found %t, status %+v", found, d.Status)
		}
		stopped = stopped || found && *d.Spec.Replicas == 0
		runWorkloads(t, w.server)
	}
	if !waited || !stopped || w.get("mlflow-artifacts", d) {
		t.Errorf("waited for both %t, stopped first %t, still there %t", waited, stopped, w.get("mlflow-artifacts", d))
	}
	if c := w.condition(ConditionAvailable); c.Status != metav1.ConditionTrue {
		t.Errorf("Available=%s: %s", c.Status, c.Message)
	}
}

// Foreign objects with the names of the server for artifacts stay, and no migration waits for their pods. [mlflow-85]
func TestForeignArtifactsServer(t *testing.T) {
	foreign := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: settings.Namespace, Name: "mlflow-artifacts"},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(1))}, Status: appsv1.DeploymentStatus{Replicas: 1}}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: settings.Namespace, Name: "mlflow-artifacts"}}
	certificate := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: settings.Namespace, Name: "mlflow-artifacts-tls"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: settings.Namespace, Name: "theirs", Labels: map[string]string{"app": "mlflow-artifacts"}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	w := newFixture(t, mlflowWithAllChildren(), foreign, service, certificate, pod)
	w.reconcileUntilIdle()
	if c := w.condition(ConditionAvailable); c.Status != metav1.ConditionTrue {
		t.Errorf("Available=%s: %s", c.Status, c.Message)
	}
	for name, o := range map[string]client.Object{"mlflow-artifacts": foreign, "mlflow-artifacts-tls": certificate} {
		if !w.get(name, o) || len(o.GetOwnerReferences()) > 0 {
			t.Errorf("%T %s: owners %v", o, name, o.GetOwnerReferences())
		}
	}
	if !w.get("mlflow-artifacts", service) || *foreign.Spec.Replicas != 1 {
		t.Errorf("the Deployment has %d replicas", *foreign.Spec.Replicas)
	}
}

// On other clusters than OpenShift each server has a certificate of the operator, and the second is deleted with its server. [mlflow-94]
func TestCertificatesOfTwoServers(t *testing.T) {
	w := newFixture(t, split())
	in := platformInputs["plain"]
	w.inputs = func() resources.Inputs { return in }
	w.reconcileUntilIdle()
	first, second := &corev1.Secret{}, &corev1.Secret{}
	if !w.get("mlflow-tls", first) || !w.get("mlflow-artifacts-tls", second) || string(first.Data["tls.crt"]) == string(second.Data["tls.crt"]) {
		t.Fatal("want different certificates for the tracking server and the artifact server")
	}
	if uid := getMLflow(t, w.server).UID; w.Certificates.AwaitRenewal(uid) == nil || len(w.Certificates.CABundle(uid, "mlflow-artifacts-tls")) == 0 {
		t.Error("the certificate of the artifact server has no renewal timer or no CA")
	}
	unite(t, w.server)
	w.reconcileUntilIdle()
	if !w.get("mlflow-tls", first) || w.get("mlflow-artifacts-tls", second) {
		t.Error("want only the certificate of the artifact server deleted")
	}
}

// Without the HTTPRoute API, no object is created for an MLflow with a server for artifacts. [mlflow-86]
func TestArtifactsServerNeedsRoutes(t *testing.T) {
	w := newFixture(t, split())
	in := platformInputs["bare"]
	w.inputs = func() resources.Inputs { return in }
	if _, err := w.once(); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{ConditionAvailable, ConditionProgressing} {
		if c := w.condition(kind); c.Status != metav1.ConditionFalse || c.Reason != ReasonHTTPRouteFailed || !strings.Contains(c.Message, "install the Gateway API") {
			t.Errorf("unexpected condition %s=%s with reason %s: %s", kind, c.Status, c.Reason, c.Message)
		}
	}
	if made := slices.DeleteFunc(slices.Clone(w.server.Writes), func(w fakeapi.Write) bool { return w.Kind == "MLflow" }); len(made) > 0 {
		t.Errorf("made %+v", made)
	}
}

// [mlflow-87]
func TestArtifactsServerNeedsURL(t *testing.T) {
	w := newFixture(t, split())
	in := platformInputs["plain"]
	in.ExternalURL = ""
	w.inputs = func() resources.Inputs { return in }
	if _, err := w.once(); err != nil {
		t.Fatal(err)
	}
	if c := w.condition(ConditionAvailable); c.Reason != ReasonRenderFailed || !strings.Contains(c.Message, "needs a public URL") {
		t.Errorf("%s: unexpected Message: %s", c.Reason, c.Message)
	}
}

// [mlflow-88]
func TestStoresOfTwoServers(t *testing.T) {
	for name, tc := range map[string]struct {
		data map[string][]byte
		want string // in the message; empty for none
	}{
		"no Secret":            {nil, "spec.backendStoreUriFrom: in namespace opendatahub: Secret db does not exist; create it"},
		"no key":               {map[string][]byte{"other": nil}, "spec.backendStoreUriFrom: in namespace opendatahub: Secret db has no key uri; add it"},
		"SQLite":               {map[string][]byte{"uri": []byte("sqlite:////mlflow/hidden.db")}, "spec.backendStoreUriFrom: key uri of Secret opendatahub/db must hold a postgresql or mysql URI"},
		"missing key":          {map[string][]byte{"uri": nil}, "must hold a postgresql or mysql URI"},
		"another kind":         {map[string][]byte{"uri": []byte("mssql://hidden")}, "must hold a postgresql or mysql URI"},
		"a prefix of a prefix": {map[string][]byte{"uri": []byte("postgresql:hidden")}, "must hold a postgresql or mysql URI"},
		"PostgreSQL":           {map[string][]byte{"uri": []byte("postgresql://a/x")}, ""},
		"MySQL with a driver":  {map[string][]byte{"uri": []byte("mysql+pymysql://a/x")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := split()
			m.Spec.BackendStoreURI, m.Spec.BackendStoreURIFrom = "", mlflowtest.SecretKey("db", "uri")
			m.Spec.BackendStoreURIFrom.Optional = new(true)
			existing := []client.Object{m}
			if tc.data != nil {
				existing = append(existing, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: settings.Namespace, Name: "db"}, Data: tc.data})
			}
			w := newFixture(t, existing...)
			if _, err := w.once(); err != nil {
				t.Fatal(err)
			}
			c := w.condition(ConditionAvailable)
			if tc.want == "" {
				if c.Reason == ReasonMetadataStore {
					t.Errorf("refused: %s", c.Message)
				}
				return
			}
			if c.Status != metav1.ConditionFalse || c.Reason != ReasonMetadataStore || !strings.Contains(c.Message, tc.want) || strings.Contains(c.Message, "hidden") {
				t.Errorf("Available=%s %s: %s", c.Status, c.Reason, c.Message)
			}
			if w.condition(ConditionProgressing).Status != metav1.ConditionFalse || w.get("mlflow", &appsv1.Deployment{}) {
				t.Error("want Progressing False and no Deployment")
			}
		})
	}
}

// A Secret is read once per version. A failed read changes no condition. [mlflow-88]
func TestStoresAreReadOnce(t *testing.T) {
	reads, broken := 0, error(nil)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db"}, Data: map[string][]byte{"uri": []byte("mysql://a/x")}}
	server := fake.NewClientBuilder().WithObjects(secret).Build()
	live := interceptor.NewClient(server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			reads++
			if broken != nil {
				return broken
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	r := &mlflowReconciler{stores: newStoreCache(server, live)}
	expectCondition := func(want string) {
		t.Helper()
		problem, err := r.checkStore(t.Context(), "ns", resources.Store{Field: "backendStoreUri", From: mlflowtest.SecretKey("db", "uri")})
		if !errors.Is(err, broken) || !strings.Contains(problem, want) || want == "" && problem != "" {
			t.Errorf("problem %q, error %v", problem, err)
		}
	}
	expectCondition("")
	expectCondition("")
	if reads != 1 {
		t.Errorf("%d reads of one version", reads)
	}
	secret.Data["uri"] = []byte("sqlite:///x")
	if err := server.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	expectCondition("must hold a postgresql or mysql URI")
	expectCondition("must hold a postgresql or mysql URI")
	if reads != 2 {
		t.Errorf("%d reads of two versions", reads)
	}
	if err := server.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	broken = errors.New("no answer")
	expectCondition("")
	if reads != 3 {
		t.Errorf("%d reads", reads)
	}
}

// If a Gateway rejects one of the routes, the URL of that route is removed. [mlflow-89]
func TestRejectedArtifactsRoute(t *testing.T) {
	m := split()
	m.Status.URL, m.Status.ArtifactsURL = "https://a/mlflow", "https://a/mlflow-artifacts"
	if clearURL(m, "mlflow-artifacts"); m.Status.ArtifactsURL != "" || m.Status.URL == "" {
		t.Errorf("status %+v", m.Status)
	}
	if clearURL(m, "mlflow"); m.Status.URL != "" {
		t.Errorf("status %+v", m.Status)
	}
	w := newFixture(t, split())
	w.refuse = func(kind, name string) error {
		if kind == "HTTPRoute" && name == "mlflow-artifacts" {
			return errors.New("no room")
		}
		return nil
	}
	for range 8 {
		_, _ = w.once()
		runWorkloads(t, w.server)
	}
	if c, found := conditions.Get(getMLflow(t, w.server).Status.Conditions, ConditionRoute); !found || c.Reason != ReasonHTTPRouteFailed || !strings.Contains(c.Message, "no room") {
		t.Errorf("condition %+v", c)
	}
	if s := getMLflow(t, w.server).Status; s.ArtifactsURL != "" || s.URL == "" {
		t.Errorf("urls %q and %q", s.URL, s.ArtifactsURL)
	}
}
