package resources

import (
	"cmp"
	"slices"

	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"k8s.io/utils/ptr"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/server"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
)

// Inputs holds the inputs of Build in addition to the Catalog.
type Inputs struct {
	servers.Publishing
	// Domain is the domain of Routes, "" if unknown.
	Domain string
	Images config.RegistryImages
	// SkipDatabase is true if the settings disable the managed database.
	SkipDatabase bool
	// AdminGroups are the groups that may update the user-editable ConfigMaps.
	AdminGroups []string
	// SourceConfigMaps are the names of the ConfigMaps with SourceLabel to mount, in the order in which the server reads them.
	SourceConfigMaps []string
	// EgressProxy is the egress proxy of the cluster.
	EgressProxy EgressProxy
	// HuggingFaceAPIKeys are the API keys for Hugging Face. HuggingFaceAPIKeysHash changes with any API key.
	HuggingFaceAPIKeys     []HuggingFaceAPIKey
	HuggingFaceAPIKeysHash string
}

// HuggingFaceAPIKey maps an environment variable of the server to the key of a Secret that contains an API key.
type HuggingFaceAPIKey struct{ Variable, Secret, SecretKey string }

// IsManaged reports whether an object has the labels of this component.
func IsManaged(o metav1.Object) bool { return apply.HasComponentLabels(o, ComponentName) }

// ActiveCatalog returns the oldest Catalog with a valid name and namespace that is not terminating, or nil.
func ActiveCatalog(all []aihubv1alpha1.Catalog, namespace string) *aihubv1alpha1.Catalog {
	var candidates []*aihubv1alpha1.Catalog
	for i := range all {
		c := &all[i]
		if c.DeletionTimestamp.IsZero() && c.Name == aihubv1alpha1.CatalogName && (namespace == "" || c.Namespace == namespace) {
			candidates = append(candidates, c)
		}
	}
	if len(candidates) == 0 {
		return nil
	}
	return slices.MinFunc(candidates, func(a, b *aihubv1alpha1.Catalog) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace))
	})
}

// HasAuthProxy reports whether a sidecar authenticates clients.
func HasAuthProxy(c *aihubv1alpha1.Catalog) bool {
	return authProxy(c).Mode != server.Disabled
}

// isReadableByAll reports whether every authenticated user may read the catalog.
func isReadableByAll(c *aihubv1alpha1.Catalog) bool {
	return c.Spec.Access == nil || c.Spec.Access.Authenticated != server.Disabled
}

// databaseSpec returns spec.database, or the zero value.
func databaseSpec(c *aihubv1alpha1.Catalog) aihubv1alpha1.CatalogDatabase {
	return ptr.Deref(c.Spec.Database, aihubv1alpha1.CatalogDatabase{})
}

// ExternalDatabase returns spec.database.external, or nil.
func ExternalDatabase(c *aihubv1alpha1.Catalog) *aihubv1alpha1.ExternalDatabase {
	return databaseSpec(c).External
}

// DatabaseConnection returns spec.database.connection, whose Secret contains the address, or nil.
func DatabaseConnection(c *aihubv1alpha1.Catalog) *aihubv1alpha1.DatabaseConnection {
	return databaseSpec(c).Connection
}

// HasExternalDatabase reports whether the spec names an external database.
func HasExternalDatabase(c *aihubv1alpha1.Catalog) bool {
	return ExternalDatabase(c) != nil || DatabaseConnection(c) != nil
}

// OwnsDatabase reports whether the operator runs the database.
func OwnsDatabase(c *aihubv1alpha1.Catalog, in Inputs) bool {
	return !in.SkipDatabase && !HasExternalDatabase(c)
}

// EncryptsDatabase reports whether the managed database serves TLS.
func EncryptsDatabase(c *aihubv1alpha1.Catalog) bool {
	return !HasExternalDatabase(c) && databaseSpec(c).ServerTLS == server.Enabled
}

// ServingSecret returns the name of the Secret with the certificate of the authenticating proxy.
func ServingSecret(c *aihubv1alpha1.Catalog) string {
	return cmp.Or(authProxy(c).CertificateSecretName, CertificateSecret)
}

// serverDescription returns the catalog as exposed by its Service.
func serverDescription(c *aihubv1alpha1.Catalog) *servers.Description {
	d := &servers.Description{
		Name: Name, Namespace: c.Namespace, Labels: func(string) map[string]string { return Labels(Name) }, Selector: Selector(Name),
		Port: serverPort, PortName: PortName, HTTPRoute: Name, Grant: GrantName, Path: "catalog",
	}
	if HasAuthProxy(c) {
		d.Port, d.PortName, d.TLS = proxyPort, httpsPortName, true
	}
	return d
}

// Build returns the objects of a Catalog, which Apply orders by apply.Stage. It omits the user-editable ConfigMaps and the Secrets.
func Build(c *aihubv1alpha1.Catalog, in Inputs) apply.Desired {
	var objects apply.Desired
	d := serverDescription(c)
	objects.Add(d.ServiceAccount(), defaultSourcesConfigMap(c), ServerDeployment(c, in), service(c, in),
		d.ReaderRole(d.MetaForDashboard(Name, "Model catalog User", "Can access model catalog")))
	if isReadableByAll(c) {
		objects.Add(servers.GroupRoleBinding(d.Meta(ReadersBinding), Name, "system:authenticated"))
	}
	objects = append(objects, d.DisruptionBudget(c.Spec.Replicas)...)
	objects.Add(adminRole(d), d.EgressPolicy())
	if len(in.AdminGroups) > 0 {
		meta := d.MetaForDashboard(AdminBinding, "Model Catalog Admin", "Lets the administrators of the platform change the sources of the model catalog")
		objects.Add(servers.GroupRoleBinding(meta, AdminName, in.AdminGroups...))
	}
	if OwnsDatabase(c, in) {
		objects = append(objects, BuildDatabase(c, in)...)
	}
	objects = append(objects, ExposureObjects(c, in)...)
	if HasAuthProxy(c) {
		objects = append(objects, d.ProxyObjects()...)
	}
	return objects
}

// adminRole grants update of the user-editable ConfigMaps and read access to all ConfigMaps. It grants no access to Secrets, because
// those of registries contain passwords.
func adminRole(d *servers.Description) *rbacv1ac.RoleApplyConfiguration {
	configMaps := func(verbs ...string) *rbacv1ac.PolicyRuleApplyConfiguration {
		return rbacv1ac.PolicyRule().WithAPIGroups("").WithResources("configmaps").WithVerbs(verbs...)
	}
	meta := d.MetaForDashboard(AdminName, "Model Catalog Admin", "Can change the sources of the model catalog")
	return rbacv1ac.Role(meta.Name, meta.Namespace).WithLabels(meta.Labels).WithAnnotations(meta.Annotations).WithRules(
		configMaps("update", "patch").WithResourceNames(ModelSources, McpSources, AgentSources, RuntimeSources),
		configMaps("get", "list", "watch"), // a list restricted by names would omit the ConfigMaps with SourceLabel
	)
}

func service(c *aihubv1alpha1.Catalog, in Inputs) runtime.ApplyConfiguration {
	certificate := ""
	if HasAuthProxy(c) && ServingSecret(c) == CertificateSecret {
		certificate = CertificateSecret
	}
	return serverDescription(c).Service(certificate, externalAddress(in))
}

// externalAddress returns the address outside of the cluster, "" if there is none or it is unknown.
func externalAddress(in Inputs) string {
	switch {
	case in.HasGatewayAddress():
		return in.Gateway.Domain + "/catalog"
	case in.RouteReport.RejectedByRouter():
		return ""
	case in.Exposure.UsesIngress():
		return ingressHost(in) + ":443"
	case in.IsOpenShift() && in.Domain != "":
		return Name + "." + in.Domain + ":443"
	default:
		return ""
	}
}

// ExposureObjects returns the Ingress or Route, the objects for the Gateway, and the NetworkPolicy for ingress.
func ExposureObjects(c *aihubv1alpha1.Catalog, in Inputs) apply.Desired {
	d := serverDescription(c)
	objects := d.GatewayObjects(&in.Publishing)
	if in.Exposure.UsesIngress() {
		objects.Add(d.Ingress(ingressHost(in), &in.Publishing))
	}
	if in.IsOpenShift() {
		objects.Add(route(c, in), d.RouterPolicy(d.Port))
		return objects
	}
	objects.Add(d.IngressPolicy(d.Port))
	return objects
}

func ingressHost(in Inputs) string { return Name + "." + in.Exposure.IngressDomain }

// route returns the Route of the catalog. It sets default values explicitly, so that the field manager owns them.
func route(c *aihubv1alpha1.Catalog, in Inputs) runtime.ApplyConfiguration {
	p := resources.Published{
		Service:  Name,
		Port:     intstr.FromString(serverDescription(c).PortName),
		TLS:      &routev1.TLSConfig{Termination: routev1.TLSTerminationReencrypt},
		Weight:   new(resources.RouteWeight),
		Wildcard: routev1.WildcardPolicyNone,
	}
	if !HasAuthProxy(c) {
		p.TLS.Termination = routev1.TLSTerminationEdge
	}
	if in.Domain != "" {
		p.Host = Name + "." + in.Domain
	}
	return p.Route(serverDescription(c).Meta(RouteName))
}
