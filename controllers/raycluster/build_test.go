package raycluster

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// clusterFrom parses a RayCluster from YAML without apiVersion and kind.
func clusterFrom(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	u.SetGroupVersionKind(raycluster.GVK)
	if u.GetUID() == "" {
		u.SetUID("11111111-2222-3333-4444-555555555555")
	}
	return u
}

// inputsFor returns the inputs of a cluster with default settings and changes.
func inputsFor(u *unstructured.Unstructured, openShift bool, changes ...func(*resources.Inputs)) resources.Inputs {
	in := resources.Inputs{RayCluster: config.DefaultRayCluster(), Platform: raycluster.Platform{OpenShift: openShift, OAuthServer: openShift}, Cookie: []byte("cookie"), KubeRay: []string{"ray-system"}}
	in.GatewayNamespace = "openshift-ingress"
	if openShift {
		in.KubeRay = []string{"opendatahub", "redhat-ods-applications"}
	}
	for _, change := range changes {
		change(&in)
	}
	c := raycluster.View(u.Object)
	in.RayCluster = in.ForPlatform(openShift)
	in.Domain = strings.TrimSuffix(in.IngressDomain, ".")
	in.Mode = raycluster.Decide(in.RayCluster, in.Platform, c, c)
	return in
}

// buildObjects returns the objects that the controller applies for a cluster, except those of package certificates.
func buildObjects(t testing.TB, u *unstructured.Unstructured, in resources.Inputs) []*unstructured.Unstructured {
	t.Helper()
	p := resources.Build(raycluster.View(u.Object), in)
	p.AddBackendTLSPolicy(raycluster.View(u.Object), in, []byte("PEM"), true)
	desired := slices.Concat(p.Policies, p.SidecarObjects, p.Exposure)
	if p.Binding != nil && !p.RetainsBinding {
		desired = append(desired, *p.Binding)
	}
	objects, err := apply.Render(desired, ComponentName, u)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

const (
	plainHead = "spec: {headGroupSpec: {template: {spec: {containers: [{name: ray-head}]}}}}"
	// injectedHead and mutualHead are head templates with injected elements; %s in injectedHead is the name of the sidecar.
	injectedHead = "spec: {headGroupSpec: {template: {spec: {containers: [" + encryptedRay + ", {name: %s, args: [--openshift-service-account=demo-oauth-proxy], " +
		"volumeMounts: [{name: proxy-tls-secret}, {name: kube-rbac-proxy-config}]}], volumes: [" + authority + ", {name: server-cert, secret: {secretName: x}}, " +
		"{name: oauth-proxy-token, projected: {}}, {name: kube-rbac-proxy-config, configMap: {name: demo-proxy-config}}]}}}}"
	mutualHead   = "spec: {headGroupSpec: {template: {spec: {containers: [" + encryptedRay + "], volumes: [" + authority + ", {name: server-cert, emptyDir: {}}]}}}}"
	encryptedRay = "{name: ray-head, env: [{name: RAY_USE_TLS, value: '1'}]}"
	authority    = "{name: ca-vol, secret: {secretName: ca-secret-demo}}"
)

func demoCluster(annotation, spec string) string {
	return "metadata: {name: demo, namespace: team1, annotations: {" + annotation + "}}\n" + spec
}

func withDomain(in *resources.Inputs)         { in.IngressDomain = "apps.example.org" }
func withoutOAuth(in *resources.Inputs)       { in.OAuth = false }
func withoutOAuthServer(in *resources.Inputs) { in.OAuthServer = false }
func withGateway(in *resources.Inputs)        { in.Publish, in.HasHTTPRoutes = config.PublishGateway, true }
func withBackendTLS(in *resources.Inputs)     { in.HasHTTPRoutes, in.HasBackendTLSPolicies = true, true }
func closedToNamespace(in *resources.Inputs)  { in.OpenToNamespace = false }
func unpublished(in *resources.Inputs)        { in.Publish = config.PublishNone }
func withoutMetrics(in *resources.Inputs)     { in.MonitoringNamespaces = nil }
func withRouters(in *resources.Inputs)        { in.IngressNamespaces = []string{"ingress-nginx"} }
func publishOpen(in *resources.Inputs)        { in.Publish = config.PublishOpen }
func trustKubeRay(in *resources.Inputs)       { in.KubeRaySecurity = config.KubeRaySecurityTrust }
func withExposure(kind string) func(*resources.Inputs) {
	return func(in *resources.Inputs) {
		in.RayCluster.Exposure = config.Exposure{
			Kind: kind, IngressClass: "edge", IngressDomain: "ai.example.org", IngressAnnotations: map[string]string{"cert-manager.io/cluster-issuer": "ours"},
		}
	}
}
func withHeads(heads ...raycluster.Injected) func(*resources.Inputs) {
	return func(in *resources.Inputs) { in.Heads = heads }
}

var tokenHead = strings.Replace(plainHead, "spec: {", "spec: {authOptions: {mode: token}, ", 1)

// [R16] [R17] [R27] [R31] [R32] Objects by platform and settings.
func TestGolden(t *testing.T) {
	version := "ray.openshift.ai/version: 1.0.0"
	ownedByRayService := "metadata: {name: demo, namespace: team1, ownerReferences: [{kind: RayService, controller: true, apiVersion: ray.io/v1, name: s, uid: u}]}\n"
	for name, tc := range map[string]struct {
		cluster   string
		openShift bool
		changes   []func(*resources.Inputs)
	}{
		"openshift-oauth":             {demoCluster(version, fmt.Sprintf(injectedHead, "oauth-proxy")), true, nil},
		"openshift-oidc":              {demoCluster(version, fmt.Sprintf(injectedHead, "kube-rbac-proxy")), true, []func(*resources.Inputs){withoutOAuthServer}},
		"openshift-oidc-gateway":      {demoCluster(version, fmt.Sprintf(injectedHead, "kube-rbac-proxy")), true, []func(*resources.Inputs){withoutOAuthServer, withGateway, withBackendTLS}},
		"openshift-oauth-legacy":      {demoCluster("", fmt.Sprintf(injectedHead, "oauth-proxy")), true, nil},
		"openshift-not-injected":      {demoCluster(version, plainHead), true, nil},
		"openshift-no-oauth":          {demoCluster(version, mutualHead), true, []func(*resources.Inputs){withoutOAuth, withDomain}},
		"openshift-keeps-account":     {demoCluster(version+", ray.openshift.ai/keep-service-account: 'true'", strings.Replace(plainHead, "containers:", "serviceAccountName: mine, containers:", 1)), true, nil},
		"openshift-own-head-service":  {demoCluster(version, strings.Replace(mutualHead, "headGroupSpec: {", "headGroupSpec: {headService: {metadata: {name: front}}, ", 1)), true, []func(*resources.Inputs){withoutOAuth}},
		"openshift-ray-token":         {demoCluster(version, tokenHead), true, nil},
		"openshift-ray-token-trusted": {demoCluster(version, tokenHead), true, []func(*resources.Inputs){trustKubeRay, withHeads(raycluster.Injected{RayToken: true})}},
		"openshift-ray-token-pending": {demoCluster(version, tokenHead), true, []func(*resources.Inputs){trustKubeRay}},
		"openshift-ray-token-old-pod": {demoCluster(version, tokenHead), true, []func(*resources.Inputs){trustKubeRay, withHeads(raycluster.Injected{RayToken: true}, raycluster.Injected{})}},
		"openshift-open":              {demoCluster(version, mutualHead), true, []func(*resources.Inputs){withoutOAuth, publishOpen}},
		"openshift-plaintext-pod":     {demoCluster(version, fmt.Sprintf(injectedHead, "oauth-proxy")), true, []func(*resources.Inputs){withHeads(raycluster.Injected{Encrypted: true}, raycluster.Injected{})}},
		"openshift-long-names":        {strings.ReplaceAll(demoCluster(version, mutualHead), "team1", "a-namespace-with-a-name-that-is-very-long-indeed-really"), true, []func(*resources.Inputs){withDomain}},
		"plain-proxy":                 {demoCluster(version, fmt.Sprintf(injectedHead, "kube-rbac-proxy")), false, []func(*resources.Inputs){withDomain}},
		"plain-proxy-no-domain":       {demoCluster(version, fmt.Sprintf(injectedHead, "kube-rbac-proxy")), false, nil},
		"plain-open":                  {demoCluster(version, plainHead), false, []func(*resources.Inputs){withoutOAuth, withDomain, withRouters}},
		"plain-mutual":                {demoCluster(version, mutualHead), false, []func(*resources.Inputs){withoutOAuth, withDomain}},
		"plain-gateway":               {demoCluster(version, plainHead), false, []func(*resources.Inputs){withoutOAuth, withGateway}},
		"plain-gateway-proxy":         {demoCluster(version, fmt.Sprintf(injectedHead, "kube-rbac-proxy")), false, []func(*resources.Inputs){withGateway}},
		"exposed-gateway-proxy":       {demoCluster(version, fmt.Sprintf(injectedHead, "kube-rbac-proxy")), false, []func(*resources.Inputs){withExposure(config.ExposeGateway), withBackendTLS}},
		"exposed-gateway-open":        {demoCluster(version, plainHead), false, []func(*resources.Inputs){withExposure(config.ExposeGateway), withBackendTLS, withoutOAuth}},
		"exposed-gateway-nowhere":     {demoCluster(version, plainHead), false, []func(*resources.Inputs){withExposure(config.ExposeGateway), withBackendTLS, withoutOAuth, unpublished}},
		"exposed-ingress":             {demoCluster(version, fmt.Sprintf(injectedHead, "kube-rbac-proxy")), false, []func(*resources.Inputs){withExposure(config.ExposeIngress)}},
		"exposed-ingress-own-domain":  {demoCluster(version, plainHead), false, []func(*resources.Inputs){withExposure(config.ExposeIngress), withoutOAuth, withDomain}},
		"exposed-ingress-openshift":   {demoCluster(version, fmt.Sprintf(injectedHead, "oauth-proxy")), true, []func(*resources.Inputs){withExposure(config.ExposeIngress)}},
		"plain-published-nowhere":     {demoCluster(version, plainHead), false, []func(*resources.Inputs){withoutOAuth, withDomain, unpublished}},
		"closed-to-the-namespace":     {demoCluster(version, plainHead), true, []func(*resources.Inputs){closedToNamespace, withoutMetrics}},
		"of-a-ray-service":            {ownedByRayService + plainHead, false, []func(*resources.Inputs){withoutOAuth, withDomain, withRouters}},
		"suspended":                   {demoCluster(version, strings.Replace(mutualHead, "spec: {", "spec: {suspend: true, ", 1)), true, nil},
		"kuberay-has-policies":        {demoCluster(version, strings.Replace(plainHead, "spec: {", "spec: {networkPolicy: {}, ", 1)), true, nil},
		"kuberay-has-policies-legacy": {demoCluster("", strings.Replace(plainHead, "spec: {", "spec: {networkPolicy: {}, ", 1)), true, nil},
		"switched-off-still-injected": {demoCluster(version, fmt.Sprintf(injectedHead, "oauth-proxy")), true, []func(*resources.Inputs){withoutOAuth}},
	} {
		t.Run(name, func(t *testing.T) {
			u := clusterFrom(t, tc.cluster)
			framework.Golden(t, filepath.Join("testdata", "golden", name+".yaml"), buildObjects(t, u, inputsFor(u, tc.openShift, tc.changes...)))
		})
	}
}

// The BackendTLSPolicy is created once the CA is known, retained before, and deleted if a certificate of the user has no CA.
func TestAddBackendTLSPolicy(t *testing.T) {
	u := clusterFrom(t, demoCluster("", fmt.Sprintf(injectedHead, "kube-rbac-proxy")))
	c, in := raycluster.View(u.Object), inputsFor(u, false, withExposure(config.ExposeGateway), withBackendTLS)
	for name, tc := range map[string]struct {
		authority       string
		known           bool
		added, retained int
	}{
		"known": {"PEM", true, 2, 0}, "unknown": {"", false, 0, 2}, "user certificate without a CA": {"", true, 0, 0},
	} {
		plan := resources.Build(c, in)
		exposure, retained := len(plan.Exposure), len(plan.Retained)
		plan.AddBackendTLSPolicy(c, in, []byte(tc.authority), tc.known)
		if exposure, retained = len(plan.Exposure)-exposure, len(plan.Retained)-retained; exposure != tc.added || retained != tc.retained {
			t.Errorf("%s: %d objects added and %d retained, want %d and %d", name, exposure, retained, tc.added, tc.retained)
		}
	}
}

// [R23] Clusters of MultiKueue and terminating clusters have no objects.
func TestBuildSkipsMultiKueueAndTerminatingClusters(t *testing.T) {
	for name, text := range map[string]string{
		"multikueue":  demoCluster("", "spec: {managedBy: kueue.x-k8s.io/multikueue}"),
		"terminating": "metadata: {name: demo, namespace: team1, deletionTimestamp: '2026-01-01T00:00:00Z'}",
	} {
		u := clusterFrom(t, text)
		if got := buildObjects(t, u, inputsFor(u, true)); len(got) > 0 {
			t.Errorf("%s: got objects %v, want none", name, got)
		}
	}
}

// readRecording returns a recorded cluster of the CodeFlare operator and its objects.
func readRecording(t *testing.T, name string) (*unstructured.Unstructured, map[string]*unstructured.Unstructured) {
	t.Helper()
	objects, err := framework.ReadObjects(filepath.Join("testdata", "original", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var cluster *unstructured.Unstructured
	byName := map[string]*unstructured.Unstructured{}
	for _, o := range objects {
		switch {
		case o.GetKind() == "RayCluster":
			cluster = o
			cluster.SetUID("11111111-2222-3333-4444-555555555555")
		case !strings.Contains(o.GetName(), "-ca-secret-"): // created by package certificates
			byName[o.GetKind()+" "+o.GetName()] = o
		}
	}
	return cluster, byName
}

// differences lists the fields of built that are missing or different in recorded. Additional fields of recorded are ignored, since the API
// server adds defaults.
func differences(path string, built, recorded any) []string {
	switch built := built.(type) {
	case map[string]any:
		fields, _ := recorded.(map[string]any)
		var out []string
		for key, value := range built {
			out = append(out, differences(path+"."+key, value, fields[key])...)
		}
		slices.Sort(out)
		return out
	case []any:
		items, _ := recorded.([]any)
		var out []string
		for i, value := range built {
			if i >= len(items) {
				out = append(out, fmt.Sprintf("%s[%d] is new", path, i))
				continue
			}
			out = append(out, differences(fmt.Sprintf("%s[%d]", path, i), value, items[i])...)
		}
		if len(items) > len(built) {
			out = append(out, fmt.Sprintf("%s lacks %d items", path, len(items)-len(built)))
		}
		return out
	default:
		if fmt.Sprint(built) != fmt.Sprint(recorded) {
			return []string{path}
		}
		return nil
	}
}

// [R16] [R17] [R32] The objects equal the recorded objects of the CodeFlare operator except for the listed differences.
func TestBuildEqualsCodeFlareOperator(t *testing.T) {
	monitoring := ".spec.ingress[3].from[0].namespaceSelector.matchExpressions[0].values[1] is new"
	for name, tc := range map[string]struct {
		openShift bool
		changes   []func(*resources.Inputs)
		want      []string
	}{
		"openshift-oauth-mtls": {true, nil, []string{"NetworkPolicy board-head-e2a8ad21" + monitoring}},
		"plain-ingress-no-mtls": {false, []func(*resources.Inputs){withoutOAuth, func(in *resources.Inputs) { in.MTLS, in.IngressDomain = false, "apps.lab.example.com" }}, []string{
			"Ingress rayclient-demo is missing", "NetworkPolicy demo-head-6161c9cb" + monitoring,
		}},
		"embedded-appwrapper": {false, []func(*resources.Inputs){withoutOAuth, func(in *resources.Inputs) { in.MTLS, in.IngressDomain = false, "ray.example.org" }}, []string{
			"Ingress rayclient-inner is missing", "NetworkPolicy inner-head-33ee0e34" + monitoring,
		}},
		"suspended-two-worker-groups": {false, []func(*resources.Inputs){withoutOAuth, func(in *resources.Inputs) { in.IngressDomain = "ray.example.org" }}, []string{
			"NetworkPolicy paused-head-ec6f913d" + monitoring,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, recorded := readRecording(t, name)
			var got []string
			for _, o := range buildObjects(t, cluster, inputsFor(cluster, tc.openShift, tc.changes...)) {
				key := o.GetKind() + " " + o.GetName()
				other := recorded[key]
				delete(recorded, key)
				if other == nil {
					got = append(got, key+" is new")
					continue
				}
				removeVariableFields(o)
				got = append(got, withPrefix(key, differences("", o.Object, other.Object))...)
			}
			for key := range recorded {
				got = append(got, key+" is missing")
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
}

// removeVariableFields removes the labels of this operator, the cookie key, and blockOwnerDeletion and uid of the owner references.
func removeVariableFields(o *unstructured.Unstructured) {
	labels := o.GetLabels()
	delete(labels, names.OperatorLabel)
	delete(labels, names.ComponentLabel)
	delete(labels, names.HostLabel)
	o.SetLabels(labels)
	unstructured.RemoveNestedField(o.Object, "data", raycluster.KeyCookie)
	refs, _, _ := unstructured.NestedSlice(o.Object, "metadata", "ownerReferences")
	for _, ref := range refs {
		delete(ref.(map[string]any), "blockOwnerDeletion")
		delete(ref.(map[string]any), "uid")
	}
	if len(refs) > 0 {
		_ = unstructured.SetNestedSlice(o.Object, refs, "metadata", "ownerReferences")
	}
}

func withPrefix(prefix string, lines []string) []string {
	for i := range lines {
		lines[i] = prefix + lines[i]
	}
	return lines
}

// For any cluster and settings, there are two NetworkPolicies, and all objects have the label of the cluster. A suspended cluster gets no
// other objects.
func TestBuildInvariants(t *testing.T) {
	word := rapid.StringMatching(`[a-z]([-a-z0-9]{0,40}[a-z0-9])?`)
	rapid.Check(t, func(t *rapid.T) {
		containers := []any{map[string]any{"name": rapid.SampledFrom([]string{"ray-head", raycluster.ContainerOAuth, raycluster.ContainerProxy}).Draw(t, "container")}}
		volumes := []any{map[string]any{"name": rapid.SampledFrom([]string{"x", raycluster.VolumeServer}).Draw(t, "volume")}}
		suspended := rapid.Bool().Draw(t, "suspended")
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"suspend":       suspended,
			"headGroupSpec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": containers, "volumes": volumes}}},
		}}}
		u.SetGroupVersionKind(raycluster.GVK)
		u.SetName(word.Draw(t, "name"))
		u.SetNamespace(word.Draw(t, "namespace"))
		u.SetUID("u")
		in := inputsFor(u, rapid.Bool().Draw(t, "openshift"), func(in *resources.Inputs) {
			in.OAuth, in.MTLS, in.HasHTTPRoutes = rapid.Bool().Draw(t, "oauth"), rapid.Bool().Draw(t, "mtls"), rapid.Bool().Draw(t, "gateway")
			in.IngressDomain = rapid.SampledFrom([]string{"", "apps.example.org"}).Draw(t, "domain")
			in.Publish = rapid.SampledFrom([]string{config.PublishAuto, config.PublishOpen, config.PublishGateway, config.PublishNone}).Draw(t, "publish")
		})
		p := resources.Build(raycluster.View(u.Object), in)
		all := slices.Concat(p.Policies, p.SidecarObjects, p.Exposure)
		if p.Binding != nil {
			all = append(all, *p.Binding)
		}
		objects, err := apply.Render(all, ComponentName, u)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			if o.GetLabels()[raycluster.LabelClusterName] != u.GetName() {
				t.Errorf("%s %s lacks the label of the cluster: %v", o.GetKind(), o.GetName(), o.GetLabels())
			}
		}
		if suspended && (len(p.SidecarObjects)+len(p.Exposure) > 0 || p.Binding != nil) {
			t.Errorf("got %d sidecar objects, %d exposure objects and binding %v for a suspended cluster, want none", len(p.SidecarObjects), len(p.Exposure), p.Binding)
		}
		if len(p.Policies) != 2 {
			t.Errorf("got %d NetworkPolicies, want 2", len(p.Policies))
		}
	})
}

// spec.historyServerOptions do not change the objects, and the NetworkPolicies do not restrict the egress of KubeRay's collector.
func TestHistoryServerChangesNoObjects(t *testing.T) {
	for _, onOpenShift := range []bool{true, false} {
		without := clusterFrom(t, demoCluster(hashedVersion, plainHead))
		with := without.DeepCopy()
		if err := unstructured.SetNestedMap(with.Object, map[string]any{"collectorOptions": map[string]any{"image": "example.com/collector:1"}}, "spec", "historyServerOptions"); err != nil {
			t.Fatal(err)
		}
		want, got := buildObjects(t, without, inputsFor(without, onOpenShift)), buildObjects(t, with, inputsFor(with, onOpenShift))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("OpenShift %t (-without +with):\n%s", onOpenShift, diff)
		}
		policies := 0
		for _, object := range got {
			if object.GetKind() != "NetworkPolicy" {
				continue
			}
			policies++
			if types, _, _ := unstructured.NestedStringSlice(object.Object, "spec", "policyTypes"); !slices.Equal(types, []string{"Ingress"}) {
				t.Errorf("NetworkPolicy %s has policyTypes %q, want only Ingress", object.GetName(), types)
			}
		}
		if policies != 2 {
			t.Errorf("got %d NetworkPolicies, want 2", policies)
		}
	}
}
