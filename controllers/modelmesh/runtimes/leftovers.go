package runtimes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	mm "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

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
		for i := range list.Items {
			errs = append(errs, l.consider(ctx, kind, &list.Items[i]))
		}
	}
	return errors.Join(errs...)
}

// list returns the objects of a kind that have a label of the original and none of ours.
func (l *leftovers) list(ctx context.Context, kind schema.GroupVersionKind, label string) (*metav1.PartialObjectMetadataList, error) {
	selector := labels.NewSelector()
	for key, operator := range map[string]selection.Operator{label: selection.Exists, names.OperatorLabel: selection.DoesNotExist} {
		requirement, err := labels.NewRequirement(key, operator, nil)
		if err != nil {
			return nil, fmt.Errorf("selecting by label: %w", err)
		}
		selector = selector.Add(*requirement)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	options := []client.ListOption{client.MatchingLabelsSelector{Selector: selector}}
	if l.Namespaces.OnlyOwn() {
		options = append(options, client.InNamespace(l.Namespaces.Own()))
	}
	if err := l.live.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("listing what the original left of kind %s: %w", kind.Kind, err)
	}
	return list, nil
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
	return l.applier.Remove(ctx, ownerOf(o), o)
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
		return originals(o) && o.Name == l.Config.EtcdSecretName && o.Namespace != l.Namespaces.Own()
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
		if t.Wanted() && resources.DeploymentName(settings.ServiceName, name) == o.Name {
			scale, _ := mm.Autoscaling(t.Object.GetAnnotations())
			return kind == deploymentKind || scale.Enabled, nil
		}
	}
	return false, nil
}
