package resources

import (
	"strings"
	"testing"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

func TestPostgresDSN(t *testing.T) {
	login := registrytest.Secret("login", "password")
	for name, test := range map[string]struct {
		config v1beta1.PostgresConfig
		want   string
	}{
		"all parts of the address": {v1beta1.PostgresConfig{Host: "pg.data.svc", Port: new(int32(5433)), Username: "registry", Database: "models", PasswordSecret: login, SSLMode: "disable"},
			"postgresql://registry:$(POSTGRES_PASSWORD)@pg.data.svc:5433/models?sslmode=disable"},
		"without a password":               {v1beta1.PostgresConfig{Host: "pg", Username: "registry", Database: "models"}, "postgresql://registry@pg:5432/models"},
		"[D31] without a port":             {v1beta1.PostgresConfig{Host: "pg", Username: "u", Database: "d"}, "postgresql://u@pg:5432/d"},
		"without a user":                   {v1beta1.PostgresConfig{Host: "pg", Database: "d"}, "postgresql://pg:5432/d"},
		"[D13] host and hostAddress":       {v1beta1.PostgresConfig{Host: "pg", HostAddress: "192.0.2.1", Username: "u", Database: "d"}, "postgresql://u@pg:5432/d"},
		"hostAddress":                      {v1beta1.PostgresConfig{HostAddress: "192.0.2.1", Username: "u", Database: "d"}, "postgresql://u@192.0.2.1:5432/d"},
		"IPv6 address":                     {v1beta1.PostgresConfig{HostAddress: "2001:db8::1", Username: "u", Database: "d"}, "postgresql://u@[2001:db8::1]:5432/d"},
		"IPv6 address in brackets":         {v1beta1.PostgresConfig{Host: "[2001:db8::1]", Username: "u", Database: "d"}, "postgresql://u@[2001:db8::1]:5432/d"},
		"list of addresses":                {v1beta1.PostgresConfig{HostAddress: "[2001:db8::1],::1,b", Username: "u", Database: "d"}, "postgresql://u@[2001:db8::1],[::1],b:5432/d"},
		"port in the host":                 {v1beta1.PostgresConfig{Host: "db:5433", Username: "u", Database: "d"}, "postgresql://u@db:5433/d"},
		"port in the last host":            {v1beta1.PostgresConfig{Host: "a,b:5433", Username: "u", Database: "d"}, "postgresql://u@a,b:5433/d"},
		"several hosts":                    {v1beta1.PostgresConfig{Host: "a:5433,b", Username: "u", Database: "d"}, "postgresql://u@a:5433,b:5432/d"},
		"hyphen in the database":           {v1beta1.PostgresConfig{Host: "pg", Username: "u", Database: "model-registry"}, "postgresql://u@pg:5432/model-registry"},
		"[D31] special characters":         {v1beta1.PostgresConfig{Host: "pg", Username: "a@b:c", Database: "d/e?sslmode=disable#f"}, "postgresql://a%40b%3Ac@pg:5432/d%2Fe%3Fsslmode%3Ddisable%23f"},
		"[D31] variables are not expanded": {v1beta1.PostgresConfig{Host: "pg", Username: "$(POSTGRES_PASSWORD)", Database: "$(HOME)"}, "postgresql://%24%28POSTGRES_PASSWORD%29@pg:5432/%24%28HOME%29"},
		"escaped characters are kept":      {v1beta1.PostgresConfig{Host: "pg", Username: "a%40b", Database: "d"}, "postgresql://a%40b@pg:5432/d"},
		"percent sign without an escape":   {v1beta1.PostgresConfig{Host: "pg", Username: "50% off", Database: "d"}, "postgresql://50%25%20off@pg:5432/d"},
		"[D31] invalid sslmode":            {v1beta1.PostgresConfig{Host: "pg", Database: "d", SSLMode: "x&host=evil"}, "postgresql://pg:5432/d?sslmode=x%26host%3Devil"},
	} {
		got, err := postgresDSN(&test.config)
		if err != nil || got != test.want {
			t.Errorf("%s: got %q, want %q (%v)", name, got, test.want, err)
		}
	}
}

func TestMySQLDSN(t *testing.T) {
	login := registrytest.Secret("login", "password")
	for name, test := range map[string]struct {
		config v1beta1.MySQLConfig
		want   string
	}{
		"all parts of the address": {v1beta1.MySQLConfig{Host: "my.data.svc", Port: new(int32(3307)), Username: "registry", Database: "models", PasswordSecret: login},
			"registry:$(MYSQL_PASSWORD)@tcp(my.data.svc:3307)/models?charset=utf8mb4"},
		"without a password":       {v1beta1.MySQLConfig{Host: "my", Username: "u", Database: "d"}, "u@tcp(my:3306)/d?charset=utf8mb4"},
		"without a host":           {v1beta1.MySQLConfig{Username: "u", Database: "d"}, "u@tcp(localhost:3306)/d?charset=utf8mb4"},
		"IPv6 address":             {v1beta1.MySQLConfig{Host: "2001:db8::1", Username: "u", Database: "d"}, "u@tcp([2001:db8::1]:3306)/d?charset=utf8mb4"},
		"IPv6 address in brackets": {v1beta1.MySQLConfig{Host: "[2001:db8::1]", Username: "u", Database: "d"}, "u@tcp([2001:db8::1]:3306)/d?charset=utf8mb4"},
		"[D31] special characters": {v1beta1.MySQLConfig{Host: "my", Username: "a@b/c$(MYSQL_PASSWORD)", Database: "d/e?tls=false"}, "a@b/c$$(MYSQL_PASSWORD)@tcp(my:3306)/d%2Fe%3Ftls%3Dfalse?charset=utf8mb4"},
	} {
		got, err := mysqlDSN(&test.config)
		if err != nil || got != test.want {
			t.Errorf("%s: got %q, want %q (%v)", name, got, test.want, err)
		}
	}
}

// [D31] The error names the field.
func TestRejectedConnections(t *testing.T) {
	for name, test := range map[string]struct {
		spec v1beta1.ModelRegistrySpec
		want string
	}{
		"host with a path":         {v1beta1.ModelRegistrySpec{Postgres: &v1beta1.PostgresConfig{Host: "pg/other?sslmode=disable"}}, `spec.postgres.host "pg/other?sslmode=disable"`},
		"host with a user":         {v1beta1.ModelRegistrySpec{Postgres: &v1beta1.PostgresConfig{Host: "evil@pg"}}, `spec.postgres.host "evil@pg"`},
		"variable as host":         {v1beta1.ModelRegistrySpec{Postgres: &v1beta1.PostgresConfig{Host: "$(POSTGRES_PASSWORD).evil"}}, "spec.postgres.host"},
		"invalid address":          {v1beta1.ModelRegistrySpec{Postgres: &v1beta1.PostgresConfig{HostAddress: "fe80::1%eth0"}}, `spec.postgres.hostAddress "fe80::1%eth0"`},
		"name in brackets":         {v1beta1.ModelRegistrySpec{Postgres: &v1beta1.PostgresConfig{Host: "[pg]"}}, `spec.postgres.host "[pg]"`},
		"IPv4 address in brackets": {v1beta1.ModelRegistrySpec{MySQL: &v1beta1.MySQLConfig{Host: "[192.0.2.1]"}}, `spec.mysql.host "[192.0.2.1]"`},
		"unclosed bracket":         {v1beta1.ModelRegistrySpec{Postgres: &v1beta1.PostgresConfig{Host: "[::1"}}, `spec.postgres.host "[::1"`},
		"no host":                  {v1beta1.ModelRegistrySpec{Postgres: &v1beta1.PostgresConfig{}}, "set spec.postgres.generateDeployment"},
		"invalid MySQL host":       {v1beta1.ModelRegistrySpec{MySQL: &v1beta1.MySQLConfig{Host: "my)/x?("}}, `spec.mysql.host "my)/x?("`},
		"several MySQL hosts":      {v1beta1.ModelRegistrySpec{MySQL: &v1beta1.MySQLConfig{Host: "a,b"}}, `spec.mysql.host "a,b"`},
		"colon in a MySQL user":    {v1beta1.ModelRegistrySpec{MySQL: &v1beta1.MySQLConfig{Host: "my", Username: "root:guess"}}, `spec.mysql.username "root:guess"`},
		"no database":              {v1beta1.ModelRegistrySpec{}, "set spec.postgres or spec.mysql"},
		"key outside of the volume": {v1beta1.ModelRegistrySpec{Postgres: &v1beta1.PostgresConfig{Host: "pg", SSLKeySecret: registrytest.Secret("s", "../../proc/self/environ")}},
			`spec.postgres.sslKeySecret names key "../../proc/self/environ"`},
		"empty key": {v1beta1.ModelRegistrySpec{MySQL: &v1beta1.MySQLConfig{Host: "my", SSLRootCertificateConfigMap: registrytest.ConfigMap("c", "")}}, `spec.mysql.sslRootCertificateConfigMap names key ""`},
	} {
		m := registrytest.Registry(func(s *v1beta1.ModelRegistrySpec) { s.Postgres, s.MySQL = test.spec.Postgres, test.spec.MySQL })
		if _, err := Build(m, plain); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}

func TestRejectedPorts(t *testing.T) {
	for name, test := range map[string]struct {
		rest, proxy int32
		want        string
	}{
		"equal ports":                  {8443, 8443, "both 8443"},
		"proxy on the port of probes":  {8080, 8888, "spec.kubeRBACProxy.port 8888"},
		"server on the port of probes": {8888, 8443, "spec.rest.port 8888"},
	} {
		m := registrytest.Registry(registrytest.AddProxy, func(s *v1beta1.ModelRegistrySpec) { s.Rest.Port, s.KubeRBACProxy.Port = &test.rest, &test.proxy })
		if _, err := Build(m, plain); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
		m.Spec.KubeRBACProxy = nil
		if _, err := Build(m, plain); err != nil {
			t.Errorf("%s, without a proxy: unexpected error: %v", name, err)
		}
	}
	m := registrytest.Registry(registrytest.AddProxy, func(s *v1beta1.ModelRegistrySpec) { s.KubeRBACProxy.TLSKeySecret = registrytest.Secret("s", "a/b") })
	if _, err := Build(m, plain); err == nil || !strings.Contains(err.Error(), `spec.kubeRBACProxy.tlsKeySecret names key "a/b"`) {
		t.Errorf("got error %v, want one that names the field and the key", err)
	}
}
