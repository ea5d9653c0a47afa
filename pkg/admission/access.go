package admission

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Reviews returns an Access that creates SubjectAccessReviews with the client of the manager.
func Reviews(mgr ctrl.Manager) (Access, error) {
	client, err := authorizationclient.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("building the client of access reviews: %w", err)
	}
	return Reviewer(client.SubjectAccessReviews()), nil
}

// MaxAccessReviews limits the access reviews for one request. Users who may create pods need only a few.
const MaxAccessReviews = 200

// errTooManyReviews is returned when a request exceeds MaxAccessReviews.
var errTooManyReviews = fmt.Errorf("the request needs more than %d reviews of permissions: name fewer Secrets, ConfigMaps and other objects in it", MaxAccessReviews)

// LimitReviews limits the access reviews of one request, because every client that reaches the webhooks can cause them.
func LimitReviews(access Access) Access {
	reviews := 0
	return func(ctx context.Context, user authenticationv1.UserInfo, right authorizationv1.ResourceAttributes) (bool, error) {
		if reviews++; reviews > MaxAccessReviews {
			return false, errTooManyReviews
		}
		return access(ctx, user, right)
	}
}

// Reviewer returns an Access that creates reviews with all attributes of the user.
func Reviewer(reviews authorizationclient.SubjectAccessReviewInterface) Access {
	return func(ctx context.Context, user authenticationv1.UserInfo, right authorizationv1.ResourceAttributes) (bool, error) {
		extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
		for key, values := range user.Extra {
			extra[key] = authorizationv1.ExtraValue(values)
		}
		review, err := reviews.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			ResourceAttributes: &right,
			User:               user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		}}, metav1.CreateOptions{})
		if err != nil {
			return false, fmt.Errorf("reviewing access: %w", err)
		}
		return review.Status.Allowed && !review.Status.Denied, nil
	}
}
