package resources

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/tlsprofile"
)

// Names and values that other software relies on.
const (
	BaseName               = "mlflow"
	containerName          = "mlflow"
	migrationName          = "mlflow-migration"
	claimBaseName          = "mlflow-pvc"
	GCBaseName             = "mlflow-gc"
	ArchivalBaseName       = "mlflow-trace-archival"
	monitorBaseName        = "mlflow-metrics-monitor"
	sharedRoleName         = "mlflow"
	TLSSecretName          = "mlflow-tls"
	artifactSecret         = "mlflow-artifact-connection"
	archiveSecret          = "mlflow-archive-secret"
	PlatformCAName         = "odh-trusted-ca-bundle"
	serviceCAName          = "openshift-service-ca.crt"
	serviceCAKey           = "service-ca.crt"
	portName               = "https"
	port                   = 8443
	staticPrefix           = "/mlflow"
	defaultServiceAccount  = mlflowv1.DefaultServiceAccount
	gcServiceAccount       = "mlflow-gc-sa"
	archivalServiceAccount = "mlflow-trace-archival-sa"
	defaultBackend         = "sqlite:////mlflow/mlflow.db"
	defaultArtifacts       = "file:///mlflow/artifacts"

	LabelApp       = "app"
	LabelComponent = "component"
	labelInstance  = "app.kubernetes.io/instance"
)

// Inputs is what the objects of an MLflow depend on beside its spec.
type Inputs struct {
	// Namespace is where the server runs.
	Namespace string
	// IPv6: the cluster prefers IPv6, or has nothing else.
	IPv6 bool
	// OpenShift: the platform signs serving certificates and has its own cipher policy.
	OpenShift bool
	// ConsoleLinks, HTTPRoutes, BackendTLSPolicies and ServiceMonitors say which optional kinds are served.
	ConsoleLinks, HTTPRoutes, BackendTLSPolicies, ServiceMonitors bool
	// Exposure says what publishes the server; empty on OpenShift.
	Exposure config.Exposure
	// TLS is the profile of the servers.
	TLS tlsprofile.Profile
	// Authorities are the CAs of the certificates that were issued here, by the names of servers.
	Authorities map[string][]byte
	// Image is the MLflow image unless the spec names one.
	Image string
	// GatewayName and GatewayNamespace are the parent of the HTTPRoute.
	GatewayName, GatewayNamespace string
	// ExternalURL is the base under which the gateway is reached, "" when none is configured.
	ExternalURL string
	// SectionTitle is the section of the console menu.
	SectionTitle string
	// Version is the MLflow release that this build supports, without a leading "v".
	Version string
	// PlatformCABundle: the ConfigMap with the certificate authorities of the platform exists.
	PlatformCABundle bool
	// VerifyPostgres: the operator before verified PostgreSQL by the authorities of the platform, and that stays so.
	VerifyPostgreSQL bool
}

// Plan is what an MLflow asks for, in groups of which a later one never keeps an earlier one from being written.
type Plan struct {
	// Server is the server, with that for artifacts, and what they need: identity and permissions, settings, storage, policies.
	Server apply.Desired
	// Chores are the CronJobs beside it and the permissions that only they have.
	CronJobs apply.Desired
	// Exposed is what leads to the server or looks at it.
	Exposure apply.Desired
}

// All joins the parts in the order in which they are made.
func (p *Plan) All() apply.Desired { return slices.Concat(p.Server, p.CronJobs, p.Exposure) }

// Build lists the objects of an MLflow in the order in which they are to be
// written: identity, permissions, storage and the server, then the jobs beside
// it, and at last what publishes it. It fails when the spec asks for what
// cannot be; the error names the field.
func Build(m *mlflowv1.MLflow, in Inputs) (apply.Desired, error) {
	if err := Check(m, in); err != nil {
		return nil, err
	}
	p := NewPlan(m, in)
	return p.All(), nil
}

// NewPlan builds every object of an MLflow that Check admits, but the Job of a migration.
func NewPlan(m *mlflowv1.MLflow, in Inputs) Plan {
	p := Plan{Server: append(serviceAccounts(m, in), sharedRBAC(m, in)...)}
	if Archives(m) {
		p.Server.Add(archivalConfigMap(m, in))
	}
	if m.Spec.Storage != nil {
		p.Server = append(p.Server, PersistentVolumeClaim(m, in))
	}
	p.Server.Add(networkPolicy(m, in), migrationPolicy(m, in))
	for _, s := range Servers(m) {
		p.Server.Add(deployment(m, in, s))
	}
	if m.Spec.GarbageCollection != nil {
		p.CronJobs = garbageCollectionRBAC(m, in)
		p.CronJobs.Add(garbageCollectionCronJob(m, in))
	}
	if Archives(m) {
		p.CronJobs.Add(archivalCronJob(m, in))
	}
	p.Exposure = exposure(m, in)
	return p
}

// ExternalURL is where users reach the server, "" when it is not published.
func ExternalURL(m *mlflowv1.MLflow, in Inputs) string {
	if !in.ViaGateway() && !in.Exposure.Ingress() || in.ExternalURL == "" {
		return ""
	}
	return publicURL(m, in)
}

// AddressURL is where workloads in the cluster reach the server, "" when its
// namespace is not known.
func AddressURL(m *mlflowv1.MLflow, in Inputs) string {
	if in.Namespace == "" {
		return ""
	}
	return Tracking(m).address(in)
}

// publicURL joins the configured base and the path of this server with exactly
// one slash.
func publicURL(m *mlflowv1.MLflow, in Inputs) string {
	return strings.TrimRight(in.ExternalURL, "/") + "/" + NameOf(m)
}

// IsMLflow reports whether an owner is an MLflow, of whatever version.
func IsMLflow(o metav1.OwnerReference) bool {
	group, err := schema.ParseGroupVersion(o.APIVersion)
	return err == nil && group.Group == mlflowv1.GroupVersion.Group && o.Kind == "MLflow"
}

// NameOf is the name of the objects of which there is one of a kind.
func NameOf(m *mlflowv1.MLflow) string { return Suffixed(BaseName, m) }

// ClaimName is the name of the claim of an MLflow.
func ClaimName(m *mlflowv1.MLflow) string { return Suffixed(claimBaseName, m) }

// Suffixed distinguishes the objects of several servers. The schema admits one
// name only, for which the suffix is empty.
func Suffixed(base string, m *mlflowv1.MLflow) string {
	if m.Name == mlflowv1.SingletonName || m.Name == "" {
		return base
	}
	return base + "-" + m.Name
}

// podLabelsOf are the labels of pods of one application beside the server. The
// label of the instance puts them under the network policy of the server.
func podLabelsOf(app string, m *mlflowv1.MLflow) map[string]string {
	all := Labels(app)
	all[labelInstance] = NameOf(m)
	return all
}

// Labels are those of an object that belongs to the app.
func Labels(app string) map[string]string {
	return map[string]string{LabelApp: app, LabelComponent: BaseName}
}

func serviceAccountName(m *mlflowv1.MLflow) string {
	return cmp.Or(m.Spec.ServiceAccountName, defaultServiceAccount)
}
