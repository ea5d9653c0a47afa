package modelregistry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	pkgadmission "github.com/odh-platform/odh-platform-operator/pkg/admission"
)

// testManager is a manager with only a webhook server and a reader.
type testManager struct {
	ctrl.Manager
	server webhook.Server
	reader client.Client
}

func (m *testManager) GetWebhookServer() webhook.Server { return m.server }
func (m *testManager) GetAPIReader() client.Reader      { return m.reader }
func (m *testManager) GetClient() client.Client         { return m.reader }

// trusted allows all references of every author.
var trusted = pkgadmission.Guards{Access: func(context.Context, authenticationv1.UserInfo, authorizationv1.ResourceAttributes) (bool, error) {
	return true, nil
}}

// newTestManager returns a manager with registered webhooks. Its client and API reader return the objects.
func newTestManager(t *testing.T, enabled bool, s Settings, objects ...client.Object) *testManager {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta1.AddToScheme, aihubv1alpha1.AddToScheme, metav1.AddMetaToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	byName := func(o client.Object) []string { return []string{o.GetName()} }
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&v1beta1.ModelRegistry{}, "metadata.name", byName).WithIndex(&aihubv1alpha1.Catalog{}, "metadata.name", byName).Build()
	m := &testManager{server: webhook.NewServer(webhook.Options{}), reader: reader}
	Register(m, enabled, trusted, source(s))
	RegisterCatalog(m, enabled, trusted, source(s))
	return m
}

// post sends a body to a path and returns status and body of the response.
func (m *testManager) post(t *testing.T, path, body string) (int, []byte) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	m.server.WebhookMux().ServeHTTP(recorder, r)
	return recorder.Code, recorder.Body.Bytes()
}

// admit sends an admission review like the API server and returns the response.
func (m *testManager) admit(t *testing.T, path string, object map[string]any) *admissionv1.AdmissionResponse {
	t.Helper()
	review := fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","name":"%s","namespace":"ns","object":%s}}`,
		nestedMap(object, "metadata")["name"], mustJSON(t, object))
	code, body := m.post(t, path, review)
	var response admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &response); err != nil || code != http.StatusOK || response.Response == nil || response.Response.UID != "u" {
		t.Fatalf("%s: status %d, %s, error %v", path, code, body, err)
	}
	return response.Response
}

// Registries are looked up in the API server only if the cache or a recent request contains the name: the cache may lack the object of a
// recent request.
func TestNewNamesAreLookedUpInTheCache(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	cached := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&v1beta1.ModelRegistry{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "stored"}}).Build()
	requests := 0
	find := cachedFirst(cached, func(context.Context, string) ([]string, error) {
		requests++
		return []string{"live"}, nil
	})
	for _, test := range []struct {
		name string
		want []string
	}{{"free", nil}, {"stored", []string{"live"}}, {"free", []string{"live"}}, {"other", nil}} {
		previous := requests
		if found, err := find(t.Context(), test.name); err != nil || !slices.Equal(found, test.want) || requests-previous != len(test.want) {
			t.Errorf("%s: got namespaces %q after %d requests, error %v; want %q", test.name, found, requests-previous, err, test.want)
		}
	}
	failing := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("unavailable")
		},
	})
	if _, err := cachedFirst(failing, nil)(t.Context(), "free"); err == nil {
		t.Error("want the error of the cache returned")
	}
}

func TestWebhooksAreServed(t *testing.T) {
	other := &v1beta1.ModelRegistry{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "demo"}}
	mgr := newTestManager(t, true, settings(true), other, &aihubv1alpha1.Catalog{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "catalog"}})
	m := object(t, beta, validSpec)
	if response := mgr.admit(t, MutatePath, m); !response.Allowed || !strings.Contains(string(response.Patch), "kubeRBACProxy") || *response.PatchType != admissionv1.PatchTypeJSONPatch {
		t.Errorf("got %+v, want a JSON patch that adds kubeRBACProxy", response)
	}
	if response := mgr.admit(t, ValidatePath, m); response.Allowed || !strings.Contains(response.Result.Message, "already exists in namespace elsewhere") {
		t.Errorf("got %+v, want a rejection that names the other namespace", response)
	}
	nestedMap(m, "metadata")["name"] = "free"
	if response := mgr.admit(t, ValidatePath, m); !response.Allowed {
		t.Errorf("unexpected result: %+v", response.Result)
	}
	catalog := decodeYAML(t, "{apiVersion: aihub.opendatahub.io/v1alpha1, kind: Catalog, metadata: {name: catalog, namespace: ns}}")
	if response := mgr.admit(t, ValidateCatalogPath, catalog); response.Allowed || !strings.Contains(response.Result.Message, "a cluster has only one Catalog, which exists in namespace elsewhere") {
		t.Errorf("got %+v, want a rejection that names the other Catalog", response)
	}
	nestedMap(catalog, "metadata")["name"] = "other"
	if response := mgr.admit(t, ValidateCatalogPath, catalog); response.Allowed || response.Result.Reason != metav1.StatusReasonInvalid {
		t.Errorf("got %+v, want an Invalid rejection", response)
	}
}

// The webhooks of a disabled component allow requests with a warning, and convert objects: webhook configurations are static, and stored
// objects remain.
func TestWebhooksOfDisabledComponents(t *testing.T) {
	mgr := newTestManager(t, false, settings(true))
	for path, name := range map[string]string{MutatePath: "modelregistry", ValidatePath: "modelregistry", ValidateCatalogPath: "modelcatalog"} {
		response := mgr.admit(t, path, object(t, beta, "{rest: {}}"))
		if !response.Allowed || len(response.Patch) > 0 || len(response.Warnings) != 1 || !strings.Contains(response.Warnings[0], "the component "+name+" is disabled") {
			t.Errorf("%s: unexpected response: %+v", path, response)
		}
	}
	review := fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u","desiredAPIVersion":%q,"objects":[%s]}}`,
		alpha, mustJSON(t, object(t, beta, "{rest: {}, kubeRBACProxy: {}}")))
	if code, body := mgr.post(t, ConvertPath, review); code != http.StatusOK || !strings.Contains(string(body), `"oauthProxy":{}`) {
		t.Errorf("unexpected conversion response: status %d, %s", code, body)
	}
}

// Names are looked up in the API server with a list of metadata by name, because the cache may lack a new object.
func TestNamesAreLookedUpLive(t *testing.T) {
	var requests []string
	reader := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			metadata, ok := list.(*metav1.PartialObjectMetadataList)
			if !ok {
				t.Fatalf("unexpected list: %T", list)
			}
			o := client.ListOptions{}
			o.ApplyOptions(opts)
			requests = append(requests, metadata.GroupVersionKind().Kind+" "+o.FieldSelector.String()+" in "+o.Namespace)
			if len(requests) > 1 {
				return errors.New("unavailable")
			}
			metadata.Items = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}}, {ObjectMeta: metav1.ObjectMeta{Namespace: "b"}}}
			return nil
		},
	})
	find := newNamespaceFinder(reader, v1beta1.GroupVersion.WithKind(v1beta1.Kind))
	if found, err := find(t.Context(), "demo"); err != nil || !slices.Equal(found, []string{"a", "b"}) {
		t.Errorf("got namespaces %v, error %v, want a and b", found, err)
	}
	if _, err := find(t.Context(), "demo"); err == nil {
		t.Error("want the error of the list returned")
	}
	if requests[0] != "ModelRegistryList metadata.name=demo in " {
		t.Errorf("got list requests %q, want ModelRegistries by name", requests)
	}
}
