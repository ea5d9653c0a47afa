package apply

import (
	"cmp"
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
)

// hostRacePeriod is the maximum difference of the creation times of two Ingresses that were created before the cache contained the other.
const hostRacePeriod = time.Minute

// FindHost returns the host of a desired Ingress, and the cached Ingress of another resource that holds the host. Both are empty if
// there is no such Ingress or desired has another kind. Ingress controllers would serve both Ingresses, while a router of OpenShift rejects
// the later Route.
//
// A published Ingress keeps its host, unless an older one was created at about the same time: users can write the labels of an older Ingress,
// and a resource can change its host.
func FindHost(ctx context.Context, cached client.Reader, desired Object) (host string, holder *metav1.PartialObjectMetadata, err error) {
	config, ok := desired.Config.(*networkingv1ac.IngressApplyConfiguration)
	if !ok {
		return "", nil, nil
	}
	k := desired.Key()
	ingresses := objectmeta.NewList(k.GroupVersionKind)
	if err := cached.List(ctx, ingresses, client.MatchingLabels{names.HostLabel: config.Labels[names.HostLabel]}, client.UnsafeDisableDeepCopy); err != nil {
		return "", nil, err
	}
	var own *metav1.PartialObjectMetadata
	for i := range ingresses.Items {
		switch ingress := &ingresses.Items[i]; {
		case client.ObjectKeyFromObject(ingress) == k.NamespacedName:
			own = ingress
		case metav1.GetControllerOf(ingress) == nil: // not created by this operator
		case holder == nil || compareAge(ingress, holder) < 0:
			holder = ingress
		}
	}
	if holder == nil || own != nil && (compareAge(own, holder) < 0 || own.CreationTimestamp.Sub(holder.CreationTimestamp.Time) > hostRacePeriod) {
		return "", nil, nil
	}
	return *config.Spec.Rules[0].Host, holder, nil
}

// compareAge returns a negative number if a is older than b.
func compareAge(a, b *metav1.PartialObjectMetadata) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
}

// deleteCached deletes an object of the owner if the cache holds it.
func (a *Applier) deleteCached(ctx context.Context, o owner, k Key) error {
	own, err := a.getCached(ctx, k)
	if err != nil || own == nil || own.GetDeletionTimestamp() != nil {
		return err
	}
	return a.pruneObject(ctx, o, k, own)
}
