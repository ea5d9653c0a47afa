// Package registrytest has the registries for the tests of several packages.
package registrytest

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/apis/server"
)

// Registry returns a registry with an external PostgreSQL and all defaults, changed by the given functions.
func Registry(change ...func(*v1beta1.ModelRegistrySpec)) *v1beta1.ModelRegistry {
	m := &v1beta1.ModelRegistry{}
	m.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(v1beta1.Kind))
	m.Name, m.Namespace = "team-a", "lab-registries"
	m.UID = "7f0c2f5e-0000-4000-8000-000000000001"
	m.Spec = v1beta1.ModelRegistrySpec{
		Rest: v1beta1.RestSpec{
			Image: "quay.io/example/model-registry:v1",
			Port:  new(int32(8080)),
			Resources: &corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("256Mi")},
				Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
			},
		},
		Postgres: &v1beta1.PostgresConfig{
			Host: "pg.data.svc", Port: new(int32(5432)), Username: "registry", Database: "models", SSLMode: "disable",
			PasswordSecret: &v1beta1.SecretKeyValue{Name: "pg-login", Key: "password"}, Image: "quay.io/example/postgresql:16",
		},
	}
	for _, f := range change {
		f(&m.Spec)
	}
	return m
}

// AddProxy adds a proxy with all defaults.
func AddProxy(s *v1beta1.ModelRegistrySpec) {
	s.KubeRBACProxy = &v1beta1.ProxyConfig{
		Image: "quay.io/example/kube-rbac-proxy:v1", Port: new(int32(8443)), RoutePort: new(int32(443)),
		ServiceRoute: v1beta1.RouteEnabled, Domain: "apps.example.com",
		TLSCertificateSecret: &v1beta1.SecretKeyValue{Name: "team-a-kube-rbac-proxy", Key: "tls.crt"},
		TLSKeySecret:         &v1beta1.SecretKeyValue{Name: "team-a-kube-rbac-proxy", Key: "tls.key"},
	}
}

// DisableRoute disables the Route.
func DisableRoute(s *v1beta1.ModelRegistrySpec) { s.KubeRBACProxy.ServiceRoute = v1beta1.RouteDisabled }

// SetName sets the name of the registry.
func SetName(m *v1beta1.ModelRegistry, name string) *v1beta1.ModelRegistry {
	m.Name = name
	return m
}

// Secret returns a reference to a key of a Secret.
func Secret(name, key string) *v1beta1.SecretKeyValue {
	return &v1beta1.SecretKeyValue{Name: name, Key: key}
}

// ConfigMap returns a reference to a key of a ConfigMap.
func ConfigMap(name, key string) *v1beta1.ConfigMapKeyValue {
	return &v1beta1.ConfigMapKeyValue{Name: name, Key: key}
}

// PostgresTLS sets sslMode and all TLS fields that refer to Secrets.
func PostgresTLS(s *v1beta1.ModelRegistrySpec) {
	p := s.Postgres
	p.SSLMode = "verify-full"
	p.SSLCertificateSecret, p.SSLKeySecret = Secret("pg-client", "tls.crt"), Secret("pg-client", "tls.key")
	p.SSLPasswordSecret = Secret("pg-client", "passphrase")
	p.SSLRootCertificateSecret = Secret("pg-root", "ca.crt")
}

// MySQL replaces the database by a MySQL without TLS.
func MySQL(s *v1beta1.ModelRegistrySpec) {
	s.Postgres = nil
	s.MySQL = &v1beta1.MySQLConfig{
		Host: "mysql.data.svc", Port: new(int32(3306)), Username: "registry", Database: "models", PasswordSecret: Secret("my-login", "password"),
	}
}

// MySQLTLS sets all TLS fields that refer to Secrets, a cipher and the verification of the server.
func MySQLTLS(s *v1beta1.ModelRegistrySpec) {
	c := s.MySQL
	c.SSLCertificateSecret, c.SSLKeySecret = Secret("my-client", "tls.crt"), Secret("my-client", "tls.key")
	c.SSLRootCertificateSecret = Secret("my-root", "ca.crt")
	c.SSLRootCertificatesSecretName = "my-roots"
	c.SSLCipher, c.VerifyServerCert = "TLS_AES_256_GCM_SHA384", new(true)
}

// MySQLConfigMaps sets CA certificates in ConfigMaps, which take precedence over Secrets, and disables the verification of the server.
func MySQLConfigMaps(s *v1beta1.ModelRegistrySpec) {
	s.MySQL.SSLRootCertificateConfigMap = ConfigMap("my-root-map", "ca.pem")
	s.MySQL.SSLRootCertificatesConfigMapName = "my-roots-map"
	s.MySQL.VerifyServerCert = new(false)
}

// UseGeneratedDatabase sets the connection to a generated database.
func UseGeneratedDatabase(s *v1beta1.ModelRegistrySpec) {
	s.Postgres = &v1beta1.PostgresConfig{
		Host: "team-a-postgres", Port: new(int32(5432)), Username: "modelregistry", Database: "model_registry",
		PasswordSecret: Secret("team-a-postgres-credentials", "password"), Image: "quay.io/example/postgresql:16",
	}
}

// SetStorageAndRetention sets the storage size, the storage class and the name of a generated database, whose data is deleted with the
// registry.
func SetStorageAndRetention(s *v1beta1.ModelRegistrySpec) {
	s.Postgres.RetentionPolicy = v1beta1.DeleteData
	s.Postgres.Storage = &v1beta1.PostgresStorage{Size: new(resource.MustParse("20Gi")), StorageClassName: new("fast")}
	s.Postgres.Database = "team_models"
}

// SetAllDatabaseFields sets TLS, resources and backups of a generated database.
func SetAllDatabaseFields(s *v1beta1.ModelRegistrySpec) {
	p := s.Postgres
	p.ServerTLS, p.SSLMode, p.SSLRootCertificateSecret = server.Enabled, "verify-full", Secret("team-a-postgres-tls", "ca.crt")
	p.Resources = &corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")},
		Claims:   []corev1.ResourceClaim{{Name: "ignored"}},
	}
	p.Backup = &v1beta1.PostgresBackup{
		Schedule: "15 3 * * *", Keep: new(int32(14)), Suspend: new(true),
		Storage: &v1beta1.PostgresStorage{Size: new(resource.MustParse("10Gi")), StorageClassName: new("slow")},
	}
}

// SetOptionalFields sets fields that most specs leave to defaults.
func SetOptionalFields(s *v1beta1.ModelRegistrySpec) {
	s.Rest.ServiceRoute, s.Rest.Port = v1beta1.RouteEnabled, new(int32(9090))
	s.Rest.Resources = &corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("4Gi")},
		Claims:   []corev1.ResourceClaim{{Name: "ignored"}},
	}
}

// CustomizeProxy sets ports, domain and image of the proxy, and certificate and key from two Secrets of the user. [modelregistry-31]
// [modelregistry-33]
func CustomizeProxy(s *v1beta1.ModelRegistrySpec) {
	p := s.KubeRBACProxy
	p.TLSCertificateSecret, p.TLSKeySecret = Secret("own-cert", "cert.pem"), Secret("own-key", "key.pem")
	p.Port, p.RoutePort, p.Domain, p.Image = new(int32(9443)), new(int32(8443)), "models.example.com", "registry.example.com/sec/kube-rbac-proxy:v2"
}
