package runtimes

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
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
		s.removeAll(ctx, namespace, secretKind, isEtcdCopy),
	)
	if namespace != s.Namespaces.Own() { // there the Secrets are read for all namespaces
		s.copies.cleanUp(namespace)
		s.storage.cleanUp(namespace)
		s.tls.cleanUp(namespace)
	}
	s.reports.keep(namespace, nil)
	s.References.Set(namespace, nil)
	s.idle.DeleteFunc(func(runtime types.NamespacedName) bool { return runtime.Namespace == namespace })
	s.missing.DeleteFunc(func(deployment types.NamespacedName) bool { return deployment.Namespace == namespace })
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
			errs = append(errs, s.applier.Remove(ctx, ownerOf(d), d))
		}
	}
	return len(list.Items) > 0, errors.Join(errs...)
}

// ours selects what this component wrote.
func ours() client.MatchingLabels { return names.Labels(modelmesh.ComponentName) }

// wrote tells whether this component wrote a live object, also where our labels were removed: the API server remembers who
// applied. The original updated, under another name.
func wrote(live metav1.Object) bool {
	return isOurs(live) || apply.WrittenBy(live, modelmesh.ComponentName, modelmesh.FieldOwner)
}

// isOurs tells whether this component wrote an object.
func isOurs(o metav1.Object) bool { return apply.IsOurs(o, modelmesh.ComponentName) }

// ofMesh, isConstraints and isEtcdCopy tell our own objects apart from those of other parts of the component: Services and Deployments
// of runtimes, the ConfigMap and the Secret that pods read.
func ofMesh(o metav1.Object) bool { return o.GetLabels()[resources.LabelService] != "" }

func isConstraints(o metav1.Object) bool { return o.GetName() == resources.ConstraintsName }

func isEtcdCopy(o metav1.Object) bool { return originals(o) }

// ownerOf is the uid of the object that another one was made for; empty where no owner reference names one.
func ownerOf(o metav1.Object) types.UID {
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		return owner.UID
	}
	return ""
}
