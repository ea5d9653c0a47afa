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

// Reviews asks the API server what users may do, with SubjectAccessReviews.
func Reviews(mgr ctrl.Manager) (Access, error) {
	client, err := authorizationclient.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("building the client of access reviews: %w", err)
	}
	return Reviewer(client.SubjectAccessReviews()), nil
}

// MaxAccessReviews is how many permissions are reviewed for one request. Who may create pods never needs more than a few.
const MaxAccessReviews = 200

// errTooMany is about a request that has asked for more.
var errTooMany = fmt.Errorf("the request needs more than %d reviews of permissions: name fewer Secrets, ConfigMaps and other objects in it", MaxAccessReviews)

// LimitReviews bounds the questions of one request, because anyone who reaches the webhooks can send requests: each costs the API server one.
func LimitReviews(may Access) Access {
	asked := 0
	return func(ctx context.Context, user authenticationv1.UserInfo, right authorizationv1.ResourceAttributes) (bool, error) {
		if asked++; asked > MaxAccessReviews {
			return false, errTooMany
		}
		return may(ctx, user, right)
	}
}

// Reviewer asks a client. It asks in the name of the user, with everything that authorizers may look at.
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
