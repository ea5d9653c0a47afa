package resources

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
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

// Inputs holds the inputs of the objects of an MLflow other than the MLflow.
type Inputs struct {
	// Namespace is the namespace of the servers.
	Namespace string
	// IPv6 is true if the cluster prefers IPv6.
	IPv6 bool
	// OpenShift is true if the cluster issues serving certificates and has a cipher policy.
	OpenShift bool
	// Served is the set of optional APIs of the cluster.
	Served capability.Set
	// Exposure is the configured exposure; empty on OpenShift.
	Exposure config.Exposure
	// TLS is the TLS profile of the servers.
	TLS tlsprofile.Profile
	// Authorities holds the CAs of the certificates that this operator issued, by server name.
	Authorities map[string][]byte
	// Image is the default MLflow image.
	Image string
	// GatewayName and GatewayNamespace identify the parent of the HTTPRoutes.
	GatewayName, GatewayNamespace string
	// ExternalURL is the base of public URLs, or "".
	ExternalURL string
	// SectionTitle is the section of the console menu.
	SectionTitle string
	// Version is the oldest MLflow release that this build supports, without a leading "v".
	Version string
	// PlatformCABundle is true if the ConfigMap with the CAs of the platform exists.
	PlatformCABundle bool
	// VerifyPostgreSQL is true if the legacy operator verified PostgreSQL with the CAs of the platform: an adopted server must keep doing so.
	VerifyPostgreSQL bool
	// RunningAccount is the ServiceAccount of running pods that do not change until a migration permits it, or "".
	RunningAccount string
	// LacksArtifactsServer is true while a migration delays the creation of the artifacts server.
	LacksArtifactsServer bool
}

// Plan holds the desired objects of an MLflow, in groups that are applied in this order.
type Plan struct {
	// Server holds the servers, with their RBAC, configuration, storage and NetworkPolicies.
	Server apply.Desired
	// CronJobs holds the CronJobs and the RBAC of garbage collection.
	CronJobs apply.Desired
	// Exposure holds Services, routes, monitors, disruption budgets and the ConsoleLink.
	Exposure apply.Desired
}

// All returns the objects of all groups.
func (p *Plan) All() apply.Desired { return slices.Concat(p.Server, p.CronJobs, p.Exposure) }

// Build returns the objects of an MLflow in the order of Plan, or an error that names the invalid fields.
func Build(m *mlflowv1.MLflow, in Inputs) (apply.Desired, error) {
	if err := Check(m, in); err != nil {
		return nil, err
	}
	p := NewPlan(m, in)
	return p.All(), nil
}

// NewPlan returns every object of an MLflow that Check accepts, except Jobs and Secrets.
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

// ExternalURL returns the public URL of the server, or "" if it is not published.
func ExternalURL(m *mlflowv1.MLflow, in Inputs) string {
	if !in.ViaGateway() && !in.Exposure.UsesIngress() || in.ExternalURL == "" {
		return ""
	}
	return publicURL(m, in)
}

// AddressURL returns the URL of the server within the cluster, or "" without a namespace.
func AddressURL(m *mlflowv1.MLflow, in Inputs) string {
	if in.Namespace == "" {
		return ""
	}
	return Tracking(m).address(in)
}

func publicURL(m *mlflowv1.MLflow, in Inputs) string {
	return strings.TrimRight(in.ExternalURL, "/") + "/" + NameOf(m)
}

// IsMLflow reports whether an owner is an MLflow of any API version.
func IsMLflow(o metav1.OwnerReference) bool {
	return servers.RefersTo(o, mlflowv1.GroupVersion.WithKind("MLflow"))
}

// NameOf returns the name of the tracking server.
func NameOf(m *mlflowv1.MLflow) string { return Suffixed(BaseName, m) }

// ClaimName returns the name of the PersistentVolumeClaim.
func ClaimName(m *mlflowv1.MLflow) string { return Suffixed(claimBaseName, m) }

// Suffixed returns the name of an object of the MLflow. The suffix is empty for the only name that the schema accepts.
func Suffixed(base string, m *mlflowv1.MLflow) string {
	if m.Name == mlflowv1.SingletonName || m.Name == "" {
		return base
	}
	return base + "-" + m.Name
}

// podLabelsOf returns the labels of the pods of an app. The NetworkPolicy of the server selects them by labelInstance.
func podLabelsOf(app string, m *mlflowv1.MLflow) map[string]string {
	all := Labels(app)
	all[labelInstance] = NameOf(m)
	return all
}

// Labels returns the labels of the objects of an app.
func Labels(app string) map[string]string {
	return map[string]string{LabelApp: app, LabelComponent: BaseName}
}

func serviceAccountName(m *mlflowv1.MLflow) string {
	return cmp.Or(m.Spec.ServiceAccountName, defaultServiceAccount)
}
