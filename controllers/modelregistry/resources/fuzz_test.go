package resources

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/test/framework"
	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

// FuzzStringsKeepStructure tests that no text in a spec adds or removes a field of any object or a part of the database address. Only
// values differ, or an error names the field. [D31]
func FuzzStringsKeepStructure(f *testing.F) {
	for _, seed := range []string{
		"", "x", "a\nhostNetwork: true", "a\"\n  - --evil", "'{}'", "{{ .Values }}", "$(POSTGRES_PASSWORD)", "$$(X)", "a: &b [*b]", "\x00\xff",
		"---\nkind: Pod", "a@evil/b?sslmode=disable#", "tcp(evil)/", "%41", "%", "..", "../..", "[::1]", "ü", "9",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = "x" + strings.ToValidUTF8(text, "")
		for _, database := range []func(*v1beta1.ModelRegistrySpec, string){textPostgres, textMySQL} {
			want := fieldShapes(t, registryWithText(database, "x"))
			m := registryWithText(database, text)
			if diff := cmp.Diff(want, fieldShapes(t, m)); diff != "" {
				t.Errorf("%q changed the structure (-want +got):\n%s", text, diff)
			}
			checkAddress(t, m, text)
		}
		for field, set := range validatedFields {
			m := registrytest.Registry(registrytest.PostgresTLS, withMySQL, registrytest.AddProxy, func(s *v1beta1.ModelRegistrySpec) { set(s, text) })
			if strings.HasPrefix(field, "spec.mysql") {
				m.Spec.Postgres = nil
			}
			objects, err := Build(m, gateway)
			if err != nil {
				if !strings.Contains(err.Error(), field) {
					t.Errorf("%s: unexpected error: %v", field, err)
				}
				continue
			}
			unchanged := registrytest.Registry(registrytest.PostgresTLS, withMySQL, registrytest.AddProxy)
			if m.Spec.Postgres == nil {
				unchanged.Spec.Postgres = nil
			}
			if diff := cmp.Diff(shapeOf(buildObjects(t, unchanged, gateway)), shapeOf(renderObjects(t, m, objects))); diff != "" {
				t.Errorf("%s: %q changed the structure (-want +got):\n%s", field, text, diff)
			}
		}
	})
}

// validatedFields holds some of the fields that reject invalid texts.
var validatedFields = map[string]func(*v1beta1.ModelRegistrySpec, string){
	"spec.postgres.host":                      func(s *v1beta1.ModelRegistrySpec, text string) { s.Postgres.Host = text },
	"spec.postgres.sslKeySecret":              func(s *v1beta1.ModelRegistrySpec, text string) { s.Postgres.SSLKeySecret.Key = text },
	"spec.postgres.sslRootCertificateSecret":  func(s *v1beta1.ModelRegistrySpec, text string) { s.Postgres.SSLRootCertificateSecret.Key = text },
	"spec.mysql.host":                         func(s *v1beta1.ModelRegistrySpec, text string) { s.MySQL.Host = text },
	"spec.mysql.username":                     func(s *v1beta1.ModelRegistrySpec, text string) { s.MySQL.Username = text },
	"spec.kubeRBACProxy.tlsCertificateSecret": func(s *v1beta1.ModelRegistrySpec, text string) { s.KubeRBACProxy.TLSCertificateSecret.Key = text },
}

func withMySQL(s *v1beta1.ModelRegistrySpec) {
	postgres := s.Postgres
	registrytest.MySQL(s)
	registrytest.MySQLTLS(s)
	s.Postgres = postgres
}

// registryWithText returns a registry with the text in the string fields that accept any text.
func registryWithText(database func(*v1beta1.ModelRegistrySpec, string), text string) *v1beta1.ModelRegistry {
	m := registrytest.Registry(registrytest.AddProxy)
	m.Annotations = map[string]string{servers.AnnotationDisplayName: text, servers.AnnotationDescription: text, "own/" + text: text}
	m.Spec.Rest.Image, m.Spec.Rest.ServiceRoute = text, v1beta1.RouteEnabled
	p := m.Spec.KubeRBACProxy
	p.Image, p.Domain, p.TLSCertificateSecret.Name, p.TLSKeySecret.Name = text, text, text, text
	database(&m.Spec, text)
	return m
}

func textPostgres(s *v1beta1.ModelRegistrySpec, text string) {
	s.Postgres = &v1beta1.PostgresConfig{
		Host: "pg.data.svc", Username: text, Database: text, SSLMode: v1beta1.SSLMode(text),
		PasswordSecret: registrytest.Secret(text, text), SSLPasswordSecret: registrytest.Secret(text, text),
		SSLCertificateSecret: registrytest.Secret(text, "tls.crt"), SSLKeySecret: registrytest.Secret(text, "tls.key"), SSLRootCertificateConfigMap: registrytest.ConfigMap(text, "ca.crt"),
		Image: text, Storage: &v1beta1.PostgresStorage{StorageClassName: &text},
	}
}

func textMySQL(s *v1beta1.ModelRegistrySpec, text string) {
	s.Postgres = nil
	s.MySQL = &v1beta1.MySQLConfig{
		Host: "my.data.svc", Username: strings.ReplaceAll(text, ":", "."), Database: text, PasswordSecret: registrytest.Secret(text, text),
		SSLCertificateSecret: registrytest.Secret(text, "tls.crt"), SSLKeySecret: registrytest.Secret(text, "tls.key"), SSLRootCertificateSecret: registrytest.Secret(text, "ca.crt"),
		SSLRootCertificatesSecretName: text, SSLCipher: text,
	}
}

// fieldShapes returns the path of every field of every object.
func fieldShapes(t *testing.T, m *v1beta1.ModelRegistry) []string {
	t.Helper()
	objects := buildObjects(t, m, gateway)
	if m.Spec.Postgres != nil {
		m := m.DeepCopy()
		m.Spec.Postgres.Database = DefaultDatabase // invalid names are rejected, see TestDatabaseNames
		objects = append(objects, buildDatabaseObjects(t, m, gateway)...)
	}
	return shapeOf(objects)
}

func shapeOf(objects []*unstructured.Unstructured) []string {
	return slices.Sorted(maps.Keys(framework.Leaves(objects)))
}

var expansions = regexp.MustCompile(`\$\$|\$\([-._a-zA-Z][-._a-zA-Z0-9]*\)`)

// expandVariables returns an argument as expanded by the kubelet, with the value "SECRET" for variables.
func expandVariables(argument string) string {
	return expansions.ReplaceAllStringFunc(argument, func(found string) string {
		if found == "$$" {
			return "$"
		}
		return "SECRET"
	})
}

// checkAddress parses the URL of the database like the server.
func checkAddress(t *testing.T, m *v1beta1.ModelRegistry, text string) {
	t.Helper()
	container := podOf(t, buildObjects(t, m, gateway), "team-a").Containers[0]
	address := expandVariables(dsnOf(t, container))
	if m.Spec.Postgres == nil {
		checkMySQL(t, m.Spec.MySQL, container, address, text)
		return
	}
	dsn, err := url.Parse(address)
	if err != nil {
		t.Fatalf("%q: unexpected error: %v", text, err)
	}
	want := text
	if urlSafe.MatchString(text) {
		want = unescape(t, text)
	}
	password, _ := dsn.User.Password()
	got := []string{dsn.Scheme, dsn.User.Username(), password, dsn.Host, dsn.Path, dsn.Query().Get("sslmode"), dsn.Fragment, fmt.Sprint(len(dsn.Query()))}
	if diff := cmp.Diff([]string{"postgresql", want, "SECRET", "pg.data.svc:5432", "/" + want, want, "", "1"}, got); diff != "" {
		t.Errorf("%q results in %s (-want +got):\n%s", text, address, diff)
	}
}

// checkMySQL parses the address like the driver: the last slash, the last @ before it, the first colon before that.
func checkMySQL(t *testing.T, c *v1beta1.MySQLConfig, container corev1.Container, address, text string) {
	t.Helper()
	slash := strings.LastIndex(address, "/")
	database, parameters, _ := strings.Cut(address[slash+1:], "?")
	at := strings.LastIndex(address[:slash], "@")
	user, password, _ := strings.Cut(address[:at], ":")
	want := text
	if urlSafe.MatchString(text) {
		want = unescape(t, text)
	}
	got := []string{user, password, address[at+1 : slash], unescape(t, database), parameters}
	if diff := cmp.Diff([]string{c.Username, "SECRET", "tcp(my.data.svc:3306)", want, "charset=utf8mb4"}, got); diff != "" {
		t.Errorf("%q results in %s (-want +got):\n%s", text, address, diff)
	}
	if cipher := expandVariables(container.Args[len(container.Args)-1]); cipher != flagCipher+text {
		t.Errorf("%q became %s", text, cipher)
	}
}

func unescape(t *testing.T, text string) string {
	t.Helper()
	unescaped, err := url.PathUnescape(text)
	if err != nil {
		t.Fatal(err)
	}
	return unescaped
}
