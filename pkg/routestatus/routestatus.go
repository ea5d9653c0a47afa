// Package routestatus reads the status that Gateways and routers set on the objects that expose a server.
package routestatus

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/redact"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// Condition is False while an object is rejected or another Ingress has its host, Unknown while no Gateway has responded within
// gatewayGracePeriod, and absent otherwise.
const Condition = "RouteAccepted"

// Reasons of problems, in addition to those that Gateways set.
const (
	ReasonNotAccepted = "NotAccepted"
	ReasonNotSeen     = "NotSeen"
	ReasonNotAdmitted = "RouteNotAdmitted"
	ReasonHostTaken   = "HostTaken"
)

// maxActionBytes is the limit of the events API for an action.
const maxActionBytes = 128

// gatewayGracePeriod is how long a Gateway may take to respond.
const gatewayGracePeriod = time.Minute

// Problem is a problem of one object that exposes a server.
type Problem struct {
	Kind, Name string
	// Rejected is true if a Gateway or router rejects the object or another Ingress has its host, and false if no Gateway has responded in
	// time.
	Rejected        bool
	Reason, Message string
}

// Report contains the problems of the objects of one server.
type Report struct {
	Problems []Problem
	// Retry is the time until the status must be read again: the remaining time for a Gateway to respond, or the next check of
	// a host that another Ingress has. Zero if neither is pending.
	Retry time.Duration
}

// Read reads the status of objects from a cache of full objects, and checks whether another Ingress has one of their hosts. It skips
// objects that do not exist yet, and kinds that Gateways and routers do not accept or reject.
func Read(ctx context.Context, reader client.Reader, gateway resources.Gateway, objects apply.Desired, now time.Time) (Report, error) {
	var report Report
	for _, desired := range objects {
		key := desired.Key()
		if err := report.readHost(ctx, reader, desired, key.Name); err != nil {
			return report, err
		}
		read := statusReaders[key.GroupVersionKind]
		if read == nil {
			continue
		}
		object := resources.NewUnstructured(key.GroupVersionKind)
		err := reader.Get(ctx, key.NamespacedName, object)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			continue
		}
		if err == nil {
			err = read(&report, object, gateway, now)
		}
		if err != nil {
			return report, fmt.Errorf("reading %s %s from the cache: %w", key.Kind, key.NamespacedName, err)
		}
	}
	return report, nil
}

// Kinds are the kinds that Gateways or routers accept or reject.
var Kinds = []schema.GroupVersionKind{capability.Route, capability.HTTPRoute, capability.BackendTLSPolicy}

var statusReaders = map[schema.GroupVersionKind]func(*Report, *unstructured.Unstructured, resources.Gateway, time.Time) error{
	capability.HTTPRoute: (*Report).readHTTPRoute, capability.BackendTLSPolicy: (*Report).readPolicy, capability.Route: (*Report).readRoute,
}

// readHost adds a problem if an older Ingress has the host of a desired Ingress. The desired Ingress is not written then.
func (r *Report) readHost(ctx context.Context, reader client.Reader, desired apply.Object, name string) error {
	host, older, err := apply.FindHost(ctx, reader, desired)
	if err != nil || older == nil {
		return err
	}
	holder := ptr.Deref(metav1.GetControllerOf(older), metav1.OwnerReference{})
	r.Retry = reconciler.Sooner(r.Retry, reconciler.RequeueBlocked)
	r.Problems = append(r.Problems, Problem{Kind: "Ingress", Name: name, Rejected: true, Reason: ReasonHostTaken, Message: fmt.Sprintf(
		"there is no Ingress, because the older Ingress %s/%s of %s %s has the host %s: recreate one of the two resources under another name or in another namespace",
		older.Namespace, older.Name, holder.Kind, holder.Name, host)})
	return nil
}

func (r *Report) readHTTPRoute(object *unstructured.Unstructured, gateway resources.Gateway, now time.Time) error {
	route, err := resources.Decode[gatewayv1.HTTPRoute](object)
	if err != nil {
		return err
	}
	reported := false
	for _, parent := range route.Status.Parents {
		reported = r.addRejection(object, gateway, parent.ParentRef, parent.Conditions) || reported
	}
	if reported {
		return nil
	}
	if remaining := gatewayGracePeriod - now.Sub(lastAppliedTime(object)); remaining > 0 {
		r.Retry = reconciler.Sooner(r.Retry, min(remaining, gatewayGracePeriod)) // the clocks of the manager and the API server may differ
		return nil
	}
	r.Problems = append(r.Problems, Problem{Kind: route.Kind, Name: route.Name, Reason: ReasonNotSeen, Message: fmt.Sprintf(
		"no Gateway has reported a status for HTTPRoute %s/%s: check that Gateway %s/%s exists, and that the controller of its class runs",
		route.Namespace, route.Name, gateway.Namespace, gateway.Name)})
	return nil
}

func (r *Report) readPolicy(object *unstructured.Unstructured, gateway resources.Gateway, _ time.Time) error {
	policy, err := resources.Decode[gatewayv1.BackendTLSPolicy](object)
	if err != nil {
		return err
	}
	for _, ancestor := range policy.Status.Ancestors {
		r.addRejection(object, gateway, ancestor.AncestorRef, ancestor.Conditions)
	}
	return nil
}

// addRejection adds a problem if the Gateway rejects the current generation of an object. It reports whether parent is the Gateway.
func (r *Report) addRejection(object *unstructured.Unstructured, gateway resources.Gateway, parent gatewayv1.ParentReference, parentConditions []metav1.Condition) bool {
	if !gateway.Matches(parent, object.GetNamespace()) {
		return false
	}
	for _, conditionType := range []string{string(gatewayv1.RouteConditionAccepted), string(gatewayv1.RouteConditionResolvedRefs)} {
		c, found := conditions.Get(parentConditions, conditionType)
		if !found || c.Status != metav1.ConditionFalse || c.ObservedGeneration != 0 && c.ObservedGeneration < object.GetGeneration() {
			continue
		}
		message := fmt.Sprintf("Gateway %s/%s rejects %s %s/%s (%s is False): %s",
			gateway.Namespace, gateway.Name, object.GetKind(), object.GetNamespace(), object.GetName(), conditionType, c.Message)
		if c.Reason == string(gatewayv1.RouteReasonNotAllowedByListeners) {
			message += "; let a listener of the Gateway allow routes of namespace " + object.GetNamespace() + ", or configure another Gateway"
		}
		r.Problems = append(r.Problems, Problem{Kind: object.GetKind(), Name: object.GetName(), Rejected: true, Reason: cmp.Or(c.Reason, ReasonNotAccepted), Message: message})
		return true
	}
	return true
}

// readRoute adds rejections by routers. Which routers serve a Route is unknown, so a missing response is not a problem.
func (r *Report) readRoute(object *unstructured.Unstructured, _ resources.Gateway, _ time.Time) error {
	route, err := resources.Decode[routev1.Route](object)
	if err != nil {
		return err
	}
	if _, rejection := Admitted(route); rejection != nil {
		r.Problems = append(r.Problems, *rejection)
	}
	return nil
}

// Admitted reports whether a router admits a Route. Otherwise it returns the last rejection, or nil if there is none.
func Admitted(route *routev1.Route) (bool, *Problem) {
	var rejection *Problem
	for _, ingress := range route.Status.Ingress {
		for _, c := range ingress.Conditions {
			switch {
			case c.Type != routev1.RouteAdmitted:
			case c.Status == corev1.ConditionTrue:
				return true, nil
			case c.Status == corev1.ConditionFalse:
				rejection = &Problem{Kind: capability.Route.Kind, Name: route.Name, Rejected: true, Reason: ReasonNotAdmitted, Message: fmt.Sprintf(
					"%s does not admit Route %s/%s with host %s (%s): %s", strings.TrimSpace("router "+ingress.RouterName),
					route.Namespace, route.Name, cmp.Or(ingress.Host, route.Spec.Host), c.Reason, c.Message)}
			}
		}
	}
	return false, rejection
}

// lastAppliedTime returns when the fields of this operator last changed. The cache keeps only the managedFields of this operator.
func lastAppliedTime(object metav1.Object) time.Time {
	last := object.GetCreationTimestamp().Time
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource == "" && entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
}

// FirstProblem returns the first rejection, or else the first missing response, or nil.
func (r Report) FirstProblem() *Problem {
	if len(r.Problems) == 0 {
		return nil
	}
	return &r.Problems[max(slices.IndexFunc(r.Problems, func(p Problem) bool { return p.Rejected }), 0)]
}

// Action returns the action of the Event for the problem. Events with the same reason, action and object are combined, and only the text of
// the first is kept.
func (p *Problem) Action() string { return redact.Clip(p.Reason, maxActionBytes) }

// RejectedByRouter reports whether a router rejects a Route, or another Ingress has the host.
func (r Report) RejectedByRouter() bool {
	return slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.Rejected && p.atRouter() })
}

// RejectedByGateway reports whether a Gateway rejects an object.
func (r Report) RejectedByGateway() bool {
	return slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.Rejected && !p.atRouter() })
}

func (p Problem) atRouter() bool {
	return p.Kind == capability.Route.Kind || p.Reason == ReasonHostTaken
}

// Set sets or removes Condition for the first problem.
func (r Report) Set(ref *[]metav1.Condition, generation int64) {
	first, status := r.FirstProblem(), metav1.ConditionUnknown
	if first == nil {
		conditions.Remove(ref, Condition)
		return
	}
	if first.Rejected {
		status = metav1.ConditionFalse
	}
	conditions.Set(ref, Condition, status, first.Reason, first.Message, generation)
}

// Wait returns a *reconciler.Wait until Retry, or nil if no retry is needed.
func (r Report) Wait() error {
	if r.Retry == 0 {
		return nil
	}
	return &reconciler.Wait{For: "a Gateway to report a status, or another Ingress to release a host", Retry: r.Retry}
}

// Watch makes a controller watch full objects of optional kinds, because metadata does not contain the status.
func Watch(b *builder.Builder, served *capability.Watcher, objectCache cache.Cache, kinds []schema.GroupVersionKind,
	h handler.EventHandler, predicates ...predicate.Predicate) {
	for _, kind := range kinds {
		b.WatchesRawSource(served.Kind(objectCache, kind, resources.NewUnstructured(kind), h, predicates...))
	}
}
