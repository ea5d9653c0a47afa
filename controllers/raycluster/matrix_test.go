package raycluster

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// Expected objects, maintained by hand, with variables that replaceVariables replaces.
const (
	wantCookie  = `{apiVersion: v1, kind: Secret, metadata: {name: $cookie}, data: {cookie_secret: Y29va2ll}}`
	wantService = `{apiVersion: v1, kind: Service, metadata: {name: $service},
  spec: {type: ClusterIP, selector: {ray.io/cluster: demo, ray.io/node-type: head}, ports: [{name: oauth-proxy, appProtocol: https, port: 443, protocol: TCP, targetPort: oauth-proxy}]}}`
	wantServingCertService = `{apiVersion: v1, kind: Service, metadata: {name: $service, annotations: {service.beta.openshift.io/serving-cert-secret-name: $tls}},
  spec: {type: ClusterIP, selector: {ray.io/cluster: demo, ray.io/node-type: head}, ports: [{name: oauth-proxy, port: 443, protocol: TCP, targetPort: oauth-proxy}]}}`
	wantServiceAccount      = `{apiVersion: v1, kind: ServiceAccount, metadata: {name: $account}}`
	wantOAuthServiceAccount = `{apiVersion: v1, kind: ServiceAccount, metadata: {name: $account, annotations: {
  serviceaccounts.openshift.io/oauth-redirectreference.first: '{"kind":"OAuthRedirectReference","apiVersion":"v1","reference":{"kind":"Route","name":"ray-dashboard-demo"}}'}}}`
	wantProxyConfig = `{apiVersion: v1, kind: ConfigMap, metadata: {name: $rules},
  data: {config-file.yaml: "authorization:\n  resourceAttributes:\n    apiVersion: v1\n    namespace: team1\n    resource: pods\n    verb: get\n"}}`
	wantBinding = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: $binding},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:auth-delegator"},
  subjects: [{kind: ServiceAccount, name: $account, namespace: team1}]}`
	wantRoute = `{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: ray-dashboard-demo},
  spec: {to: {kind: Service, name: $service, weight: 100}, port: {targetPort: oauth-proxy}, tls: {termination: reencrypt, insecureEdgeTerminationPolicy: Redirect}}}`
	wantClientRoute = `{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: rayclient-demo},
  spec: {to: {kind: Service, name: demo-head-svc, weight: 100}, port: {targetPort: client}, tls: {termination: passthrough}}}`
	wantIngress = `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: ray-dashboard-demo},
  spec: {rules: [{host: ray-dashboard-demo-team1.apps.example.org, http: {paths: [{path: /, pathType: Prefix,
    backend: {service: {name: demo-head-svc, port: {name: dashboard}}}}]}}]}}`
	wantProxyIngress = `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: ray-dashboard-demo, annotations: {nginx.ingress.kubernetes.io/backend-protocol: HTTPS}},
  spec: {rules: [{host: ray-dashboard-demo-team1.apps.example.org, http: {paths: [{path: /, pathType: Prefix,
    backend: {service: {name: $service, port: {name: oauth-proxy}}}}]}}]}}`
	wantClientIngress = `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: rayclient-demo, annotations: {
  nginx.ingress.kubernetes.io/rewrite-target: /, nginx.ingress.kubernetes.io/ssl-redirect: "true", nginx.ingress.kubernetes.io/ssl-passthrough: "true"}},
  spec: {ingressClassName: nginx, rules: [{host: rayclient-demo-team1.apps.example.org, http: {paths: [{path: /, pathType: ImplementationSpecific,
    backend: {service: {name: demo-head-svc, port: {number: 10001}}}}]}}]}}`
	wantWorkerPolicy = `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: $workers},
  spec: {podSelector: {matchLabels: {ray.io/cluster: demo, ray.io/node-type: worker}}, policyTypes: [Ingress],
    ingress: [{from: [{podSelector: {matchLabels: {ray.io/cluster: demo}}}]}]}}`
	wantHeadPolicy = `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: $head},
  spec: {podSelector: {matchLabels: {ray.io/cluster: demo, ray.io/node-type: head}}, policyTypes: [Ingress], ingress: [
    {from: [{podSelector: {matchLabels: {ray.io/cluster: demo}}}]},
    {from: [{podSelector: {}}], ports: [{port: 10001, protocol: TCP}, {port: 8265, protocol: TCP}]},
    {from: [{podSelector: {matchLabels: {app.kubernetes.io/component: kuberay-operator}},
             namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [$kuberay]}]}}],
     ports: [{port: 8265, protocol: TCP}, {port: 10001, protocol: TCP}]},
    {from: [{namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [openshift-monitoring, openshift-user-workload-monitoring]}]}}],
     ports: [{port: 8080, protocol: TCP}]},
    {ports: [$open]}$routed]}}`
)

// hashedName implements the rule of hashed names independently.
func hashedName(base string) string {
	sum := sha256.Sum256([]byte("codeflare-raycluster-controller" + base))
	return base + "-" + hex.EncodeToString(sum[:])[:8]
}

// combination is a combination of the inputs that determine the objects of a cluster.
type combination struct {
	openShift, domain, oauth, mtls, suspended, hashed bool
	// sidecar is the name of the sidecar in the head template. tls is true if the head template uses TLS.
	sidecar string
	tls     bool
}

func (c combination) String() string {
	return fmt.Sprintf("openshift=%t domain=%t oauth=%t mtls=%t suspended=%t hashed=%t sidecar=%q tls=%t",
		c.openShift, c.domain, c.oauth, c.mtls, c.suspended, c.hashed, c.sidecar, c.tls)
}

// allCombinations returns all combinations of the inputs.
func allCombinations() []combination {
	all := []combination{{}}
	double := func(set func(*combination)) {
		for _, c := range slices.Clone(all) {
			set(&c)
			all = append(all, c)
		}
	}
	double(func(c *combination) { c.openShift = true })
	double(func(c *combination) { c.domain = true })
	double(func(c *combination) { c.oauth = true })
	double(func(c *combination) { c.mtls = true })
	double(func(c *combination) { c.suspended = true })
	double(func(c *combination) { c.hashed = true })
	double(func(c *combination) { c.tls = true })
	plain := slices.Clone(all)
	for _, name := range []string{"oauth-proxy", "kube-rbac-proxy"} {
		for _, c := range plain {
			c.sidecar = name
			all = append(all, c)
		}
	}
	return all
}

// effectiveSidecar returns the desired sidecar, or else the one in the head template.
func (c combination) effectiveSidecar() string {
	switch {
	case !c.oauth:
		return c.sidecar
	case c.openShift:
		return "oauth-proxy"
	default:
		return "kube-rbac-proxy"
	}
}

// expected returns the manifests of the expected objects, with the fixes of R16, R17 and R32.
func (c combination) expected() []string {
	out := []string{wantHeadPolicy, wantWorkerPolicy}
	if c.suspended {
		return out
	}
	sidecar := c.effectiveSidecar()
	if !c.oauth {
		sidecar = "" // objects of a disabled sidecar are retained but not created
	}
	switch sidecar {
	case "oauth-proxy":
		out = append(out, wantCookie, wantServingCertService, wantOAuthServiceAccount, wantBinding)
	case "kube-rbac-proxy":
		out = append(out, wantProxyConfig, wantService, wantServiceAccount, wantBinding)
	}
	switch {
	case c.openShift && c.oauth:
		out = append(out, wantRoute)
	case !c.openShift && c.domain && c.oauth:
		out = append(out, wantProxyIngress)
	case !c.openShift && c.domain && c.effectiveSidecar() == "":
		out = append(out, wantIngress)
	}
	switch {
	case !c.mtls || !c.tls:
	case c.openShift:
		out = append(out, wantClientRoute)
	case c.domain:
		out = append(out, wantClientIngress)
	}
	return out
}

// replaceVariables replaces the variables of a manifest.
func (c combination) replaceVariables(manifest string) string {
	name := func(base string) string { return base }
	if c.hashed {
		name = hashedName
	}
	open, routed := "{port: 8443, protocol: TCP}", ""
	if c.mtls && c.tls {
		open += ", {port: 10001, protocol: TCP}"
	}
	if c.effectiveSidecar() == "" && !c.suspended && !c.openShift {
		routed = `, {from: [{namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [ingress-nginx]}]}}], ` +
			`ports: [{port: 8265, protocol: TCP}]}`
	}
	kubeRay := "ray-system"
	if c.openShift {
		kubeRay = "opendatahub, redhat-ods-applications"
	}
	return strings.NewReplacer(
		"$cookie", name("demo-oauth-config"), "$service", name("demo-oauth"), "$tls", name("demo-proxy-tls-secret"),
		"$account", name("demo-oauth-proxy"), "$rules", name("demo-proxy-config"), "$binding", name("demo-team1-auth"),
		"$head", name("demo-head"), "$workers", name("demo-workers"), "$kuberay", kubeRay, "$open", open, "$routed", routed,
	).Replace(manifest)
}

// object parses a manifest and adds the common metadata of its kind.
func (c combination) object(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict([]byte(c.replaceVariables(manifest)), &u.Object); err != nil {
		t.Fatalf("%v in %s", err, c.replaceVariables(manifest))
	}
	labels := map[string]string{
		"ray.openshift.ai/cluster-name": "demo", "platform.opendatahub.io/operator": "odh-platform-operator", "platform.opendatahub.io/component": "raycluster",
	}
	if u.GetKind() == "Ingress" {
		labels["platform.opendatahub.io/host"] = u.GetName() + "-team1.apps.example.org"
	}
	if u.GetKind() == "ClusterRoleBinding" {
		labels["ray.openshift.ai/cluster-namespace"] = "team1"
		u.SetLabels(labels)
		return u
	}
	u.SetLabels(labels)
	u.SetNamespace("team1")
	_ = unstructured.SetNestedSlice(u.Object, []any{map[string]any{
		"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "demo", "uid": "11111111-2222-3333-4444-555555555555", "controller": true, "blockOwnerDeletion": true,
	}}, "metadata", "ownerReferences")
	return u
}

func (c combination) cluster(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	containers := "{name: ray-head}"
	volumes := "{name: data}"
	if c.tls {
		containers = encryptedRay
		volumes += ", " + authority + ", {name: server-cert, emptyDir: {}}"
	}
	if c.sidecar != "" {
		containers += ", {name: " + c.sidecar + ", args: [--openshift-service-account=demo-oauth-proxy], volumeMounts: [{name: proxy-tls-secret}, {name: kube-rbac-proxy-config}]}"
		volumes += ", {name: kube-rbac-proxy-config, configMap: {name: demo-proxy-config}}"
	}
	annotation := ""
	if c.hashed {
		annotation = "ray.openshift.ai/version: ''" // any value, even an empty one
	}
	return clusterFrom(t, demoCluster(annotation, fmt.Sprintf("spec: {suspend: %t, headGroupSpec: {template: {spec: {containers: [%s], volumes: [%s]}}}}",
		c.suspended, containers, volumes)))
}

// [raycluster-2] [raycluster-3] [raycluster-8] [R16] [R17] [R32] Objects for every combination of settings, platform, suspension, naming
// scheme and pod template.
func TestBuildMatrix(t *testing.T) {
	for _, c := range allCombinations() {
		u := c.cluster(t)
		in := inputsFor(u, c.openShift, withRouters, func(in *resources.Inputs) {
			in.OAuth, in.MTLS = c.oauth, c.mtls
			if c.domain {
				in.IngressDomain = "apps.example.org"
			}
		})
		want, got := map[string]any{}, map[string]any{}
		for _, manifest := range c.expected() {
			o := c.object(t, manifest)
			want[o.GetKind()+" "+o.GetName()] = canonicalYAML(t, o)
		}
		for _, o := range buildObjects(t, u, in) {
			got[o.GetKind()+" "+o.GetName()] = canonicalYAML(t, o)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", c, diff)
		}
	}
}

// canonicalYAML returns the YAML of an object, in which numbers of different types are equal.
func canonicalYAML(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	text, err := yaml.Marshal(o.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// [raycluster-8] A cluster that is suspended or whose sidecar is disabled retains the objects of the sidecar. If the cluster is not
// suspended, it also retains the route of the disabled sidecar.
func TestBuildRetainsObjects(t *testing.T) {
	for _, c := range allCombinations() {
		u := c.cluster(t)
		in := inputsFor(u, c.openShift, withDomain, func(in *resources.Inputs) { in.OAuth, in.MTLS = c.oauth, c.mtls })
		p := resources.Build(raycluster.View(u.Object), in)
		retained, err := apply.Render(p.Retained, ComponentName, u)
		if err != nil {
			t.Fatal(err)
		}
		kinds := map[string]int{}
		for _, o := range retained {
			kinds[o.GetKind()]++
		}
		want := map[string]int{}
		if c.suspended || !c.oauth {
			switch c.effectiveSidecar() {
			case "oauth-proxy":
				want = map[string]int{"Secret": 1, "Service": 1, "ServiceAccount": 1}
			case "kube-rbac-proxy":
				want = map[string]int{"ConfigMap": 1, "Service": 1, "ServiceAccount": 1}
			}
			if !c.oauth && c.sidecar != "" {
				want["Secret"]++ // with the token for a head that keeps its ServiceAccount
			}
		}
		switch retainsRoute := !c.suspended && !c.oauth && c.sidecar != ""; {
		case retainsRoute && c.openShift:
			want["Route"] = 1
		case retainsRoute:
			want["Ingress"] = 1
		}
		if !maps.Equal(want, kinds) {
			t.Errorf("%s: got %v, want %v", c, kinds, want)
		}
	}
}

// NetworkPolicies and routes use the ports that the head declares, as KubeRay does.
func TestBuildUsesDeclaredPorts(t *testing.T) {
	head := `{name: ray-head, env: [{name: RAY_USE_TLS, value: "1"}], ports: [{name: serve, containerPort: 9000}, {name: dashboard, containerPort: 8266},
  {name: client, containerPort: 10002}, {name: metrics, containerPort: 8081}, {name: dashboard-agent, containerPort: 52366}]}`
	u := clusterFrom(t, demoCluster(hashedVersion, strings.Replace(fmt.Sprintf(injectedHead, "oauth-proxy"), encryptedRay, head, 1)))
	u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "ray.io/v1", Kind: "RayService", Name: "s", UID: "u", Controller: new(true)}})
	for _, openShift := range []bool{true, false} {
		all, err := json.Marshal(buildObjects(t, u, inputsFor(u, openShift, withDomain, withHeads(raycluster.View(u.Object).Injected()))))
		if err != nil {
			t.Fatal(err)
		}
		for _, number := range []string{"8265", "10001", "8080", "8000", "52365"} {
			if regexp.MustCompile(`\b` + number + `\b`).Match(all) {
				t.Errorf("OpenShift %t: unexpected default port %s in %s", openShift, number, all)
			}
		}
		for _, number := range []string{"8266", "10002", "8081", "9000", "52366"} {
			if !bytes.Contains(all, []byte(`"port":`+number)) {
				t.Errorf("OpenShift %t: missing port %s", openShift, number)
			}
		}
	}
}
