package resources

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/test/mlflowtest"
)

func TestSSLMode(t *testing.T) {
	withCustomCA := func(s *mlflowv1.MLflowSpec) {
		s.CABundleConfigMap = &mlflowv1.CABundleConfigMapRef{Name: "corporate-ca"}
	}
	backend := func(uri string) func(*mlflowv1.MLflowSpec) {
		return func(s *mlflowv1.MLflowSpec) { s.BackendStoreURI = uri }
	}
	uriWithMode := "postgresql://db.example.com/x?sslmode=require"
	for name, c := range map[string]struct {
		m    *mlflowv1.MLflow
		want string
	}{
		"[mlflow-12] CA bundle of the user":               {mlflowtest.MLflow(withCustomCA), "verify-full"},
		"[mlflow-12] no CA bundle of the user":            {mlflowtest.MLflow(), ""},
		"[D34] PGSSLMODE in spec.env":                     {mlflowtest.MLflow(withCustomCA, mlflowtest.WithEnv(corev1.EnvVar{Name: "PGSSLMODE", Value: "require"})), "require"},
		"[D34] sslmode in the backend URI":                {mlflowtest.MLflow(withCustomCA, backend(uriWithMode)), ""},
		"[D34] sslmode and other parameters":              {mlflowtest.MLflow(withCustomCA, backend("postgresql+psycopg2://db/x?connect_timeout=9&sslmode=disable")), ""},
		"[D34] sslmode in the registry URI":               {mlflowtest.MLflow(withCustomCA, func(s *mlflowv1.MLflowSpec) { s.RegistryStoreURI = uriWithMode }), ""},
		"[D34] sslmode in the URI of the replica":         {mlflowtest.MLflow(withCustomCA, func(s *mlflowv1.MLflowSpec) { s.ReadReplicaBackendStoreURI = uriWithMode }), ""},
		"[D34] URI is overridden by a Secret":             {mlflowtest.MLflow(withCustomCA, backend(uriWithMode), func(s *mlflowv1.MLflowSpec) { s.BackendStoreURIFrom = secretKey("db", "uri") }), "verify-full"},
		"[D34] sslmode in a MySQL URI":                    {mlflowtest.MLflow(withCustomCA, backend("mysql://db/x?sslmode=require")), "verify-full"},
		"[D34] sslmode in the database name":              {mlflowtest.MLflow(withCustomCA, backend("postgresql://db/sslmode=require")), "verify-full"},
		"[D34] PGSSLMODE in spec.env without a CA bundle": {mlflowtest.MLflow(mlflowtest.WithEnv(corev1.EnvVar{Name: "PGSSLMODE", Value: "allow"})), "allow"},
		"[D34] empty name in a stored object":             {mlflowtest.MLflow(func(s *mlflowv1.MLflowSpec) { s.CABundleConfigMap = &mlflowv1.CABundleConfigMapRef{} }), ""},
	} {
		for _, platform := range []bool{true, false} {
			in := with(platformInputs["plain"], func(in *Inputs) { in.PlatformCABundle = platform })
			if got := envOf(t, c.m, in)["PGSSLMODE"].Value; got != c.want {
				t.Errorf("%s, CA bundle of the platform %t: PGSSLMODE = %q, want %q", name, platform, got, c.want)
			}
		}
	}
}

// [D34] If the legacy operator verified PostgreSQL, the adopted server does too.
func TestVerifiesPostgres(t *testing.T) {
	legacyDeployment := func(mode string, changes ...func(*appsv1.Deployment)) *appsv1.Deployment {
		d := &appsv1.Deployment{}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "mlflow", Env: []corev1.EnvVar{{Name: envSSLMode, Value: mode}}}}
		for _, change := range changes {
			change(d)
		}
		return d
	}
	managed := func(d *appsv1.Deployment) { d.Labels = names.Labels("mlflow") }
	annotated := func(d *appsv1.Deployment) { d.Annotations = map[string]string{verifyAnnotation: "verify-full"} }
	for name, c := range map[string]struct {
		live *appsv1.Deployment
		want bool
	}{
		"no containers": {&appsv1.Deployment{}, false}, "legacy, verify-full": {legacyDeployment("verify-full"), true}, "legacy, weaker mode": {legacyDeployment("require"), false},
		"managed, CA bundle no longer configured": {legacyDeployment("verify-full", managed), false},
		"managed and adopted":                     {legacyDeployment("verify-full", managed, annotated), true},
	} {
		t.Run(name, func(t *testing.T) {
			in := platformInputs["plain"]
			in.PlatformCABundle, in.VerifyPostgreSQL = true, VerifiesPostgres(c.live)
			d := deploymentOf(t, mlflowtest.MLflow(), in)
			if got := environment(d.Spec.Template.Spec.Containers[0])[envSSLMode] == "verify-full"; got != c.want || (d.Annotations[verifyAnnotation] != "") != c.want {
				t.Errorf("verify-full %t, annotations %v, want %t", got, d.Annotations, c.want)
			}
		})
	}
}

func TestAllowedHosts(t *testing.T) {
	plain := platformInputs["plain"]
	serviceHosts := "mlflow,mlflow:8443,mlflow.opendatahub,mlflow.opendatahub:8443,mlflow.opendatahub.svc,mlflow.opendatahub.svc:8443," +
		"mlflow.opendatahub.svc.cluster.local,mlflow.opendatahub.svc.cluster.local:8443,localhost,localhost:8443"
	hosts := func(list ...mlflowv1.AllowedHost) func(*mlflowv1.MLflowSpec) {
		return func(s *mlflowv1.MLflowSpec) { s.AllowedHosts = list }
	}
	for name, c := range map[string]struct {
		m    *mlflowv1.MLflow
		in   Inputs
		want string
		host string // in the probes
	}{
		"[mlflow-27] no list":             {mlflowtest.MLflow(), plain, "*", ""},
		"[mlflow-27] an empty list":       {mlflowtest.MLflow(hosts()), plain, "*", ""},
		"[D35] a list":                    {mlflowtest.MLflow(hosts("ml.example.com", "*.lab.example.com")), plain, serviceHosts + ",gateway.apps.example.com,ml.example.com,*.lab.example.com", "mlflow"},
		"[D35] duplicates are removed":    {mlflowtest.MLflow(hosts("localhost", "gateway.apps.example.com")), plain, serviceHosts + ",gateway.apps.example.com", "mlflow"},
		"[D35] no external URL":           {mlflowtest.MLflow(hosts("a")), with(plain, func(in *Inputs) { in.ExternalURL = "" }), serviceHosts + ",a", "mlflow"},
		"[D35] a URL with a port":         {mlflowtest.MLflow(hosts("a")), with(plain, func(in *Inputs) { in.ExternalURL = "https://gw.example.com:9443/base" }), serviceHosts + ",gw.example.com:9443,a", "mlflow"},
		"[D35] invalid external URL":      {mlflowtest.MLflow(hosts("a")), with(plain, func(in *Inputs) { in.ExternalURL = "https://[" }), serviceHosts + ",a", "mlflow"},
		"[D35] asterisk allows all hosts": {mlflowtest.MLflow(hosts("a", "*")), plain, "*", ""},
	} {
		t.Run(name, func(t *testing.T) {
			container := podOf(t, c.m, c.in).Containers[0]
			index := slices.Index(container.Args, "--allowed-hosts")
			if index < 0 || container.Args[index+1] != c.want {
				t.Errorf("arguments %q, want %q", container.Args, c.want)
			}
			for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe} {
				var want []corev1.HTTPHeader
				if c.host != "" {
					want = []corev1.HTTPHeader{{Name: "Host", Value: c.host}}
				}
				if diff := cmp.Diff(want, probe.HTTPGet.HTTPHeaders); diff != "" {
					t.Errorf("headers of the probe (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestIngressFrom(t *testing.T) {
	peers := []networkingv1.NetworkPolicyPeer{
		{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "openshift-ingress"}}},
		{PodSelector: &metav1.LabelSelector{}},
		{IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.0/8", Except: []string{"10.1.0.0/16"}}},
	}
	m := mlflowtest.MLflow(func(s *mlflowv1.MLflowSpec) { s.NetworkPolicyIngressFrom = peers })
	rules := typed[networkingv1.NetworkPolicy](t, m, platformInputs["plain"], "NetworkPolicy", "mlflow").Spec.Ingress
	want := []networkingv1.NetworkPolicyIngressRule{{From: peers, Ports: ports(corev1.ProtocolTCP, 8443)}}
	if diff := cmp.Diff(want, rules); diff != "" {
		t.Errorf("[D35] ingress rules (-want +got):\n%s", diff)
	}
	migration := typed[networkingv1.NetworkPolicy](t, m, platformInputs["plain"], "NetworkPolicy", "mlflow-migration")
	if len(migration.Spec.Ingress) != 0 {
		t.Errorf("ingress to migration pods is allowed: %v", migration.Spec.Ingress)
	}
}

// Pods mount their token explicitly, and no ServiceAccount mounts it by default.
func TestTokens(t *testing.T) {
	m := mlflowtest.MLflow(mlflowtest.WithGarbageCollection, mlflowtest.WithTraceArchival)
	for _, name := range []string{"mlflow-sa", "mlflow-gc-sa", "mlflow-trace-archival-sa"} {
		account := typed[corev1.ServiceAccount](t, m, platformInputs["plain"], "ServiceAccount", name)
		if account.AutomountServiceAccountToken == nil || *account.AutomountServiceAccountToken {
			t.Errorf("[D35] ServiceAccount %s mounts its token by default", name)
		}
	}
	for name, pod := range podsOf(t, m, platformInputs["plain"]) {
		if pod.AutomountServiceAccountToken == nil || !*pod.AutomountServiceAccountToken {
			t.Errorf("the pod of %s does not mount its token", name)
		}
	}
}

// podsOf returns the pods of the server and the CronJobs.
func podsOf(t *testing.T, m *mlflowv1.MLflow, in Inputs) map[string]corev1.PodSpec {
	t.Helper()
	return map[string]corev1.PodSpec{
		"server": podOf(t, m, in), "mlflow-gc": jobPod(t, m, in, "mlflow-gc"),
		"mlflow-trace-archival": jobPod(t, m, in, "mlflow-trace-archival"),
	}
}

func TestServiceAccountsGetAnnotationsOfSpec(t *testing.T) {
	annotations := map[string]string{"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/mlflow"}
	m := mlflowtest.MLflow(mlflowtest.WithGarbageCollection, mlflowtest.WithTraceArchival, func(s *mlflowv1.MLflowSpec) {
		s.ServiceAccountAnnotations = annotations
		s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}, {Name: "mirror"}}
	})
	for _, name := range []string{"mlflow-sa", "mlflow-gc-sa", "mlflow-trace-archival-sa"} {
		account := typed[corev1.ServiceAccount](t, m, platformInputs["plain"], "ServiceAccount", name)
		if diff := cmp.Diff(annotations, account.Annotations); diff != "" {
			t.Errorf("[D36] annotations of %s (-want +got):\n%s", name, diff)
		}
	}
	for name, pod := range podsOf(t, m, platformInputs["plain"]) {
		if diff := cmp.Diff(m.Spec.ImagePullSecrets, pod.ImagePullSecrets); diff != "" {
			t.Errorf("[D36] pull secrets of %s (-want +got):\n%s", name, diff)
		}
	}
}

func TestProtectedNames(t *testing.T) {
	for name := range protectedEnv {
		m := mlflowtest.MLflow(mlflowtest.WithGarbageCollection, mlflowtest.WithTraceArchival, mlflowtest.WithEnv(corev1.EnvVar{Name: name, Value: "evil"}, corev1.EnvVar{Name: "OWN", Value: "a"}))
		for pod, spec := range podsOf(t, m, platformInputs["plain"]) {
			env := environment(spec.Containers[0])
			if env[name] == "evil" || env["OWN"] != "a" {
				t.Errorf("[D4] %s has %s=%q, OWN=%q", pod, name, env[name], env["OWN"])
			}
		}
	}
}

func TestCronJobsRunOnServerNode(t *testing.T) {
	withAccessModes := func(modes ...corev1.PersistentVolumeAccessMode) func(*mlflowv1.MLflowSpec) {
		return mlflowtest.WithStorage(corev1.PersistentVolumeClaimSpec{AccessModes: modes})
	}
	withAffinity := func(a *corev1.Affinity) func(*mlflowv1.MLflowSpec) {
		return func(s *mlflowv1.MLflowSpec) { s.Affinity = a }
	}
	antiAffinity := &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "zone"}}}}
	podAffinity := &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "zone"}}}}
	nodeAffinity := &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: "In", Values: []string{"a"}}}}}}}
	serverAffinity := &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "mlflow"}}, TopologyKey: "kubernetes.io/hostname"}}}
	for name, c := range map[string]struct {
		m    *mlflowv1.MLflow
		want *corev1.Affinity
	}{
		"[D24] no volume":                     {mlflowtest.MLflow(), nil},
		"[D24] default access mode":           {mlflowtest.MLflow(withAccessModes()), &corev1.Affinity{PodAffinity: serverAffinity}},
		"[D24] ReadWriteOnce":                 {mlflowtest.MLflow(withAccessModes(corev1.ReadWriteOnce)), &corev1.Affinity{PodAffinity: serverAffinity}},
		"[D24] ReadWriteMany":                 {mlflowtest.MLflow(withAccessModes(corev1.ReadWriteMany)), nil},
		"[D24] ReadWriteOnce, ReadWriteMany":  {mlflowtest.MLflow(withAccessModes(corev1.ReadWriteOnce, corev1.ReadWriteMany)), nil},
		"[D24] node affinity of the user":     {mlflowtest.MLflow(withAccessModes(), withAffinity(&corev1.Affinity{NodeAffinity: nodeAffinity})), &corev1.Affinity{NodeAffinity: nodeAffinity, PodAffinity: serverAffinity}},
		"[D24] pod anti-affinity of the user": {mlflowtest.MLflow(withAccessModes(), withAffinity(antiAffinity)), antiAffinity},
		"[D24] pod affinity of the user":      {mlflowtest.MLflow(withAccessModes(), withAffinity(podAffinity)), podAffinity},
		"[D24] pod affinity, no volume":       {mlflowtest.MLflow(withAffinity(podAffinity)), podAffinity},
	} {
		t.Run(name, func(t *testing.T) {
			mlflowtest.WithGarbageCollection(&c.m.Spec)
			mlflowtest.WithTraceArchival(&c.m.Spec)
			for pod, spec := range podsOf(t, c.m, platformInputs["plain"]) {
				want := c.want
				if pod == "server" {
					want = c.m.Spec.Affinity
				}
				if diff := cmp.Diff(want, spec.Affinity); diff != "" {
					t.Errorf("affinity of %s (-want +got):\n%s", pod, diff)
				}
			}
		})
	}
}

func TestGarbageCollectionTrustsServer(t *testing.T) {
	t.Run("[D3] for calls to the server alone", func(t *testing.T) {
		pod := jobPod(t, mlflowtest.MLflow(mlflowtest.WithGarbageCollection), platformInputs["plain"], "mlflow-gc")
		env := environment(pod.Containers[0])
		if env["MLFLOW_TRACKING_SERVER_CERT_PATH"] != combinedBundle || env["REQUESTS_CA_BUNDLE"] != "" || env["AWS_CA_BUNDLE"] != "" {
			t.Errorf("got environment %v", env)
		}
		if len(pod.InitContainers) != 1 {
			t.Errorf("got init containers %v", pod.InitContainers)
		}
	})
	t.Run("[D3] with a CA bundle of the user", func(t *testing.T) {
		m := mlflowtest.MLflow(mlflowtest.WithGarbageCollection, func(s *mlflowv1.MLflowSpec) {
			s.CABundleConfigMap = &mlflowv1.CABundleConfigMapRef{Name: "corporate-ca"}
		})
		pod := jobPod(t, m, platformInputs["plain"], "mlflow-gc")
		paths := environment(pod.InitContainers[0])["CA_BUNDLE_MOUNT_PATHS"]
		if paths != customCAPath+" "+serviceCAPath || environment(pod.Containers[0])["REQUESTS_CA_BUNDLE"] != combinedBundle {
			t.Errorf("got sources %s, environment %v", paths, environment(pod.Containers[0]))
		}
	})
	t.Run("the private key is not mounted", func(t *testing.T) {
		secrets := 0
		for _, v := range jobPod(t, mlflowtest.MLflow(mlflowtest.WithGarbageCollection), platformInputs["plain"], "mlflow-gc").Volumes {
			if v.Secret == nil {
				continue
			}
			secrets++
			want := []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}
			if diff := cmp.Diff(want, v.Secret.Items); diff != "" || !*v.Secret.Optional {
				t.Errorf("volume %s, optional %v (-want +got):\n%s", v.Name, v.Secret.Optional, diff)
			}
		}
		if secrets != 1 {
			t.Errorf("got %d volumes with a Secret, want one with the CA", secrets)
		}
	})
	t.Run("trace archival needs no CA of the server", func(t *testing.T) {
		pod := jobPod(t, mlflowtest.MLflow(mlflowtest.WithTraceArchival), platformInputs["plain"], "mlflow-trace-archival")
		if len(pod.InitContainers) != 0 {
			t.Errorf("got init containers %v", pod.InitContainers)
		}
	})
}

func TestPasswords(t *testing.T) {
	for uri, want := range map[string]bool{
		"postgresql://tracker@db.example.com/x":        false,
		"postgresql://tracker:secret@db.example.com/x": true,
		"postgresql+psycopg2://a:b@c/x":                true,
		"mysql://:secret@db/x":                         true,
		"mysql://a:pa@ss@db/x":                         true,
		"mysql://a:pa#ss?@db/x":                        true,
		"mysql://a:@db/x":                              false,
		"postgresql://db:5432/x":                       false,
		"postgresql://db:5432/x?options=a:b@c":         false,
		"postgresql://db/x?user=a&password=secret":     true,
		"mysql://db/x?passwd=secret":                   true,
		"postgresql://db/x?password=":                  false,
		"postgresql://db/x?sslmode=require":            false,
		"sqlite:////mlflow/a:b@c.db":                   false,
		"":                                             false,
	} {
		if got := HoldsPassword(uri); got != want {
			t.Errorf("[D28] HoldsPassword(%q) = %t, want %t", uri, got, want)
		}
	}
}

// If a store URI comes from a Secret, no object contains the inline URI.
func TestInlineURIIsOmittedIfSecretIsSet(t *testing.T) {
	m := mlflowtest.MLflow(mlflowtest.WithGarbageCollection, mlflowtest.WithTraceArchival, func(s *mlflowv1.MLflowSpec) {
		s.BackendStoreURI, s.BackendStoreURIFrom = "postgresql://unused:password@db/x", secretKey("db", "uri")
	})
	for _, o := range buildObjects(t, m, platformInputs["plain"]) {
		text, err := o.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "unused:password") {
			t.Errorf("[D28] %s %s contains the unused URI", o.GetKind(), o.GetName())
		}
	}
}
