package modelregistry

import (
	"encoding/json"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/webhooks/modelregistry/conversion"
)

const resources = "{requests: {cpu: 100m, memory: 256Mi}, limits: {memory: 256Mi}}"

func TestDefaultsOfV1beta1(t *testing.T) {
	for name, test := range map[string]struct {
		openShift  bool
		spec, want string
	}{
		"OpenShift with defaults [modelregistry-6]": {true, "{rest: {}, postgres: {}, mysql: {}}",
			"{rest: {serviceRoute: disabled}, kubeRBACProxy: {serviceRoute: enabled}}"},
		"OpenShift and no proxy [modelregistry-7]": {true, "{rest: {serviceRoute: enabled}, mysql: {host: h}}",
			"{rest: {serviceRoute: enabled}, mysql: {host: h}, kubeRBACProxy: {serviceRoute: enabled}}"},
		"Kubernetes and no proxy [modelregistry-8]": {false, "{rest: {serviceRoute: ''}, mysql: {host: h}}",
			"{rest: {serviceRoute: disabled}, mysql: {host: h}}"},
		"oauthProxy [modelregistry-9]": {false, "{rest: {serviceRoute: disabled}, oauthProxy: {port: 9443, routePort: 8443, domain: example.com, serviceRoute: enabled, image: old}}",
			"{rest: {serviceRoute: disabled}, kubeRBACProxy: {port: 9443, routePort: 8443, domain: example.com, serviceRoute: enabled}}"},
		"kubeRBACProxy [modelregistry-10]": {true, "{rest: {serviceRoute: disabled}, kubeRBACProxy: {port: 9443, image: mine, serviceRoute: ''}}",
			"{rest: {serviceRoute: disabled}, kubeRBACProxy: {port: 9443, image: mine, serviceRoute: enabled}}"},
		"kubeRBACProxy without a Route [modelregistry-10]": {true, "{rest: {serviceRoute: disabled}, kubeRBACProxy: {serviceRoute: disabled}}",
			"{rest: {serviceRoute: disabled}, kubeRBACProxy: {serviceRoute: disabled}}"},
		"both proxies": {true, "{rest: {serviceRoute: disabled}, oauthProxy: {}, kubeRBACProxy: {serviceRoute: enabled}}",
			"{rest: {serviceRoute: disabled}, oauthProxy: {}, kubeRBACProxy: {serviceRoute: enabled}}"},
		"connection Secret": {false, "{rest: {serviceRoute: disabled}, postgres: {connectionSecretName: app}}",
			"{rest: {serviceRoute: disabled}, postgres: {connectionSecretName: app}}"},
		"generated database [modelregistry-4]": {false, "{rest: {serviceRoute: disabled}, postgres: {generateDeployment: true}}",
			"{rest: {serviceRoute: disabled}, postgres: {generateDeployment: true}}"},
		"hostAddress": {false, "{rest: {serviceRoute: disabled}, postgres: {hostAddress: 10.0.0.1}, mysql: {host: '', username: u}}",
			"{rest: {serviceRoute: disabled}, postgres: {hostAddress: 10.0.0.1}}"},
		"default image with default resources [modelregistry-11]": {false, "{rest: {serviceRoute: disabled, image: '" + defaultImage + "', resources: " + resources + "}}",
			"{rest: {serviceRoute: disabled}}"},
		"unknown fields": {false, "{rest: {serviceRoute: disabled, unknown: 1}, istio: {gateway: {}}, unknown: {a: 1.5}}",
			"{rest: {serviceRoute: disabled, unknown: 1}, istio: {gateway: {}}, unknown: {a: 1.5}}"},
	} {
		t.Run(name, func(t *testing.T) {
			got := object(t, beta, test.spec)
			setDefaults(got, nil, settings(test.openShift))
			requireEqual(t, "spec", object(t, beta, test.want)["spec"], got["spec"])
			again := object(t, beta, test.want)
			setDefaults(again, nil, settings(test.openShift))
			requireEqual(t, "defaults of the defaulted object", got, again)
		})
	}
}

// [D14] An image whose tag, digest or repository differs from the default images is kept.
func TestPinnedImagesAreKept(t *testing.T) {
	s := settings(false)
	s.RESTImages = append(s.RESTImages, "registry.example.com:5000/registry", "example.com/by-digest@sha256:aa")
	for image, cleared := range map[string]bool{
		defaultImage:                                          true,
		"quay.io/opendatahub/model-registry":                  true,
		"quay.io/opendatahub/model-registry:v0.3":             false,
		"quay.io/opendatahub/model-registry:latest@sha256:aa": false,
		"registry.example.com:5000/registry:latest":           true,
		"registry.example.com:5000/other":                     false,
		"registry.example.com:5000/registry:v1":               false,
		"example.com/by-digest@sha256:aa":                     true,
		"example.com/by-digest@sha256:bb":                     false,
		"example.com/by-digest":                               false,
	} {
		got := object(t, beta, "{rest: {serviceRoute: disabled, image: '"+image+"', resources: "+resources+"}}")
		setDefaults(got, nil, s)
		rest := nestedMap(nestedMap(got, "spec"), "rest")
		if (rest["image"] == nil) != cleared || (rest["resources"] == nil) != cleared {
			t.Errorf("%s: got %v, want image and resources removed: %t", image, rest, cleared)
		}
	}
	for name, test := range map[string]struct{ spec, status string }{
		"other resources":   {"{requests: {cpu: 100m, memory: 512Mi}, limits: {memory: 512Mi}}", ""},
		"fewer resources":   {"{requests: {cpu: 100m, memory: 256Mi}}", "{}"},
		"no resources":      {"null", "{}"},
		"invalid resources": {"{requests: 1}", ""},
	} {
		got := object(t, beta, "{rest: {image: '"+defaultImage+"', resources: "+test.spec+"}}")
		got["status"] = map[string]any{"specDefaults": test.status}
		want := nestedMap(nestedMap(object(t, beta, "{rest: {resources: "+test.spec+"}}"), "spec"), "rest")["resources"]
		setDefaults(got, nil, s)
		rest := nestedMap(nestedMap(got, "spec"), "rest")
		if rest["image"] != nil {
			t.Errorf("%s: the default image was not removed", name)
		}
		requireEqual(t, name, want, rest["resources"])
	}
	deployed := object(t, beta, "{rest: {serviceRoute: disabled, image: '"+defaultImage+"'}}")
	deployed["status"] = map[string]any{"specDefaults": `{"postgres":{}}`}
	setDefaults(deployed, nil, s)
	if nestedMap(nestedMap(deployed, "spec"), "rest")["image"] != defaultImage {
		t.Error("want the image kept in a registry that was deployed with it")
	}
}

func TestDefaultsOfV1alpha1(t *testing.T) {
	for name, test := range map[string]struct {
		openShift  bool
		spec, want string
	}{
		"Istio and empty databases [modelregistry-18]": {false, "{rest: {}, grpc: {}, istio: {gateway: {}}, postgres: {}, mysql: {}}",
			"{rest: {serviceRoute: disabled}, grpc: {}, oauthProxy: {port: 8443, routePort: 443, serviceRoute: enabled}}"},
		"Istio and a default image [modelregistry-19]": {true,
			"{rest: {serviceRoute: disabled, image: '" + defaultImage + "', resources: " + resources + "}, grpc: {}, istio: {gateway: {domain: example.com, rest: {tls: {}}, grpc: {}}}}",
			"{rest: {serviceRoute: disabled}, grpc: {}, oauthProxy: {port: 8443, routePort: 443, serviceRoute: enabled, domain: example.com}}"},
		"OpenShift with defaults": {true, "{rest: {serviceRoute: enabled}, grpc: {}}",
			"{rest: {serviceRoute: enabled}, grpc: {}, oauthProxy: {serviceRoute: enabled}}"},
		"Kubernetes with defaults":      {false, "{rest: {serviceRoute: enabled}, grpc: {}}", "{rest: {serviceRoute: enabled}, grpc: {}}"},
		"oauthProxy [modelregistry-22]": {false, "{rest: {serviceRoute: enabled}, grpc: {}, oauthProxy: {}}", "{rest: {serviceRoute: enabled}, grpc: {}, oauthProxy: {serviceRoute: enabled}}"},
		"istio and oauthProxy":          {false, "{rest: {serviceRoute: enabled}, grpc: {}, istio: {}, oauthProxy: {serviceRoute: disabled}}", "{rest: {serviceRoute: enabled}, grpc: {}, oauthProxy: {serviceRoute: disabled}}"},
	} {
		t.Run(name, func(t *testing.T) {
			got := object(t, alpha, test.spec)
			setDefaults(got, nil, settings(test.openShift))
			requireEqual(t, "spec", object(t, alpha, test.want)["spec"], got["spec"])
		})
	}
}

// Admission does not set certificate, domain or image of the proxy, or image or resources of the server: the controller determines them.
func TestRuntimeValuesAreNotStored(t *testing.T) { // [modelregistry-12] [modelregistry-20] [modelregistry-21]
	for _, test := range []struct{ apiVersion, spec string }{
		{beta, "{rest: {}, oauthProxy: {}}"},
		{alpha, "{rest: {}, grpc: {}, istio: {gateway: {rest: {}, grpc: {}}}}"},
		{alpha, "{rest: {}, grpc: {}, oauthProxy: {}}"},
	} {
		apiVersion, spec := test.apiVersion, test.spec
		got := object(t, apiVersion, spec)
		setDefaults(got, nil, settings(true))
		stored, err := decodeTyped(got)
		if err != nil {
			t.Fatal(err)
		}
		proxy := stored.Spec.KubeRBACProxy
		if apiVersion == alpha {
			proxy = stored.Spec.OAuthProxy
		}
		if proxy == nil || proxy.TLSCertificateSecret != nil || proxy.TLSKeySecret != nil || proxy.Domain != "" || proxy.Image != "" || stored.Spec.Rest.Image != "" || stored.Spec.Rest.Resources != nil {
			t.Errorf("%s %s: unexpected defaults: %+v", apiVersion, spec, stored.Spec)
		}
	}
}

// [D28] A stored object with both proxies loses oauthProxy when a user updates it.
func TestStoredOAuthProxyIsDroppedForKubeRBACProxy(t *testing.T) {
	const both = "{rest: {serviceRoute: disabled}, oauthProxy: {port: 1}, kubeRBACProxy: {port: 2, serviceRoute: enabled}}"
	want := object(t, beta, "{rest: {serviceRoute: disabled}, kubeRBACProxy: {port: 2, serviceRoute: enabled}}")["spec"]
	got := object(t, beta, both)
	setDefaults(got, object(t, beta, both), settings(true))
	requireEqual(t, "update of an object with both proxies", want, got["spec"])

	out, err := Default(registry(t, both), settings(true))
	if err != nil || out.Spec.OAuthProxy != nil || *out.Spec.KubeRBACProxy.Port != 2 {
		t.Errorf("Default returned %+v, error %v, want kubeRBACProxy without oauthProxy", out.Spec, err)
	}
	added := object(t, beta, both)
	setDefaults(added, object(t, beta, "{rest: {}, kubeRBACProxy: {port: 2}}"), settings(true))
	requireEqual(t, "update that adds oauthProxy, which the schema rejects", object(t, beta, both)["spec"], added["spec"])
	const migrated = "{rest: {serviceRoute: disabled}, kubeRBACProxy: {port: 2, serviceRoute: enabled}}"
	reapplied := object(t, beta, "{rest: {serviceRoute: disabled}, oauthProxy: {port: 2, image: i}, kubeRBACProxy: {port: 2, serviceRoute: enabled}}")
	setDefaults(reapplied, object(t, beta, migrated), settings(false))
	requireEqual(t, "manifest with the migrated oauthProxy", object(t, beta, migrated)["spec"], reapplied["spec"])
}

func TestDefaultOfTypedRegistries(t *testing.T) {
	in := registry(t, "{rest: {}, postgres: {}, mysql: {host: h, username: u, database: d}, oauthProxy: {port: 9443, image: old}}")
	out, err := Default(in, settings(true))
	if err != nil {
		t.Fatal(err)
	}
	if in.Spec.Postgres == nil || in.Spec.OAuthProxy == nil {
		t.Error("the input was modified")
	}
	if out.Spec.Postgres != nil || out.Spec.OAuthProxy != nil || *out.Spec.KubeRBACProxy.Port != 9443 || out.Spec.KubeRBACProxy.Image != "" || out.Spec.Rest.ServiceRoute != "disabled" {
		t.Errorf("unexpected spec %+v", out.Spec)
	}
}

// If a v1alpha1 client sends an update without the annotation, the hidden fields are restored, except those that are invalid with a host.
func TestHiddenFieldsAreRestored(t *testing.T) {
	const postgres = "generateDeployment: true, image: i, resources: {}, serverTLS: Enabled, majorVersion: 16, backup: {schedule: '@daily', keep: 3}"
	stored := object(t, beta, "{rest: {serviceRoute: disabled}, postgres: {"+postgres+"}, kubeRBACProxy: {port: 9443, serviceRoute: enabled}}")
	served, err := conversion.Convert(stored, alpha)
	if err != nil {
		t.Fatal(err)
	}
	update := func(edit func(spec map[string]any)) map[string]any {
		t.Helper()
		text, err := json.Marshal(served)
		if err != nil {
			t.Fatal(err)
		}
		sent := decodeYAML(t, string(text))
		delete(nestedMap(sent, "metadata"), "annotations")
		edit(nestedMap(sent, "spec"))
		r := request(t, admissionv1.Update, sent, served)
		changed := applyPatch(t, r, (&defaulter{source(settings(true))}).Handle(t.Context(), r))
		converted, err := conversion.Convert(changed, beta)
		if err != nil {
			t.Fatal(err)
		}
		return nestedMap(converted, "spec")
	}
	requireEqual(t, "no change", stored["spec"], any(update(func(map[string]any) {})))
	want := object(t, beta, "{rest: {serviceRoute: disabled}, postgres: {host: db, username: u, database: d, image: i}, kubeRBACProxy: {port: 9443, serviceRoute: enabled}}")
	requireEqual(t, "external database", want["spec"], any(update(func(spec map[string]any) {
		spec["postgres"] = map[string]any{"host": "db", "username": "u", "database": "d"}
	})))
	want = object(t, beta, "{rest: {serviceRoute: disabled}, postgres: {"+postgres+"}, kubeRBACProxy: {serviceRoute: enabled}}")
	requireEqual(t, "removed proxy, which is the default on OpenShift", want["spec"], any(update(func(spec map[string]any) { delete(spec, "oauthProxy") })))
}

// The mutating webhook ignores invalid annotations, which the validating webhook rejects.
func TestInvalidAnnotationsAreNotChanged(t *testing.T) {
	got := object(t, alpha, "{rest: {serviceRoute: disabled}, grpc: {}, postgres: {host: h, database: d}}")
	if err := unstructured.SetNestedField(got, "{", "metadata", "annotations", conversion.Annotation); err != nil {
		t.Fatal(err)
	}
	want := decodeYAML(t, mustJSON(t, got))
	setDefaults(got, nil, settings(false))
	requireEqual(t, "object", want, got)

	updated := object(t, alpha, "{rest: {serviceRoute: disabled}, grpc: {}, postgres: {host: h, database: d}}")
	setDefaults(updated, want, settings(false))
	requireEqual(t, "update of an object with an invalid annotation", object(t, alpha, "{rest: {serviceRoute: disabled}, grpc: {}, postgres: {host: h, database: d}}"), updated)

	withoutSpec := map[string]any{"apiVersion": alpha, "kind": "ModelRegistry"}
	setDefaults(withoutSpec, nil, settings(true))
	requireEqual(t, "no spec", map[string]any{"apiVersion": alpha, "kind": "ModelRegistry"}, withoutSpec)
}

func mustJSON(t *testing.T, object any) string {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// An applied {} that server-side apply has turned into null is restored. A null of the user is kept.
func TestAppliedObjectsAreRestored(t *testing.T) {
	for name, test := range map[string]struct{ operation, fields, old, want string }{
		"applied": {"Apply", "{f:spec: {f:rest: {}, f:kubeRBACProxy: {}}}", "{rest: {port: 8080}, kubeRBACProxy: {port: 8443}}", "{rest: {serviceRoute: disabled}, kubeRBACProxy: {serviceRoute: enabled}}"},
		"updated": {"Update", "{f:spec: {f:rest: {}, f:kubeRBACProxy: {}}}", "{rest: {port: 8080}, kubeRBACProxy: {port: 8443}}", "{rest: null, kubeRBACProxy: null}"},
		"applied field missing in the old object": {"Apply", "{f:spec: {f:rest: {}, f:kubeRBACProxy: {}}}", "{rest: {port: 8080}}", "{rest: {serviceRoute: disabled}, kubeRBACProxy: null}"},
		"field of another manager":                {"Apply", "{f:spec: {f:rest: {}}}", "{rest: {}, kubeRBACProxy: {}}", "{rest: {serviceRoute: disabled}, kubeRBACProxy: null}"},
		"old object without a spec":               {"Apply", "{f:spec: {f:rest: {}}}", "null", "{rest: null, kubeRBACProxy: null}"},
	} {
		t.Run(name, func(t *testing.T) {
			got := object(t, beta, "{rest: null, kubeRBACProxy: null}")
			nestedMap(got, "metadata")["managedFields"] = []any{map[string]any{"operation": test.operation, "fieldsV1": decodeYAML(t, test.fields)}}
			setDefaults(got, object(t, beta, test.old), Settings{})
			requireEqual(t, "spec", object(t, beta, test.want)["spec"], got["spec"])
		})
	}
}
