package modelregistry

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"
)

// review sends a conversion review like the API server.
func review(t *testing.T, version string, objects ...map[string]any) *apiextensionsv1.ConversionReview {
	t.Helper()
	in := fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u","desiredAPIVersion":%q,"objects":%s}}`, version, mustJSON(t, objects))
	recorder := httptest.NewRecorder()
	converter{}.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, ConvertPath, strings.NewReader(in)))
	if recorder.Code != http.StatusOK || recorder.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("status %d: %s", recorder.Code, recorder.Body)
	}
	out := &apiextensionsv1.ConversionReview{}
	if err := json.Unmarshal(recorder.Body.Bytes(), out); err != nil {
		t.Fatal(err)
	}
	if out.Kind != "ConversionReview" || out.APIVersion != "apiextensions.k8s.io/v1" || out.Response.UID != "u" || out.Request != nil {
		t.Fatalf("got %+v, want a ConversionReview with the UID of the request and no request", out)
	}
	return out
}

func TestListsAreConvertedInTheirOrder(t *testing.T) {
	first, second := object(t, alpha, "{rest: {}, grpc: {}, istio: {}}"), object(t, beta, "{rest: {port: 1}, unknown: 1}")
	response := review(t, beta, first, second).Response
	if response.Result.Status != metav1.StatusSuccess || len(response.ConvertedObjects) != 2 {
		t.Fatalf("unexpected response: %+v", response)
	}
	var got []map[string]any
	for _, converted := range response.ConvertedObjects {
		var decoded map[string]any
		if err := kjson.Unmarshal(converted.Raw, &decoded); err != nil {
			t.Fatal(err)
		}
		got = append(got, decoded)
	}
	want := object(t, beta, "{rest: {}, grpc: {}, oauthProxy: {port: 8443, routePort: 443, serviceRoute: disabled}}")
	requireEqual(t, "objects", []map[string]any{want, second}, got)
}

func TestInvalidObjectFailsTheConversionReview(t *testing.T) {
	response := review(t, beta, object(t, beta, "{rest: {}}"), decodeYAML(t, "{apiVersion: v1, kind: Pod}")).Response
	if response.Result.Status != metav1.StatusFailure || len(response.ConvertedObjects) > 0 ||
		!strings.Contains(response.Result.Message, "objects[1]: v1 Pod is not of type v1beta1.ModelRegistry") {
		t.Errorf("unexpected response: %+v", response)
	}
	if response := review(t, beta).Response; response.Result.Status != metav1.StatusSuccess {
		t.Errorf("unexpected response to a review without objects: %+v", response)
	}
	if _, err := convertRaw([]byte("["), beta); err == nil {
		t.Error("got no error for invalid JSON")
	}
}

func TestInvalidConversionReview(t *testing.T) {
	for _, body := range []string{"", "[", "{}", `{"request":null}`} {
		recorder := httptest.NewRecorder()
		converter{}.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, ConvertPath, strings.NewReader(body)))
		if recorder.Code != http.StatusBadRequest {
			t.Errorf("%q: got status %d, want 400", body, recorder.Code)
		}
	}
}
