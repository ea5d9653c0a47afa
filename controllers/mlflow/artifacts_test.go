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

// mlflowWithArtifactsServer returns an MLflow with a separate artifacts server, garbage collection and trace archival.
func mlflowWithArtifactsServer() *mlflowv1.MLflow {
	m := mlflowtest.MLflow(mlflowtest.WithGarbageCollection, mlflowtest.WithTraceArchival, func(s *mlflowv1.MLflowSpec) {
		s.ServeArtifacts, s.ArtifactsServer = false, &mlflowv1.ArtifactsServerConfig{Enabled: true, Replicas: new(int32(2))}
	})
	m.Generation = 1
	return m
}

// disableArtifactsServer disables the artifacts server of a running MLflow.
func disableArtifactsServer(t testing.TB, s *fakeapi.Server, more ...func(*mlflowv1.MLflow)) {
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

// reconcileWithWorkloads reconciles 20 times. After each reconcile, the replicas of Deployments become ready, and Jobs succeed.
func (w *fixture) reconcileWithWorkloads() {
	w.t.Helper()
	for range 20 {
		if _, err := w.reconcileOnce(); err != nil {
			w.t.Fatal(err)
		}
		runWorkloads(w.t, w.server)
	}
}

// [mlflow-82] The artifacts server is deleted even if any write fails or the manager crashes after it.
func TestFaultsWhileArtifactsServerIsDeleted(t *testing.T) {
	scenario(t, func(t testing.TB) *fakeapi.Server {
		s := reconciledServer(t, newServer(t, mlflowWithArtifactsServer()))
		disableArtifactsServer(t, s)
		return s
	}).SurvivesFaults(t)
}

// [mlflow-82]
func TestArtifactsServerLifecycle(t *testing.T) {
	w := newFixture(t, mlflowWithArtifactsServer())
	w.reconcileWithWorkloads()
	m := getMLflow(t, w.server)
	if got := w.condition(ConditionAvailable); got.Status != metav1.ConditionTrue || got.Message != messageBothReady {
		t.Errorf("Available=%s: %s", got.Status, got.Message)
	}
	if want := "https://gateway.apps.example.com/mlflow-artifacts/api/2.0/mlflow-artifacts/artifacts"; m.Status.ArtifactsURL != want {
		t.Errorf("got artifactsUrl %q", m.Status.ArtifactsURL)
	}
	route := framework.Unstructured(capability.HTTPRoute, "", "")
	d := &appsv1.Deployment{}
	if !w.get("mlflow-artifacts", d) || *d.Spec.Replicas != 2 || !w.get("mlflow-artifacts", &corev1.Service{}) || !w.get("mlflow-artifacts", route) {
		t.Error("want a Deployment with 2 replicas, a Service and an HTTPRoute of the artifacts server")
	}
	before := len(w.server.Writes)
	w.reconcileWithWorkloads()
	if writes := w.server.Writes[before:]; len(writes) > 0 {
		t.Errorf("writes in the steady state: %+v", writes)
	}

	disableArtifactsServer(t, w.server)
	w.reconcileWithWorkloads()
	for _, deleted := range []client.Object{d, &corev1.Service{}} { // the fake API server does not list routes
		if w.get("mlflow-artifacts", deleted) {
			t.Errorf("%T was not deleted", deleted)
		}
	}
	if m := getMLflow(t, w.server); m.Status.ArtifactsURL != "" || w.condition(ConditionAvailable).Message != messageReady {
		t.Errorf("got artifactsUrl %q, %s", m.Status.ArtifactsURL, w.condition(ConditionAvailable).Message)
	}
	if !w.get("mlflow", d) || !strings.Contains(strings.Join(d.Spec.Template.Spec.Containers[0].Args, " "), "--serve-artifacts") {
		t.Error("want --serve-artifacts again on the tracking server")
	}
}

// The message names the server that is not ready. Available becomes False when that server has no ready pod, and stays False until all its
// pods are ready. [mlflow-83]
func TestReadinessOfTwoServers(t *testing.T) {
	w := newFixture(t, mlflowWithArtifactsServer())
	w.reconcileWithWorkloads()
	for _, step := range []struct {
		readyReplicas int32
		available     metav1.ConditionStatus
		message       string
	}{
		{1, metav1.ConditionTrue, "MLflow is available; MLflow artifacts deployment not ready: 1/2 replicas ready"},
		{0, metav1.ConditionFalse, "MLflow artifacts deployment not ready: 0/2 replicas ready"},
		{1, metav1.ConditionFalse, "MLflow artifacts deployment not ready: 1/2 replicas ready"},
	} {
		d := &appsv1.Deployment{}
		w.get("mlflow-artifacts", d)
		d.Status.ReadyReplicas, d.Status.AvailableReplicas = step.readyReplicas, step.readyReplicas
		d.Status.Conditions = nil
		if err := w.server.Status().Update(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		if _, err := w.reconcileOnce(); err != nil {
			t.Fatal(err)
		}
		if c := w.condition(ConditionAvailable); c.Status != step.available || !strings.HasPrefix(c.Message, step.message) {
			t.Errorf("Available=%s: %s", c.Status, c.Message)
		}
		if c := w.condition(ConditionProgressing); c.Status != metav1.ConditionTrue {
			t.Errorf("Progressing=%s: %s", c.Status, c.Message)
		}
	}
}

// The migration Job waits until a disabled artifacts server is scaled to zero. The Deployment is deleted after the migration.
// [mlflow-84]
func TestMigrationWaitsForDisabledArtifactsServer(t *testing.T) {
	w := newFixture(t, mlflowWithArtifactsServer())
	w.reconcileWithWorkloads()
	disableArtifactsServer(t, w.server, func(m *mlflowv1.MLflow) { m.Spec.BackendStoreURI = "postgresql://other/x" })
	d := &appsv1.Deployment{}
	var reportedBoth, scaledDown bool
	for range 20 {
		before := len(migrationJobs(t, w.server))
		if _, err := w.reconcileOnce(); err != nil {
			t.Fatal(err)
		}
		found := w.get("mlflow-artifacts", d)
		if c := w.condition("Migration"); strings.Contains(c.Message, "mlflow=1, mlflow-artifacts=2") {
			reportedBoth = true
		}
		if len(migrationJobs(t, w.server)) > before && (!found || *d.Spec.Replicas != 0 || d.Status.Replicas != 0) {
			t.Fatalf("the Job was created while the artifacts server was running: Deployment found %t, status %+v", found, d.Status)
		}
		scaledDown = scaledDown || found && *d.Spec.Replicas == 0
		runWorkloads(t, w.server)
	}
	if !reportedBoth || !scaledDown || w.get("mlflow-artifacts", d) {
		t.Errorf("waited for both servers: %t, scaled down first: %t, Deployment exists: %t", reportedBoth, scaledDown, w.get("mlflow-artifacts", d))
	}
	if c := w.condition(ConditionAvailable); c.Status != metav1.ConditionTrue {
		t.Errorf("Available=%s: %s", c.Status, c.Message)
	}
}

// Foreign objects with the names of the artifacts server are kept, and the migration does not wait for their pods. [mlflow-85]
func TestForeignArtifactsServer(t *testing.T) {
	foreign := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: settings.Namespace, Name: "mlflow-artifacts"},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(1))}, Status: appsv1.DeploymentStatus{Replicas: 1}}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: settings.Namespace, Name: "mlflow-artifacts"}}
	certificate := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: settings.Namespace, Name: "mlflow-artifacts-tls"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: settings.Namespace, Name: "foreign", Labels: map[string]string{"app": "mlflow-artifacts"}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	w := newFixture(t, mlflowWithAllChildren(), foreign, service, certificate, pod)
	w.reconcileWithWorkloads()
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

// On clusters other than OpenShift, the operator issues a certificate for each server and deletes it with the server. [mlflow-94]
func TestCertificatesOfTwoServers(t *testing.T) {
	w := newFixture(t, mlflowWithArtifactsServer())
	in := platformInputs["plain"]
	w.inputs = func() resources.Inputs { return in }
	w.reconcileWithWorkloads()
	first, second := &corev1.Secret{}, &corev1.Secret{}
	if !w.get("mlflow-tls", first) || !w.get("mlflow-artifacts-tls", second) || string(first.Data["tls.crt"]) == string(second.Data["tls.crt"]) {
		t.Fatal("want different certificates for the tracking server and the artifacts server")
	}
	if uid := getMLflow(t, w.server).UID; w.Certificates.AwaitRenewal(uid) == nil || len(w.Certificates.CABundle(uid, "mlflow-artifacts-tls")) == 0 {
		t.Error("the certificate of the artifacts server has no renewal timer or no CA")
	}
	disableArtifactsServer(t, w.server)
	w.reconcileWithWorkloads()
	if !w.get("mlflow-tls", first) || w.get("mlflow-artifacts-tls", second) {
		t.Error("want only the certificate of the artifacts server deleted")
	}
}

// Without the HTTPRoute API, no object is created for an MLflow with an artifacts server. [mlflow-86]
func TestArtifactsServerNeedsHTTPRouteAPI(t *testing.T) {
	w := newFixture(t, mlflowWithArtifactsServer())
	in := platformInputs["bare"]
	w.inputs = func() resources.Inputs { return in }
	if _, err := w.reconcileOnce(); err != nil {
		t.Fatal(err)
	}
	for _, conditionType := range []string{ConditionAvailable, ConditionProgressing} {
		if c := w.condition(conditionType); c.Status != metav1.ConditionFalse || c.Reason != ReasonHTTPRouteFailed || !strings.Contains(c.Message, "install the Gateway API") {
			t.Errorf("unexpected condition %s=%s with reason %s: %s", conditionType, c.Status, c.Reason, c.Message)
		}
	}
	if writes := slices.DeleteFunc(slices.Clone(w.server.Writes), func(w fakeapi.Write) bool { return w.Kind == "MLflow" }); len(writes) > 0 {
		t.Errorf("unexpected writes: %+v", writes)
	}
}

// [mlflow-87]
func TestArtifactsServerNeedsURL(t *testing.T) {
	w := newFixture(t, mlflowWithArtifactsServer())
	in := platformInputs["plain"]
	in.ExternalURL = ""
	w.inputs = func() resources.Inputs { return in }
	if _, err := w.reconcileOnce(); err != nil {
		t.Fatal(err)
	}
	if c := w.condition(ConditionAvailable); c.Reason != ReasonRenderFailed || !strings.Contains(c.Message, "needs a public URL") {
		t.Errorf("unexpected reason %s: %s", c.Reason, c.Message)
	}
}

// [mlflow-88]
func TestArtifactsServerNeedsSharedStores(t *testing.T) {
	for name, tc := range map[string]struct {
		data map[string][]byte
		want string // in the message; empty for none
	}{
		"no Secret":            {nil, "spec.backendStoreUriFrom: in namespace opendatahub: Secret db does not exist; create it"},
		"no key":               {map[string][]byte{"other": nil}, "spec.backendStoreUriFrom: in namespace opendatahub: Secret db has no key uri; add it"},
		"SQLite":               {map[string][]byte{"uri": []byte("sqlite:////mlflow/hidden.db")}, "spec.backendStoreUriFrom: key uri of Secret opendatahub/db must hold a postgresql or mysql URI"},
		"empty value":          {map[string][]byte{"uri": nil}, "must hold a postgresql or mysql URI"},
		"unsupported database": {map[string][]byte{"uri": []byte("mssql://hidden")}, "must hold a postgresql or mysql URI"},
		"incomplete scheme":    {map[string][]byte{"uri": []byte("postgresql:hidden")}, "must hold a postgresql or mysql URI"},
		"PostgreSQL":           {map[string][]byte{"uri": []byte("postgresql://a/x")}, ""},
		"MySQL with a driver":  {map[string][]byte{"uri": []byte("mysql+pymysql://a/x")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := mlflowWithArtifactsServer()
			m.Spec.BackendStoreURI, m.Spec.BackendStoreURIFrom = "", mlflowtest.SecretKey("db", "uri")
			m.Spec.BackendStoreURIFrom.Optional = new(true)
			existing := []client.Object{m}
			if tc.data != nil {
				existing = append(existing, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: settings.Namespace, Name: "db"}, Data: tc.data})
			}
			w := newFixture(t, existing...)
			if _, err := w.reconcileOnce(); err != nil {
				t.Fatal(err)
			}
			c := w.condition(ConditionAvailable)
			if tc.want == "" {
				if c.Reason == ReasonMetadataStore {
					t.Errorf("the store was rejected: %s", c.Message)
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

// A Secret is read once per version. A failed read returns the error and no problem. [mlflow-88]
func TestStoresAreReadOncePerVersion(t *testing.T) {
	reads, readErr := 0, error(nil)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db"}, Data: map[string][]byte{"uri": []byte("mysql://a/x")}}
	server := fake.NewClientBuilder().WithObjects(secret).Build()
	live := interceptor.NewClient(server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			reads++
			if readErr != nil {
				return readErr
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	r := &mlflowReconciler{stores: newStoreCache(server, live)}
	expectProblem := func(want string) {
		t.Helper()
		problem, err := r.checkStore(t.Context(), "ns", resources.Store{Field: "backendStoreUri", From: mlflowtest.SecretKey("db", "uri")})
		if !errors.Is(err, readErr) || !strings.Contains(problem, want) || want == "" && problem != "" {
			t.Errorf("got problem %q, error %v", problem, err)
		}
	}
	expectProblem("")
	expectProblem("")
	if reads != 1 {
		t.Errorf("%d reads of one version", reads)
	}
	secret.Data["uri"] = []byte("sqlite:///x")
	if err := server.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	expectProblem("must hold a postgresql or mysql URI")
	expectProblem("must hold a postgresql or mysql URI")
	if reads != 2 {
		t.Errorf("%d reads of two versions", reads)
	}
	if err := server.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	readErr = errors.New("connection refused")
	expectProblem("")
	if reads != 3 {
		t.Errorf("%d reads", reads)
	}
}

// If the HTTPRoute of one server cannot be written, the URL of that server is removed. [mlflow-89]
func TestUnwrittenRouteRemovesURL(t *testing.T) {
	m := mlflowWithArtifactsServer()
	m.Status.URL, m.Status.ArtifactsURL = "https://a/mlflow", "https://a/mlflow-artifacts"
	if clearURL(m, "mlflow-artifacts"); m.Status.ArtifactsURL != "" || m.Status.URL == "" {
		t.Errorf("got status %+v", m.Status)
	}
	if clearURL(m, "mlflow"); m.Status.URL != "" {
		t.Errorf("got status %+v", m.Status)
	}
	w := newFixture(t, mlflowWithArtifactsServer())
	w.refuse = func(kind, name string) error {
		if kind == "HTTPRoute" && name == "mlflow-artifacts" {
			return errors.New("quota exceeded")
		}
		return nil
	}
	for range 8 {
		_, _ = w.reconcileOnce()
		runWorkloads(t, w.server)
	}
	if c, found := conditions.Get(getMLflow(t, w.server).Status.Conditions, ConditionRoute); !found || c.Reason != ReasonHTTPRouteFailed || !strings.Contains(c.Message, "quota exceeded") {
		t.Errorf("got condition %+v", c)
	}
	if s := getMLflow(t, w.server).Status; s.ArtifactsURL != "" || s.URL == "" {
		t.Errorf("got URLs %q and %q", s.URL, s.ArtifactsURL)
	}
}
