package modelmesh

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// EnqueueNamespace maps an object to its namespace, served or not: what we left in one that is not has to go.
func EnqueueNamespace() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{RequestFor(o.GetNamespace())}
	})
}

// EnqueueServed maps an object of a user to its namespace when that is served. There may be thousands in others.
func (n *Namespaces) EnqueueServed() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		on, err := n.Enabled(ctx, o.GetNamespace())
		if err == nil && !on {
			return nil
		}
		return []reconcile.Request{RequestFor(o.GetNamespace())}
	})
}

// EnqueueAll maps whatever happened to all namespaces that are served.
func (n *Namespaces) EnqueueAll() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request { return n.All(ctx) })
}

// EnqueueNamed maps a Namespace whose settings changed to itself; one without a name stands for all that are served.
func (n *Namespaces) EnqueueNamed() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		if o.GetName() == "" {
			return n.All(ctx)
		}
		return []reconcile.Request{RequestFor(o.GetName())}
	})
}

// All are the requests for all namespaces that are served; an error is logged.
func (n *Namespaces) All(ctx context.Context) []reconcile.Request {
	requests, err := n.Requests(ctx)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the namespaces that are served")
	}
	return requests
}

// ComesOrGoes admits what only has to be there.
func ComesOrGoes() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() }}
}
