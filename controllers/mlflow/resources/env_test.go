package resources

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/test/mlflowtest"
)

// envOf returns the environment of the server container by name. A duplicate name is an error.
func envOf(t testing.TB, m *mlflowv1.MLflow, in Inputs) map[string]corev1.EnvVar {
	t.Helper()
	env := map[string]corev1.EnvVar{}
	for _, e := range podOf(t, m, in).Containers[0].Env {
		if _, duplicate := env[e.Name]; duplicate {
			t.Errorf("[D4] %s occurs twice", e.Name)
		}
		env[e.Name] = e
	}
	return env
}

func secretKey(name, key string) *corev1.SecretKeySelector {
	return &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key}
}

func TestUserEnv(t *testing.T) {
	t.Run("[mlflow-8] defaults on plain Kubernetes", func(t *testing.T) {
		var got []string
		for _, e := range podOf(t, mlflowtest.MLflow(), platformInputs["plain"]).Containers[0].Env {
			got = append(got, e.Name)
		}
		want := []string{
			"MLFLOW_DISABLE_TELEMETRY", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION", "MLFLOW_BACKEND_STORE_URI", "MLFLOW_REGISTRY_STORE_URI",
			"MLFLOW_K8S_AUTH_AUTHORIZATION_MODE", "MLFLOW_SERVER_CORS_ALLOWED_ORIGINS", "MLFLOW_SERVER_DISABLE_SECURITY_MIDDLEWARE",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("environment (-want +got):\n%s", diff)
		}
	})
	t.Run("[mlflow-8] values and references", func(t *testing.T) {
		entries := []corev1.EnvVar{
			{Name: "PLAIN", Value: "a"},
			{Name: "SECRET", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: secretKey("team", "token")}},
			{Name: "CONFIG", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: "team"}, Key: "mode", Optional: new(true)}}},
			{Name: "EMPTY"},
		}
		env := envOf(t, mlflowtest.MLflow(mlflowtest.WithEnv(entries...)), platformInputs["plain"])
		for _, want := range entries {
			if diff := cmp.Diff(want, env[want.Name]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", want.Name, diff)
			}
		}
	})
	t.Run("a field reference gets the default apiVersion", func(t *testing.T) {
		field := corev1.EnvVar{Name: "IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}}
		if got := envOf(t, mlflowtest.MLflow(mlflowtest.WithEnv(field)), platformInputs["plain"])["IP"].ValueFrom.FieldRef.APIVersion; got != "v1" {
			t.Errorf("apiVersion = %q", got)
		}
	})
	t.Run("[mlflow-10] envFrom", func(t *testing.T) {
		if from := podOf(t, mlflowtest.MLflow(), platformInputs["plain"]).Containers[0].EnvFrom; from != nil {
			t.Errorf("envFrom = %v without any in the spec", from)
		}
		want := []corev1.EnvFromSource{
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "a"}}},
			{Prefix: "B_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "b"}, Optional: new(true)}},
		}
		m := mlflowtest.MLflow(func(s *mlflowv1.MLflowSpec) { s.EnvFrom = want })
		if diff := cmp.Diff(want, podOf(t, m, platformInputs["plain"]).Containers[0].EnvFrom); diff != "" {
			t.Errorf("envFrom (-want +got):\n%s", diff)
		}
	})
}

func TestEnvOverrides(t *testing.T) {
	all := with(platformInputs["openshift"], func(in *Inputs) { in.PlatformCABundle = true })
	for name := range envOf(t, mlflowtest.MLflow(), all) {
		t.Run("[D4] "+name, func(t *testing.T) {
			got := envOf(t, mlflowtest.MLflow(mlflowtest.WithEnv(corev1.EnvVar{Name: name, Value: "mine"})), all)[name]
			if protectedEnv[name] == (got.Value == "mine") {
				t.Errorf("%s = %q, protected: %v", name, got.Value, protectedEnv[name])
			}
		})
	}
	t.Run("[D4] the last of several entries wins and keeps its position", func(t *testing.T) {
		m := mlflowtest.MLflow(mlflowtest.WithEnv(
			corev1.EnvVar{Name: "A", Value: "1"}, corev1.EnvVar{Name: "B", Value: "1"}, corev1.EnvVar{Name: "A", Value: "2"}))
		var got []string
		for _, e := range podOf(t, m, platformInputs["plain"]).Containers[0].Env {
			if e.Name == "A" || e.Name == "B" {
				got = append(got, e.Name+"="+e.Value)
			}
		}
		if diff := cmp.Diff([]string{"B=1", "A=2"}, got); diff != "" {
			t.Errorf("entries (-want +got):\n%s", diff)
		}
	})
	t.Run("[D4] a reference replaces a value", func(t *testing.T) {
		m := mlflowtest.MLflow(mlflowtest.WithEnv(corev1.EnvVar{Name: "PGSSLMODE", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: secretKey("db", "mode")}}))
		if got := envOf(t, m, all)["PGSSLMODE"]; got.Value != "" || got.ValueFrom == nil {
			t.Errorf("PGSSLMODE = %+v", got)
		}
	})
}

func TestCiphers(t *testing.T) {
	userCiphers := mlflowtest.WithEnv(corev1.EnvVar{Name: "UVICORN_SSL_CIPHERS", Value: "HIGH"})
	for name, c := range map[string]struct {
		m    *mlflowv1.MLflow
		in   Inputs
		want string
	}{
		"[mlflow-9] OpenShift":                    {mlflowtest.MLflow(), platformInputs["openshift"], "PROFILE=SYSTEM"},
		"[mlflow-9] OpenShift, value of the user": {mlflowtest.MLflow(userCiphers), platformInputs["openshift"], "HIGH"},
		"[mlflow-9] plain":                        {mlflowtest.MLflow(), platformInputs["plain"], ""},
		"[mlflow-9] plain, value of the user":     {mlflowtest.MLflow(userCiphers), platformInputs["plain"], "HIGH"},
		"[D31] OpenShift without console": {mlflowtest.MLflow(), with(platformInputs["openshift"], func(in *Inputs) { in.Served = capability.NewSet(capability.HTTPRoute, capability.ServiceMonitor) }),
			"PROFILE=SYSTEM"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := envOf(t, c.m, c.in)["UVICORN_SSL_CIPHERS"].Value; got != c.want {
				t.Errorf("UVICORN_SSL_CIPHERS = %q, want %q", got, c.want)
			}
		})
	}
}

func TestWorkspaceSelector(t *testing.T) {
	const name = "MLFLOW_K8S_WORKSPACE_LABEL_SELECTOR"
	for title, c := range map[string]struct {
		selector *metav1.LabelSelector
		want     []string
	}{
		"[mlflow-11] nil":   {nil, nil},
		"[mlflow-11] empty": {&metav1.LabelSelector{}, nil},
		"[mlflow-11] labels and expression": {&metav1.LabelSelector{
			MatchLabels: map[string]string{"mlflow-enabled": "true", "team": "a"},
			MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "environment", Operator: metav1.LabelSelectorOpIn, Values: []string{"staging", "prod"}}},
		}, []string{"environment in (prod,staging)", "mlflow-enabled=true", "team=a"}},
	} {
		t.Run(title, func(t *testing.T) {
			m := mlflowtest.MLflow(func(s *mlflowv1.MLflowSpec) { s.WorkspaceLabelSelector = c.selector })
			got, found := envOf(t, m, platformInputs["plain"])[name]
			if found != (c.want != nil) {
				t.Fatalf("%s present: %t", name, found)
			}
			for _, part := range c.want {
				if !strings.Contains(got.Value, part) {
					t.Errorf("%s = %q lacks %q", name, got.Value, part)
				}
			}
		})
	}
}

func TestOrigins(t *testing.T) {
	standard := []string{"https://mlflow:8443", "https://mlflow.opendatahub.svc:8443", "https://mlflow.opendatahub.svc.cluster.local:8443", "localhost:*", "127.0.0.1:*"}
	suffixed := []string{"https://mlflow-a:8443", "https://mlflow-a.opendatahub.svc:8443", "https://mlflow-a.opendatahub.svc.cluster.local:8443", "localhost:*", "127.0.0.1:*"}
	for name, c := range map[string]struct {
		name, externalURL string
		extra             []string
		want              []string
	}{
		"[mlflow-13] no external URL":             {"mlflow", "", nil, standard},
		"[mlflow-13] suffix":                      {"a", "", nil, suffixed},
		"[mlflow-13] keeps the port":              {"mlflow", "https://a.example.com:8443/path?q", nil, append(slices.Clone(standard), "https://a.example.com:8443")},
		"[mlflow-13] external URL without scheme": {"mlflow", "a.example.com", nil, standard},
		"[mlflow-13] invalid external URL":        {"mlflow", "https://a b:%zz", nil, standard},
		"[mlflow-13] extras": {"mlflow", "https://a.example.com/", []string{"https://b.example.com", " ", "", "x,y", " https://c.example.com "},
			append(slices.Clone(standard), "https://a.example.com", "https://b.example.com", "https://c.example.com")},
	} {
		t.Run(name, func(t *testing.T) {
			m := withName(mlflowtest.MLflow(func(s *mlflowv1.MLflowSpec) { s.ExtraAllowedOrigins = c.extra }), c.name)
			in := with(platformInputs["bare"], func(in *Inputs) { in.ExternalURL = c.externalURL })
			if got := envOf(t, m, in)["MLFLOW_SERVER_CORS_ALLOWED_ORIGINS"].Value; got != strings.Join(c.want, ",") {
				t.Errorf("origins = %q, want %q", got, c.want)
			}
		})
	}
}

// TestStores covers the sources of the three store URIs.
func TestStores(t *testing.T) {
	const backendName, replicaName, registryName = "MLFLOW_BACKEND_STORE_URI", "MLFLOW_READ_REPLICA_BACKEND_STORE_URI", "MLFLOW_REGISTRY_STORE_URI"
	inline := func(name, uri string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: uri} }
	secret := func(name, key string, optional *bool) corev1.EnvVar {
		ref := secretKey("db", key)
		ref.Optional = optional
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: ref}}
	}
	for name, c := range map[string]struct {
		spec                       mlflowv1.MLflowSpec
		backend, replica, registry corev1.EnvVar
	}{
		"[mlflow-18] explicit backend, default registry": {
			spec:    mlflowv1.MLflowSpec{BackendStoreURI: "postgresql://a"},
			backend: inline(backendName, "postgresql://a"), registry: inline(registryName, "postgresql://a"),
		},
		"[mlflow-18] no backend, as in objects of an older CRD": {
			backend: inline(backendName, "sqlite:////mlflow/mlflow.db"), registry: inline(registryName, "sqlite:////mlflow/mlflow.db"),
		},
		"[mlflow-18] own registry": {
			spec:    mlflowv1.MLflowSpec{BackendStoreURI: "postgresql://a", RegistryStoreURI: "mysql://b"},
			backend: inline(backendName, "postgresql://a"), registry: inline(registryName, "mysql://b"),
		},
		"[mlflow-19] inline replica": {
			spec:    mlflowv1.MLflowSpec{BackendStoreURI: "postgresql://a", ReadReplicaBackendStoreURI: "postgresql://r"},
			backend: inline(backendName, "postgresql://a"), registry: inline(registryName, "postgresql://a"), replica: inline(replicaName, "postgresql://r"),
		},
		"[mlflow-18] secrets": {
			spec: mlflowv1.MLflowSpec{
				BackendStoreURIFrom:            secretKey("db", "uri"),
				ReadReplicaBackendStoreURIFrom: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}, Key: "replica", Optional: new(true)},
				RegistryStoreURIFrom:           secretKey("db", "registry"),
			},
			backend: secret(backendName, "uri", nil), replica: secret(replicaName, "replica", new(true)), registry: secret(registryName, "registry", nil),
		},
		"[mlflow-18] a Secret takes precedence over an inline URI, also for the default registry": {
			spec: mlflowv1.MLflowSpec{
				BackendStoreURI: "postgresql://a", BackendStoreURIFrom: secretKey("db", "uri"),
				ReadReplicaBackendStoreURI: "postgresql://r", ReadReplicaBackendStoreURIFrom: secretKey("db", "replica"),
			},
			backend: secret(backendName, "uri", nil), replica: secret(replicaName, "replica", nil), registry: secret(registryName, "uri", nil),
		},
	} {
		t.Run(name, func(t *testing.T) {
			env := envOf(t, mlflowtest.MLflow(func(s *mlflowv1.MLflowSpec) { *s = c.spec }), platformInputs["plain"])
			got := []corev1.EnvVar{env[backendName], env[replicaName], env[registryName]}
			if diff := cmp.Diff([]corev1.EnvVar{c.backend, c.replica, c.registry}, got); diff != "" {
				t.Errorf("stores (-want +got):\n%s", diff)
			}
		})
	}
}
