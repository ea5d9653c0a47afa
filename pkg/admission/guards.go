package admission

import (
	"context"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "k8s.io/apimachinery/pkg/util/json"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Guards wrap the webhooks of kinds with Rules.Review.
type Guards struct {
	Rules  Rules
	Access Access
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
// does not create, and for an AppWrapper, whose webhook reviews the permissions to create its components.
func (g Guards) ForManagerOnly() Guards {
	g.Rules.Mode = Off
	return g
}

// ReferencesOf returns the references of an object in the namespace of the request.
type ReferencesOf func(rules Rules, raw []byte, namespace string) (References, error)

// Wrap returns a handler that calls next, and then checks the added references. It also checks requests for a disabled component, because
// their objects are reconciled when it is enabled.
func (g Guards) Wrap(next admission.Handler, kind schema.GroupKind, referencesOf ReferencesOf) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, request admission.Request) admission.Response {
		response := next.Handle(ctx, request)
		if !response.Allowed || !IsWrite(request) || isBeingDeleted(request.OldObject.Raw) {
			return response
		}
		references, err := referencesOf(g.Rules, request.Object.Raw, request.Namespace)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		oldReferences := References{}
		if len(request.OldObject.Raw) > 0 {
			if oldReferences, err = referencesOf(g.Rules, request.OldObject.Raw, request.Namespace); err != nil {
				oldReferences = References{} // treat all references as added
			}
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

// isBeingDeleted reports whether the stored object has a deletionTimestamp: rules must not block its deletion.
func isBeingDeleted(raw []byte) bool {
	object := &metav1.PartialObjectMetadata{}
	return len(raw) > 0 && kjson.Unmarshal(raw, object) == nil && object.DeletionTimestamp != nil
}
