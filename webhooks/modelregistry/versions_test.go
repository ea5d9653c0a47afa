package modelregistry

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"
)

// Defaults of both versions, on Kubernetes and on OpenShift. Unknown fields are preserved.
func TestDefaultsOfBothVersions(t *testing.T) {
	const betaProxy, alphaProxy = "kubeRBACProxy: {serviceRoute: enabled}", "oauthProxy: {serviceRoute: enabled}"
	for name, test := range map[string]struct{ version, spec, kubernetes, openShift string }{
		"only rest": {beta, "{rest: {}}", "{rest: {serviceRoute: disabled}}", "{rest: {serviceRoute: disabled}, " + betaProxy + "}"},
		"empty serviceRoute": {beta, "{rest: {serviceRoute: ''}, mysql: {host: h}}",
			"{rest: {serviceRoute: disabled}, mysql: {host: h}}", "{rest: {serviceRoute: disabled}, mysql: {host: h}, " + betaProxy + "}"},
		"Route enabled": {beta, "{rest: {serviceRoute: enabled}}", "{rest: {serviceRoute: enabled}}", "{rest: {serviceRoute: enabled}, " + betaProxy + "}"},
		"generateDeployment false": {beta, "{rest: {serviceRoute: disabled}, postgres: {generateDeployment: false}, " + betaProxy + "}",
			"{rest: {serviceRoute: disabled}, " + betaProxy + "}", "{rest: {serviceRoute: disabled}, " + betaProxy + "}"},
		"empty host of a generated database": {beta, "{rest: {serviceRoute: disabled}, postgres: {generateDeployment: true, host: ''}, " + betaProxy + "}",
			"{rest: {serviceRoute: disabled}, postgres: {generateDeployment: true, host: ''}, " + betaProxy + "}",
			"{rest: {serviceRoute: disabled}, postgres: {generateDeployment: true, host: ''}, " + betaProxy + "}"},
		"oauthProxy with settings": {beta, "{rest: {serviceRoute: disabled}, oauthProxy: {port: 1, routePort: 2, domain: d, image: i, serviceRoute: disabled, tlsKeySecret: {name: n, key: k}, unknown: 1}}",
			"{rest: {serviceRoute: disabled}, kubeRBACProxy: {port: 1, routePort: 2, domain: d, serviceRoute: disabled, tlsKeySecret: {name: n, key: k}, unknown: 1}}",
			"{rest: {serviceRoute: disabled}, kubeRBACProxy: {port: 1, routePort: 2, domain: d, serviceRoute: disabled, tlsKeySecret: {name: n, key: k}, unknown: 1}}"},
		"istio, which v1beta1 does not have": {beta, "{rest: {serviceRoute: disabled}, istio: {gateway: {domain: d}}, " + betaProxy + "}",
			"{rest: {serviceRoute: disabled}, istio: {gateway: {domain: d}}, " + betaProxy + "}", "{rest: {serviceRoute: disabled}, istio: {gateway: {domain: d}}, " + betaProxy + "}"},
		"empty spec, v1alpha1": {alpha, "{rest: {}, grpc: {}}", "{rest: {serviceRoute: disabled}, grpc: {}}", "{rest: {serviceRoute: disabled}, grpc: {}, " + alphaProxy + "}"},
		"databases without a host, v1alpha1": {alpha, "{rest: {serviceRoute: enabled}, grpc: {}, postgres: {database: d}, mysql: {host: '', username: u}, unknown: [1]}",
			"{rest: {serviceRoute: enabled}, grpc: {}, unknown: [1]}", "{rest: {serviceRoute: enabled}, grpc: {}, unknown: [1], " + alphaProxy + "}"},
		"Istio without a gateway, v1alpha1": {alpha, "{rest: {serviceRoute: disabled}, grpc: {}, istio: {authProvider: a}}",
			"{rest: {serviceRoute: disabled}, grpc: {}, oauthProxy: {port: 8443, routePort: 443, serviceRoute: disabled}}",
			"{rest: {serviceRoute: disabled}, grpc: {}, oauthProxy: {port: 8443, routePort: 443, serviceRoute: disabled}}"},
		"Istio with a disabled gateway route, v1alpha1": {alpha, "{rest: {serviceRoute: disabled}, grpc: {}, istio: {gateway: {domain: d, rest: {gatewayRoute: disabled, port: 8}, grpc: {}}}}",
			"{rest: {serviceRoute: disabled}, grpc: {}, oauthProxy: {port: 8443, routePort: 443, serviceRoute: disabled, domain: d}}",
			"{rest: {serviceRoute: disabled}, grpc: {}, oauthProxy: {port: 8443, routePort: 443, serviceRoute: disabled, domain: d}}"},
		"Istio with a port and TLS, v1alpha1": {alpha, "{rest: {serviceRoute: disabled}, grpc: {}, istio: {gateway: {domain: '', rest: {port: 8, tls: {}}, grpc: {}}}}",
			"{rest: {serviceRoute: disabled}, grpc: {}, oauthProxy: {port: 8443, routePort: 8, serviceRoute: enabled}}",
			"{rest: {serviceRoute: disabled}, grpc: {}, oauthProxy: {port: 8443, routePort: 8, serviceRoute: enabled}}"},
		"oauthProxy with an empty serviceRoute, v1alpha1": {alpha, "{rest: {serviceRoute: disabled}, grpc: {}, oauthProxy: {serviceRoute: '', image: i}}",
			"{rest: {serviceRoute: disabled}, grpc: {}, oauthProxy: {serviceRoute: enabled, image: i}}",
			"{rest: {serviceRoute: disabled}, grpc: {}, oauthProxy: {serviceRoute: enabled, image: i}}"},
	} {
		for openShift, want := range map[bool]string{false: test.kubernetes, true: test.openShift} {
			d := &defaulter{source(settings(openShift))}
			r := request(t, admissionv1.Create, object(t, test.version, test.spec), nil)
			requireEqual(t, fmt.Sprintf("%s, OpenShift %t", name, openShift), object(t, test.version, want), applyPatch(t, r, d.Handle(t.Context(), r)))
		}
	}
}

// Objects of both versions are validated. The errors name the path and the problem.
func TestRejectionsOfBothVersions(t *testing.T) {
	const host = "postgres: {host: db, username: u, database: d}"
	for name, test := range map[string]struct{ version, spec, want string }{
		"external database":                                 {beta, "{rest: {}, " + host + "}", ""},
		"external database, v1alpha1":                       {alpha, "{rest: {}, grpc: {}, " + host + "}", ""},
		"MySQL, v1alpha1":                                   {alpha, "{rest: {}, grpc: {}, mysql: {host: h, username: u, database: d}}", ""},
		"unknown fields":                                    {beta, "{rest: {unknown: 1}, " + host + ", unknown: {a: [1]}}", ""},
		"unknown fields, v1alpha1":                          {alpha, "{rest: {unknown: 1}, grpc: {unknown: 1}, " + host + ", unknown: {a: [1]}}", ""},
		"no database":                                       {beta, "{rest: {}}", "spec.mysql: Required value: required one of `postgres` or `mysql` database"},
		"no database, v1alpha1":                             {alpha, "{rest: {}, grpc: {}}", "spec.postgres: Required value: required one of `postgres` or `mysql` database"},
		"host of a generated database":                      {beta, "{rest: {}, postgres: {generateDeployment: true, host: h}}", "spec.postgres.host: Invalid value: \"h\": host should not be set when auto-provisioning is enabled"},
		"hostAddress of a generated database":               {beta, "{rest: {}, postgres: {generateDeployment: true, hostAddress: 10.0.0.1}}", "spec.postgres.host: Invalid value: \"10.0.0.1\": host should not be set"},
		"connection Secret":                                 {beta, "{rest: {}, postgres: {connectionSecretName: app}}", ""},
		"connection Secret and host":                        {beta, "{rest: {}, postgres: {connectionSecretName: app, host: h}}", "spec.postgres.connectionSecretName: Invalid value: \"app\": it is used instead of"},
		"connection Secret and database":                    {beta, "{rest: {}, postgres: {connectionSecretName: app, username: u, database: d}}", "it is used instead of"},
		"connection Secret of a generated database":         {beta, "{rest: {}, postgres: {connectionSecretName: app, generateDeployment: true}}", "it is used instead of"},
		"backup storage of size 0":                          {beta, "{rest: {}, postgres: {generateDeployment: true, backup: {schedule: '@daily', storage: {size: 0}}}}", "spec.postgres.backup.storage.size: Invalid value"},
		"negative number of backups":                        {beta, "{rest: {}, postgres: {generateDeployment: true, backup: {schedule: '@daily', keep: -1}}}", "spec.postgres.backup.keep: Invalid value"},
		"hyphen in the name of a generated database":        {beta, "{rest: {}, postgres: {generateDeployment: true, database: model-registry}}", "spec.postgres.database: Invalid value: \"model-registry\": must be at most 63 letters, digits and underscores"},
		"user of a generated database with a leading digit": {beta, "{rest: {}, postgres: {generateDeployment: true, username: 2nd}}", "spec.postgres.username: Invalid value: \"2nd\": must be at most 63 letters, digits and underscores"},
		"names of a generated database":                     {beta, "{rest: {}, postgres: {generateDeployment: true, username: ann, database: Models_2}}", ""},
		"hyphen in the name of an external database":        {beta, "{rest: {}, postgres: {host: h, username: u, database: model-registry}}", ""},
		"invalid host, v1alpha1":                            {alpha, "{rest: {}, grpc: {}, postgres: {host: 'a/b', database: d}}", "spec.postgres.host: Invalid value: \"a/b\""},
		"invalid image, v1alpha1":                           {alpha, "{rest: {image: 'a b'}, grpc: {}, " + host + "}", "spec.rest.image: Invalid value"},
		"invalid proxy image, v1alpha1":                     {alpha, "{rest: {}, grpc: {}, " + host + ", oauthProxy: {image: ' '}}", "spec.oauthProxy.image: Invalid value"},
		"invalid proxy image":                               {beta, "{rest: {}, " + host + ", kubeRBACProxy: {image: ' '}}", "spec.kubeRBACProxy.image: Invalid value"},
		"negative storage size":                             {beta, "{rest: {}, postgres: {generateDeployment: true, storage: {size: '-1Gi'}}}", "spec.postgres.storage.size: Invalid value"},
		"unknown retentionPolicy":                           {beta, "{rest: {}, postgres: {generateDeployment: true, retentionPolicy: Never}}", "spec.postgres.retentionPolicy: Unsupported value"},
		"string for a number":                               {beta, "{rest: {port: high}, " + host + "}", "decoding the ModelRegistry"},
		"list for an object":                                {alpha, "{rest: [], grpc: {}, " + host + "}", "decoding the ModelRegistry"},
		"list of hosts":                                     {beta, "{rest: {}, postgres: {host: 'a,b', username: u, database: d}}", "spec.postgres.host: Invalid value"},
	} {
		v := &validator{source(settings(true)), namespacesByName{}.find}
		for _, operation := range []admissionv1.Operation{admissionv1.Create, admissionv1.Update} {
			old := object(t, test.version, "{rest: {}, grpc: {}, "+host+"}")
			response := v.Handle(t.Context(), request(t, operation, object(t, test.version, test.spec), old))
			if response.Allowed != (test.want == "") || !response.Allowed && !strings.Contains(response.Result.Message, test.want) {
				t.Errorf("%s, %s: unexpected response: %v", name, operation, response.Result)
			}
		}
	}
}

// A legacy registry with an invalid database or user name, which the legacy operator ignored, remains editable.
func TestInvalidNamesOfStoredRegistriesAreAllowed(t *testing.T) {
	v := &validator{source(settings(false)), namespacesByName{}.find}
	old := object(t, beta, "{rest: {}, postgres: {generateDeployment: true, database: model-registry, username: a@b}}")
	edited := object(t, beta, "{rest: {port: 8081}, postgres: {generateDeployment: true, database: model-registry, username: a@b}}")
	if response := v.Handle(t.Context(), request(t, admissionv1.Update, edited, old)); !response.Allowed {
		t.Errorf("unexpected result: %v", response.Result)
	}
	other := object(t, beta, "{rest: {}, postgres: {generateDeployment: true, database: my-models, username: a@b}}")
	if response := v.Handle(t.Context(), request(t, admissionv1.Update, other, old)); response.Allowed {
		t.Error("an update to another invalid name was allowed")
	}
}

// A list of both versions is converted in order to either version, with unknown fields.
func TestListsOfMixedVersions(t *testing.T) {
	objects := []map[string]any{
		object(t, beta, "{rest: {port: 1}, unknown: {a: 1}}"), object(t, alpha, "{rest: {port: 2}, grpc: {port: 9}, unknown: [2]}"),
		object(t, beta, "{rest: {port: 3}, kubeRBACProxy: {domain: d, image: i}, postgres: {generateDeployment: true}}"),
		object(t, alpha, "{rest: {port: 4}, grpc: {}, oauthProxy: {domain: e}}"),
	}
	for version, other := range map[string]string{alpha: beta, beta: alpha} {
		response := review(t, version, objects...).Response
		if response.Result.Status != metav1.StatusSuccess || len(response.ConvertedObjects) != len(objects) {
			t.Fatalf("%s: unexpected response: %+v", version, response)
		}
		converted := decodeObjects(t, response)
		for i, object := range converted {
			port := nestedMap(nestedMap(object, "spec"), "rest")["port"]
			if object["apiVersion"] != version || fmt.Sprint(port) != fmt.Sprint(i+1) || nestedMap(object, "metadata")["name"] != "demo" {
				t.Errorf("%s: unexpected object %d: %v", version, i, object)
			}
		}
		// A round trip through the other version does not change the objects.
		inOther := review(t, other, converted...).Response
		roundTrip := review(t, version, decodeObjects(t, inOther)...).Response
		for i := range converted {
			requireEqual(t, fmt.Sprintf("%s: object %d after the round trip", version, i), converted[i], decodeObjects(t, roundTrip)[i])
		}
	}
}

func decodeObjects(t *testing.T, response *apiextensionsv1.ConversionResponse) []map[string]any {
	t.Helper()
	var all []map[string]any
	for _, converted := range response.ConvertedObjects {
		object := map[string]any{}
		if err := kjson.Unmarshal(converted.Raw, &object); err != nil {
			t.Fatal(err)
		}
		all = append(all, object)
	}
	return all
}

// The response has the apiVersion of the ConversionReview, because CRDs of the legacy operator request v1beta1 reviews first.
func TestReviewResponsesHaveTheVersionOfTheRequest(t *testing.T) {
	for _, version := range []string{"apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1"} {
		body := fmt.Sprintf(`{"apiVersion":%q,"kind":"ConversionReview","request":{"uid":"7","desiredAPIVersion":%q,"objects":[%s]}}`,
			version, alpha, mustJSON(t, object(t, beta, "{rest: {}}")))
		recorder := httptest.NewRecorder()
		converter{}.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, ConvertPath, strings.NewReader(body)))
		response := decodeYAML(t, recorder.Body.String())
		if response["apiVersion"] != version || response["kind"] != "ConversionReview" || nestedMap(response, "response")["uid"] != "7" ||
			nestedMap(nestedMap(response, "response"), "result")["status"] != "Success" {
			t.Errorf("%s: unexpected response: %s", version, recorder.Body)
		}
	}
}

// An invalid object fails the whole review. The response names the object and the cause, and contains no converted objects.
func TestFailuresOfReviews(t *testing.T) {
	valid := object(t, beta, "{rest: {}}")
	for name, test := range map[string]struct {
		version string
		objects []map[string]any
		want    string
	}{
		"unknown version": {"modelregistry.opendatahub.io/v2", []map[string]any{valid}, "objects[0]: modelregistry.opendatahub.io/v2 is not of type"},
		"no version":      {"", []map[string]any{valid}, "objects[0]"},
		"another kind":    {beta, []map[string]any{valid, decodeYAML(t, "{apiVersion: "+beta+", kind: Catalog}")}, "objects[1]: " + beta + " Catalog is not of type v1beta1.ModelRegistry"},
		"no kind":         {alpha, []map[string]any{valid, valid, decodeYAML(t, "{apiVersion: "+beta+"}")}, "objects[2]"},
		"empty object":    {alpha, []map[string]any{{}}, "objects[0]"},
	} {
		response := review(t, test.version, test.objects...).Response
		if response.Result.Status != metav1.StatusFailure || !strings.Contains(response.Result.Message, test.want) || len(response.ConvertedObjects) > 0 {
			t.Errorf("%s: unexpected response: %+v", name, response)
		}
	}
	for _, text := range []string{"", "null", "1", `"x"`, "[{}]", "{"} {
		if out, err := convertRaw([]byte(text), beta); err == nil {
			t.Errorf("%q was converted to %s, want an error", text, out)
		}
	}
}
