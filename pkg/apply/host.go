package apply

import (
	"cmp"
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// FindHost returns the host of a desired Ingress, and the oldest Ingress of this operator with that host if it is another one. Ingress
// controllers serve both under one host, while a router of OpenShift rejects the later Route. The Ingresses are read from the cache.
func FindHost(ctx context.Context, cached client.Reader, desired Object) (host string, first *metav1.PartialObjectMetadata, err error) {
	config, ok := desired.Config.(*networkingv1ac.IngressApplyConfiguration)
	if !ok {
		return "", nil, nil
	}
	k := desired.Key()
	same, own := newMetadataList(k.GroupVersionKind), newMetadata(k.GroupVersionKind)
	if err = cached.List(ctx, same, client.MatchingLabels{names.HostLabel: config.Labels[names.HostLabel]}, client.UnsafeDisableDeepCopy); err == nil {
		err = cached.Get(ctx, k.NamespacedName, own)
	}
	if err == nil && own.Labels[names.HostLabel] == "" { // created by an earlier version
		same.Items = append(same.Items, *own)
	}
	if client.IgnoreNotFound(err) != nil || len(same.Items) == 0 {
		return "", nil, client.IgnoreNotFound(err)
	}
	oldest := slices.MinFunc(same.Items, func(a, b metav1.PartialObjectMetadata) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
	})
	if client.ObjectKeyFromObject(&oldest) == k.NamespacedName {
		return "", nil, nil
	}
	return *config.Spec.Rules[0].Host, &oldest, nil
}

// withdraw deletes the Ingress of an owner whose host is taken.
func (a *Applier) withdraw(ctx context.Context, o owner, k Key) error {
	own, err := a.getCached(ctx, k)
	if err != nil || own == nil || own.GetDeletionTimestamp() != nil {
		return err
	}
	return a.pruneObject(ctx, o, k, own)
}
