package modelregistry

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	rules "github.com/odh-platform/odh-platform-operator/webhooks/modelregistry"
)

// [modelregistry-9] [modelregistry-28] oauthProxy becomes kubeRBACProxy without its image, unless kubeRBACProxy is set [D28].
func TestMigrateProxy(t *testing.T) {
	oauthProxy := &v1beta1.ProxyConfig{Port: new(int32(9443)), Domain: "d", ServiceRoute: v1beta1.RouteDisabled, Image: "oauth"}
	migrated := &v1beta1.ProxyConfig{Port: new(int32(9443)), Domain: "d", ServiceRoute: v1beta1.RouteDisabled}
	kubeRBACProxy := &v1beta1.ProxyConfig{Domain: "n", Image: "i"}
	for name, test := range map[string]struct {
		spec      v1beta1.ModelRegistrySpec
		openShift bool
		want      *v1beta1.ProxyConfig
		changed   bool
	}{
		"oauthProxy":                 {v1beta1.ModelRegistrySpec{OAuthProxy: oauthProxy}, false, migrated, true},
		"oauthProxy on OpenShift":    {v1beta1.ModelRegistrySpec{OAuthProxy: oauthProxy}, true, migrated, true},
		"both [D28]":                 {v1beta1.ModelRegistrySpec{OAuthProxy: oauthProxy, KubeRBACProxy: kubeRBACProxy}, true, kubeRBACProxy, true},
		"no proxy":                   {v1beta1.ModelRegistrySpec{}, false, nil, false},
		"no proxy on OpenShift":      {v1beta1.ModelRegistrySpec{}, true, &v1beta1.ProxyConfig{}, true},
		"kubeRBACProxy":              {v1beta1.ModelRegistrySpec{KubeRBACProxy: kubeRBACProxy}, false, kubeRBACProxy, false},
		"kubeRBACProxy on OpenShift": {v1beta1.ModelRegistrySpec{KubeRBACProxy: kubeRBACProxy}, true, kubeRBACProxy, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := &v1beta1.ModelRegistry{Spec: *test.spec.DeepCopy()}
			migrateProxy(&m.Spec, test.openShift)
			first := m.Spec.DeepCopy()
			if changed := !reflect.DeepEqual(test.spec, m.Spec); changed != test.changed {
				t.Errorf("spec changed: %t, want %t", changed, test.changed)
			}
			if migrateProxy(&m.Spec, test.openShift); m.Spec.OAuthProxy != nil || !reflect.DeepEqual(first, &m.Spec) {
				t.Error("migrateProxy is not idempotent")
			}
			if diff := cmp.Diff(test.want, m.Spec.KubeRBACProxy); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// [modelregistry-12] [modelregistry-20] [modelregistry-21] Defaults are set only for unset fields.
func TestSetDefaults(t *testing.T) {
	p := &servers.Platform{ModelRegistry: config.ModelRegistry{Images: config.RegistryImages{REST: "r", KubeRBACProxy: "k", Postgres: "p"}}, RouterDomain: "apps"}
	m := &v1beta1.ModelRegistry{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}
	m.Spec.Postgres, m.Spec.MySQL, m.Spec.KubeRBACProxy = &v1beta1.PostgresConfig{}, &v1beta1.MySQLConfig{}, &v1beta1.ProxyConfig{}
	m.Spec.OAuthProxy = &v1beta1.ProxyConfig{}
	setDefaults(m, p)
	want := v1beta1.ModelRegistrySpec{
		Rest:       v1beta1.RestSpec{Image: "r", Port: new(int32(8080)), Resources: new(rules.DefaultRESTResources())},
		Postgres:   &v1beta1.PostgresConfig{Image: "p", Port: new(int32(5432))},
		MySQL:      &v1beta1.MySQLConfig{Port: new(int32(3306))},
		OAuthProxy: &v1beta1.ProxyConfig{},
		KubeRBACProxy: &v1beta1.ProxyConfig{
			Image: "k", Domain: "apps", ServiceRoute: v1beta1.RouteEnabled, Port: new(int32(8443)), RoutePort: new(int32(443)),
			TLSCertificateSecret: &v1beta1.SecretKeyValue{Name: "demo-kube-rbac-proxy", Key: "tls.crt"},
			TLSKeySecret:         &v1beta1.SecretKeyValue{Name: "demo-kube-rbac-proxy", Key: "tls.key"},
		},
	}
	if diff := cmp.Diff(want, m.Spec); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	defaulted := m.DeepCopy()
	setDefaults(m, &servers.Platform{
		ModelRegistry: config.ModelRegistry{Images: config.RegistryImages{REST: "x", KubeRBACProxy: "x", Postgres: "x"}}, RouterDomain: "x",
	})
	if diff := cmp.Diff(defaulted, m); diff != "" {
		t.Errorf("setDefaults changed fields that are set (-want +got):\n%s", diff)
	}
}

// [modelregistry-64] The domain of the spec has precedence over the setting, and the setting over the cluster.
func TestDomainOrder(t *testing.T) {
	for name, test := range map[string]struct{ spec, setting, cluster, want string }{
		"spec":      {"spec", "setting", "cluster", "spec"},
		"setting":   {"", "setting", "cluster", "setting"},
		"cluster":   {"", "", "cluster", "cluster"},
		"no domain": {"", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := &v1beta1.ModelRegistry{Spec: v1beta1.ModelRegistrySpec{KubeRBACProxy: &v1beta1.ProxyConfig{Domain: test.spec}}}
			setDefaults(m, &servers.Platform{ModelRegistry: config.ModelRegistry{DefaultDomain: test.setting}, RouterDomain: test.cluster})
			if got := m.Spec.KubeRBACProxy.Domain; got != test.want {
				t.Errorf("got domain %q, want %q", got, test.want)
			}
		})
	}
}

type fixedDomain string

func (d fixedDomain) Domain() string  { return string(d) }
func (d fixedDomain) HasSynced() bool { return d != "" }
