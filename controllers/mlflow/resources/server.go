package resources

import (
	"cmp"
	"fmt"
	"strings"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// Names of the server for artifacts.
const (
	artifactsBaseName  = "mlflow-artifacts"
	artifactsTLSSecret = "mlflow-artifacts-tls"
)

// artifactsAPI is where a server for artifacts answers for them, below its prefix.
const artifactsAPI = "/api/2.0/mlflow-artifacts/artifacts"

// Server is one of the Deployments that answer requests. Each has a Service of its name, and a certificate of its own.
type Server struct {
	// Name is that of its objects, and the value of the label app of its pods.
	Name string
	// Secret holds its serving certificate.
	Secret string
	// Replicas of its Deployment.
	Replicas int32

	container string
	prefix    string
	workers   int32
	volume    bool
	tracking  bool
}

// Tracking is the server that there is always.
func Tracking(m *mlflowv1.MLflow) Server {
	return Server{
		Name: NameOf(m), Secret: TLSSecretName, Replicas: resources.ReplicasOrOne(m.Spec.Replicas),
		container: containerName, prefix: staticPrefix, workers: resources.ReplicasOrOne(m.Spec.Workers), volume: serverUsesVolume(m), tracking: true,
	}
}

// Artifacts is the server for artifacts. It exists only while Splits.
func Artifacts(m *mlflowv1.MLflow) Server {
	name := Suffixed(artifactsBaseName, m)
	s := Server{
		Name: name, Secret: artifactsTLSSecret, Replicas: 1,
		container: artifactsBaseName, prefix: "/" + name, workers: 1, volume: m.Spec.Storage != nil && isFile(m.Spec.ArtifactsDestination),
	}
	if spec := m.Spec.ArtifactsServer; spec != nil {
		s.Replicas, s.workers = resources.ReplicasOrOne(spec.Replicas), resources.ReplicasOrOne(spec.Workers)
	}
	return s
}

// Splits reports whether artifacts have a server of their own.
func Splits(m *mlflowv1.MLflow) bool {
	return m.Spec.ArtifactsServer != nil && m.Spec.ArtifactsServer.Enabled
}

// Servers are those that the spec asks for.
func Servers(m *mlflowv1.MLflow) []Server {
	if Splits(m) {
		return []Server{Tracking(m), Artifacts(m)}
	}
	return []Server{Tracking(m)}
}

// artifactServer is the one that answers for artifacts.
func artifactServer(m *mlflowv1.MLflow) Server {
	if Splits(m) {
		return Artifacts(m)
	}
	return Tracking(m)
}

// host is the name of its Service in the cluster.
func (s Server) host(in Inputs) string { return s.Name + "." + in.Namespace + ".svc" }

// address is where workloads in the cluster reach it.
func (s Server) address(in Inputs) string {
	return fmt.Sprintf("https://%s:%d%s", s.host(in), port, s.prefix)
}

// Selector finds its pods. It cannot change: Deployments of the originals carry it.
func (s Server) Selector() map[string]string { return map[string]string{LabelApp: s.Name} }

// ArtifactsURL is the public root of artifacts, "" when no server for them is published.
func ArtifactsURL(m *mlflowv1.MLflow, in Inputs) string {
	if !Splits(m) || !in.ViaGateway() || in.ExternalURL == "" {
		return ""
	}
	return artifactsRoot(m, in)
}

// artifactsRoot is where new experiments keep their artifacts.
func artifactsRoot(m *mlflowv1.MLflow, in Inputs) string {
	return strings.TrimRight(in.ExternalURL, "/") + Artifacts(m).prefix + artifactsAPI
}

// artifactArgs say who serves artifacts, and from where.
func (s Server) artifactArgs(m *mlflowv1.MLflow, in Inputs) []string {
	serves, root := m.Spec.ServeArtifacts, m.Spec.DefaultArtifactRoot
	if Splits(m) {
		serves, root = !s.tracking, artifactsRoot(m, in)
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

// needs are requests and limits. Devices that the tracking server claims are not those of another.
func (s Server) needs(m *mlflowv1.MLflow) *corev1ac.ResourceRequirementsApplyConfiguration {
	given := m.Spec.Resources
	if !s.tracking && m.Spec.ArtifactsServer.Resources != nil {
		given = m.Spec.ArtifactsServer.Resources
	}
	needed := resourcesOf(given, needs("1", "2Gi", "4", "3Gi"))
	if !s.tracking && m.Spec.ArtifactsServer.Resources == nil {
		needed.Claims = nil
	}
	return needed
}

// claims are the dynamic resource claims of its pods.
func (s Server) claims(m *mlflowv1.MLflow) []corev1ac.PodResourceClaimApplyConfiguration {
	claims := m.Spec.ResourceClaims
	if !s.tracking {
		claims = m.Spec.ArtifactsServer.ResourceClaims
	}
	return resources.MustApplyEach[corev1ac.PodResourceClaimApplyConfiguration](claims)
}
