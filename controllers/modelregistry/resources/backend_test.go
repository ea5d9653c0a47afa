package resources

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

// dsnOf returns the database address of a server.
func dsnOf(t *testing.T, server corev1.Container) string {
	t.Helper()
	index := slices.IndexFunc(server.Env, func(e corev1.EnvVar) bool { return e.Name == EnvDSN })
	if index < 0 {
		t.Fatalf("no variable %s in %v", EnvDSN, server.Env)
	}
	return server.Env[index].Value
}

// serverOf returns the container of the server and the volumes of its pod.
func serverOf(t *testing.T, m *v1beta1.ModelRegistry) (corev1.Container, []corev1.Volume) {
	t.Helper()
	pod := podOf(t, buildObjects(t, m, plain), "team-a")
	return pod.Containers[0], pod.Volumes
}

func TestDatabaseArguments(t *testing.T) {
	postgresMap := func(s *v1beta1.ModelRegistrySpec) {
		s.Postgres.SSLRootCertificateConfigMap = registrytest.ConfigMap("pg-root-map", "ca.pem")
	}
	for name, test := range map[string]struct {
		m    *v1beta1.ModelRegistry
		want []string
	}{
		"PostgreSQL": {registrytest.Registry(), []string{
			"--embedmd-database-type=postgres",
		}},
		"PostgreSQL has precedence": {registrytest.Registry(func(s *v1beta1.ModelRegistrySpec) { s.MySQL = &v1beta1.MySQLConfig{Host: "my"} }), []string{
			"--embedmd-database-type=postgres",
		}},
		"PostgreSQL with TLS": {registrytest.Registry(registrytest.PostgresTLS), []string{
			"--embedmd-database-type=postgres",
			"--embedmd-database-ssl-cert=/etc/postgres_ssl_cert/tls.crt",
			"--embedmd-database-ssl-key=/etc/postgres_ssl_key/tls.key",
			"--embedmd-database-ssl-root-cert=/etc/postgres_ssl_rootcert/ca.crt",
		}},
		"PostgreSQL with a ConfigMap": {registrytest.Registry(registrytest.PostgresTLS, postgresMap), []string{
			"--embedmd-database-type=postgres",
			"--embedmd-database-ssl-cert=/etc/postgres_ssl_cert/tls.crt",
			"--embedmd-database-ssl-key=/etc/postgres_ssl_key/tls.key",
			"--embedmd-database-ssl-root-cert=/etc/postgres_ssl_rootcert/ca.pem",
		}},
		"MySQL": {registrytest.Registry(registrytest.MySQL), []string{
			"--embedmd-database-type=mysql",
		}},
		"MySQL with TLS": {registrytest.Registry(registrytest.MySQL, registrytest.MySQLTLS), []string{
			"--embedmd-database-type=mysql",
			"--embedmd-database-ssl-cert=/etc/mysql_ssl_cert/tls.crt",
			"--embedmd-database-ssl-key=/etc/mysql_ssl_key/tls.key",
			"--embedmd-database-ssl-root-cert=/etc/mysql_ssl_rootcert/ca.crt",
			"--embedmd-database-ssl-ca=/etc/mysql_ssl_rootcerts/",
			"--embedmd-database-ssl-cipher=TLS_AES_256_GCM_SHA384",
			"--embedmd-database-ssl-verify-server-cert=true",
		}},
		"MySQL without verification": {registrytest.Registry(registrytest.MySQL, registrytest.MySQLTLS, registrytest.MySQLConfigMaps), []string{
			"--embedmd-database-type=mysql",
			"--embedmd-database-ssl-cert=/etc/mysql_ssl_cert/tls.crt",
			"--embedmd-database-ssl-key=/etc/mysql_ssl_key/tls.key",
			"--embedmd-database-ssl-root-cert=/etc/mysql_ssl_rootcert/ca.pem",
			"--embedmd-database-ssl-ca=/etc/mysql_ssl_rootcerts/",
			"--embedmd-database-ssl-cipher=TLS_AES_256_GCM_SHA384",
			"--embedmd-database-ssl-verify-server-cert=false",
		}},
	} {
		server, _ := serverOf(t, test.m)
		if diff := cmp.Diff(append([]string{"--hostname=0.0.0.0", "--port=8080"}, test.want...), server.Args); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The password is not in the command line. The kubelet expands only variables that precede the address.
func TestDatabaseEnvironment(t *testing.T) {
	from := func(name, secret, key string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: key,
		}}}
	}
	verify := corev1.EnvVar{Name: "MR_EMBEDMD_DATABASE_SSL_VERIFY_SERVER_CERT", Value: "true"}
	mode := func(mode v1beta1.SSLMode) func(*v1beta1.ModelRegistrySpec) {
		return func(s *v1beta1.ModelRegistrySpec) { s.Postgres.SSLMode = mode }
	}
	login := from("POSTGRES_PASSWORD", "pg-login", "password")
	address := func(dsn string) corev1.EnvVar { return corev1.EnvVar{Name: "MR_EMBEDMD_DATABASE_DSN", Value: dsn} }
	postgres := func(mode string) corev1.EnvVar {
		return address("postgresql://registry:$(POSTGRES_PASSWORD)@pg.data.svc:5432/models?sslmode=" + mode)
	}
	const mysql = "@tcp(mysql.data.svc:3306)/models?charset=utf8mb4"
	for name, test := range map[string]struct {
		m    *v1beta1.ModelRegistry
		want []corev1.EnvVar
	}{
		"PostgreSQL":            {registrytest.Registry(), []corev1.EnvVar{login, postgres("disable")}},
		"PostgreSQL, verify-ca": {registrytest.Registry(mode("verify-ca")), []corev1.EnvVar{login, postgres("verify-ca")}},
		"PostgreSQL with TLS": {registrytest.Registry(registrytest.PostgresTLS), []corev1.EnvVar{
			login, postgres("verify-full"), from("POSTGRES_SSLPASSWORD", "pg-client", "passphrase"), verify,
		}},
		"PostgreSQL without a password": {registrytest.Registry(func(s *v1beta1.ModelRegistrySpec) { s.Postgres.PasswordSecret = nil }), []corev1.EnvVar{
			address("postgresql://registry@pg.data.svc:5432/models?sslmode=disable"),
		}},
		"MySQL": {registrytest.Registry(registrytest.MySQL), []corev1.EnvVar{
			from("MYSQL_PASSWORD", "my-login", "password"), address("registry:$(MYSQL_PASSWORD)" + mysql),
		}},
		"MySQL without a password": {registrytest.Registry(registrytest.MySQL, func(s *v1beta1.ModelRegistrySpec) { s.MySQL.PasswordSecret = nil }), []corev1.EnvVar{
			address("registry" + mysql),
		}},
	} {
		server, _ := serverOf(t, test.m)
		if diff := cmp.Diff(test.want, server.Env); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestDatabaseVolumes(t *testing.T) {
	for name, test := range map[string]struct {
		m    *v1beta1.ModelRegistry
		want []string // volume: kind and object at path
	}{
		"no TLS": {registrytest.Registry(), nil},
		"PostgreSQL": {registrytest.Registry(registrytest.PostgresTLS), []string{
			"postgres-ssl-cert: Secret pg-client at /etc/postgres_ssl_cert",
			"postgres-ssl-key: Secret pg-client at /etc/postgres_ssl_key",
			"postgres-ssl-rootcert: Secret pg-root at /etc/postgres_ssl_rootcert",
		}},
		"MySQL": {registrytest.Registry(registrytest.MySQL, registrytest.MySQLTLS), []string{
			"mysql-ssl-cert: Secret my-client at /etc/mysql_ssl_cert",
			"mysql-ssl-key: Secret my-client at /etc/mysql_ssl_key",
			"mysql-ssl-rootcert: Secret my-root at /etc/mysql_ssl_rootcert",
			"mysql-ssl-rootcerts: Secret my-roots at /etc/mysql_ssl_rootcerts",
		}},
		"MySQL with ConfigMaps": {registrytest.Registry(registrytest.MySQL, registrytest.MySQLTLS, registrytest.MySQLConfigMaps), []string{
			"mysql-ssl-cert: Secret my-client at /etc/mysql_ssl_cert",
			"mysql-ssl-key: Secret my-client at /etc/mysql_ssl_key",
			"mysql-ssl-rootcert: ConfigMap my-root-map at /etc/mysql_ssl_rootcert",
			"mysql-ssl-rootcerts: ConfigMap my-roots-map at /etc/mysql_ssl_rootcerts",
		}},
	} {
		server, volumes := serverOf(t, test.m)
		var got []string
		for i, v := range volumes {
			source, mode := "", (*int32)(nil)
			if v.Secret != nil {
				source, mode = "Secret "+v.Secret.SecretName, v.Secret.DefaultMode
			} else {
				source, mode = "ConfigMap "+v.ConfigMap.Name, v.ConfigMap.DefaultMode
			}
			mount := server.VolumeMounts[i]
			if mount.Name != v.Name || !mount.ReadOnly || mode == nil || *mode != 0o600 {
				t.Errorf("%s: %s is mounted as %+v with mode %v", name, v.Name, mount, mode)
			}
			got = append(got, v.Name+": "+source+" at "+mount.MountPath)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// [S3] Only the Secret contains the password; containers get it in a variable from the Secret.
func TestPasswordsAreInSecretsOnly(t *testing.T) {
	m := registrytest.Registry(registrytest.UseGeneratedDatabase, registrytest.AddProxy)
	for _, o := range append(buildDatabaseObjects(t, m, plain), buildObjects(t, m, plain)...) {
		text, err := o.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		// The password of buildDatabaseObjects in base64.
		if found := strings.Contains(string(text), "Z2VuZXJhdGVk"); found != (o.GetKind() == "Secret") {
			t.Errorf("%s %s contains the encoded password: %t", o.GetKind(), o.GetName(), found)
		}
		if strings.Contains(string(text), `"generated"`) {
			t.Errorf("%s %s contains the password", o.GetKind(), o.GetName())
		}
	}
}
