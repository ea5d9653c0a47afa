package resources

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

// variant is a combination of parameters that select the objects of a registry. ocp is true on OpenShift, users if the Group API is served.
type variant struct{ ocp, users, gateway, proxy, route, plainRoute bool }

// variants returns all combinations.
func variants() []variant {
	var all []variant
	for bits := range 64 {
		on := func(bit int) bool { return bits&(1<<bit) != 0 }
		all = append(all, variant{on(0), on(1), on(2), on(3), on(4), on(5)})
	}
	return all
}

func (v variant) registry() *v1beta1.ModelRegistry {
	m := registrytest.Registry()
	if v.proxy {
		registrytest.AddProxy(&m.Spec)
		if !v.route {
			registrytest.DisableRoute(&m.Spec)
		}
	}
	if v.plainRoute {
		m.Spec.Rest.ServiceRoute = v1beta1.RouteEnabled
	}
	return m
}

func (v variant) inputs() Inputs {
	return with(gateway, func(in *Inputs) {
		if !v.ocp {
			unserve(in, capability.Route)
		}
		if !v.users {
			unserve(in, capability.UserGroup)
		}
		if !v.gateway {
			in.Gateway.Domain = ""
		}
	})
}

// expectedObject is an object of the variants for which when returns true. instance is its instance label, owned is true if the registry is
// its owner.
type expectedObject struct {
	object, instance string
	owned            bool
	when             func(variant) bool
}

// [modelregistry-29] [modelregistry-30] [modelregistry-32] [modelregistry-38] The objects of a registry in every variant.
func TestObjectsOfEveryVariant(t *testing.T) {
	always := func(variant) bool { return true }
	proxied := func(v variant) bool { return v.proxy }
	routed := func(v variant) bool { return v.ocp && v.proxy && v.route }
	viaGateway := func(v variant) bool { return v.ocp && v.gateway }
	expected := []expectedObject{
		{"ServiceAccount/team-a", "team-a", true, always},
		{"Service/team-a", "team-a", true, always},
		{"Deployment/team-a", "team-a", true, always},
		{"Role/registry-user-team-a", "registry-user-team-a", true, always},
		{"Group/team-a-users", "team-a-users", false, func(v variant) bool { return v.ocp && v.users }},
		{"RoleBinding/team-a-users", "team-a-users", true, func(v variant) bool { return v.ocp }},
		{"Route/team-a-http", "team-a-http", true, func(v variant) bool { return v.ocp && v.plainRoute }},
		{"ConfigMap/team-a-kube-rbac-proxy-config", "team-a", true, proxied},
		{"ClusterRoleBinding/team-a-auth-delegator", "team-a-auth-delegator", false, proxied},
		{"NetworkPolicy/team-a-egress", "team-a-egress", true, always},
		{"NetworkPolicy/team-a-ingress", "team-a-ingress", true, proxied},
		{"Route/team-a-https", "team-a-https", true, routed},
		{"NetworkPolicy/team-a-https-route", "team-a-https-route", true, routed},
		{"HTTPRoute/model-registry-team-a", "model-registry-team-a", false, viaGateway},
		{"ReferenceGrant/allow-gateway-httproutes-team-a", "allow-gateway-httproutes-team-a", true, viaGateway},
	}
	unownedKinds := []string{"Group", "ClusterRoleBinding", "HTTPRoute"}
	for _, v := range variants() {
		m := v.registry()
		objects := buildObjects(t, m, v.inputs())
		var want []string
		for _, r := range expected {
			if r.when(v) {
				want = append(want, r.object)
			}
		}
		got := objectKeys(objects)
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", v, diff)
		}
		for _, o := range objects {
			index := slices.IndexFunc(expected, func(r expectedObject) bool { return r.object == o.GetKind()+"/"+o.GetName() })
			if index < 0 {
				continue // reported above
			}
			labels := map[string]string{
				"app": "team-a", "component": "model-registry", "app.kubernetes.io/name": "team-a", "app.kubernetes.io/instance": expected[index].instance,
				"app.kubernetes.io/component": "model-registry", "app.kubernetes.io/created-by": "model-registry-operator",
				"app.kubernetes.io/part-of": "model-registry", "app.kubernetes.io/managed-by": "model-registry-operator",
				"platform.opendatahub.io/component": "modelregistry", "platform.opendatahub.io/operator": "odh-platform-operator",
			}
			if slices.Contains(unownedKinds, o.GetKind()) {
				labels["modelregistry.opendatahub.io/namespace"] = "lab-registries"
			}
			if diff := cmp.Diff(labels, o.GetLabels()); diff != "" {
				t.Errorf("%+v: labels of %s (-want +got):\n%s", v, expected[index].object, diff)
			}
			if metav1.IsControlledBy(o, m) != expected[index].owned {
				t.Errorf("%+v: %s is owned by %v", v, expected[index].object, o.GetOwnerReferences())
			}
		}
	}
}

// fileSource is the source of a TLS file.
type fileSource int

const (
	fromNone fileSource = iota
	fromSecret
	fromConfigMap
	fromBoth // the ConfigMap has precedence
)

func (f fileSource) references() (*v1beta1.SecretKeyValue, *v1beta1.ConfigMapKeyValue) {
	var s *v1beta1.SecretKeyValue
	var c *v1beta1.ConfigMapKeyValue
	if f == fromSecret || f == fromBoth {
		s = registrytest.Secret("ca-secret", "ca.crt")
	}
	if f == fromConfigMap || f == fromBoth {
		c = registrytest.ConfigMap("ca-map", "ca.pem")
	}
	return s, c
}

// file returns the name of the file and the object that contains it.
func (f fileSource) file() (key, object string) {
	if f == fromSecret {
		return "ca.crt", "Secret ca-secret"
	}
	return "ca.pem", "ConfigMap ca-map"
}

// checkServer compares the database address, the arguments after the port, and the mounted volumes with the expected ones.
func checkServer(t *testing.T, name string, m *v1beta1.ModelRegistry, address string, args []string, volumes map[string]string) {
	t.Helper()
	container, podVolumes := serverOf(t, m)
	if got := dsnOf(t, container); got != address {
		t.Errorf("%s: address %s, want %s", name, got, address)
	}
	if diff := cmp.Diff(args, container.Args[2:]); diff != "" {
		t.Errorf("%s: arguments (-want +got):\n%s", name, diff)
	}
	got := map[string]string{}
	for _, v := range podVolumes {
		switch {
		case v.Secret != nil:
			got[v.Name] = "Secret " + v.Secret.SecretName
		case v.ConfigMap != nil:
			got[v.Name] = "ConfigMap " + v.ConfigMap.Name
		}
		if !slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == v.Name && m.ReadOnly }) {
			t.Errorf("%s: %s is not mounted", name, v.Name)
		}
	}
	if diff := cmp.Diff(volumes, got); diff != "" || len(container.VolumeMounts) != len(volumes) {
		t.Errorf("%s: %d mounts, volumes (-want +got):\n%s", name, len(container.VolumeMounts), diff)
	}
}

// PostgreSQL with every source of TLS files, with and without a password, in every mode.
func TestPostgresTLSFileSources(t *testing.T) {
	for _, mode := range []v1beta1.SSLMode{"", "disable", "allow", "prefer", "require", "verify-ca", "verify-full"} {
		for _, root := range []fileSource{fromNone, fromSecret, fromConfigMap, fromBoth} {
			for bits := range 8 {
				cert, key, login := bits&1 != 0, bits&2 != 0, bits&4 != 0
				name := fmt.Sprintf("mode %q, root %d, certificate %t, key %t, password %t", mode, root, cert, key, login)
				address, volumes := "postgresql://registry@pg.data.svc:5432/models", map[string]string{}
				m := registrytest.Registry(func(s *v1beta1.ModelRegistrySpec) {
					s.Postgres.SSLMode, s.Postgres.PasswordSecret = mode, nil
					s.Postgres.SSLRootCertificateSecret, s.Postgres.SSLRootCertificateConfigMap = root.references()
				})
				if login {
					m.Spec.Postgres.PasswordSecret = registrytest.Secret("login", "pw")
					address = "postgresql://registry:$(POSTGRES_PASSWORD)@pg.data.svc:5432/models"
				}
				if mode != "" {
					address += "?sslmode=" + string(mode)
				}
				want := []string{"--embedmd-database-type=postgres"}
				if cert {
					m.Spec.Postgres.SSLCertificateSecret = registrytest.Secret("client", "c.pem")
					want, volumes["postgres-ssl-cert"] = append(want, "--embedmd-database-ssl-cert=/etc/postgres_ssl_cert/c.pem"), "Secret client"
				}
				if key {
					m.Spec.Postgres.SSLKeySecret = registrytest.Secret("client-key", "k.pem")
					want, volumes["postgres-ssl-key"] = append(want, "--embedmd-database-ssl-key=/etc/postgres_ssl_key/k.pem"), "Secret client-key"
				}
				if root != fromNone {
					file, from := root.file()
					want, volumes["postgres-ssl-rootcert"] = append(want, "--embedmd-database-ssl-root-cert=/etc/postgres_ssl_rootcert/"+file), from
				}
				checkServer(t, name, m, address, want, volumes)
			}
		}
	}
}

// MySQL with every source of TLS files, and a directory for several CAs.
func TestMySQLTLSFileSources(t *testing.T) {
	for _, root := range []fileSource{fromNone, fromSecret, fromConfigMap, fromBoth} {
		for _, directory := range []fileSource{fromNone, fromSecret, fromConfigMap, fromBoth} {
			for bits := range 8 {
				client, cipher, verify := bits&1 != 0, bits&2 != 0, bits&4 != 0
				name := fmt.Sprintf("root %d, directory %d, client %t, cipher %t, verify %t", root, directory, client, cipher, verify)
				m, volumes := registrytest.Registry(registrytest.MySQL), map[string]string{}
				c := m.Spec.MySQL
				c.SSLRootCertificateSecret, c.SSLRootCertificateConfigMap = root.references()
				address, want := "registry:$(MYSQL_PASSWORD)@tcp(mysql.data.svc:3306)/models?charset=utf8mb4", []string{"--embedmd-database-type=mysql"}
				if client {
					c.SSLCertificateSecret, c.SSLKeySecret = registrytest.Secret("client", "c.pem"), registrytest.Secret("client-key", "k.pem")
					want = append(want, "--embedmd-database-ssl-cert=/etc/mysql_ssl_cert/c.pem", "--embedmd-database-ssl-key=/etc/mysql_ssl_key/k.pem")
					volumes["mysql-ssl-cert"], volumes["mysql-ssl-key"] = "Secret client", "Secret client-key"
				}
				if root != fromNone {
					file, from := root.file()
					want, volumes["mysql-ssl-rootcert"] = append(want, "--embedmd-database-ssl-root-cert=/etc/mysql_ssl_rootcert/"+file), from
				}
				if directory != fromNone {
					want = append(want, "--embedmd-database-ssl-ca=/etc/mysql_ssl_rootcerts/")
				}
				switch directory {
				case fromSecret:
					c.SSLRootCertificatesSecretName, volumes["mysql-ssl-rootcerts"] = "roots", "Secret roots"
				case fromBoth:
					c.SSLRootCertificatesSecretName, c.SSLRootCertificatesConfigMapName, volumes["mysql-ssl-rootcerts"] = "roots", "roots-map", "ConfigMap roots-map"
				case fromConfigMap:
					c.SSLRootCertificatesConfigMapName, volumes["mysql-ssl-rootcerts"] = "roots-map", "ConfigMap roots-map"
				}
				if cipher {
					c.SSLCipher = "A:B+$(X)"
					want = append(want, "--embedmd-database-ssl-cipher=A:B+$$(X)")
				}
				if verify {
					c.VerifyServerCert = new(false)
					want = append(want, "--embedmd-database-ssl-verify-server-cert=false")
				}
				checkServer(t, name, m, address, want, volumes)
			}
		}
	}
}
