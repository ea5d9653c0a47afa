package runtimes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	mm "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// cleanUp removes what we made in a namespace that is not served. What another client made under the same names stays.
func (s *server) cleanUp(ctx context.Context, namespace string) error {
	s.pool.Forget(namespace)
	s.stream.Forget(namespace)
	left, err := s.sweep(ctx, namespace, nil)
	if !left {
		err = errors.Join(err, s.unguard(ctx, namespace, nil))
	}
	err = errors.Join(err,
		s.removeAll(ctx, namespace, serviceKind, ofMesh),
		s.removeAll(ctx, namespace, configMapKind, isConstraints),
		s.removeAll(ctx, namespace, secretKind, originals),
	)
	if namespace != s.Namespaces.OperatorNamespace { // there the Secrets are read for all namespaces
		s.copies.Forget(namespace)
		s.storage.Forget(namespace)
		s.tls.Forget(namespace)
	}
	s.reports.keep(namespace, nil)
	s.MissingReferences.Forget(namespace)
	s.Causes.Forget(namespace)
	s.idle.DeleteFunc(func(runtime types.NamespacedName) bool { return runtime.Namespace == namespace })
	s.headless.Delete(namespace)
	s.granted.Delete(namespace)
	s.applier.ForgetNamespace(namespace)
	return err
}

// sweep removes Deployments and autoscalers of ours that no runtime wants: those of runtimes that are switched off, and those of a
// Service that has got another name. It tells whether Deployments of ours are left, be it for a moment.
func (s *server) sweep(ctx context.Context, namespace string, kept map[string]bool) (left bool, err error) {
	unwanted := func(o metav1.Object) bool { return !kept[o.GetName()] }
	errs := []error{s.removeAll(ctx, namespace, autoscalerKind, unwanted)}
	list := &appsv1.DeploymentList{}
	if err := s.Cached.List(ctx, list, client.InNamespace(namespace), ours(), client.UnsafeDisableDeepCopy); err != nil {
		return true, errors.Join(append(errs, fmt.Errorf("listing our Deployments: %w", err))...)
	}
	for i := range list.Items {
		if d := &list.Items[i]; !kept[d.Name] && ofMesh(d) {
			errs = append(errs, s.applier.DeleteOwned(ctx, ownerOf(d), d))
		}
	}
	return len(list.Items) > 0, errors.Join(errs...)
}

// ours selects what this component wrote.
func ours() client.MatchingLabels { return names.Labels(modelmesh.ComponentName) }

// isOurs tells whether this component wrote an object.
func isOurs(o metav1.Object) bool { return apply.IsOurs(o, modelmesh.ComponentName) }

// ofMesh and isConstraints, and for Secrets originals, tell our own objects apart from those of other parts of the component: Services
// and Deployments of runtimes, the ConfigMap and the Secret that pods read.
func ofMesh(o metav1.Object) bool { return o.GetLabels()[resources.LabelService] != "" }

func isConstraints(o metav1.Object) bool { return o.GetName() == resources.ConstraintsName }

// ownerOf is the uid of the object that another one was made for; empty where no owner reference names one.
func ownerOf(o metav1.Object) types.UID {
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		return owner.UID
	}
	return ""
}

// unguard removes the guards that are not wanted any more.
func (s *server) unguard(ctx context.Context, namespace string, wanted apply.Desired) error {
	if s.Namespaces.SingleNamespace() {
		return nil
	}
	unwanted := func(kind schema.GroupVersionKind, name string) func(metav1.Object) bool {
		return func(o metav1.Object) bool {
			return o.GetName() == name && !slices.ContainsFunc(wanted, func(w apply.Object) bool {
				k, _, err := w.Key()
				return err == nil && k == kind
			})
		}
	}
	return errors.Join(
		s.removeAll(ctx, namespace, policyKind, unwanted(policyKind, resources.PolicyName)),
		s.removeAll(ctx, namespace, configMapKind, unwanted(configMapKind, authproxy.RulesConfigMap)),
	)
}

const leftoversRetry = time.Minute

// leftovers removes, once, what the original made for runtimes and namespaces that were switched off while no manager ran: memory
// does not show it, because it lacks our labels, and nothing is wanted in its place that would be applied over it. Only objects that
// a runtime or a Namespace controls, or that have the names and the labels of the original, are touched. It runs on the leader.
type leftovers struct {
	*server
	log logr.Logger
}

// Start implements manager.Runnable. It never fails: what cannot be done now is tried again.
func (l *leftovers) Start(ctx context.Context) error {
	for {
		err := l.sweepAll(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		l.log.Error(err, "Removing what the original left; trying again", "after", leftoversRetry)
		select {
		case <-ctx.Done():
			return nil
		case <-l.clock.After(leftoversRetry):
		}
	}
}

// sweepAll looks at each kind once.
func (l *leftovers) sweepAll(ctx context.Context) error {
	of := map[schema.GroupVersionKind]string{
		deploymentKind: resources.LabelManagedBy, serviceKind: resources.LabelManagedBy, configMapKind: resources.LabelManagedBy, secretKind: resources.LabelManagedBy,
		autoscalerKind: resources.LabelInferenceService,
	}
	var errs []error
	for kind, label := range of {
		list, err := l.list(ctx, kind, label)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for i := range list {
			errs = append(errs, l.consider(ctx, kind, &list[i]))
		}
	}
	return errors.Join(errs...)
}

// list returns the objects of a kind that have a label of the original and none of ours.
func (l *leftovers) list(ctx context.Context, kind schema.GroupVersionKind, label string) ([]metav1.PartialObjectMetadata, error) {
	selector, err := labels.Parse(label + ",!" + names.OperatorLabel)
	if err != nil {
		return nil, fmt.Errorf("selecting by label: %w", err)
	}
	options := []client.ListOption{client.MatchingLabelsSelector{Selector: selector}}
	if l.Namespaces.SingleNamespace() {
		options = append(options, client.InNamespace(l.Namespaces.OperatorNamespace))
	}
	return modelmesh.ListMetadata(ctx, l.live, kind, options...)
}

// consider removes one object when it is the original's and is not wanted.
func (l *leftovers) consider(ctx context.Context, kind schema.GroupVersionKind, o *metav1.PartialObjectMetadata) error {
	if !l.isOriginals(kind, o) {
		return nil
	}
	wanted, err := l.wants(ctx, kind, o)
	if err != nil || wanted {
		return err
	}
	l.log.Info("Removing what the original left and is not wanted", "kind", kind.Kind, "namespace", o.Namespace, "name", o.Name)
	o.SetGroupVersionKind(kind)
	return l.applier.DeleteOwned(ctx, ownerOf(o), o)
}

// isOriginals tells whether the original made an object for a runtime or a namespace. Its own Deployment and others of its
// installation have the same label.
func (l *leftovers) isOriginals(kind schema.GroupVersionKind, o *metav1.PartialObjectMetadata) bool {
	owner := metav1.GetControllerOfNoCopy(o)
	switch kind {
	case deploymentKind, autoscalerKind:
		return owner != nil && (owner.Kind == capability.ServingRuntime.Kind || owner.Kind == capability.ClusterServingRuntime.Kind) &&
			(kind == autoscalerKind || originals(o) && o.Labels[resources.LabelService] != "")
	case serviceKind:
		return originals(o) && o.Labels[resources.LabelService] != "" && owner != nil && owner.Kind == namespaceKind.Kind
	case configMapKind:
		return originals(o) && o.Name == resources.ConstraintsName
	default:
		return originals(o) && o.Name == l.Config.EtcdSecretName && o.Namespace != l.Namespaces.OperatorNamespace
	}
}

// wants tells whether a reconcile of the namespace takes the object over, or has other reasons to keep it.
func (l *leftovers) wants(ctx context.Context, kind schema.GroupVersionKind, o *metav1.PartialObjectMetadata) (bool, error) {
	on, err := l.Namespaces.Enabled(ctx, o.Namespace)
	if err != nil || !on {
		return false, err
	}
	settings, err := l.Settings(ctx, o.Namespace)
	if err != nil {
		return false, err
	}
	templates, err := l.Runtimes(ctx, o.Namespace)
	if err != nil {
		return false, err
	}
	switch kind {
	case serviceKind:
		return o.Name == settings.ServiceName, nil
	case configMapKind, secretKind:
		return len(templates) > 0, nil
	}
	for name, t := range templates {
		if t.NeedsDeployment() && resources.DeploymentName(settings.ServiceName, name) == o.Name {
			scale, _ := mm.Autoscaling(t.Object.GetAnnotations())
			return kind == deploymentKind || scale.Enabled, nil
		}
	}
	return false, nil
}
