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

// Every default rule for both versions, on Kubernetes and on OpenShift. Unknown fields are preserved.
func TestDefaultsOfBothVersions(t *testing.T) {
	const betaProxy, alphaProxy = "kubeRBACProxy: {serviceRoute: enabled}", "oauthProxy: {serviceRoute: enabled}"
	for name, c := range map[string]struct{ version, given, kubernetes, openShift string }{
		"only rest": {beta, "{rest: {}}", "{rest: {serviceRoute: disabled}}", "{rest: {serviceRoute: disabled}, " + betaProxy + "}"},
		"a Route that is empty": {beta, "{rest: {serviceRoute: ''}, mysql: {host: h}}",
			"{rest: {serviceRoute: disabled}, mysql: {host: h}}", "{rest: {serviceRoute: disabled}, mysql: {host: h}, " + betaProxy + "}"},
		"Route enabled": {beta, "{rest: {serviceRoute: enabled}}", "{rest: {serviceRoute: enabled}}", "{rest: {serviceRoute: enabled}, " + betaProxy + "}"},
		"a server that is not generated": {beta, "{rest: {serviceRoute: disabled}, postgres: {generateDeployment: false}, " + betaProxy + "}",
			"{rest: {serviceRoute: disabled}, " + betaProxy + "}", "{rest: {serviceRoute: disabled}, " + betaProxy + "}"},
		"an empty host of a generated one": {beta, "{rest: {serviceRoute: disabled}, postgres: {generateDeployment: true, host: ''}, " + betaProxy + "}",
			"{rest: {serviceRoute: disabled}, postgres: {generateDeployment: true, host: ''}, " + betaProxy + "}",
			"{rest: {serviceRoute: disabled}, postgres: {generateDeployment: true, host: ''}, " + betaProxy + "}"},
		"an older proxy with settings": {beta, "{rest: {serviceRoute: disabled}, oauthProxy: {port: 1, routePort: 2, domain: d, image: i, serviceRoute: disabled, tlsKeySecret: {name: n, key: k}, later: 1}}",
			"{rest: {serviceRoute: disabled}, kubeRBACProxy: {port: 1, routePort: 2, domain: d, serviceRoute: disabled, tlsKeySecret: {name: n, key: k}, later: 1}}",
			"{rest: {serviceRoute: disabled}, kubeRBACProxy: {port: 1, routePort: 2, domain: d, serviceRoute: disabled, tlsKeySecret: {name: n, key: k}, later: 1}}"},
		"Istio in a version without it": {beta, "{rest: {serviceRoute: disabled}, istio: {gateway: {domain: d}}, " + betaProxy + "}",
			"{rest: {serviceRoute: disabled}, istio: {gateway: {domain: d}}, " + betaProxy + "}", "{rest: {serviceRoute: disabled}, istio: {gateway: {domain: d}}, " + betaProxy + "}"},
		"empty spec, v1alpha1": {alpha, "{rest: {}, grpc: {}}", "{rest: {serviceRoute: disabled}, grpc: {}}", "{rest: {serviceRoute: disabled}, grpc: {}, " + alphaProxy + "}"},
		"databases without servers, v1alpha1": {alpha, "{rest: {serviceRoute: enabled}, grpc: {}, postgres: {database: d}, mysql: {host: '', username: u}, later: [1]}",
			"{rest: {serviceRoute: enabled}, grpc: {}, later: [1]}", "{rest: {serviceRoute: enabled}, grpc: {}, later: [1], " + alphaProxy + "}"},
		"Istio without a gateway, v1alpha1": {alpha, "{rest: {serviceRoute: disabled}, grpc: {}, istio: {authProvider: a}}",
			"{rest: {serviceRoute: disabled}, grpc: {}, oauthProxy: {port: 8443, routePort: 443, serviceRoute: disabled}}",
			"{rest: {serviceRoute: disabled}, grpc: {}, oauthProxy: {port: 8443, routePort: 443, serviceRoute: disabled}}"},
		"Istio with a closed gateway, v1alpha1": {alpha, "{rest: {serviceRoute: disabled}, grpc: {}, istio: {gateway: {domain: d, rest: {gatewayRoute: disabled, port: 8}, grpc: {}}}}",
			"{rest: {serviceRoute: disabled}, grpc: {}, oauthProxy: {port: 8443, routePort: 443, serviceRoute: disabled, domain: d}}",
			"{rest: {serviceRoute: disabled}, grpc: {}, oauthProxy: {port: 8443, routePort: 443, serviceRoute: disabled, domain: d}}"},
		"Istio with a port and TLS, v1alpha1": {alpha, "{rest: {serviceRoute: disabled}, grpc: {}, istio: {gateway: {domain: '', rest: {port: 8, tls: {}}, grpc: {}}}}",
			"{rest: {serviceRoute: disabled}, grpc: {}, oauthProxy: {port: 8443, routePort: 8, serviceRoute: enabled}}",
			"{rest: {serviceRoute: disabled}, grpc: {}, oauthProxy: {port: 8443, routePort: 8, serviceRoute: enabled}}"},
		"a proxy whose Route is empty, v1alpha1": {alpha, "{rest: {serviceRoute: disabled}, grpc: {}, oauthProxy: {serviceRoute: '', image: i}}",
			"{rest: {serviceRoute: disabled}, grpc: {}, oauthProxy: {serviceRoute: enabled, image: i}}",
			"{rest: {serviceRoute: disabled}, grpc: {}, oauthProxy: {serviceRoute: enabled, image: i}}"},
	} {
		for platform, want := range map[bool]string{false: c.kubernetes, true: c.openShift} {
			d := &defaulter{source(settings(platform))}
			r := request(t, admissionv1.Create, object(t, c.version, c.given), nil)
			requireEqual(t, fmt.Sprintf("%s, OpenShift %t", name, platform), object(t, c.version, want), applyPatch(t, r, d.Handle(t.Context(), r)))
		}
	}
}

// Every validation rule for both versions: an error names the path and the problem, in searchable terms.
func TestRejectionsOfBothVersions(t *testing.T) {
	const host = "postgres: {host: db, username: u, database: d}"
	for name, c := range map[string]struct{ version, spec, want string }{
		"a database":                                      {beta, "{rest: {}, " + host + "}", ""},
		"a database, v1alpha1":                            {alpha, "{rest: {}, grpc: {}, " + host + "}", ""},
		"MySQL, v1alpha1":                                 {alpha, "{rest: {}, grpc: {}, mysql: {host: h, username: u, database: d}}", ""},
		"unknown fields":                                  {beta, "{rest: {later: 1}, " + host + ", later: {a: [1]}}", ""},
		"unknown fields, v1alpha1":                        {alpha, "{rest: {later: 1}, grpc: {later: 1}, " + host + ", later: {a: [1]}}", ""},
		"no database":                                     {beta, "{rest: {}}", "spec.mysql: Required value: required one of `postgres` or `mysql` database"},
		"no database, v1alpha1":                           {alpha, "{rest: {}, grpc: {}}", "spec.postgres: Required value: required one of `postgres` or `mysql` database"},
		"a host of a generated one":                       {beta, "{rest: {}, postgres: {generateDeployment: true, host: h}}", "spec.postgres.host: Invalid value: \"h\": host should not be set when auto-provisioning is enabled"},
		"an address of a generated one":                   {beta, "{rest: {}, postgres: {generateDeployment: true, hostAddress: 10.0.0.1}}", "spec.postgres.host: Invalid value: \"10.0.0.1\": host should not be set"},
		"a Secret with the connection":                    {beta, "{rest: {}, postgres: {connectionSecretName: app}}", ""},
		"a Secret with the connection, and a host":        {beta, "{rest: {}, postgres: {connectionSecretName: app, host: h}}", "spec.postgres.connectionSecretName: Invalid value: \"app\": it is used instead of"},
		"a Secret with the connection, and a database":    {beta, "{rest: {}, postgres: {connectionSecretName: app, username: u, database: d}}", "it is used instead of"},
		"a Secret with the connection of a generated one": {beta, "{rest: {}, postgres: {connectionSecretName: app, generateDeployment: true}}", "it is used instead of"},
		"backup storage of size 0":                        {beta, "{rest: {}, postgres: {generateDeployment: true, backup: {schedule: '@daily', storage: {size: 0}}}}", "spec.postgres.backup.storage.size: Invalid value"},
		"no backups":                                      {beta, "{rest: {}, postgres: {generateDeployment: true, backup: {schedule: '@daily', keep: -1}}}", "spec.postgres.backup.keep: Invalid value"},
		"a dash in a generated one":                       {beta, "{rest: {}, postgres: {generateDeployment: true, database: model-registry}}", "spec.postgres.database: Invalid value: \"model-registry\": must be at most 63 letters, digits and underscores"},
		"a digit before a generated user":                 {beta, "{rest: {}, postgres: {generateDeployment: true, username: 2nd}}", "spec.postgres.username: Invalid value: \"2nd\": must be at most 63 letters, digits and underscores"},
		"names of a generated one":                        {beta, "{rest: {}, postgres: {generateDeployment: true, username: ann, database: Models_2}}", ""},
		"database name with a dash":                       {beta, "{rest: {}, postgres: {host: h, username: u, database: model-registry}}", ""},
		"invalid host, v1alpha1":                          {alpha, "{rest: {}, grpc: {}, postgres: {host: 'a/b', database: d}}", "spec.postgres.host: Invalid value: \"a/b\""},
		"invalid image, v1alpha1":                         {alpha, "{rest: {image: 'a b'}, grpc: {}, " + host + "}", "spec.rest.image: Invalid value"},
		"invalid proxy image, v1alpha1":                   {alpha, "{rest: {}, grpc: {}, " + host + ", oauthProxy: {image: ' '}}", "spec.oauthProxy.image: Invalid value"},
		"invalid proxy image":                             {beta, "{rest: {}, " + host + ", kubeRBACProxy: {image: ' '}}", "spec.kubeRBACProxy.image: Invalid value"},
		"negative storage size":                           {beta, "{rest: {}, postgres: {generateDeployment: true, storage: {size: '-1Gi'}}}", "spec.postgres.storage.size: Invalid value"},
		"unknown retentionPolicy":                         {beta, "{rest: {}, postgres: {generateDeployment: true, retentionPolicy: Never}}", "spec.postgres.retentionPolicy: Unsupported value"},
		"string for a number":                             {beta, "{rest: {port: high}, " + host + "}", "decoding the ModelRegistry"},
		"list for an object":                              {alpha, "{rest: [], grpc: {}, " + host + "}", "decoding the ModelRegistry"},
		"list of hosts":                                   {beta, "{rest: {}, postgres: {host: 'a,b', username: u, database: d}}", "spec.postgres.host: Invalid value"},
	} {
		v := &validator{source(settings(true)), registriesByName{}.find}
		for _, operation := range []admissionv1.Operation{admissionv1.Create, admissionv1.Update} {
			old := object(t, c.version, "{rest: {}, grpc: {}, "+host+"}")
			response := v.Handle(t.Context(), request(t, operation, object(t, c.version, c.spec), old))
			if response.Allowed != (c.want == "") || !response.Allowed && !strings.Contains(response.Result.Message, c.want) {
				t.Errorf("%s, %s: unexpected response: %v", name, operation, response.Result)
			}
		}
	}
}

// A legacy registry with ignored database names remains editable: its database exists under other names.
func TestReservedNamesOfStoredRegistriesAreAllowed(t *testing.T) {
	v := &validator{source(settings(false)), registriesByName{}.find}
	old := object(t, beta, "{rest: {}, postgres: {generateDeployment: true, database: model-registry, username: a@b}}")
	edited := object(t, beta, "{rest: {port: 8081}, postgres: {generateDeployment: true, database: model-registry, username: a@b}}")
	if response := v.Handle(t.Context(), request(t, admissionv1.Update, edited, old)); !response.Allowed {
		t.Errorf("unexpected response.Result: %v", response.Result)
	}
	other := object(t, beta, "{rest: {}, postgres: {generateDeployment: true, database: my-models, username: a@b}}")
	if response := v.Handle(t.Context(), request(t, admissionv1.Update, other, old)); response.Allowed {
		t.Error("an update to another reserved name was allowed")
	}
}

// A list of both versions is converted in order to either version, with unknown fields.
func TestListsOfMixedVersions(t *testing.T) {
	given := []map[string]any{
		object(t, beta, "{rest: {port: 1}, later: {a: 1}}"), object(t, alpha, "{rest: {port: 2}, grpc: {port: 9}, later: [2]}"),
		object(t, beta, "{rest: {port: 3}, kubeRBACProxy: {domain: d, image: i}, postgres: {generateDeployment: true}}"),
		object(t, alpha, "{rest: {port: 4}, grpc: {}, oauthProxy: {domain: e}}"),
	}
	for version, other := range map[string]string{alpha: beta, beta: alpha} {
		response := review(t, version, given...).Response
		if response.Result.Status != metav1.StatusSuccess || len(response.ConvertedObjects) != len(given) {
			t.Fatalf("%s: unexpected response: %+v", version, response)
		}
		var converted1 []map[string]any
		for i, converted := range response.ConvertedObjects {
			one := map[string]any{}
			if err := kjson.Unmarshal(converted.Raw, &one); err != nil {
				t.Fatal(err)
			}
			port := nestedMap(nestedMap(one, "spec"), "rest")["port"]
			if one["apiVersion"] != version || fmt.Sprint(port) != fmt.Sprint(i+1) || nestedMap(one, "metadata")["name"] != "demo" {
				t.Errorf("%s: object %d is %v", version, i, one)
			}
			converted1 = append(converted1, one)
		}
		// There and back again, whichever way each of them went, everything is as it was.
		back := review(t, other, converted1...).Response
		again := review(t, version, rawObjects(t, back)...).Response
		for i := range converted1 {
			requireEqual(t, fmt.Sprintf("%s: object %d again", version, i), converted1[i], rawObjects(t, again)[i])
		}
	}
}

func rawObjects(t *testing.T, response *apiextensionsv1.ConversionResponse) []map[string]any {
	t.Helper()
	var all []map[string]any
	for _, converted := range response.ConvertedObjects {
		one := map[string]any{}
		if err := kjson.Unmarshal(converted.Raw, &one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

// The response has the version of the review: CRDs of the legacy operator request v1beta1 first.
func TestReviewsAreAnsweredInTheirVersion(t *testing.T) {
	for _, version := range []string{"apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1"} {
		body := fmt.Sprintf(`{"apiVersion":%q,"kind":"ConversionReview","request":{"uid":"7","desiredAPIVersion":%q,"objects":[%s]}}`,
			version, alpha, mustJSON(t, object(t, beta, "{rest: {}}")))
		recorder := httptest.NewRecorder()
		converter{}.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, ConvertPath, strings.NewReader(body)))
		response := decodeYAML(t, recorder.Body.String())
		if response["apiVersion"] != version || response["kind"] != "ConversionReview" || nestedMap(response, "response")["uid"] != "7" ||
			nestedMap(nestedMap(response, "response"), "result")["status"] != "Success" {
			t.Errorf("%s: unexpected recorder.Body: %s", version, recorder.Body)
		}
	}
}

// One invalid object fails the whole review, and the response names it and the cause, without converted objects.
func TestFailuresOfReviews(t *testing.T) {
	good := object(t, beta, "{rest: {}}")
	for name, c := range map[string]struct {
		wanted  string
		objects []map[string]any
		want    string
	}{
		"unknown version": {"modelregistry.opendatahub.io/v2", []map[string]any{good}, "objects[0]: modelregistry.opendatahub.io/v2 is not of type"},
		"no version":      {"", []map[string]any{good}, "objects[0]"},
		"another kind":    {beta, []map[string]any{good, decodeYAML(t, "{apiVersion: "+beta+", kind: Catalog}")}, "objects[1]: " + beta + " Catalog is not of type v1beta1.ModelRegistry"},
		"no kind":         {alpha, []map[string]any{good, good, decodeYAML(t, "{apiVersion: "+beta+"}")}, "objects[2]"},
		"an empty object": {alpha, []map[string]any{{}}, "objects[0]"},
	} {
		response := review(t, c.wanted, c.objects...).Response
		if response.Result.Status != metav1.StatusFailure || !strings.Contains(response.Result.Message, c.want) || len(response.ConvertedObjects) > 0 {
			t.Errorf("%s: unexpected response: %+v", name, response)
		}
	}
	for _, text := range []string{"", "null", "1", `"x"`, "[{}]", "{"} {
		if out, err := convertRaw([]byte(text), beta); err == nil {
			t.Errorf("%q became %s", text, out)
		}
	}
}
