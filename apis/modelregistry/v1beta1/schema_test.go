package v1beta1

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const crdFile = "../../../config/crd/bases/modelregistry.opendatahub.io_modelregistries.yaml"

// fieldSchema is the part of the schema of one field that users rely on.
type fieldSchema struct {
	path string
	// versions are those that the row describes: a for v1alpha1, b for v1beta1.
	versions  string
	fieldType string
	// constraints lists default, enum, bounds and required fields, in that order.
	constraints string
}

// fieldSchemas are the fields that the CRD must keep.
var fieldSchemas = []fieldSchema{
	{"spec.rest", "ab", "object", ""},
	{"spec.rest.port", "ab", "integer", "default=8080 minimum=1 maximum=65535"},
	{"spec.rest.serviceRoute", "ab", "string", "default=disabled enum=[disabled enabled]"},
	{"spec.rest.resources", "ab", "object", ""},
	{"spec.rest.resources.limits", "ab", "object", ""},
	{"spec.rest.image", "ab", "string", ""},
	{"spec.grpc", "ab", "object", ""},
	{"spec.grpc.port", "ab", "integer", "default=9090 minimum=0 maximum=65535"},
	{"spec.grpc.image", "ab", "string", ""},
	{"spec.postgres", "a", "object", "required=[database]"},
	{"spec.postgres", "b", "object", ""},
	{"spec.postgres.host", "ab", "string", ""},
	{"spec.postgres.hostAddress", "ab", "string", ""},
	{"spec.postgres.port", "ab", "integer", "default=5432 minimum=1 maximum=65535"},
	{"spec.postgres.username", "ab", "string", ""},
	{"spec.postgres.passwordSecret", "ab", "object", "required=[key name]"},
	{"spec.postgres.database", "ab", "string", ""},
	{"spec.postgres.skipDBCreation", "ab", "boolean", "default=false"},
	{"spec.postgres.generateDeployment", "b", "boolean", ""},
	{"spec.postgres.retentionPolicy", "b", "string", "enum=[Retain Delete]"},
	{"spec.postgres.storage", "b", "object", ""},
	{"spec.postgres.storage.storageClassName", "b", "string", "maxLength=253"},
	{"spec.postgres.sslMode", "ab", "string", "default=disable enum=[disable allow prefer require verify-ca verify-full]"},
	{"spec.postgres.sslCertificateSecret", "ab", "object", "required=[key name]"},
	{"spec.postgres.sslKeySecret", "ab", "object", "required=[key name]"},
	{"spec.postgres.sslPasswordSecret", "ab", "object", "required=[key name]"},
	{"spec.postgres.sslRootCertificateConfigMap", "ab", "object", "required=[key name]"},
	{"spec.postgres.sslRootCertificateSecret", "ab", "object", "required=[key name]"},
	{"spec.postgres.image", "b", "string", ""},
	{"spec.postgres.connectionSecretName", "b", "string", "maxLength=253"},
	{"spec.postgres.resources", "b", "object", ""},
	{"spec.postgres.serverTLS", "b", "string", "enum=[Enabled Disabled]"},
	{"spec.postgres.majorVersion", "b", "integer", "minimum=9 maximum=99"},
	{"spec.postgres.backup", "b", "object", "required=[schedule]"},
	{"spec.postgres.backup.keep", "b", "integer", "minimum=1 maximum=1000"},
	{"spec.mysql", "ab", "object", "required=[database host username]"},
	{"spec.mysql.port", "ab", "integer", "default=3306 minimum=1 maximum=65535"},
	{"spec.mysql.skipDBCreation", "ab", "boolean", "default=false"},
	{"spec.mysql.sslRootCertificateConfigMap", "ab", "object", "required=[key name]"},
	{"spec.mysql.sslRootCertificatesConfigMapName", "ab", "string", ""},
	{"spec.mysql.sslRootCertificatesSecretName", "ab", "string", ""},
	{"spec.mysql.sslCipher", "ab", "string", ""},
	{"spec.mysql.verifyServerCert", "ab", "boolean", ""},
	{"spec.enable_database_upgrade", "ab", "boolean", ""},
	{"spec.downgrade_db_schema_version", "ab", "integer", ""},
	{"spec.oauthProxy", "ab", "object", ""},
	{"spec.oauthProxy.port", "ab", "integer", "default=8443 minimum=0 maximum=65535"},
	{"spec.oauthProxy.serviceRoute", "ab", "string", "default=enabled enum=[disabled enabled]"},
	{"spec.oauthProxy.domain", "ab", "string", "maxLength=253"},
	{"spec.oauthProxy.routePort", "ab", "integer", "default=443 minimum=0 maximum=65535"},
	{"spec.oauthProxy.image", "ab", "string", ""},
	{"spec.kubeRBACProxy", "b", "object", ""},
	{"spec.kubeRBACProxy.port", "b", "integer", "default=8443 minimum=0 maximum=65535"},
	{"spec.kubeRBACProxy.tlsCertificateSecret", "b", "object", "required=[key name]"},
	{"spec.kubeRBACProxy.tlsKeySecret", "b", "object", "required=[key name]"},
	{"spec.kubeRBACProxy.serviceRoute", "b", "string", "default=enabled enum=[disabled enabled]"},
	{"spec.kubeRBACProxy.domain", "b", "string", "maxLength=253"},
	{"spec.kubeRBACProxy.routePort", "b", "integer", "default=443 minimum=0 maximum=65535"},
	{"spec.kubeRBACProxy.image", "b", "string", ""},
	{"spec.istio", "a", "object", ""},
	{"spec.istio.authProvider", "a", "string", ""},
	{"spec.istio.authConfigLabels", "a", "object", ""},
	{"spec.istio.tlsMode", "a", "string", "default=ISTIO_MUTUAL"},
	{"spec.istio.audiences", "a", "array", ""},
	{"spec.istio.gateway", "a", "object", "required=[grpc rest]"},
	{"spec.istio.gateway.domain", "a", "string", "maxLength=253"},
	{"spec.istio.gateway.rest.port", "a", "integer", "minimum=0 maximum=65535"},
	{"spec.istio.gateway.rest.gatewayRoute", "a", "string", "enum=[disabled enabled]"},
	{"spec.istio.gateway.rest.tls.mode", "a", "string", "default=SIMPLE enum=[SIMPLE MUTUAL ISTIO_MUTUAL OPTIONAL_MUTUAL]"},
	{"spec.istio.gateway.grpc.tls.credentialName", "a", "string", ""},
	{"status.hosts", "ab", "array", ""},
	{"status.hostsStr", "ab", "string", ""},
	{"status.specDefaults", "ab", "string", ""},
	{"status.conditions", "ab", "array", ""},
	{"status.observedGeneration", "ab", "integer", ""},
}

var versions = map[rune]string{'a': "v1alpha1", 'b': "v1beta1"}

type node map[string]any

func (s node) child(name string) node {
	properties, _ := s["properties"].(map[string]any)
	child, _ := properties[name].(map[string]any)
	return child
}

// constraints summarizes the constraints of a schema in one line.
func (s node) constraints() string {
	var out []string
	for _, key := range []string{"default", "enum", "minimum", "maximum", "maxLength", "required"} {
		if value, ok := s[key]; ok {
			out = append(out, fmt.Sprintf("%s=%v", key, value))
		}
	}
	return strings.Join(out, " ")
}

// readCRD returns the spec of the CRD, and its versions by name.
func readCRD(t *testing.T) (spec map[string]any, byName map[string]map[string]any) {
	t.Helper()
	text, err := os.ReadFile(crdFile)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := yaml.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	spec = out["spec"].(map[string]any)
	byName = map[string]map[string]any{}
	for _, version := range spec["versions"].([]any) {
		v := version.(map[string]any)
		byName[v["name"].(string)] = v
	}
	return spec, byName
}

func TestSchemaOfFields(t *testing.T) {
	_, byName := readCRD(t)
	for _, f := range fieldSchemas {
		for letter, name := range versions {
			at := node(byName[name]["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any))
			for _, step := range strings.Split(f.path, ".") {
				at = at.child(step)
			}
			if !strings.ContainsRune(f.versions, letter) {
				if want := hasField(f.path, letter); want != (at != nil) {
					t.Errorf("%s %s: field exists: %v, want %v", name, f.path, at != nil, want)
				}
				continue
			}
			if at["type"] != f.fieldType {
				t.Errorf("%s %s: type %v, want %s", name, f.path, at["type"], f.fieldType)
			}
			if got := at.constraints(); got != f.constraints {
				t.Errorf("%s %s: got %q, want %q", name, f.path, got, f.constraints)
			}
		}
	}
}

// hasField reports whether fieldSchemas contains the field for a version.
func hasField(path string, version rune) bool {
	return slices.ContainsFunc(fieldSchemas, func(f fieldSchema) bool { return f.path == path && strings.ContainsRune(f.versions, version) })
}

func TestNamesVersionsAndColumns(t *testing.T) {
	spec, byName := readCRD(t)
	want := map[string]any{"kind": "ModelRegistry", "listKind": "ModelRegistryList", "plural": "modelregistries", "singular": "modelregistry", "shortNames": []any{"mr"}, "categories": []any{"odh"}}
	if diff := cmp.Diff(want, spec["names"]); diff != "" || spec["scope"] != "Namespaced" || spec["group"] != GroupVersion.Group {
		t.Errorf("unexpected names %v, scope or group (-want +got):\n%s", spec["names"], diff)
	}
	alphaVersion, betaVersion := byName["v1alpha1"], byName["v1beta1"]
	if alphaVersion["served"] != true || alphaVersion["storage"] != false || betaVersion["served"] != true || betaVersion["storage"] != true {
		t.Error("want both versions served, and v1beta1 as the storage version")
	}
	warning, _ := alphaVersion["deprecationWarning"].(string)
	if alphaVersion["deprecated"] != true || !strings.Contains(warning, "v1beta1") || betaVersion["deprecated"] != nil {
		t.Errorf("deprecated of v1alpha1 is %v with warning %q, want a warning with v1beta1, and v1beta1 not deprecated", alphaVersion["deprecated"], warning)
	}
	for name, want := range map[string][]string{
		"v1alpha1": {"Ready", "Reason", "Available", "Age", "Istio/2", "Gateway/2", "OAuthProxy/2", "Status/2", "Hosts/2", "Message/1"},
		"v1beta1":  {"Ready", "Reason", "Available", "Age", "KubeRBACProxy/2", "Status/2", "Hosts/2", "Message/1"},
	} {
		if diff := cmp.Diff(want, columns(byName[name])); diff != "" {
			t.Errorf("columns of %s (-want +got):\n%s", name, diff)
		}
		if byName[name]["subresources"].(map[string]any)["status"] == nil {
			t.Errorf("%s has no status subresource", name)
		}
	}
}

// columns returns the names of the printer columns, with their priority.
func columns(version map[string]any) []string {
	var out []string
	for _, column := range version["additionalPrinterColumns"].([]any) {
		c := column.(map[string]any)
		name := c["name"].(string)
		if priority, ok := c["priority"]; ok {
			name += fmt.Sprintf("/%v", priority)
		}
		out = append(out, name)
	}
	return out
}

func TestRequiredFieldsOfSpec(t *testing.T) {
	_, byName := readCRD(t)
	for name, want := range map[string]string{"v1alpha1": "[grpc rest]", "v1beta1": "[rest]"} {
		root := node(byName[name]["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any))
		if got := fmt.Sprint(root.child("spec")["required"]); got != want {
			t.Errorf("%s: required fields of spec %s, want %s", name, got, want)
		}
		if root["required"] != nil {
			t.Errorf("%s: required top-level fields %v, want none", name, root["required"])
		}
	}
}

// The messages of the validation rules must not change without notice: users search for them.
func TestMessagesOfRules(t *testing.T) {
	_, byName := readCRD(t)
	for version, want := range map[string][]string{
		"v1alpha1": {"Cannot use both istio and oauthProxy", "tlsCertificateSecret and tlsKeySecret MUST be set together"},
		"v1beta1": {
			"Cannot use both oauthProxy and kubeRBACProxy", "GenerateDeployment must be set to true if host/hostAddress are not provided",
			"Username must be set if database is specified", "host and hostAddress must not be set when generateDeployment is true",
			"size must be greater than zero", "tlsCertificateSecret and tlsKeySecret MUST be set together",
			// Rules of package server.
			"label values must be 63 characters or less", "each volumeMounts entry must name an entry of volumes: add the volume, or correct the name",
			"each topologySpreadConstraints entry must have a maxSkew above zero, and DoNotSchedule or ScheduleAnyway in whenUnsatisfiable",
			"priorityClassName must be the name of a PriorityClass: lowercase letters, digits, - and ., with a letter or digit at both ends",
			"a volume must have exactly one of configMap, secret, projected, persistentVolumeClaim, emptyDir and csi",
			// Rules of the database and its backups.
			"connectionSecretName is used instead of generateDeployment, host, hostAddress, username, database and passwordSecret: set one or the other",
			"resources, serverTLS, majorVersion and backup are those of a generated database: remove them, or set generateDeployment to true",
			"schedule must have five fields (minute, hour, day of the month, month and day of the week), such as '15 3 * * *', or be one of @hourly, @daily, @weekly, @monthly and @yearly",
		},
	} {
		got := map[string]bool{}
		messages(byName[version]["schema"], got)
		for _, message := range want {
			if !got[message] {
				t.Errorf("%s: no rule has the message %q", version, message)
			}
			delete(got, message)
		}
		if len(got) > 0 {
			t.Errorf("%s: rules with unexpected messages %v", version, got)
		}
	}
}

// messages adds the messages of all validation rules in value to into.
func messages(value any, into map[string]bool) {
	switch v := value.(type) {
	case map[string]any:
		if message, ok := v["message"].(string); ok && v["rule"] != nil {
			into[message] = true
		}
		for _, child := range v {
			messages(child, into)
		}
	case []any:
		for _, child := range v {
			messages(child, into)
		}
	}
}

// The pattern accepts DNS names, and an empty domain, which is the same as no domain.
func TestDomainPattern(t *testing.T) {
	_, byName := readCRD(t)
	label := strings.Repeat("a", 63)
	for path, version := range map[string]string{"kubeRBACProxy": "v1beta1", "oauthProxy": "v1alpha1", "istio.gateway": "v1alpha1"} {
		at := node(byName[version]["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)).child("spec")
		for _, step := range strings.Split(path, ".") {
			at = at.child(step)
		}
		text, _ := at.child("domain")["pattern"].(string)
		pattern, err := regexp.Compile(text)
		if err != nil || text == "" {
			t.Fatalf("%s: pattern %q, %v", path, text, err)
		}
		for domain, valid := range map[string]bool{
			"": true, "a": true, "apps.example.com": true, "Apps.Example.COM": true, "1.2.3.4": true, "a-b.c--d.e": true, label + ".com": true,
			"a" + label + ".com": false, "-a.com": false, "a-.com": false, "a..com": false, ".com": false, "com.": false, "a_b.com": false,
			"a b": false, "a/b": false, "a:443": false, "*.example.com": false, "a\n": false, "bücher.example": false,
		} {
			if pattern.MatchString(domain) != valid {
				t.Errorf("%s: pattern matches %q: %t, want %t", path, domain, !valid, valid)
			}
		}
	}
}
