package modelcatalog

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/server"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
)

var ofCluster = resources.EgressProxy{HTTP: "http://cluster:3128", HTTPS: "http://cluster:3129", NoProxy: ".svc"}

// proxyVariables returns the proxy variables of all containers, as "container NAME=value".
func proxyVariables(pod corev1.PodSpec) []string {
	var found []string
	for _, c := range append(slices.Clone(pod.InitContainers), pod.Containers...) {
		for _, v := range c.Env {
			if strings.HasSuffix(v.Name, "_PROXY") {
				found = append(found, c.Name+" "+v.Name+"="+v.Value)
			}
		}
	}
	return found
}

// Only the server uses an egress proxy: that of its Catalog, or else that of the cluster. The deprecated fields for authentication in
// spec.proxy do not count. [modelregistry-115] [modelregistry-116]
func TestProxyOfTheServer(t *testing.T) {
	all := []string{"catalog HTTP_PROXY=http://cluster:3128", "catalog HTTPS_PROXY=http://cluster:3129", "catalog NO_PROXY=.svc"}
	own := []string{"catalog HTTPS_PROXY=http://mine:8080"}
	for name, c := range map[string]struct {
		proxy *aihubv1alpha1.CatalogProxy
		want  []string
	}{
		"unset":                           {nil, all},
		"proxy of the Catalog only":       {&aihubv1alpha1.CatalogProxy{HTTPSProxy: new("http://mine:8080")}, own},
		"no proxy":                        {&aihubv1alpha1.CatalogProxy{}, nil},
		"empty httpProxy":                 {&aihubv1alpha1.CatalogProxy{HTTPProxy: new(""), Mode: server.Enabled}, nil},
		"only mode":                       {&aihubv1alpha1.CatalogProxy{Mode: server.Disabled}, all},
		"only certificateSecretName":      {&aihubv1alpha1.CatalogProxy{CertificateSecretName: "mine"}, all},
		"legacy mode and a proxy setting": {&aihubv1alpha1.CatalogProxy{Mode: server.Enabled, HTTPSProxy: new("http://mine:8080")}, own},
	} {
		catalog := sample(func(s *aihubv1alpha1.CatalogSpec) { s.Proxy = c.proxy })
		with := openShift(func(in *resources.Inputs) { in.Proxy = ofCluster })
		if diff := cmp.Diff(c.want, proxyVariables(serverOf(t, catalog, with).Spec.Template.Spec)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got := proxyVariables(databaseOf(t, catalog, with).Spec.Template.Spec); got != nil {
			t.Errorf("%s: the database has %v", name, got)
		}
		alone := c.want
		if slices.Equal(alone, all) {
			alone = nil
		}
		if diff := cmp.Diff(alone, proxyVariables(serverOf(t, catalog, kubernetes()).Spec.Template.Spec)); diff != "" {
			t.Errorf("%s, in a cluster without a proxy (-want +got):\n%s", name, diff)
		}
	}
	env := serverOf(t, sample(), openShift(func(in *resources.Inputs) { in.Proxy = ofCluster })).Spec.Template.Spec.Containers[0].Env
	if at := slices.IndexFunc(env, func(v corev1.EnvVar) bool { return v.Name == "PGPASSWORD" }); at < 0 || env[at+1].Name != "HTTP_PROXY" {
		t.Errorf("variables %v", env)
	}
}

// [modelregistry-117]
func TestClusterProxy(t *testing.T) {
	object := func(status, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"status": status, "spec": spec}}
	}
	for name, c := range map[string]struct {
		object *unstructured.Unstructured
		want   resources.EgressProxy
	}{
		"no object": {nil, resources.EgressProxy{}},
		"empty":     {object(map[string]any{}, map[string]any{}), resources.EgressProxy{}},
		"status before spec, field by field": {
			object(map[string]any{"httpProxy": "http://s:1", "noProxy": ".svc,10.0.0.0/8"}, map[string]any{"httpProxy": "http://o:1", "httpsProxy": "http://o:2", "noProxy": ".svc"}),
			resources.EgressProxy{HTTP: "http://s:1", HTTPS: "http://o:2", NoProxy: ".svc,10.0.0.0/8"},
		},
		"another schema": {object(map[string]any{"httpProxy": int64(1)}, nil), resources.EgressProxy{}},
	} {
		if got := resources.ClusterProxy(c.object); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

// The server is not applied before the proxy of the cluster is known, because the proxy would restart it. Without permission,
// no proxy is set. [modelregistry-118]
func TestReconcileWaitsForTheClusterProxy(t *testing.T) {
	b := newTestEnv(t, sample())
	proxy := newClusterProxyWatcher(dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()), b.clock, logr.Discard())
	proxy.SetServed(true)
	b.r.proxy = proxy
	result, err := b.reconcile()
	for range 3 {
		if err != nil || result.RequeueAfter == 0 {
			t.Fatalf("result %+v, error %v", result, err)
		}
		result, err = b.reconcile()
	}
	server := &appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}
	if b.get(server) {
		t.Error("the server was created before the proxy settings were read")
	}
	proxy.OnUnavailable()
	b.reconcileUntilStable()
	if got := proxyVariables(must(b, server).Spec.Template.Spec); got != nil {
		t.Errorf("variables %v", got)
	}
	proxy.OnUpdate(&unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"noProxy": ".svc"}}})
	b.reconcileUntilStable()
	proxy.OnUnavailable() // which takes back nothing
	b.reconcileUntilStable()
	if got, want := proxyVariables(must(b, server).Spec.Template.Spec), []string{"catalog NO_PROXY=.svc"}; !slices.Equal(got, want) {
		t.Errorf("variables %v, want %v", got, want)
	}
}

// spec.authProxy configures authentication, or else the deprecated fields of spec.proxy. [modelregistry-119]
func TestAuthProxy(t *testing.T) {
	const on, off = server.Enabled, server.Disabled
	for name, c := range map[string]struct {
		now    *aihubv1alpha1.CatalogAuthProxy
		before *aihubv1alpha1.CatalogProxy
		proxy  bool
		secret string
	}{
		"unset":                {nil, nil, true, resources.CertificateSecret},
		"disabled":             {&aihubv1alpha1.CatalogAuthProxy{Mode: off}, nil, false, resources.CertificateSecret},
		"off in its old place": {nil, &aihubv1alpha1.CatalogProxy{Mode: off}, false, resources.CertificateSecret},
		"both":                 {&aihubv1alpha1.CatalogAuthProxy{Mode: on, CertificateSecretName: "mine"}, &aihubv1alpha1.CatalogProxy{Mode: off, CertificateSecretName: "old"}, true, "mine"},
		"one in each place":    {&aihubv1alpha1.CatalogAuthProxy{CertificateSecretName: "mine"}, &aihubv1alpha1.CatalogProxy{Mode: off}, false, "mine"},
		"only an egress proxy": {nil, &aihubv1alpha1.CatalogProxy{HTTPProxy: new("p:1")}, true, resources.CertificateSecret},
	} {
		catalog := sample(func(s *aihubv1alpha1.CatalogSpec) { s.AuthProxy, s.Proxy = c.now, c.before })
		if resources.HasProxy(catalog) != c.proxy || resources.ServingSecret(catalog) != c.secret {
			t.Errorf("%s: proxied %v, certificate of %s", name, resources.HasProxy(catalog), resources.ServingSecret(catalog))
		}
	}
}
