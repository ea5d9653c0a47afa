package modelmesh

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	pkgadmission "github.com/odh-platform/odh-platform-operator/pkg/admission"
)

// webhookManager is a manager that has only a webhook server.
type webhookManager struct {
	ctrl.Manager
	server webhook.Server
}

func (s webhookManager) GetWebhookServer() webhook.Server { return s.server }

// The webhook responds even if the component is disabled, because the API server may still call it.
func TestRegisterServesWebhookWhileDisabled(t *testing.T) {
	for _, enabled := range []bool{true, false} {
		m := webhookManager{server: webhook.NewServer(webhook.Options{})}
		allowAll := func(context.Context, authenticationv1.UserInfo, authorizationv1.ResourceAttributes) (bool, error) {
			return true, nil
		}
		Register(m, enabled, pkgadmission.Guards{Access: allowAll}, adapters)
		review := `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","operation":"CREATE","object":` + kedaRuntime + `}}`
		r := httptest.NewRequest(http.MethodPost, "/validate-serving-modelmesh-io-v1alpha1-servingruntime", strings.NewReader(review))
		r.Header.Set("Content-Type", "application/json")
		recorder := httptest.NewRecorder()
		m.server.WebhookMux().ServeHTTP(recorder, r)
		response := &admissionv1.AdmissionReview{}
		if err := json.Unmarshal(recorder.Body.Bytes(), response); err != nil || response.Response == nil {
			t.Fatalf("the response is no AdmissionReview (error %v): %d %s", err, recorder.Code, recorder.Body)
		}
		if response.Response.UID != "u" || response.Response.Allowed == enabled || slices.Equal(response.Response.Warnings, []string{string(disabledHandler)}) == enabled {
			t.Errorf("component enabled %t: got %+v, want a rejection if enabled, otherwise only a warning", enabled, response.Response)
		}
	}
}
