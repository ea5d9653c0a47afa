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

// FindHost returns the host of a desired Ingress, and the oldest cached Ingress of this operator with this host if it is another one.
// Otherwise both results are empty. Ingress controllers would serve both Ingresses, while a router of OpenShift rejects the later Route.
func FindHost(ctx context.Context, cached client.Reader, desired Object) (host string, holder *metav1.PartialObjectMetadata, err error) {
	config, ok := desired.Config.(*networkingv1ac.IngressApplyConfiguration)
	if !ok {
		return "", nil, nil
	}
	k := desired.Key()
	ingresses := newMetadataList(k.GroupVersionKind)
	err = cached.List(ctx, ingresses, client.MatchingLabels{names.HostLabel: config.Labels[names.HostLabel]}, client.UnsafeDisableDeepCopy)
	if err != nil || len(ingresses.Items) == 0 {
		return "", nil, err
	}
	oldest := slices.MinFunc(ingresses.Items, func(a, b metav1.PartialObjectMetadata) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
	})
	if client.ObjectKeyFromObject(&oldest) == k.NamespacedName {
		return "", nil, nil
	}
	return *config.Spec.Rules[0].Host, &oldest, nil
}

// deleteCached deletes an object of the owner if the cache holds it.
func (a *Applier) deleteCached(ctx context.Context, o owner, k Key) error {
	own, err := a.getCached(ctx, k)
	if err != nil || own == nil || own.GetDeletionTimestamp() != nil {
		return err
	}
	return a.pruneObject(ctx, o, k, own)
}
