package modelmesh

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// owner returns what the Service of a namespace goes with, and whether pods of the namespace must not be able to run as root.
// What is not held in memory is read once.
func (s *server) owner(ctx context.Context, namespace string) (owner client.Object, restricted bool, err error) {
	if s.namespaces.OnlyOwn() {
		owner, err = s.remembered(ctx, &appsv1.Deployment{}, inside(namespace, s.config.ControllerDeployment))
		return owner, false, err
	}
	head, err := s.namespaces.Head(ctx, namespace)
	if err != nil {
		return nil, false, err
	}
	if head != nil {
		return head, head.Labels[labelEnforce] == "restricted", nil
	}
	owner, err = s.remembered(ctx, &corev1.Namespace{}, types.NamespacedName{Name: namespace})
	return owner, false, err
}

// remembered returns an object of which no more is known than its name and uid. They last as long as the manager runs in it.
func (s *server) remembered(ctx context.Context, object client.Object, name types.NamespacedName) (client.Object, error) {
	if uid := s.memory.uid(name.String()); uid != "" {
		object.SetNamespace(name.Namespace)
		object.SetName(name.Name)
		object.SetUID(uid)
		return object, nil
	}
	if err := s.live.Get(ctx, name, object); err != nil {
		return nil, fmt.Errorf("reading %T %s, which owns the Service: %w", object, name, err)
	}
	s.memory.setUID(name.String(), object.GetUID())
	return object, nil
}
