package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// A guard checks added references, even for a disabled component, and does not block the deletion of an object.
func TestGuards(t *testing.T) {
	const (
		plain       = `{"spec":{}}`
		image       = `{"spec":{"image":"a"}}`
		terminating = `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{}}`
		invalid     = `7`
		slow        = `{"spec":{"limits":{"cpu":"1e-2000000000"}}}`
	)
	mustNotRun := admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { panic("the object was decoded") })
	referencesOf := func(_ Rules, raw []byte, namespace string) (References, error) {
		var object struct{ Spec struct{ Image string } }
		u := References{Namespace: namespace}
		if err := json.Unmarshal(raw, &object); err != nil {
			return u, errors.New("invalid object")
		}
		u.Add(Image, object.Spec.Image, field.NewPath("spec", "image"))
		return u, nil
	}
	for name, tc := range map[string]struct {
		operation   admissionv1.Operation
		object, old string
		next        admission.Handler
		code        int32
		message     string
	}{
		"no references":                    {operation: admissionv1.Create, object: plain},
		"image without permission":         {operation: admissionv1.Create, object: image, code: http.StatusForbidden, message: `spec.image: Forbidden: user "eve"`},
		"image for a disabled component":   {operation: admissionv1.Create, object: image, next: DisabledComponent("disabled"), code: http.StatusForbidden, message: "spec.image"},
		"added image":                      {operation: admissionv1.Update, object: image, old: plain, code: http.StatusForbidden, message: "spec.image"},
		"unchanged image":                  {operation: admissionv1.Update, object: image, old: image},
		"update of a terminating object":   {operation: admissionv1.Update, object: image, old: terminating},
		"create with a deletionTimestamp":  {operation: admissionv1.Create, object: strings.Replace(image, "{", `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},`, 1), code: http.StatusForbidden},
		"invalid stored object":            {operation: admissionv1.Update, object: image, old: invalid, code: http.StatusForbidden},
		"invalid object":                   {operation: admissionv1.Create, object: invalid, code: http.StatusBadRequest, message: "invalid object"},
		"deletion":                         {operation: admissionv1.Delete},
		"quantity":                         {operation: admissionv1.Create, object: slow, next: mustNotRun, code: http.StatusUnprocessableEntity, message: "spec.limits.cpu: quantity"},
		"quantity of a terminating object": {operation: admissionv1.Update, object: slow, old: strings.Replace(slow, "{", `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},`, 1), next: mustNotRun},
		"quantity of the stored object":    {operation: admissionv1.Update, object: image, old: slow, code: http.StatusForbidden, message: "spec.image"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.next == nil {
				tc.next = admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return admission.Allowed("") })
			}
			handler := Guards{Rules: shipped, Access: accessWith()}.Wrap(tc.next, schema.GroupKind{Group: "g", Kind: "K"}, referencesOf)
			request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: tc.operation, Namespace: "team", UserInfo: eve, Object: runtime.RawExtension{Raw: []byte(tc.object)},
			}}
			if tc.old != "" {
				request.OldObject.Raw = []byte(tc.old)
			}
			response := handler.Handle(t.Context(), request)
			if response.Allowed != (tc.code == 0) || !response.Allowed && (response.Result.Code != tc.code || !strings.Contains(response.Result.Message, tc.message)) {
				t.Errorf("unexpected response: %+v", response)
			}
		})
	}
}

// Rejections of the webhook of the kind are kept.
func TestGuardsKeepRejections(t *testing.T) {
	next := admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return admission.Denied("own message") })
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create}}
	if response := (Guards{}).Wrap(next, schema.GroupKind{}, nil).Handle(t.Context(), request); response.Allowed || response.Result.Message != "own message" {
		t.Errorf("unexpected response: %+v", response)
	}
}

// A request that needs too many access reviews is rejected.
func TestReviewsPerRequestAreLimited(t *testing.T) {
	reviews := 0
	guards := Guards{Rules: Rules{Mode: Enforce}, Access: func(_ context.Context, _ authenticationv1.UserInfo, permission authorizationv1.ResourceAttributes) (bool, error) {
		reviews++
		return permission.Resource == "secrets", nil
	}}
	references := func(count int) ReferencesOf {
		return func(Rules, []byte, string) (References, error) {
			u := References{Namespace: "team"}
			for i := range count {
				u.Add(Secret, fmt.Sprintf("s-%d", i), field.NewPath("spec").Index(i))
			}
			return u, nil
		}
	}
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create}}
	allow := admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return admission.Allowed("") })
	if response := guards.Wrap(allow, schema.GroupKind{}, references(MaxAccessReviews-1)).Handle(t.Context(), request); !response.Allowed || reviews != MaxAccessReviews {
		t.Errorf("got %+v after %d reviews", response.Result, reviews)
	}
	reviews = 0
	response := guards.Wrap(allow, schema.GroupKind{}, references(1500)).Handle(t.Context(), request)
	if response.Allowed || response.Result.Code != http.StatusForbidden || !strings.Contains(response.Result.Message, "more than 200 access reviews: use fewer") || reviews != MaxAccessReviews {
		t.Errorf("got %+v after %d reviews", response.Result, reviews)
	}
}

func TestRequestTimeout(t *testing.T) {
	for address, want := range map[string]time.Duration{"/x": 30 * time.Second, "/x?timeout=5s": 5 * time.Second, "/x?timeout=-1s": 30 * time.Second, "/x?timeout=9h": 30 * time.Second} {
		if got := requestTimeout(httptest.NewRequest(http.MethodPost, address, nil)); got != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
	}
}
