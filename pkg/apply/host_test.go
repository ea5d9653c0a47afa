package apply

import (
	"context"
	"errors"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

const sharedHost = "a-b-c.apps.example.org"

// desiredIngress returns the desired Ingress of the owner of a testApplier.
func desiredIngress() Object {
	return Object{Config: networkingv1ac.Ingress("own", "ns").WithLabels(map[string]string{names.HostLabel: sharedHost}).
		WithSpec(networkingv1ac.IngressSpec().WithRules(networkingv1ac.IngressRule().WithHost(sharedHost)))}
}

// existingIngress returns an Ingress with the labels of this operator, created some seconds after the start of 2026.
func existingIngress(namespace, name, host string, second int, owners ...metav1.OwnerReference) *networkingv1.Ingress {
	labels := names.Labels("test")
	labels[names.HostLabel] = host
	return &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: labels, UID: types.UID(name), OwnerReferences: owners,
		CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC)),
	}}
}

// [B-5] Only one Ingress of a host is kept: the published one, or the older of two that were created within hostRacePeriod.
func TestOneIngressForAHost(t *testing.T) {
	ownerRef, otherRef := ownerReference("owner", "owner-uid", true), ownerReference("another", "another-uid", true)
	for name, c := range map[string]struct {
		present []client.Object
		// holder is the name of the Ingress that FindHost finds.
		holder string
		// exists reports whether the Ingress ns/own exists afterwards.
		exists bool
	}{
		"no other Ingress":                         {nil, "", true},
		"another Ingress has the host":             {[]client.Object{existingIngress("other", "a", sharedHost, 1, otherRef)}, "a", false},
		"labels set by a user":                     {[]client.Object{existingIngress("other", "a", sharedHost, 1)}, "", true},
		"Ingress of the owner is an hour younger":  {[]client.Object{existingIngress("ns", "own", sharedHost, 3600, ownerRef), existingIngress("other", "a", sharedHost, 1, otherRef)}, "", true},
		"another Ingress has another host":         {[]client.Object{existingIngress("other", "a", "x.apps.example.org", 1, otherRef)}, "", true},
		"Ingress of the owner is older":            {[]client.Object{existingIngress("ns", "own", sharedHost, 1, ownerRef), existingIngress("other", "a", sharedHost, 2, otherRef)}, "", true},
		"Ingress of the owner is a second younger": {[]client.Object{existingIngress("ns", "own", sharedHost, 2, ownerRef), existingIngress("other", "a", sharedHost, 1, otherRef)}, "a", false},
		"both have the same age":                   {[]client.Object{existingIngress("ns", "own", sharedHost, 1, ownerRef), existingIngress("other", "a", sharedHost, 1, otherRef)}, "a", false},
		"Ingress of the owner had another host":    {[]client.Object{existingIngress("ns", "own", "x.apps.example.org", 1, ownerRef), existingIngress("other", "a", sharedHost, 2, otherRef)}, "a", false},
		"foreign Ingress of the same name":         {[]client.Object{existingIngress("ns", "own", "x.apps.example.org", 1), existingIngress("other", "a", sharedHost, 2, otherRef)}, "a", true},
		"two other Ingresses have the host":        {[]client.Object{existingIngress("other", "b", sharedHost, 3, otherRef), existingIngress("third", "a", sharedHost, 2, otherRef)}, "a", false},
	} {
		t.Run(name, func(t *testing.T) {
			a := newTestApplier(t, c.present...)
			host, holder, err := FindHost(t.Context(), a.server, desiredIngress())
			a.must(err)
			if (holder == nil) != (c.holder == "") || holder != nil && (holder.Name != c.holder || host != sharedHost) {
				t.Errorf("got host %q and holder %v, want %q", host, holder, c.holder)
			}
			for range 2 {
				a.must(a.Apply(t.Context(), a.owner, Desired{desiredIngress()}))
			}
			err = a.server.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "own"}, &networkingv1.Ingress{})
			a.must(client.IgnoreNotFound(err))
			if (err == nil) != c.exists {
				t.Errorf("the Ingress ns/own exists: %t, want %t", err == nil, c.exists)
			}
			if writes := a.seen["apply"] + a.seen["delete"]; writes > 1 {
				t.Errorf("got %d writes, want at most 1", writes)
			}
		})
	}
}

// A later Ingress is written once the earlier one is deleted.
func TestHostBecomesFree(t *testing.T) {
	other := existingIngress("other", "a", sharedHost, 1, ownerReference("another", "another-uid", true))
	a := newTestApplier(t, other)
	a.must(a.Apply(t.Context(), a.owner, Desired{desiredIngress()}))
	if a.seen["apply"] != 0 {
		t.Error("the Ingress was written while another Ingress has its host")
	}
	a.must(a.server.Delete(t.Context(), other))
	a.must(a.Apply(t.Context(), a.owner, Desired{desiredIngress()}))
	if a.seen["apply"] != 1 {
		t.Error("the Ingress was not written")
	}
}

// An Ingress is not deleted while the other Ingresses with its host are unknown.
func TestListErrorKeepsIngress(t *testing.T) {
	a := newTestApplier(t, existingIngress("ns", "own", sharedHost, 1, ownerReference("owner", "owner-uid", true)))
	inner, _ := a.Client.(client.WithWatch)
	a.Client = interceptor.NewClient(inner, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("no")
	}})
	if err := a.Apply(t.Context(), a.owner, Desired{desiredIngress()}); err == nil || a.seen["delete"]+a.seen["apply"] > 0 {
		t.Errorf("got requests %v and error %v, want an error and no write", a.seen, err)
	}
}
