package modelregistry

import (
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

func secret(name, key string) *v1beta1.SecretKeyValue {
	return &v1beta1.SecretKeyValue{Name: name, Key: key}
}

func configMap(name, key string) *v1beta1.ConfigMapKeyValue {
	return &v1beta1.ConfigMapKeyValue{Name: name, Key: key}
}

// postgresTLS has every form of TLS with PostgreSQL that Secrets allow.
func postgresTLS(s *v1beta1.ModelRegistrySpec) {
	p := s.Postgres
	p.SSLMode = "verify-full"
	p.SSLCertificateSecret, p.SSLKeySecret = secret("pg-client", "tls.crt"), secret("pg-client", "tls.key")
	p.SSLPasswordSecret = secret("pg-client", "passphrase")
	p.SSLRootCertificateSecret = secret("pg-root", "ca.crt")
}

// mysql is a MySQL database instead, with every form of TLS that Secrets allow.
func mysql(s *v1beta1.ModelRegistrySpec) {
	s.Postgres = nil
	s.MySQL = &v1beta1.MySQLConfig{
		Host: "mysql.data.svc", Port: new(int32(3306)), Username: "registry", Database: "models", PasswordSecret: secret("my-login", "password"),
	}
}

func mysqlTLS(s *v1beta1.ModelRegistrySpec) {
	c := s.MySQL
	c.SSLCertificateSecret, c.SSLKeySecret = secret("my-client", "tls.crt"), secret("my-client", "tls.key")
	c.SSLRootCertificateSecret = secret("my-root", "ca.crt")
	c.SSLRootCertificatesSecretName = "my-roots"
	c.SSLCipher, c.VerifyServerCert = "TLS_AES_256_GCM_SHA384", new(true)
}

// mysqlConfigMaps adds the forms that win over Secrets.
func mysqlConfigMaps(s *v1beta1.ModelRegistrySpec) {
	s.MySQL.SSLRootCertificateConfigMap = configMap("my-root-map", "ca.pem")
	s.MySQL.SSLRootCertificatesConfigMapName = "my-roots-map"
	s.MySQL.VerifyServerCert = new(false)
}

// generated is the connection to a database that is generated.
func generated(s *v1beta1.ModelRegistrySpec) {
	s.Postgres = &v1beta1.PostgresConfig{
		Host: "team-a-postgres", Port: new(int32(5432)), Username: defaultDatabaseUser, Database: defaultDatabase,
		PasswordSecret: secret("team-a-postgres-credentials", "password"), Image: "quay.io/example/postgresql:16",
	}
}

func sizedAndDeleted(s *v1beta1.ModelRegistrySpec) {
	s.Postgres.RetentionPolicy = v1beta1.DeleteData
	s.Postgres.Storage = &v1beta1.PostgresStorage{Size: new(resource.MustParse("20Gi")), StorageClassName: new("fast")}
	s.Postgres.Database = "team_models"
}

func everywhere(s *v1beta1.ModelRegistrySpec) {
	s.Rest.ServiceRoute, s.Rest.Port = v1beta1.RouteEnabled, new(int32(9090))
	s.Rest.Resources = &corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("4Gi")},
		Claims:   []corev1.ResourceClaim{{Name: "ignored"}},
	}
}

// customised has certificate and key in two Secrets of the user. [modelregistry-31] [modelregistry-33]
func customised(s *v1beta1.ModelRegistrySpec) {
	p := s.KubeRBACProxy
	p.TLSCertificateSecret, p.TLSKeySecret = secret("own-cert", "cert.pem"), secret("own-key", "key.pem")
	p.Port, p.RoutePort, p.Domain, p.Image = new(int32(9443)), new(int32(8443)), "models.example.com", "registry.example.com/sec/kube-rbac-proxy:v2"
}

// TestGolden shows every object of every case as it would be written.
func TestGolden(t *testing.T) {
	described := registry(proxied)
	described.Annotations = map[string]string{annotationDisplayName: "Team A", annotationDescription: "Models of team A", "example.com/note": "not ours"}
	ownCert := func(in Inputs) Inputs { return with(in, func(in *Inputs) { in.ServingCertificate = false }) }
	for name, c := range map[string]struct {
		m  *v1beta1.ModelRegistry
		in Inputs
	}{
		"postgres-plain":         {registry(), plain},
		"postgres-tls-plain":     {registry(postgresTLS), plain},
		"postgres-tls-openshift": {registry(postgresTLS, proxied), openshift},
		"postgres-configmap-plain": {registry(postgresTLS, func(s *v1beta1.ModelRegistrySpec) {
			s.Postgres.SSLRootCertificateConfigMap = configMap("pg-root-map", "ca.pem")
		}), plain},
		"mysql-plain":                 {registry(mysql), plain},
		"mysql-tls-openshift":         {registry(mysql, mysqlTLS, proxied), openshift},
		"mysql-configmaps-plain":      {registry(mysql, mysqlTLS, mysqlConfigMaps), plain},
		"proxy-plain":                 {registry(proxied), plain},
		"proxy-own-certificate-plain": {registry(proxied, customised), ownCert(plain)},
		"proxy-own-certificate-ocp":   {registry(proxied, customised), ownCert(openshift)},
		"proxy-unrouted-openshift":    {registry(proxied, unrouted), openshift},
		"described-openshift":         {described, openshift},
		"everywhere-openshift":        {registry(proxied, everywhere), openshift},
		"gateway-openshift":           {registry(proxied), gateway},
		"identity-provider-openshift": {registry(proxied), with(openshift, func(in *Inputs) { in.HasUserAPI = false })},
		"generated-plain":             {registry(generated), plain},
		"generated-openshift":         {registry(generated, proxied, sizedAndDeleted), openshift},
		"long-name-openshift":         {called(registry(generated, proxied), strings.Repeat("a", 60)+"xyz"), gateway},
		"stamped-plain": {registry(generated, proxied), with(plain, func(in *Inputs) {
			in.Stamp = reference.Stamp{Baseline: `{"Secret/team-a-postgres-credentials":"1"}`, Rollout: "a1"}
			in.PostgresStamp = reference.Stamp{Baseline: `{"Secret/team-a-postgres-credentials":"2"}`, Rollout: "b2"}
		})},
	} {
		t.Run(name, func(t *testing.T) {
			objects := built(t, c.m, c.in)
			if p := c.m.Spec.Postgres; p != nil && p.Host == "team-a-postgres" {
				objects = append(objects, builtDatabase(t, c.m, c.in)...)
			}
			framework.Golden(t, filepath.Join("testdata", "golden", name+".yaml"), objects)
			checkPods(t, objects)
		})
	}
}

// checkPods: [S7] every pod is admitted where Pod Security is restricted, and has a token only where a proxy needs one.
func checkPods(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() != "Deployment" {
			continue
		}
		pod := podOf(t, objects, o.GetName())
		if s := pod.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot ||
			s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s: the pod is not restricted: %+v", o.GetName(), s)
		}
		for i := range pod.Containers {
			c := &pod.Containers[i]
			if s := c.SecurityContext; s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
				s.Capabilities == nil || len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" || len(s.Capabilities.Add) > 0 {
				t.Errorf("%s: container %s is not restricted: %+v", o.GetName(), c.Name, s)
			}
		}
		hasProxy := len(pod.Containers) > 1
		if token := pod.AutomountServiceAccountToken; token == nil || *token != hasProxy {
			t.Errorf("%s: a proxy %t and a token %v", o.GetName(), hasProxy, token)
		}
	}
}
