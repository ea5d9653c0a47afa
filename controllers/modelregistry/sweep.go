package modelregistry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/rbacproxy"
)

const sweepRetry = time.Minute

// sweeper removes, once, the ClusterRoleBindings of registries that the original let go without them: a ServiceAccount of the
// same name would inherit their rights. It runs on the leader only.
type sweeper struct {
	live    client.Reader
	applier *apply.Applier
	clock   clock.Clock
	log     logr.Logger
}

// Start implements manager.Runnable. It never fails: what cannot be done now is tried again.
func (s *sweeper) Start(ctx context.Context) error {
	for {
		err := s.sweep(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		s.log.Error(err, "Removing ClusterRoleBindings of registries that are gone; trying again", "after", sweepRetry)
		select {
		case <-ctx.Done():
			return nil
		case <-s.clock.After(sweepRetry):
		}
	}
}

func (s *sweeper) sweep(ctx context.Context) error {
	bindings := &rbacv1.ClusterRoleBindingList{}
	if err := s.live.List(ctx, bindings, client.MatchingLabels{labelCreatedBy: createdBy, labelComponent: partOf}); err != nil {
		return fmt.Errorf("listing ClusterRoleBindings: %w", err)
	}
	var errs []error
	for i := range bindings.Items {
		binding := &bindings.Items[i]
		of, ok := delegate(binding)
		if !ok {
			continue
		}
		// A registry exists before its binding does, so one that is not there now was not there when the binding was listed.
		err := s.live.Get(ctx, of, &v1beta1.ModelRegistry{})
		if err == nil {
			continue
		}
		if !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("reading ModelRegistry %s: %w", of, err))
			continue
		}
		s.log.Info("Removing the ClusterRoleBinding of a registry that is gone", "clusterRoleBinding", binding.Name, "registry", of.String())
		errs = append(errs, s.applier.Remove(ctx, "", binding))
	}
	return errors.Join(errs...)
}

// delegate returns the registry that a binding was made for, if it is one of those that registries get.
func delegate(binding *rbacv1.ClusterRoleBinding) (client.ObjectKey, bool) {
	of := client.ObjectKey{Namespace: binding.Labels[labelNamespace], Name: binding.Labels[labelApp]}
	m := &v1beta1.ModelRegistry{}
	m.Name, m.Namespace = of.Name, of.Namespace
	return of, of.Name != "" && of.Namespace != "" && binding.Name == delegatorName(m) && binding.RoleRef.Name == rbacproxy.DelegatorRole
}
