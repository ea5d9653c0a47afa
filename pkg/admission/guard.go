package admission

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "k8s.io/apimachinery/pkg/util/json"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Guards put the question what authors may use before the webhooks of kinds.
type Guards struct {
	Rules Rules
	May   Access
}

// NewGuards asks the API server of a manager.
func NewGuards(mgr ctrl.Manager, rules Rules) (Guards, error) {
	may, err := Reviews(mgr)
	return Guards{Rules: rules, May: may}, err
}

// OfManager are guards of nothing but what belongs to the manager, for kinds whose pods it does not make.
func (g Guards) OfManager() Guards {
	g.Rules.Mode = Off
	return g
}

// ReferencesOf lists what the pods of an object use by the word of its author. The namespace is that of the request.
type ReferencesOf func(rules Rules, raw []byte, namespace string) (References, error)

// Before returns a handler that asks next, and then whether the author of a request may use what is new in it. It asks whether the
// component runs or not: what is stored while it does not is acted on later.
func (g Guards) Before(next admission.Handler, kind schema.GroupKind, uses ReferencesOf) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, request admission.Request) admission.Response {
		response := next.Handle(ctx, request)
		if !response.Allowed || !Changes(request) || leaving(request.OldObject.Raw) {
			return response
		}
		now, err := uses(g.Rules, request.Object.Raw, request.Namespace)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		before := References{}
		if len(request.OldObject.Raw) > 0 {
			if before, err = uses(g.Rules, request.OldObject.Raw, request.Namespace); err != nil {
				before = References{} // what it used is unknown, so all of it is new
			}
		}
		judgement, err := g.Rules.Review(ctx, LimitReviews(g.May), request.UserInfo, now, before)
		if err != nil {
			return CheckFailed("the permissions of the author", err)
		}
		if len(judgement.Errors) > 0 {
			return Deny(kind, judgement.Errors)
		}
		return Warned(response, judgement.Warnings)
	})
}

// leaving reports whether an object is being deleted, by what is stored: a new one can say anything. Its end must not depend on rules.
func leaving(stored []byte) bool {
	var object struct {
		Metadata struct {
			DeletionTimestamp any `json:"deletionTimestamp"`
		} `json:"metadata"`
	}
	return len(stored) > 0 && kjson.Unmarshal(stored, &object) == nil && object.Metadata.DeletionTimestamp != nil
}
