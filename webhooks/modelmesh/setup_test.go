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

// serving is a manager with only a webhook server.
type serving struct {
	ctrl.Manager
	server webhook.Server
}

func (s serving) GetWebhookServer() webhook.Server { return s.server }

// The path returns an AdmissionReview while the component is enabled and while it is disabled.
func TestRegister(t *testing.T) {
	for _, enabled := range []bool{true, false} {
		m := serving{server: webhook.NewServer(webhook.Options{})}
		everything := func(context.Context, authenticationv1.UserInfo, authorizationv1.ResourceAttributes) (bool, error) {
			return true, nil
		}
		Register(m, enabled, pkgadmission.Guards{Access: everything}, adapters)
		review := `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","operation":"CREATE","object":` + keda + `}}`
		r := httptest.NewRequest(http.MethodPost, "/validate-serving-modelmesh-io-v1alpha1-servingruntime", strings.NewReader(review))
		r.Header.Set("Content-Type", "application/json")
		recorder := httptest.NewRecorder()
		m.server.WebhookMux().ServeHTTP(recorder, r)
		answer := &admissionv1.AdmissionReview{}
		if err := json.Unmarshal(recorder.Body.Bytes(), answer); err != nil || answer.Response == nil {
			t.Fatalf("%v: %d %s", err, recorder.Code, recorder.Body)
		}
		if answer.Response.UID != "u" || answer.Response.Allowed == enabled || slices.Equal(answer.Response.Warnings, []string{string(disabledHandler)}) == enabled {
			t.Errorf("enabled %t: %+v", enabled, answer.Response)
		}
	}
}
