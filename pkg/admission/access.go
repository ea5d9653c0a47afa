package admission

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

// MaxAccessReviews limits the access reviews for one request. Users who may create pods need only a few.
const MaxAccessReviews = 200

// errTooManyReviews is returned when a request exceeds MaxAccessReviews.
var errTooManyReviews = fmt.Errorf("the request needs more than %d access reviews: use fewer Secrets, ConfigMaps and other objects", MaxAccessReviews)

// LimitReviews caches the access reviews of one request and limits their number, because every client that reaches the webhooks can cause
// them.
func LimitReviews(access Access) Access {
	reviews, reviewed := 0, map[authorizationv1.ResourceAttributes]bool{}
	return func(ctx context.Context, user authenticationv1.UserInfo, permission authorizationv1.ResourceAttributes) (bool, error) {
		if allowed, found := reviewed[permission]; found {
			return allowed, nil
		}
		if reviews++; reviews > MaxAccessReviews {
			return false, errTooManyReviews
		}
		allowed, err := access(ctx, user, permission)
		if err == nil {
			reviewed[permission] = allowed
		}
		return allowed, err
	}
}

// NewReview returns an access review with all attributes of a user. The caller adds the permission.
func NewReview(user authenticationv1.UserInfo) *authorizationv1.SubjectAccessReview {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	return &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra}}
}

// Reviewer returns an Access that creates reviews with all attributes of the user.
func Reviewer(reviews authorizationclient.SubjectAccessReviewInterface) Access {
	return func(ctx context.Context, user authenticationv1.UserInfo, permission authorizationv1.ResourceAttributes) (bool, error) {
		review := NewReview(user)
		review.Spec.ResourceAttributes = &permission
		review, err := reviews.Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return false, fmt.Errorf("reviewing access: %w", err)
		}
		return review.Status.Allowed && !review.Status.Denied, nil
	}
}
