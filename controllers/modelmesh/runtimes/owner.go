package runtimes

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
)

// owner returns what the Service of a namespace goes with, and whether pods of the namespace must not be able to run as root.
// What is not held in memory is read once.
func (s *server) owner(ctx context.Context, namespace string) (owner client.Object, restricted bool, err error) {
	if s.Namespaces.OnlyOwn() {
		owner, err := s.managerDeployment(ctx, namespace)
		return owner, false, err
	}
	head, err := s.Namespaces.Metadata(ctx, namespace)
	if err != nil {
		return nil, false, err
	}
	if head == nil {
		return nil, false, fmt.Errorf("namespace %s, which owns the Service, is gone", namespace)
	}
	return head, head.Labels[modelmesh.LabelEnforce] == "restricted", nil
}

// managerDeployment lasts as long as the manager runs in it.
func (s *server) managerDeployment(ctx context.Context, namespace string) (client.Object, error) {
	if known := s.manager.Load(); known != nil {
		return known, nil
	}
	d, name := &appsv1.Deployment{}, inside(namespace, s.Config.ControllerDeployment)
	err := s.live.Get(ctx, name, d)
	if err != nil {
		err = fmt.Errorf("reading %T %s, which owns the Service: %w", d, name, err)
	}
	if apierrors.IsNotFound(err) {
		err = fmt.Errorf("%w: name the Deployment of the manager in CONTROLLER_DEPLOYMENT, and its namespace in NAMESPACE", err)
	}
	if err != nil {
		return nil, err
	}
	s.manager.Store(d)
	return d, nil
}
