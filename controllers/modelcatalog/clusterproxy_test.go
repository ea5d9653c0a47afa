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

var clusterProxy = resources.EgressProxy{HTTP: "http://cluster:3128", HTTPS: "http://cluster:3129", NoProxy: ".svc"}

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

// Only the server uses an egress proxy: the one of its Catalog, or else the one of the cluster. The deprecated fields for authentication in
// spec.proxy do not count. [modelregistry-115] [modelregistry-116]
func TestProxyOfTheServer(t *testing.T) {
	fromCluster := []string{"catalog HTTP_PROXY=http://cluster:3128", "catalog HTTPS_PROXY=http://cluster:3129", "catalog NO_PROXY=.svc"}
	fromCatalog := []string{"catalog HTTPS_PROXY=http://mine:8080"}
	for name, test := range map[string]struct {
		proxy *aihubv1alpha1.CatalogProxy
		want  []string
	}{
		"unset":                          {nil, fromCluster},
		"only httpsProxy":                {&aihubv1alpha1.CatalogProxy{HTTPSProxy: new("http://mine:8080")}, fromCatalog},
		"empty spec.proxy":               {&aihubv1alpha1.CatalogProxy{}, nil},
		"empty httpProxy":                {&aihubv1alpha1.CatalogProxy{HTTPProxy: new(""), Mode: server.Enabled}, nil},
		"only mode":                      {&aihubv1alpha1.CatalogProxy{Mode: server.Disabled}, fromCluster},
		"only certificateSecretName":     {&aihubv1alpha1.CatalogProxy{CertificateSecretName: "mine"}, fromCluster},
		"deprecated mode and httpsProxy": {&aihubv1alpha1.CatalogProxy{Mode: server.Enabled, HTTPSProxy: new("http://mine:8080")}, fromCatalog},
	} {
		catalog := newCatalog(func(s *aihubv1alpha1.CatalogSpec) { s.Proxy = test.proxy })
		in := openShiftInputs(func(in *resources.Inputs) { in.EgressProxy = clusterProxy })
		if diff := cmp.Diff(test.want, proxyVariables(serverOf(t, catalog, in).Spec.Template.Spec)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got := proxyVariables(databaseOf(t, catalog, in).Spec.Template.Spec); got != nil {
			t.Errorf("%s: the database has variables %v", name, got)
		}
		withoutCluster := test.want
		if slices.Equal(withoutCluster, fromCluster) {
			withoutCluster = nil
		}
		if diff := cmp.Diff(withoutCluster, proxyVariables(serverOf(t, catalog, kubernetesInputs()).Spec.Template.Spec)); diff != "" {
			t.Errorf("%s, in a cluster without a proxy (-want +got):\n%s", name, diff)
		}
	}
	env := serverOf(t, newCatalog(), openShiftInputs(func(in *resources.Inputs) { in.EgressProxy = clusterProxy })).Spec.Template.Spec.Containers[0].Env
	if index := slices.IndexFunc(env, func(v corev1.EnvVar) bool { return v.Name == "PGPASSWORD" }); index < 0 || env[index+1].Name != "HTTP_PROXY" {
		t.Errorf("got variables %v, want HTTP_PROXY after PGPASSWORD", env)
	}
}

// [modelregistry-117]
func TestClusterProxy(t *testing.T) {
	object := func(status, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"status": status, "spec": spec}}
	}
	for name, test := range map[string]struct {
		object *unstructured.Unstructured
		want   resources.EgressProxy
	}{
		"no object": {nil, resources.EgressProxy{}},
		"empty":     {object(map[string]any{}, map[string]any{}), resources.EgressProxy{}},
		"fields of status have precedence": {
			object(map[string]any{"httpProxy": "http://s:1", "noProxy": ".svc,10.0.0.0/8"}, map[string]any{"httpProxy": "http://o:1", "httpsProxy": "http://o:2", "noProxy": ".svc"}),
			resources.EgressProxy{HTTP: "http://s:1", HTTPS: "http://o:2", NoProxy: ".svc,10.0.0.0/8"},
		},
		"invalid field": {object(map[string]any{"httpProxy": int64(1)}, nil), resources.EgressProxy{}},
	} {
		if got := resources.ClusterProxy(test.object); got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}

// The server is not applied before the proxy of the cluster is known, because the new variables would restart it. Without permission, no
// proxy is set. [modelregistry-118]
func TestReconcileWaitsForTheClusterProxy(t *testing.T) {
	env := newTestEnv(t, newCatalog())
	proxy := newClusterProxyWatcher(dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()), env.clock, logr.Discard())
	proxy.SetServed(true)
	env.r.proxy = proxy
	result, err := env.reconcile()
	for range 3 {
		if err != nil || result.RequeueAfter == 0 {
			t.Fatalf("result %+v, error %v", result, err)
		}
		result, err = env.reconcile()
	}
	server := &appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}
	if env.get(server) {
		t.Error("the server was created before the proxy settings were read")
	}
	proxy.OnUnavailable()
	env.reconcileUntilStable()
	if got := proxyVariables(mustGet(env, server).Spec.Template.Spec); got != nil {
		t.Errorf("variables %v", got)
	}
	proxy.OnUpdate(&unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"noProxy": ".svc"}}})
	env.reconcileUntilStable()
	proxy.OnUnavailable() // keeps the last value
	env.reconcileUntilStable()
	if got, want := proxyVariables(mustGet(env, server).Spec.Template.Spec), []string{"catalog NO_PROXY=.svc"}; !slices.Equal(got, want) {
		t.Errorf("variables %v, want %v", got, want)
	}
}

// spec.authProxy configures authentication, or else the deprecated fields of spec.proxy. [modelregistry-119]
func TestAuthProxy(t *testing.T) {
	const on, off = server.Enabled, server.Disabled
	for name, test := range map[string]struct {
		authProxy *aihubv1alpha1.CatalogAuthProxy
		proxy     *aihubv1alpha1.CatalogProxy
		hasProxy  bool
		secret    string
	}{
		"unset":                  {nil, nil, true, resources.CertificateSecret},
		"disabled":               {&aihubv1alpha1.CatalogAuthProxy{Mode: off}, nil, false, resources.CertificateSecret},
		"disabled in spec.proxy": {nil, &aihubv1alpha1.CatalogProxy{Mode: off}, false, resources.CertificateSecret},
		"both":                   {&aihubv1alpha1.CatalogAuthProxy{Mode: on, CertificateSecretName: "mine"}, &aihubv1alpha1.CatalogProxy{Mode: off, CertificateSecretName: "old"}, true, "mine"},
		"one field in each":      {&aihubv1alpha1.CatalogAuthProxy{CertificateSecretName: "mine"}, &aihubv1alpha1.CatalogProxy{Mode: off}, false, "mine"},
		"only an egress proxy":   {nil, &aihubv1alpha1.CatalogProxy{HTTPProxy: new("p:1")}, true, resources.CertificateSecret},
	} {
		catalog := newCatalog(func(s *aihubv1alpha1.CatalogSpec) { s.AuthProxy, s.Proxy = test.authProxy, test.proxy })
		if resources.HasAuthProxy(catalog) != test.hasProxy || resources.ServingSecret(catalog) != test.secret {
			t.Errorf("%s: got proxy %t with certificate Secret %s, want %t with %s", name, resources.HasAuthProxy(catalog), resources.ServingSecret(catalog), test.hasProxy, test.secret)
		}
	}
}
