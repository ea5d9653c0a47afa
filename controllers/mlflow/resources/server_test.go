package resources

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/mlflowtest"
)

// withArtifactsServer enables a separate artifacts server.
func withArtifactsServer(s *mlflowv1.MLflowSpec) {
	s.ServeArtifacts, s.ArtifactsServer = false, &mlflowv1.ArtifactsServerConfig{Enabled: true}
}

func artifactsPod(t *testing.T, m *mlflowv1.MLflow, in Inputs) corev1.PodSpec {
	t.Helper()
	return typed[appsv1.Deployment](t, m, in, "Deployment", "mlflow-artifacts").Spec.Template.Spec
}

// The artifacts server inherits the requests and limits of the tracking server, but not its resource claims. [mlflow-90]
func TestArtifactsServerResources(t *testing.T) {
	memory := func(size string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(size)}
	}
	m := mlflowtest.MLflow(withArtifactsServer, func(s *mlflowv1.MLflowSpec) {
		s.Resources = &corev1.ResourceRequirements{Limits: memory("7Gi"), Claims: []corev1.ResourceClaim{{Name: "gpu"}}}
		s.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: new("a")}}
	})
	pod := artifactsPod(t, m, platformInputs["plain"])
	if got := pod.Containers[0].Resources; got.Limits.Memory().String() != "7Gi" || got.Claims != nil || pod.ResourceClaims != nil {
		t.Errorf("inherited resources %+v, resource claims %v", got, pod.ResourceClaims)
	}
	if tracking := podOf(t, m, platformInputs["plain"]); len(tracking.Containers[0].Resources.Claims) != 1 || len(tracking.ResourceClaims) != 1 {
		t.Error("the tracking server has no resource claim")
	}
	m.Spec.ArtifactsServer.Resources = &corev1.ResourceRequirements{Limits: memory("1Gi"), Claims: []corev1.ResourceClaim{{Name: "nic"}}}
	m.Spec.ArtifactsServer.ResourceClaims = []corev1.PodResourceClaim{{Name: "nic", ResourceClaimName: new("b")}}
	pod = artifactsPod(t, m, platformInputs["plain"])
	if got := pod.Containers[0].Resources; got.Limits.Memory().String() != "1Gi" || got.Claims[0].Name != "nic" || pod.ResourceClaims[0].Name != "nic" {
		t.Errorf("specified resources %+v, resource claims %v", got, pod.ResourceClaims)
	}
}

// The artifacts server mounts the volume for artifacts in files, the tracking server only for an archive in files. [mlflow-91]
func TestArtifactsServerVolume(t *testing.T) {
	files := func(s *mlflowv1.MLflowSpec) {
		s.Storage, s.ArtifactsDestination, s.RegistryStoreURIFrom = &corev1.PersistentVolumeClaimSpec{}, "file:///mlflow/artifacts", mlflowtest.SecretKey("db", "uri")
	}
	archive := func(s *mlflowv1.MLflowSpec) { s.TraceArchival.Location = "file:///mlflow/t" }
	for name, c := range map[string]struct {
		changes []func(*mlflowv1.MLflowSpec)
		want    string
	}{
		"artifacts in files":            {[]func(*mlflowv1.MLflowSpec){files}, "artifacts"},
		"archive in files":              {[]func(*mlflowv1.MLflowSpec){files, archive}, "artifacts mlflow-trace-archival server"},
		"only the archive in files":     {[]func(*mlflowv1.MLflowSpec){files, archive, func(s *mlflowv1.MLflowSpec) { s.ArtifactsDestination = "s3://b" }}, "mlflow-trace-archival server"},
		"unused volume":                 {[]func(*mlflowv1.MLflowSpec){files, func(s *mlflowv1.MLflowSpec) { s.ArtifactsDestination = "s3://b" }}, ""},
		"artifacts in files, no volume": {[]func(*mlflowv1.MLflowSpec){files, func(s *mlflowv1.MLflowSpec) { s.Storage = nil }}, ""},
		"backend URI in a Secret":       {[]func(*mlflowv1.MLflowSpec){files, func(s *mlflowv1.MLflowSpec) { s.BackendStoreURIFrom = mlflowtest.SecretKey("db", "uri") }}, "artifacts"},
	} {
		t.Run(name, func(t *testing.T) {
			m := mlflowtest.MLflow(slices.Concat([]func(*mlflowv1.MLflowSpec){withArtifactsServer, mlflowtest.WithGarbageCollection, mlflowtest.WithTraceArchival}, c.changes)...)
			pods := podsOf(t, m, platformInputs["plain"])
			pods["artifacts"] = artifactsPod(t, m, platformInputs["plain"])
			var mounting []string
			for name, pod := range pods {
				if mounts(&pod) {
					mounting = append(mounting, name)
				}
			}
			slices.Sort(mounting)
			if got := strings.Join(mounting, " "); got != c.want {
				t.Errorf("mounted by %q, want %q", got, c.want)
			}
		})
	}
}

// Garbage collection calls the artifacts server and trusts its certificate. [mlflow-93]
func TestGarbageCollectionUsesArtifactsServer(t *testing.T) {
	pod := jobPod(t, mlflowtest.MLflow(withArtifactsServer, mlflowtest.WithGarbageCollection), platformInputs["plain"], "mlflow-gc")
	if got := environment(pod.Containers[0])["MLFLOW_TRACKING_URI"]; got != "https://mlflow-artifacts.opendatahub.svc:8443/mlflow-artifacts" {
		t.Errorf("MLFLOW_TRACKING_URI is %q", got)
	}
	if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Secret != nil && v.Secret.SecretName == "mlflow-artifacts-tls" }) {
		t.Errorf("got volumes %v", pod.Volumes)
	}
}

// [mlflow-92]
func TestArtifactsServerLabels(t *testing.T) {
	d := typed[appsv1.Deployment](t, mlflowtest.MLflow(withArtifactsServer), platformInputs["plain"], "Deployment", "mlflow-artifacts")
	labels := d.Spec.Template.Labels
	if labels["app"] != "mlflow-artifacts" || labels["app.kubernetes.io/instance"] != "mlflow" || labels["component"] != "mlflow" || d.Labels["app"] != "mlflow" {
		t.Errorf("got labels of pods %v, of the Deployment %v", labels, d.Labels)
	}
	tracking := typed[corev1.Service](t, mlflowtest.MLflow(withArtifactsServer), platformInputs["plain"], "Service", "mlflow")
	artifacts := typed[corev1.Service](t, mlflowtest.MLflow(withArtifactsServer), platformInputs["plain"], "Service", "mlflow-artifacts")
	if tracking.Labels[labelRole] != roleTracking || artifacts.Labels[labelRole] != "" || artifacts.Spec.Selector["app"] != "mlflow-artifacts" {
		t.Errorf("got labels of the Services %v and %v", tracking.Labels, artifacts.Labels)
	}
}

// [mlflow-87]
func TestArtifactsServerNeedsURL(t *testing.T) {
	withoutURL := with(platformInputs["plain"], func(in *Inputs) { in.ExternalURL = "" })
	if err := Check(mlflowtest.MLflow(withArtifactsServer), withoutURL); err == nil || !strings.Contains(err.Error(), "set MLFLOW_URL") {
		t.Errorf("got error %v", err)
	}
	for _, m := range []*mlflowv1.MLflow{mlflowtest.MLflow(), mlflowtest.MLflow(func(s *mlflowv1.MLflowSpec) { s.ArtifactsServer = &mlflowv1.ArtifactsServerConfig{} })} {
		if err := Check(m, withoutURL); err != nil || ArtifactsURL(m, platformInputs["plain"]) != "" {
			t.Errorf("got error %v and URL %q", err, ArtifactsURL(m, platformInputs["plain"]))
		}
	}
}
