package client

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// EndpointSliceReconciler sets the EndpointSlices of Services in a pool. Each request is a Service.
type EndpointSliceReconciler struct {
	// Slices reads from a cache with the EndpointSlices of the Services of the pool.
	Slices client.Reader
	Pool   *Pool
}

// Reconcile implements reconcile.Reconciler.
func (e *EndpointSliceReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var list discoveryv1.EndpointSliceList
	err := e.Slices.List(ctx, &list, client.InNamespace(request.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: request.Name})
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("listing the endpoints of service %s: %w", request.NamespacedName, err)
	}
	e.Pool.SetEndpointSlices(request.NamespacedName, list.Items)
	return reconcile.Result{}, nil
}

// RequestsForSlice returns the request for the Service of an EndpointSlice, or none for a slice without a Service.
func RequestsForSlice(_ context.Context, slice *discoveryv1.EndpointSlice) []reconcile.Request {
	name := slice.Labels[discoveryv1.LabelServiceName]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: slice.Namespace, Name: name}}}
}

// SetupEndpointSliceController adds a controller that updates the pool from a cache of EndpointSlices.
func SetupEndpointSliceController(mgr ctrl.Manager, name string, endpointSlices cache.Cache, pool *Pool) error {
	err := reconciler.NewController(mgr, name).
		WatchesRawSource(source.Kind(endpointSlices, &discoveryv1.EndpointSlice{}, handler.TypedEnqueueRequestsFromMapFunc(RequestsForSlice))).
		Complete(&EndpointSliceReconciler{Slices: endpointSlices, Pool: pool})
	if err != nil {
		return fmt.Errorf("building the controller of endpoints: %w", err)
	}
	return nil
}

// maxAddresses limits the connections of a client: a user who can write EndpointSlices chooses the addresses.
const maxAddresses = 500

// ReadyAddresses returns up to maxAddresses sorted, unique addresses of the ready endpoints of a Service with the given port. It returns
// IPv6 addresses only if there are no IPv4 ones, because a dual-stack pod must not be listed twice.
func ReadyAddresses(endpoints []discoveryv1.EndpointSlice, port string) []string {
	byType := map[discoveryv1.AddressType][]string{}
	for _, slice := range endpoints {
		if !slices.ContainsFunc(slice.Ports, func(p discoveryv1.EndpointPort) bool { return p.Port != nil && strconv.Itoa(int(*p.Port)) == port }) {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			if len(endpoint.Addresses) > 0 && ptr.Deref(endpoint.Conditions.Ready, true) { // nil means ready
				byType[slice.AddressType] = append(byType[slice.AddressType], net.JoinHostPort(endpoint.Addresses[0], port))
			}
		}
	}
	addresses := byType[discoveryv1.AddressTypeIPv4]
	if len(addresses) == 0 {
		addresses = byType[discoveryv1.AddressTypeIPv6]
	}
	slices.Sort(addresses)
	addresses = slices.Compact(addresses)
	return addresses[:min(len(addresses), maxAddresses)]
}
