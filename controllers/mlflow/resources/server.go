package resources

import (
	"cmp"
	"fmt"
	"strings"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

const (
	artifactsBaseName  = "mlflow-artifacts"
	artifactsTLSSecret = "mlflow-artifacts-tls"
)

// artifactsAPI is the path of artifacts under the prefix of the artifacts server.
const artifactsAPI = "/api/2.0/mlflow-artifacts/artifacts"

// Server is the tracking or the artifacts server: a Deployment with a Service and a serving certificate.
type Server struct {
	// Name is the name of the objects and the value of the label app of the pods.
	Name string
	// Secret is the name of the Secret with the serving certificate.
	Secret   string
	Replicas int32

	container  string
	prefix     string
	workers    int32
	usesVolume bool
	isTracking bool
}

// Tracking returns the tracking server, which always exists.
func Tracking(m *mlflowv1.MLflow) Server {
	return Server{
		Name: NameOf(m), Secret: TLSSecretName, Replicas: resources.ReplicasOrOne(m.Spec.Replicas),
		container: containerName, prefix: staticPrefix, workers: resources.ReplicasOrOne(m.Spec.Workers),
		usesVolume: serverUsesVolume(m), isTracking: true,
	}
}

// Artifacts returns the artifacts server, which exists only if HasArtifactsServer.
func Artifacts(m *mlflowv1.MLflow) Server {
	name := Suffixed(artifactsBaseName, m)
	s := Server{
		Name: name, Secret: artifactsTLSSecret, Replicas: 1,
		container: artifactsBaseName, prefix: "/" + name, workers: 1, usesVolume: m.Spec.Storage != nil && isFile(m.Spec.ArtifactsDestination),
	}
	if spec := m.Spec.ArtifactsServer; spec != nil {
		s.Replicas, s.workers = resources.ReplicasOrOne(spec.Replicas), resources.ReplicasOrOne(spec.Workers)
	}
	return s
}

// HasArtifactsServer reports whether a separate server serves artifacts.
func HasArtifactsServer(m *mlflowv1.MLflow) bool {
	return m.Spec.ArtifactsServer != nil && m.Spec.ArtifactsServer.Enabled
}

// Servers returns the desired servers.
func Servers(m *mlflowv1.MLflow) []Server {
	if HasArtifactsServer(m) {
		return []Server{Tracking(m), Artifacts(m)}
	}
	return []Server{Tracking(m)}
}

// artifactServer returns the artifacts server, or the tracking server if there is none.
func artifactServer(m *mlflowv1.MLflow) Server {
	if HasArtifactsServer(m) {
		return Artifacts(m)
	}
	return Tracking(m)
}

// host returns the DNS name of the Service.
func (s Server) host(in Inputs) string { return s.Name + "." + in.Namespace + ".svc" }

// address returns the URL of the server within the cluster.
func (s Server) address(in Inputs) string {
	return fmt.Sprintf("https://%s:%d%s", s.host(in), port, s.prefix)
}

// Selector returns the labels that select the pods. It equals the immutable selector of the legacy operator's Deployments.
func (s Server) Selector() map[string]string { return map[string]string{LabelApp: s.Name} }

// ArtifactsURL returns the public URL of artifacts, or "" without a published artifacts server.
func ArtifactsURL(m *mlflowv1.MLflow, in Inputs) string {
	if !HasArtifactsServer(m) || in.LacksArtifactsServer || !in.ViaGateway() || in.ExternalURL == "" {
		return ""
	}
	return artifactsRoot(m, in)
}

// artifactsRoot returns the artifact root of new experiments.
func artifactsRoot(m *mlflowv1.MLflow, in Inputs) string {
	return strings.TrimRight(in.ExternalURL, "/") + Artifacts(m).prefix + artifactsAPI
}

// artifactArgs returns the arguments that configure whether and from where the server serves artifacts.
func (s Server) artifactArgs(m *mlflowv1.MLflow, in Inputs) []string {
	serves, root := m.Spec.ServeArtifacts, m.Spec.DefaultArtifactRoot
	if HasArtifactsServer(m) {
		serves, root = !s.isTracking, artifactsRoot(m, in)
	}
	args := []string{"--no-serve-artifacts"}
	if serves {
		args = []string{"--serve-artifacts", "--artifacts-destination=" + cmp.Or(m.Spec.ArtifactsDestination, defaultArtifacts)}
	}
	if root != "" {
		args = append(args, "--default-artifact-root="+root)
	}
	return args
}

// requirements returns the resources of the server. The artifacts server inherits them by default, except resource claims.
func (s Server) requirements(m *mlflowv1.MLflow) *corev1ac.ResourceRequirementsApplyConfiguration {
	spec := m.Spec.Resources
	if !s.isTracking && m.Spec.ArtifactsServer.Resources != nil {
		spec = m.Spec.ArtifactsServer.Resources
	}
	result := resourcesWithDefaults(spec, requirements("1", "2Gi", "4", "3Gi"))
	if !s.isTracking && m.Spec.ArtifactsServer.Resources == nil {
		result.Claims = nil
	}
	return result
}

// resourceClaims returns the dynamic resource claims of the pods.
func (s Server) resourceClaims(m *mlflowv1.MLflow) []corev1ac.PodResourceClaimApplyConfiguration {
	claims := m.Spec.ResourceClaims
	if !s.isTracking {
		claims = m.Spec.ArtifactsServer.ResourceClaims
	}
	return resources.MustConvertEach[corev1ac.PodResourceClaimApplyConfiguration](claims)
}
