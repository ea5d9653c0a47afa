package modelmesh

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// owner returns what the Service of a namespace goes with, and whether pods of the namespace must not be able to run as root.
// What is not held in memory is read once.
func (s *server) owner(ctx context.Context, namespace string) (owner client.Object, restricted bool, err error) {
	if s.namespaces.OnlyOwn() {
		owner, restricted, err = s.remembered(ctx, &appsv1.Deployment{}, inside(namespace, s.config.ControllerDeployment))
		if apierrors.IsNotFound(err) {
			err = fmt.Errorf("%w: name the Deployment of the manager in CONTROLLER_DEPLOYMENT, and its namespace in NAMESPACE", err)
		}
		return owner, restricted, err
	}
	head, err := s.namespaces.Head(ctx, namespace)
	if err != nil {
		return nil, false, err
	}
	if head != nil {
		return head, isRestricted(head), nil
	}
	return s.remembered(ctx, &corev1.Namespace{}, types.NamespacedName{Name: namespace})
}

// isRestricted tells whether a namespace lets no pod in that could run as root.
func isRestricted(namespace client.Object) bool {
	return namespace.GetLabels()[labelEnforce] == "restricted"
}

// remembered returns an object of which no more is known than its name, its uid, and its level of pod security when it was read
// first. It lasts as long as the manager runs in it.
func (s *server) remembered(ctx context.Context, object client.Object, name types.NamespacedName) (client.Object, bool, error) {
	if known, ok := s.memory.owner(name.String()); ok {
		object.SetNamespace(name.Namespace)
		object.SetName(name.Name)
		object.SetUID(known.uid)
		return object, known.restricted, nil
	}
	if err := s.live.Get(ctx, name, object); err != nil {
		return nil, false, fmt.Errorf("reading %T %s, which owns the Service: %w", object, name, err)
	}
	known := ownerFacts{uid: object.GetUID(), restricted: isRestricted(object)}
	s.memory.setOwner(name.String(), known)
	return object, known.restricted, nil
}
