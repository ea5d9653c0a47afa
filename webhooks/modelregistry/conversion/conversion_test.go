package conversion

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
)

func requireEqual(t *testing.T, description string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", description, diff)
	}
}

// [modelregistry-18] The conversion to v1beta1 replaces istio by an equivalent oauthProxy.
func TestIstioIsConvertedToOAuthProxy(t *testing.T) {
	for name, test := range map[string]struct{ istio, want string }{
		"no gateway":       {"{authProvider: x}", "{port: 8443, routePort: 443, serviceRoute: disabled}"},
		"empty gateway":    {"{gateway: {}}", "{port: 8443, routePort: 443, serviceRoute: enabled}"},
		"domain":           {"{gateway: {domain: example.com, rest: {}, grpc: {}}}", "{port: 8443, routePort: 443, serviceRoute: enabled, domain: example.com}"},
		"no route":         {"{gateway: {rest: {gatewayRoute: disabled}, grpc: {gatewayRoute: enabled}}}", "{port: 8443, routePort: 443, serviceRoute: disabled}"},
		"port with TLS":    {"{gateway: {rest: {port: 8080, tls: {mode: SIMPLE}}, grpc: {}}}", "{port: 8443, routePort: 8080, serviceRoute: enabled}"},
		"port without TLS": {"{gateway: {rest: {port: 8080}, grpc: {}}}", "{port: 8443, routePort: 443, serviceRoute: enabled}"},
	} {
		t.Run(name, func(t *testing.T) {
			old := object(t, alpha, "{rest: {}, grpc: {}, mysql: {host: h, username: u, database: d}, istio: "+test.istio+"}")
			want := object(t, beta, "{rest: {}, grpc: {}, mysql: {host: h, username: u, database: d}, oauthProxy: "+test.want+"}")
			requireEqual(t, "v1beta1", want, convert(t, old, beta))
		})
	}
	spec := map[string]any{"istio": map[string]any{}, "oauthProxy": map[string]any{"port": int64(1)}}
	if !ReplaceIstio(spec) || ReplaceIstio(spec) {
		t.Error("want ReplaceIstio to report a change only the first time")
	}
	requireEqual(t, "spec with istio and oauthProxy", map[string]any{"oauthProxy": map[string]any{"port": int64(1)}}, spec)
}

// [modelregistry-24] The round trip of a v1alpha1 object keeps all values.
func TestValuesOfV1alpha1AreKept(t *testing.T) {
	old := object(t, alpha, "{rest: {image: 'example.com/i:1', port: 8081}, grpc: {port: 9091}, mysql: {host: h, username: u, database: d, port: 3307}}")
	old["status"] = map[string]any{"hosts": []any{"a"}, "conditions": []any{map[string]any{"type": "IstioAvailable"}}}
	want := decodeYAML(t, "{apiVersion: "+beta+", kind: ModelRegistry}")
	want["metadata"], want["spec"], want["status"] = old["metadata"], old["spec"], old["status"]
	requireEqual(t, "v1beta1", want, convert(t, old, beta))
	requireEqual(t, "after the round trip", old, convert(t, want, alpha))
}

// A registry that v1alpha1 cannot describe is converted to its closest v1alpha1 form, with the other fields in an annotation.
func TestV1alpha1FormOfProxyAndDatabase(t *testing.T) {
	stored := object(t, beta, "{rest: {}, postgres: {generateDeployment: true, image: 'example.com/p:1', retentionPolicy: Delete, storage: {size: 5Gi}},"+
		" kubeRBACProxy: {port: 9443, domain: example.com}}")
	served := convert(t, stored, alpha)
	requireEqual(t, "spec", object(t, alpha, "{rest: {}, grpc: {port: 9090}, postgres: {database: ''}, oauthProxy: {port: 9443, domain: example.com}}")["spec"], served["spec"])
	hidden, err := HiddenFieldsIn(served)
	if err != nil || hidden.Proxy != "kubeRBACProxy" || hidden.Postgres["generateDeployment"] != true || !hidden.WithoutGRPC {
		t.Errorf("unexpected fields %+v in the annotation, error %v", hidden, err)
	}
	requireEqual(t, "after the round trip", stored, convert(t, served, beta))
}

// Changes by v1alpha1 clients take precedence over the fields in the annotation.
func TestEditsThroughV1alpha1Win(t *testing.T) {
	const stored = "{rest: {}, postgres: {generateDeployment: true, image: i, port: 5432}, kubeRBACProxy: {port: 9443, image: p}}"
	for name, test := range map[string]struct {
		stored string
		edit   func(spec map[string]any)
		want   string
	}{
		"proxy port": {stored, func(spec map[string]any) { nestedMap(spec, "oauthProxy")["port"] = int64(1) },
			"{rest: {}, postgres: {generateDeployment: true, image: i, port: 5432}, kubeRBACProxy: {port: 1, image: p}}"},
		"proxy removed": {stored, func(spec map[string]any) { delete(spec, "oauthProxy") },
			"{rest: {}, postgres: {generateDeployment: true, image: i, port: 5432}}"},
		"Istio instead of the proxy": {stored, func(spec map[string]any) {
			delete(spec, "oauthProxy")
			spec["istio"] = map[string]any{}
		}, "{rest: {}, postgres: {generateDeployment: true, image: i, port: 5432}, kubeRBACProxy: {port: 8443, routePort: 443, serviceRoute: disabled}}"},
		"database name": {stored, func(spec map[string]any) { nestedMap(spec, "postgres")["database"] = "mine" },
			"{rest: {}, postgres: {generateDeployment: true, image: i, port: 5432, database: mine}, kubeRBACProxy: {port: 9443, image: p}}"},
		"MySQL instead of PostgreSQL": {stored, func(spec map[string]any) {
			delete(spec, "postgres")
			spec["mysql"] = map[string]any{"host": "h"}
		}, "{rest: {}, mysql: {host: h}, kubeRBACProxy: {port: 9443, image: p}}"},
		"port of an object with scheduling fields": {"{rest: {port: 1}, grpc: {}, replicas: 2, tolerations: [{key: a}], volumes: [{name: v, emptyDir: {}}]}",
			func(spec map[string]any) { nestedMap(spec, "rest")["port"] = int64(2) },
			"{rest: {port: 2}, grpc: {}, replicas: 2, tolerations: [{key: a}], volumes: [{name: v, emptyDir: {}}]}"},
		"no change, default replicas": {"{rest: {}, grpc: {}, replicas: 1}", func(map[string]any) {}, "{rest: {}, grpc: {}}"},
		"gRPC port": {stored, func(spec map[string]any) { nestedMap(spec, "grpc")["port"] = int64(1) },
			"{rest: {}, grpc: {port: 1}, postgres: {generateDeployment: true, image: i, port: 5432}, kubeRBACProxy: {port: 9443, image: p}}"},
		"proxy removed from an object with both": {"{rest: {}, grpc: {}, oauthProxy: {port: 1}, kubeRBACProxy: {port: 2}}",
			func(spec map[string]any) { delete(spec, "oauthProxy") }, "{rest: {}, grpc: {}}"},
	} {
		t.Run(name, func(t *testing.T) {
			served := convert(t, object(t, beta, test.stored), alpha)
			test.edit(served["spec"].(map[string]any))
			requireEqual(t, "v1beta1", object(t, beta, test.want), convert(t, served, beta))
		})
	}
}

func nestedMap(parent map[string]any, name string) map[string]any {
	child, _ := parent[name].(map[string]any)
	return child
}

func TestRoundTripsOfUnusualObjects(t *testing.T) {
	for name, text := range map[string]string{
		"both proxies":             "{apiVersion: " + beta + ", kind: ModelRegistry, metadata: {name: demo}, spec: {rest: {}, oauthProxy: {port: 1}, kubeRBACProxy: {port: 2}}}",
		"no spec":                  "{apiVersion: " + beta + ", kind: ModelRegistry, metadata: {name: demo}}",
		"unknown fields":           "{apiVersion: " + beta + ", kind: ModelRegistry, metadata: {name: demo}, spec: {rest: {unknown: 1}, unknown: {a: [1.5]}}, unknown: x}",
		"empty objects":            "{apiVersion: " + beta + ", kind: ModelRegistry, metadata: {name: demo}, spec: {rest: {}, grpc: {}, postgres: {storage: {}}, kubeRBACProxy: {}}}",
		"empty database":           "{apiVersion: " + beta + ", kind: ModelRegistry, metadata: {name: demo}, spec: {rest: {}, postgres: {database: '', host: h}}}",
		"generateDeployment false": "{apiVersion: " + beta + ", kind: ModelRegistry, metadata: {name: demo}, spec: {rest: {}, postgres: {generateDeployment: false, host: h}}}",
		"other annotation":         "{apiVersion: " + beta + ", kind: ModelRegistry, metadata: {name: demo, annotations: {a: b}}, spec: {rest: {}, kubeRBACProxy: {}}}",
	} {
		t.Run(name, func(t *testing.T) {
			stored := decodeYAML(t, text)
			requireEqual(t, "after the round trip", stored, convert(t, convert(t, stored, alpha), beta))
		})
	}
}

// An annotation of a stored v1beta1 object is ignored, and absent after the round trip.
func TestAnnotationOfStoredObjectIsIgnored(t *testing.T) {
	stored := object(t, beta, "{rest: {}, grpc: {}}")
	stored["metadata"].(map[string]any)["annotations"] = map[string]any{Annotation: `{"proxy":"kubeRBACProxy"}`}
	served := convert(t, stored, alpha)
	if _, found := annotationsOf(served)[Annotation]; found {
		t.Errorf("metadata %v, want no annotation: v1alpha1 has all fields of this object", served["metadata"])
	}
	served["spec"].(map[string]any)["oauthProxy"] = map[string]any{}
	requireEqual(t, "v1beta1", object(t, beta, "{rest: {}, grpc: {}, oauthProxy: {}}"), convert(t, served, beta))
}

// Users can write the annotation. It must not bypass the validation of the CRD, and an invalid one must not fail list requests.
func TestForgedAnnotationsAreIgnored(t *testing.T) {
	for name, text := range map[string]string{
		"invalid JSON":                     "{",
		"list":                             `[]`,
		"unknown key":                      `{"fields":[{"path":["rest","port"],"value":1}]}`,
		"v1alpha1 field of postgres":       `{"postgres":{"sslMode":"x&y"}}`,
		"unknown object":                   `{"rest":{"resources":{"limits":{}}}}`,
		"v1alpha1 field of spec":           `{"spec":{"rest":{"port":1}}}`,
		"wrong type of replicas":           `{"spec":{"replicas":"two"}}`,
		"wrong type of withoutGRPC":        `{"withoutGRPC":{}}`,
		"wrong type of generateDeployment": `{"postgres":{"generateDeployment":"x"}}`,
		"wrong type of oauthProxy":         `{"proxy":"kubeRBACProxy","oauthProxy":[]}`,
	} {
		t.Run(name, func(t *testing.T) {
			served := object(t, alpha, "{rest: {}, grpc: {}, postgres: {host: h, database: d}, oauthProxy: {}}")
			served["metadata"].(map[string]any)["annotations"] = map[string]any{Annotation: text, "a": "b"}
			if Check(served) == nil {
				t.Error("Check returned no error for an invalid annotation")
			}
			stored := convert(t, served, beta)
			requireEqual(t, "spec", served["spec"], stored["spec"])
			requireEqual(t, "annotations", map[string]any{"a": "b"}, annotationsOf(stored))
		})
	}
	valid := convert(t, object(t, beta, "{rest: {}, oauthProxy: {}, kubeRBACProxy: {}, postgres: {storage: {size: 1Gi}}}"), alpha)
	if err := Check(valid); err != nil {
		t.Errorf("unexpected error for an annotation of Convert: %v", err)
	}
	if err := Check(object(t, beta, "{rest: {}}")); err != nil {
		t.Errorf("unexpected error for an object without the annotation: %v", err)
	}
}

func TestConvertsModelRegistriesOnly(t *testing.T) {
	for text, want := range map[string]string{
		"{apiVersion: v1, kind: ModelRegistry}":                              "v1 ModelRegistry is not of type v1beta1.ModelRegistry",
		"{apiVersion: " + alpha + ", kind: Catalog}":                         alpha + " Catalog is not of type v1beta1.ModelRegistry",
		"{kind: ModelRegistry}":                                              "is not of type v1beta1.ModelRegistry",
		"{apiVersion: modelregistry.opendatahub.io/v2, kind: ModelRegistry}": "is not of type v1beta1.ModelRegistry",
	} {
		if _, err := Convert(decodeYAML(t, text), beta); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %q", text, err, want)
		}
	}
	registry := object(t, beta, "{rest: {}}")
	if _, err := Convert(registry, "modelregistry.opendatahub.io/v2"); err == nil || !strings.Contains(err.Error(), "is not of type v1beta1.ModelRegistry") {
		t.Errorf("unknown version: got error %v", err)
	}
	requireEqual(t, "the same version", registry, convert(t, registry, beta))
}

// OnlyInV1beta1 and PostgresOnlyInV1beta1, whose fields the annotation keeps, contain every field that only v1beta1 has, except
// kubeRBACProxy. v1beta1 has every field of v1alpha1 except istio.
func TestFieldsOnlyInV1beta1AreKept(t *testing.T) {
	text, err := os.ReadFile("../../../config/crd/bases/modelregistry.opendatahub.io_modelregistries.yaml")
	if err != nil {
		t.Fatal(err)
	}
	paths := map[string]map[string]bool{}
	for _, version := range decodeYAML(t, string(text))["spec"].(map[string]any)["versions"].([]any) {
		v := version.(map[string]any)
		name := v["name"].(string)
		paths[name] = map[string]bool{}
		schema := v["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
		addFieldPaths(schema["properties"].(map[string]any)["spec"].(map[string]any), "", paths[name])
	}
	known := map[string]bool{"kubeRBACProxy": true}
	for _, field := range OnlyInV1beta1 {
		known[field] = true
	}
	for _, field := range PostgresOnlyInV1beta1 {
		known["postgres."+field] = true
	}
	for _, path := range slices.Sorted(maps.Keys(paths[v1beta1.GroupVersion.Version])) {
		if paths[v1alpha1.GroupVersion.Version][path] || slices.ContainsFunc(slices.Collect(maps.Keys(known)), func(k string) bool {
			return path == k || strings.HasPrefix(path, k+".")
		}) {
			continue
		}
		t.Errorf("spec.%s would be lost in v1alpha1: add it to OnlyInV1beta1 or PostgresOnlyInV1beta1", path)
	}
	for path := range paths[v1alpha1.GroupVersion.Version] {
		if !paths[v1beta1.GroupVersion.Version][path] && path != "istio" && !strings.HasPrefix(path, "istio.") {
			t.Errorf("spec.%s would be lost in v1beta1", path)
		}
	}
}
