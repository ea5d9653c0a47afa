package admission

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "k8s.io/apimachinery/pkg/util/json"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/odh-platform/odh-platform-operator/pkg/quantity"
)

// Guards wrap the webhooks of kinds with Rules.Review.
type Guards struct {
	Rules  Rules
	Access Access

	ignoreQuantities bool
}

// NewGuards returns guards that use the client of the manager.
func NewGuards(mgr ctrl.Manager, rules Rules) (Guards, error) {
	client, err := authorizationclient.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return Guards{}, fmt.Errorf("building the client of access reviews: %w", err)
	}
	return Guards{Rules: rules, Access: Reviewer(client.SubjectAccessReviews())}, nil
}

// ForManagerOnly returns guards that only reject references that no user can use. They suffice for a RayCluster, whose pods the manager
// does not create, and for an AppWrapper, whose webhook reviews the permissions to create its components. The webhooks of both decode no
// quantity that they have not checked.
func (g Guards) ForManagerOnly() Guards {
	g.Rules.Mode, g.ignoreQuantities = Off, true
	return g
}

// ReferencesOf returns the references of an object in the namespace of the request.
type ReferencesOf func(rules Rules, raw []byte, namespace string) (References, error)

// Wrap returns a handler that checks quantities, calls next, and then checks the added references. It also checks requests for a disabled
// component, because their objects are reconciled when it is enabled.
func (g Guards) Wrap(next admission.Handler, kind schema.GroupKind, referencesOf ReferencesOf) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, request admission.Request) admission.Response {
		if response := g.checkQuantities(&request); response != nil {
			return *response
		}
		response := next.Handle(ctx, request)
		if !response.Allowed || !IsWrite(request) || isBeingDeleted(request.OldObject.Raw) {
			return response
		}
		references, err := referencesOf(g.Rules, request.Object.Raw, request.Namespace)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		oldReferences, err := referencesOf(g.Rules, request.OldObject.Raw, request.Namespace)
		if err != nil || len(request.OldObject.Raw) == 0 {
			oldReferences = References{} // treat all references as added
		}
		result, err := g.Rules.Review(ctx, g.Access, request.UserInfo, references, oldReferences)
		if err != nil {
			return CheckFailed("the permissions of the author", err)
		}
		if len(result.Errors) > 0 {
			return Deny(kind, result.Errors)
		}
		return AddWarnings(response, result.Warnings)
	})
}

// checkQuantities returns the response to a request with quantities that cannot be decoded in time, or nil if it has none. If only the stored
// object has such quantities, the request becomes a creation, so that the new object is checked as a whole.
func (g Guards) checkQuantities(request *admission.Request) *admission.Response {
	if g.ignoreQuantities || !IsWrite(*request) {
		return nil
	}
	if err := quantity.CheckJSON(request.Object.Raw); err != nil {
		if isBeingDeleted(request.OldObject.Raw) {
			return new(admission.Allowed(""))
		}
		return new(admission.Errored(http.StatusUnprocessableEntity, err))
	}
	if quantity.CheckJSON(request.OldObject.Raw) != nil {
		request.Operation, request.OldObject.Raw = admissionv1.Create, nil
	}
	return nil
}

// isBeingDeleted reports whether the stored object has a deletionTimestamp: rules must not block its deletion.
func isBeingDeleted(raw []byte) bool {
	object := &metav1.PartialObjectMetadata{}
	return len(raw) > 0 && kjson.Unmarshal(raw, object) == nil && object.DeletionTimestamp != nil
}
