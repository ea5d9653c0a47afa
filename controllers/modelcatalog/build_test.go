package modelcatalog

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/server"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/test/framework"
	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

func serverOf(t testing.TB, c *aihubv1alpha1.Catalog, in resources.Inputs) *appsv1.Deployment {
	t.Helper()
	return decodeObject[appsv1.Deployment](t, c, in, "Deployment", resources.Name)
}

func databaseOf(t testing.TB, c *aihubv1alpha1.Catalog, in resources.Inputs) *appsv1.Deployment {
	t.Helper()
	return decodeObject[appsv1.Deployment](t, c, in, "Deployment", resources.DatabaseName)
}

const digest = "sha256:3f79bb7b435b05321651daefd374cdc681dc06faa65e374e38337b88ca046dea"

func TestGolden(t *testing.T) {
	adminsAndSources := func(in *resources.Inputs) {
		in.AdminGroups, in.SourceConfigMaps = []string{"odh-admins", "rhods-admins"}, []string{"alpha", "zebra"}
	}
	for name, test := range map[string]struct {
		catalog *aihubv1alpha1.Catalog
		inputs  resources.Inputs
	}{
		"plain":     {newCatalog(), kubernetesInputs()},
		"openshift": {newCatalog(), openShiftInputs()},
		"gateway":   {newCatalog(), openShiftInputs(behindGateway, adminsAndSources)},
		"custom": {newCatalog(withoutAuthProxy, withResources(&corev1.ResourceRequirements{}, &corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}),
			func(s *aihubv1alpha1.CatalogSpec) {
				s.Access = &aihubv1alpha1.CatalogAccess{Authenticated: server.Disabled}
				s.Database = &aihubv1alpha1.CatalogDatabase{Volume: &aihubv1alpha1.CatalogVolume{SizeLimit: new(resource.MustParse("10Gi"))}}
				s.Proxy = &aihubv1alpha1.CatalogProxy{HTTPSProxy: new("http://proxy.example.com:3128"), NoProxy: new(".svc,.cluster.local")}
				s.CatalogDataImage, s.BenchmarkDataImage = digest, "v2.1"
			}), openShiftInputs(adminsAndSources)},
		"placed": {newCatalog(func(s *aihubv1alpha1.CatalogSpec) { s.Pods = registrytest.Placed() }), kubernetesInputs()},
		"external": {newCatalog(withExternalDatabase(aihubv1alpha1.ExternalDatabase{
			Host: "db.example.com", Port: new(int32(6432)), SecretName: "db", SSLMode: "verify-full"})), kubernetesInputs()},
		"connection": {newCatalog(withDatabase(aihubv1alpha1.CatalogDatabase{Connection: &aihubv1alpha1.DatabaseConnection{
			SecretName: "catalog-app", SSLMode: "verify-full", CASecretName: "catalog-ca"}})), kubernetesInputs()},
		"tls-plain":     {newCatalog(withDatabase(aihubv1alpha1.CatalogDatabase{ServerTLS: server.Enabled})), kubernetesInputs()},
		"tls-openshift": {newCatalog(withDatabase(aihubv1alpha1.CatalogDatabase{ServerTLS: server.Enabled})), openShiftInputs()},
	} {
		t.Run(name, func(t *testing.T) {
			framework.Golden(t, filepath.Join("testdata", "golden", name+".yaml"), buildObjects(t, test.catalog, test.inputs))
		})
	}
}

// [modelregistry-75] The order of the desired objects within the stages of Apply.
func TestOrderOfDesiredObjects(t *testing.T) {
	var got []string
	for _, o := range buildObjects(t, newCatalog(), openShiftInputs(behindGateway, func(in *resources.Inputs) { in.AdminGroups = []string{"a"} })) {
		got = append(got, o.GetKind()+"/"+o.GetName())
	}
	want := []string{
		"ServiceAccount/model-catalog", "ConfigMap/default-catalog-sources", "Deployment/model-catalog", "Service/model-catalog",
		"Role/model-catalog", "RoleBinding/model-catalog-authenticated", "Role/model-catalog-admin", "NetworkPolicy/model-catalog-egress", "RoleBinding/model-catalog-admin-binding",
		"Deployment/model-catalog-postgres", "Service/model-catalog-postgres", "NetworkPolicy/model-catalog-postgres", "NetworkPolicy/model-catalog-postgres-egress",
		"ReferenceGrant/allow-gateway-model-catalog", "HTTPRoute/model-catalog", "Route/model-catalog-https", "NetworkPolicy/model-catalog-https-route",
		"ConfigMap/model-catalog-kube-rbac-proxy-config", "ClusterRoleBinding/model-catalog-auth-delegator",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Every object has the labels of catalog and component, and those in the namespace of the Catalog have a controller reference.
func TestLabelsAndOwners(t *testing.T) {
	for _, o := range buildObjects(t, newCatalog(), openShiftInputs(behindGateway)) {
		name := o.GetKind() + "/" + o.GetName()
		component := resources.Name
		if strings.HasPrefix(o.GetName(), resources.DatabaseName) {
			component = resources.DatabaseName
		}
		want := resources.Labels(component)
		for key, value := range names.Labels(ComponentName) {
			want[key] = value
		}
		unowned := o.GetKind() == "ClusterRoleBinding" || o.GetKind() == "HTTPRoute"
		if unowned {
			want[resources.LabelNamespace] = "lab-registries"
		}
		if diff := cmp.Diff(want, o.GetLabels()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		controlled := metav1.IsControlledBy(o, newCatalog())
		if controlled == unowned || len(o.GetOwnerReferences()) > 1 {
			t.Errorf("%s: owners %v", name, o.GetOwnerReferences())
		}
	}
}

// [modelregistry-67] The server and its sidecar.
func TestServer(t *testing.T) {
	d := serverOf(t, newCatalog(), kubernetesInputs())
	pod := d.Spec.Template.Spec
	if len(pod.Containers) != 2 || pod.Containers[0].Image != "quay.io/example/model-registry:v1" {
		t.Fatalf("containers %+v", pod.Containers)
	}
	sidecar := pod.Containers[1]
	for _, argument := range []string{
		"--secure-listen-address=0.0.0.0:8443", "--upstream=http://127.0.0.1:8080/", "--proxy-endpoints-port=8888",
		"--tls-cert-file=/etc/tls/tls.crt", "--tls-private-key-file=/etc/tls/tls.key",
	} {
		if !slices.Contains(sidecar.Args, argument) {
			t.Errorf("arguments %v lack %s", sidecar.Args, argument)
		}
	}
	if p := sidecar.ReadinessProbe.HTTPGet; p.Path != "/healthz" || p.Port.StrVal != "proxy-healthz" {
		t.Errorf("readiness %+v", p)
	}
	if p := pod.Containers[0].StartupProbe; p.PeriodSeconds*p.FailureThreshold != 300 || p.TCPSocket == nil {
		t.Errorf("startup probe %+v, want 300 seconds for a server that waits for its database", p)
	}
	if d.Spec.Selector.MatchLabels[resources.LabelComponent] != resources.Name || len(d.Spec.Selector.MatchLabels) != 3 {
		t.Errorf("selector %v", d.Spec.Selector)
	}
	if *pod.SecurityContext.FSGroup != resources.PodFSGroup || serverOf(t, newCatalog(), openShiftInputs()).Spec.Template.Spec.SecurityContext.FSGroup != nil {
		t.Error("want the fsGroup of the operator on plain Kubernetes, and none on OpenShift, which assigns one")
	}
}

// [modelregistry-97] [modelregistry-127] Labelled sources become volumes and arguments, in order.
func TestServerMountsSources(t *testing.T) {
	in := kubernetesInputs()
	in.SourceConfigMaps = []string{"alpha", "zebra"}
	pod := serverOf(t, newCatalog(), in).Spec.Template.Spec
	args := strings.Join(pod.Containers[0].Args, " ")
	if !strings.Contains(args, "--catalogs-path=/data/user-agent-sources/sources.yaml --catalogs-path=/data/user-serving-runtime-sources/sources.yaml"+
		" --catalogs-path=/data/labeled-sources/alpha/sources.yaml"+
		" --catalogs-path=/data/labeled-sources/zebra/sources.yaml --performance-metrics=/shared-benchmark-data") {
		t.Errorf("arguments %s", args)
	}
	var volumes []string
	for _, v := range pod.Volumes {
		volumes = append(volumes, v.Name)
	}
	want := []string{"user-model-sources", "user-mcp-sources", "user-agent-sources", "user-serving-runtime-sources", "default-sources", "catalog-data",
		"benchmark-data", "labeled-alpha", "labeled-zebra", "kube-rbac-proxy-tls", "kube-rbac-proxy-config"}
	if diff := cmp.Diff(want, volumes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, v := range serverOf(t, newCatalog(), kubernetesInputs()).Spec.Template.Spec.Volumes {
		if strings.HasPrefix(v.Name, "labeled-") {
			t.Errorf("volume %s without a source", v.Name)
		}
	}
}

// [modelregistry-76] Empty resources in the spec remove the defaults of the server, but not those of the database.
func TestResources(t *testing.T) {
	requested := &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("2")}, Claims: []corev1.ResourceClaim{{Name: "gpu"}}}
	requests := func(d *appsv1.Deployment) string {
		return d.Spec.Template.Spec.Containers[0].Resources.Requests.Cpu().String()
	}
	for name, test := range map[string]struct {
		catalog          *aihubv1alpha1.Catalog
		server, database string
	}{
		"unset": {newCatalog(), "100m", "250m"},
		"empty": {newCatalog(withResources(&corev1.ResourceRequirements{}, &corev1.ResourceRequirements{})), "0", "250m"},
		"set":   {newCatalog(withResources(requested, requested)), "2", "2"},
	} {
		server, database := serverOf(t, test.catalog, kubernetesInputs()), databaseOf(t, test.catalog, kubernetesInputs())
		if requests(server) != test.server || requests(database) != test.database {
			t.Errorf("%s: server %s, database %s", name, requests(server), requests(database))
		}
		if len(server.Spec.Template.Spec.Containers[0].Resources.Claims) > 0 {
			t.Error("resource claims of the spec were not ignored")
		}
	}
	size := databaseOf(t, newCatalog(), kubernetesInputs()).Spec.Template.Spec.Volumes[0].EmptyDir.SizeLimit
	if size.String() != "5Gi" {
		t.Errorf("default size of the database volume %s, want 5Gi", size)
	}
}

// [modelregistry-86] [modelregistry-87] The database reads its credentials from a Secret, and only the server may connect to it.
func TestDatabase(t *testing.T) {
	d := databaseOf(t, newCatalog(), kubernetesInputs())
	var env []string
	for _, e := range d.Spec.Template.Spec.Containers[0].Env {
		env = append(env, e.Name+"="+e.ValueFrom.SecretKeyRef.Key)
	}
	if diff := cmp.Diff([]string{"POSTGRESQL_USER=database-user", "POSTGRESQL_PASSWORD=database-password", "POSTGRESQL_DATABASE=database-name"}, env); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	p := decodeObject[networkingv1.NetworkPolicy](t, newCatalog(), kubernetesInputs(), "NetworkPolicy", resources.DatabaseName)
	rule := p.Spec.Ingress[0]
	if len(p.Spec.Ingress) != 1 || len(rule.From) != 1 || rule.From[0].PodSelector.MatchLabels[resources.LabelName] != resources.Name ||
		len(rule.Ports) != 1 || rule.Ports[0].Port.IntVal != 5432 || p.Spec.PodSelector.MatchLabels[resources.LabelName] != resources.DatabaseName {
		t.Errorf("policy %+v", p.Spec)
	}
}

// With an external database in the spec, or SkipDatabase in the inputs, the operator creates no database.
func TestExternalDatabase(t *testing.T) {
	in := kubernetesInputs()
	in.SkipDatabase = true
	external := aihubv1alpha1.ExternalDatabase{Host: "db.example.com", Port: new(int32(6432)), SecretName: "db", SSLMode: "require"}
	for name, test := range map[string]struct {
		catalog *aihubv1alpha1.Catalog
		in      resources.Inputs
		env     string
	}{
		"skipped":  {newCatalog(), in, "PGHOST=model-catalog-postgres PGDATABASE<model-catalog-postgres PGUSER<model-catalog-postgres PGPASSWORD<model-catalog-postgres"},
		"external": {newCatalog(withExternalDatabase(external)), kubernetesInputs(), "PGHOST=db.example.com PGDATABASE<db PGUSER<db PGPASSWORD<db PGPORT=6432 PGSSLMODE=require"},
	} {
		for _, o := range buildObjects(t, test.catalog, test.in) {
			if o.GetName() == resources.DatabaseName {
				t.Errorf("%s: %s of the database was created", name, o.GetKind())
			}
		}
		var env []string
		for _, v := range serverOf(t, test.catalog, test.in).Spec.Template.Spec.Containers[0].Env {
			if v.ValueFrom != nil {
				env = append(env, v.Name+"<"+v.ValueFrom.SecretKeyRef.Name)
			} else {
				env = append(env, v.Name+"="+v.Value)
			}
		}
		if got := strings.Join(env, " "); got != test.env {
			t.Errorf("%s: got  %s\nwant %s", name, got, test.env)
		}
	}
	retained := withRetained(newCatalog(), in, nil)
	if len(retained) != 4 || len(withRetained(newCatalog(), kubernetesInputs(), nil)) != 0 || len(withRetained(newCatalog(withExternalDatabase(external)), in, nil)) != 0 {
		t.Error("want a database retained only with SkipDatabase and without an external one in the spec")
	}
}

// [D22] Only existing addresses are published.
func TestAddressesOmitObjectsThatAreNotBuilt(t *testing.T) {
	noDomain := func(in *resources.Inputs) { in.Domain = "" }
	notServed := func(in *resources.Inputs) { in.Served = capability.NewSet(capability.Route, capability.ReferenceGrant) }
	for name, test := range map[string]struct {
		in   resources.Inputs
		want string
	}{
		"plain":                         {kubernetesInputs(), ""},
		"route":                         {openShiftInputs(), "model-catalog.apps.example.com:443"},
		"no domain":                     {openShiftInputs(noDomain), ""},
		"gateway":                       {openShiftInputs(behindGateway), "gateway.example.com/catalog"},
		"gateway, HTTPRoute not served": {openShiftInputs(behindGateway, notServed), "model-catalog.apps.example.com:443"},
		"gateway, Route not served": {func() resources.Inputs {
			in := kubernetesInputs()
			behindGateway(&in)
			in.Served = capability.NewSet(capability.HTTPRoute)
			return in
		}(), ""},
	} {
		s := decodeObject[corev1.Service](t, newCatalog(), test.in, "Service", resources.Name)
		if got := s.Annotations[servers.AnnotationAddress]; got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
	route := findObject(buildObjects(t, newCatalog(), openShiftInputs(noDomain)), "Route", resources.RouteName)
	if _, set, _ := unstructured.NestedString(route.Object, "spec", "host"); set {
		t.Error("a Route without a domain has a host")
	}
}

// [S5] Administrators may not read Secrets, may read all sources and update only those of users.
func TestAdminRole(t *testing.T) {
	r := decodeObject[rbacv1.Role](t, newCatalog(), kubernetesInputs(), "Role", resources.AdminName)
	for _, rule := range r.Rules {
		writes := slices.Contains(rule.Verbs, "update") || slices.Contains(rule.Verbs, "patch")
		if !slices.Equal(rule.Resources, []string{"configmaps"}) || writes != (len(rule.ResourceNames) > 0) || slices.Contains(rule.ResourceNames, resources.DefaultSources) {
			t.Errorf("rule %+v", rule) // the operator would revert changes of the default sources
		}
	}
	if len(r.Rules) != 2 {
		t.Errorf("got rules %+v, want one to read and one to update", r.Rules)
	}
}

// [S6] Read access of all authenticated users can be disabled.
func TestReadersBindingRequiresAuthenticatedAccess(t *testing.T) {
	if findObject(buildObjects(t, newCatalog(), kubernetesInputs()), "RoleBinding", resources.ReadersBinding) == nil {
		t.Error("by default, the RoleBinding of readers is missing")
	}
	restricted := newCatalog(func(s *aihubv1alpha1.CatalogSpec) {
		s.Access = &aihubv1alpha1.CatalogAccess{Authenticated: server.Disabled}
	})
	if findObject(buildObjects(t, restricted, kubernetesInputs()), "RoleBinding", resources.ReadersBinding) != nil {
		t.Error("the RoleBinding of readers exists, although spec.access.authenticated is Disabled")
	}
}

// [modelregistry-130] One policy allows all egress of the server, another one denies all egress of its database.
func TestEgressPolicies(t *testing.T) {
	for name, rules := range map[string][]any{resources.EgressPolicy: {map[string]any{}}, resources.DatabaseEgress: {}} {
		pods := strings.TrimSuffix(name, "-egress")
		want := map[string]any{
			"podSelector": map[string]any{"matchLabels": map[string]any{"app": "model-catalog", "component": "model-catalog", "app.kubernetes.io/name": pods}},
			"policyTypes": []any{"Egress"}, "egress": rules,
		}
		for _, in := range []resources.Inputs{kubernetesInputs(), openShiftInputs(behindGateway)} {
			if diff := cmp.Diff(want, findObject(buildObjects(t, newCatalog(withoutAuthProxy), in), "NetworkPolicy", name).Object["spec"]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
	if findObject(buildObjects(t, newCatalog(withExternalDatabase(aihubv1alpha1.ExternalDatabase{Host: "db"})), kubernetesInputs()), "NetworkPolicy", resources.DatabaseEgress) != nil {
		t.Error("the policy of the database exists without a database")
	}
}

// [S1] Policies open the port of the proxy, and that of the server only without a proxy.
func TestPoliciesOpenOnePort(t *testing.T) {
	for name, test := range map[string]struct {
		catalog *aihubv1alpha1.Catalog
		in      resources.Inputs
		policy  string
		port    int32
	}{
		"plain":                     {newCatalog(), kubernetesInputs(), resources.IngressPolicy, 8443},
		"OpenShift":                 {newCatalog(), openShiftInputs(), resources.RoutePolicy, 8443},
		"without a proxy":           {newCatalog(withoutAuthProxy), kubernetesInputs(), resources.IngressPolicy, 8080},
		"OpenShift without a proxy": {newCatalog(withoutAuthProxy), openShiftInputs(), resources.RoutePolicy, 8080},
	} {
		p := decodeObject[networkingv1.NetworkPolicy](t, test.catalog, test.in, "NetworkPolicy", test.policy)
		if len(p.Spec.Ingress) != 1 || len(p.Spec.Ingress[0].Ports) != 1 || p.Spec.Ingress[0].Ports[0].Port.IntVal != test.port {
			t.Errorf("%s: unexpected spec %+v", name, p.Spec)
		}
	}
}

// The authenticating proxy can be disabled, and the user can provide its certificate.
func TestProxy(t *testing.T) {
	pod := serverOf(t, newCatalog(withoutAuthProxy), kubernetesInputs()).Spec.Template.Spec
	if len(pod.Containers) != 1 || *pod.AutomountServiceAccountToken {
		t.Errorf("got %d containers and token %v without a proxy, want one container without a token", len(pod.Containers), *pod.AutomountServiceAccountToken)
	}
	s := decodeObject[corev1.Service](t, newCatalog(withoutAuthProxy), kubernetesInputs(), "Service", resources.Name)
	if s.Spec.Ports[0].Port != 8080 || s.Spec.Ports[0].Name != resources.PortName || len(s.Annotations) > 0 {
		t.Errorf("service %+v %v", s.Spec.Ports, s.Annotations)
	}
	userProvided := newCatalog(func(s *aihubv1alpha1.CatalogSpec) {
		s.Proxy = &aihubv1alpha1.CatalogProxy{CertificateSecretName: "mine"}
	})
	s = decodeObject[corev1.Service](t, userProvided, openShiftInputs(), "Service", resources.Name)
	if _, requested := s.Annotations[servers.AnnotationServingCert]; requested {
		t.Error("the Service requests a serving certificate, although the user provides one")
	}
	found := false
	for _, v := range serverOf(t, userProvided, openShiftInputs()).Spec.Template.Spec.Volumes {
		found = found || v.Secret != nil && v.Secret.SecretName == "mine"
	}
	if !found || issuesCertificate(userProvided, kubernetesInputs()) || !issuesCertificate(newCatalog(), kubernetesInputs()) || issuesCertificate(newCatalog(), openShiftInputs()) || issuesCertificate(newCatalog(withoutAuthProxy), kubernetesInputs()) {
		t.Error("want the Secret of the user mounted, and a certificate issued only for a proxy whose certificate neither the user nor OpenShift provides")
	}
}

// [S7] Every pod meets the restricted Pod Security Standard.
func TestPodsAreRestricted(t *testing.T) {
	for _, d := range []*appsv1.Deployment{serverOf(t, newCatalog(), kubernetesInputs()), databaseOf(t, newCatalog(), kubernetesInputs())} {
		pod := d.Spec.Template.Spec
		if !*pod.SecurityContext.RunAsNonRoot || pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s: pod %+v", d.Name, pod.SecurityContext)
		}
		for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
			s := c.SecurityContext
			if *s.AllowPrivilegeEscalation || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 {
				t.Errorf("%s/%s: got security context %+v, want a restricted one", d.Name, c.Name, s)
			}
		}
	}
	if *databaseOf(t, newCatalog(), kubernetesInputs()).Spec.Template.Spec.AutomountServiceAccountToken {
		t.Error("the database pod mounts a ServiceAccount token")
	}
}

type sourceEntry struct {
	Name, ID, Type string
	Enabled        bool
	Properties     map[string]string
	Labels         []string
}

// [modelregistry-91] [modelregistry-128] The default sources have the names and labels that the dashboard uses.
func TestDefaultSources(t *testing.T) {
	var s struct {
		Catalogs, MCP, Agents, Runtimes []sourceEntry
		Labels                          []struct{ Name, AssetType, DisplayName, Description string }
		NamedQueries                    map[string]map[string]struct {
			Operator string
			Value    any
		}
	}
	renamed := strings.NewReplacer("mcp_catalogs", "mcp", "agent_catalogs", "agents", "serving_runtime_catalogs", "runtimes").Replace(resources.DefaultSourcesText)
	if err := yaml.Unmarshal([]byte(renamed), &s); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"redhat_ai_models": "Red Hat AI|models-catalog.yaml|Red Hat AI", "other_models": "Other|other-models-catalog.yaml|",
		"redhat_ai_validated_models": "Red Hat AI validated|validated-models-catalog.yaml|Red Hat AI validated",
		"rh_mcp_servers":             "Red Hat MCP Servers|redhat-mcp-servers-catalog.yaml|Red Hat",
		"rh_partner_mcp_servers":     "Red Hat Partner MCP Servers|partner-mcp-servers-catalog.yaml|Red Hat Partners",
		"community_mcp_servers":      "Community MCP Servers|community-mcp-servers-catalog.yaml|",
		"rh_agents":                  "Red Hat Agents|redhat-agents-catalog.yaml|Red Hat Agents",
		"rh_serving_runtimes":        "Red Hat Serving Runtimes|redhat-serving-runtimes-catalog.yaml|Red Hat Serving Runtimes",
	}
	got := map[string]string{}
	for _, e := range slices.Concat(s.Catalogs, s.MCP, s.Agents, s.Runtimes) {
		got[e.ID] = e.Name + "|" + strings.TrimPrefix(e.Properties["yamlCatalogPath"], "/shared-data/") + "|" + strings.Join(e.Labels, ",")
		if e.Type != "yaml" || !e.Enabled {
			t.Errorf("entry %+v", e)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(s.MCP) != 3 || len(s.Agents) != 1 || len(s.Runtimes) != 1 {
		t.Errorf("(-want +got):\n%s", diff)
	}
	seen := map[string]bool{}
	for _, l := range s.Labels {
		if seen[l.Name] || l.Description == "" || l.AssetType == "" {
			t.Errorf("label %+v", l)
		}
		seen[l.Name] = true
		if l.Name == "Red Hat Serving Runtimes" && l.AssetType != "serving_runtimes" {
			t.Errorf("label %+v", l)
		}
	}
	if len(s.Labels) != 7 || s.Labels[0].DisplayName != "Red Hat AI - validated models" || s.Labels[2].Name != "" {
		t.Errorf("labels %+v", s.Labels)
	}
	filters := s.NamedQueries["default-performance-filters"]
	if f := filters["artifacts.requests_per_second.double_value"]; f.Operator != "<=" || f.Value != 1.0 || len(filters) != 3 {
		t.Errorf("filters %+v", filters)
	}
	if problem := contentProblem(resources.DefaultSourcesText); problem != "" {
		t.Errorf("the default sources are invalid: %s", problem)
	}
}

// [modelregistry-90] The sources of users contain an empty list under the key of their kind.
func TestUserSources(t *testing.T) {
	for i, want := range []string{"catalogs", "mcp_catalogs", "agent_catalogs", "serving_runtime_catalogs"} {
		var content map[string][]any
		if err := yaml.Unmarshal([]byte(resources.UserSources[i].Content), &content); err != nil {
			t.Fatal(err)
		}
		if list, found := content[want]; !found || list == nil || len(list) != 0 || len(content) != 1 {
			t.Errorf("%s: unexpected content: %v", resources.UserSources[i].Name, content)
		}
	}
}
