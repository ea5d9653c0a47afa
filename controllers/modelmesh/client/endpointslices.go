package client

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

// Endpoints carries the EndpointSlices of Services into a pool, one request for each Service.
type EndpointSliceReconciler struct {
	// Slices reads from a cache that holds at least the slices of the Services that matter.
	Slices client.Reader
	// Pool gets them.
	Pool *Pool
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

// ServiceOf is the request for the Service of an EndpointSlice; there is none for a slice of another origin.
func RequestsForSlice(_ context.Context, slice *discoveryv1.EndpointSlice) []reconcile.Request {
	name := slice.Labels[discoveryv1.LabelServiceName]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: slice.Namespace, Name: name}}}
}

// SetupEndpoints registers a controller of the given name that feeds the pool from a cache of EndpointSlices.
func SetupEndpointSliceController(mgr ctrl.Manager, name string, held cache.Cache, pool *Pool) error {
	err := ctrl.NewControllerManagedBy(mgr).Named(name).WithOptions(reconciler.ControllerOptions()).
		WatchesRawSource(source.Kind(held, &discoveryv1.EndpointSlice{}, handler.TypedEnqueueRequestsFromMapFunc(RequestsForSlice))).
		Complete(&EndpointSliceReconciler{Slices: held, Pool: pool})
	if err != nil {
		return fmt.Errorf("building the controller of endpoints: %w", err)
	}
	return nil
}

// Addresses returns where the ready endpoints of a Service listen on the port of a number: each once, ordered.
// Of pods with addresses of both families the IPv4 ones count, since each pod is to be called once.
func ReadyAddresses(endpoints []discoveryv1.EndpointSlice, port string) []string {
	found := map[discoveryv1.AddressType][]string{}
	for i := range endpoints {
		slice := &endpoints[i]
		if slices.ContainsFunc(slice.Ports, func(p discoveryv1.EndpointPort) bool { return p.Port != nil && strconv.Itoa(int(*p.Port)) == port }) {
			found[slice.AddressType] = append(found[slice.AddressType], addressesOf(slice.Endpoints, port)...)
		}
	}
	out := found[discoveryv1.AddressTypeIPv4]
	if len(out) == 0 {
		out = found[discoveryv1.AddressTypeIPv6]
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ready returns the addresses of endpoints that take requests. By the API's rule one that says nothing is ready, and the first
// address stands for the endpoint.
func addressesOf(endpoints []discoveryv1.Endpoint, port string) []string {
	var out []string
	for _, endpoint := range endpoints {
		if len(endpoint.Addresses) > 0 && (endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready) {
			out = append(out, net.JoinHostPort(endpoint.Addresses[0], port))
		}
	}
	return out
}
