package appwrapper

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

// reviewer asks the API server what users may do.
func reviewer(reviews authorizationclient.SubjectAccessReviewInterface) access {
	return func(ctx context.Context, user authenticationv1.UserInfo, right authorizationv1.ResourceAttributes) (bool, error) {
		review, err := reviews.Create(ctx, reviewOf(user, right), metav1.CreateOptions{})
		if err != nil {
			return false, fmt.Errorf("reviewing access: %w", err)
		}
		return review.Status.Allowed && !review.Status.Denied, nil
	}
}

// reviewOf asks in the name of a user, with everything that authorizers may look at.
func reviewOf(user authenticationv1.UserInfo, right authorizationv1.ResourceAttributes) *authorizationv1.SubjectAccessReview {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	return &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: &right,
		User:               user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
	}}
}
