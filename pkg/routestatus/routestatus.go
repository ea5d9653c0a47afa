// Package routestatus reads what Gateways and routers say of the objects that publish a server.
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
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// Condition exists only while what publishes a server is refused, where it is False, or no Gateway has answered, where it is Unknown.
const Condition = "RouteAccepted"

// Reasons of problems, in addition to those that Gateways give.
const (
	ReasonNotAccepted = "NotAccepted"
	ReasonNotSeen     = "NotSeen"
	ReasonNotAdmitted = "RouteNotAdmitted"
)

// maxAction is the limit of the events API, in bytes.
const maxAction = 128

// grace is how long a Gateway may take to answer.
const grace = time.Minute

// Problem is what speaks against one object that publishes a server.
type Problem struct {
	Kind, Name string
	// Refused: a Gateway or router says no. Otherwise none has said anything, which may pass.
	Refused         bool
	Reason, Message string
}

// Report is what was found about the objects of one server.
type Report struct {
	Problems []Problem
	// Due is the time until a Gateway has to have answered; zero when all have.
	Due time.Duration
}

// Read looks objects up in a cache of whole ones. Kinds that no Gateway or router has to accept are passed over, and so are objects that are not there yet.
func Read(ctx context.Context, whole client.Reader, gateway resources.Gateway, objects apply.Desired, now time.Time) (Report, error) {
	var out Report
	for _, o := range objects {
		kind, name, err := o.Key()
		if err != nil {
			return out, err
		}
		read := readers[kind]
		if read == nil {
			continue
		}
		object := resources.NewUnstructured(kind)
		err = whole.Get(ctx, name, object)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			continue
		}
		if err == nil {
			err = read(&out, object, gateway, now)
		}
		if err != nil {
			return out, fmt.Errorf("reading %s %s from the cache: %w", kind.Kind, name, err)
		}
	}
	return out, nil
}

// Kinds are those that Gateways or routers accept or refuse.
var Kinds = []schema.GroupVersionKind{capability.Route, capability.HTTPRoute, capability.BackendTLSPolicy}

var readers = map[schema.GroupVersionKind]func(*Report, *unstructured.Unstructured, resources.Gateway, time.Time) error{
	capability.HTTPRoute: (*Report).readHTTPRoute, capability.BackendTLSPolicy: (*Report).readPolicy, capability.Route: (*Report).readRoute,
}

func (r *Report) readHTTPRoute(object *unstructured.Unstructured, gateway resources.Gateway, now time.Time) error {
	route, err := resources.Decode[gatewayv1.HTTPRoute](object)
	if err != nil {
		return err
	}
	seen := false
	for _, parent := range route.Status.Parents {
		seen = r.heed(object, gateway, parent.ParentRef, parent.Conditions) || seen
	}
	if seen {
		return nil
	}
	if left := grace - now.Sub(written(object)); left > 0 {
		r.Due = max(r.Due, min(left, grace)) // clocks differ
		return nil
	}
	r.Problems = append(r.Problems, Problem{Kind: route.Kind, Name: route.Name, Reason: ReasonNotSeen, Message: fmt.Sprintf(
		"no Gateway has answered for HTTPRoute %s/%s: check that Gateway %s/%s exists, and that the controller of its class runs",
		route.Namespace, route.Name, gateway.Namespace, gateway.Name)})
	return nil
}

func (r *Report) readPolicy(object *unstructured.Unstructured, gateway resources.Gateway, _ time.Time) error {
	policy, err := resources.Decode[gatewayv1.BackendTLSPolicy](object)
	if err != nil {
		return err
	}
	for _, ancestor := range policy.Status.Ancestors {
		r.heed(object, gateway, ancestor.AncestorRef, ancestor.Conditions)
	}
	return nil
}

// heed takes up what one Gateway says of the present object, and reports whether that is ours. What it said of an older one does not count.
func (r *Report) heed(object *unstructured.Unstructured, gateway resources.Gateway, by gatewayv1.ParentReference, said []metav1.Condition) bool {
	if !gateway.Matches(by, object.GetNamespace()) {
		return false
	}
	for _, kind := range []string{string(gatewayv1.RouteConditionAccepted), string(gatewayv1.RouteConditionResolvedRefs)} {
		c, found := conditions.Get(said, kind)
		if !found || c.Status != metav1.ConditionFalse || c.ObservedGeneration != 0 && c.ObservedGeneration < object.GetGeneration() {
			continue
		}
		message := fmt.Sprintf("Gateway %s/%s does not take %s %s/%s (%s is False): %s",
			gateway.Namespace, gateway.Name, object.GetKind(), object.GetNamespace(), object.GetName(), kind, c.Message)
		if c.Reason == string(gatewayv1.RouteReasonNotAllowedByListeners) {
			message += "; let a listener of the Gateway allow routes of namespace " + object.GetNamespace() + ", or configure another Gateway"
		}
		r.Problems = append(r.Problems, Problem{Kind: object.GetKind(), Name: object.GetName(), Refused: true, Reason: cmp.Or(c.Reason, ReasonNotAccepted), Message: message})
		return true
	}
	return true
}

// readRoute takes up refusals. Which routers serve a Route is not known here, so one that none has taken up may have to wait for long.
func (r *Report) readRoute(object *unstructured.Unstructured, _ resources.Gateway, _ time.Time) error {
	route, err := resources.Decode[routev1.Route](object)
	if err != nil {
		return err
	}
	if _, refusal := Admitted(route); refusal != nil {
		r.Problems = append(r.Problems, *refusal)
	}
	return nil
}

// Admitted reports whether a router serves a Route, and otherwise the refusal of the last that has answered; nil when none has.
func Admitted(route *routev1.Route) (bool, *Problem) {
	var refusal *Problem
	for _, ingress := range route.Status.Ingress {
		for _, c := range ingress.Conditions {
			switch {
			case c.Type != routev1.RouteAdmitted:
			case c.Status == corev1.ConditionTrue:
				return true, nil
			case c.Status == corev1.ConditionFalse:
				refusal = &Problem{Kind: capability.Route.Kind, Name: route.Name, Refused: true, Reason: ReasonNotAdmitted, Message: fmt.Sprintf(
					"%s does not admit Route %s/%s with host %s (%s): %s", strings.TrimSpace("router "+ingress.RouterName),
					route.Namespace, route.Name, cmp.Or(ingress.Host, route.Spec.Host), c.Reason, c.Message)}
			}
		}
	}
	return false, refusal
}

// written is when our fields of an object changed last, of which caches keep the time.
func written(object metav1.Object) time.Time {
	at := object.GetCreationTimestamp().Time
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource == "" && entry.Time != nil && entry.Time.After(at) {
			at = entry.Time.Time
		}
	}
	return at
}

// First is the problem to tell of: a refusal, or else a missing answer; nil when there is none.
func (r Report) First() *Problem {
	if len(r.Problems) == 0 {
		return nil
	}
	return &r.Problems[max(slices.IndexFunc(r.Problems, func(p Problem) bool { return p.Refused }), 0)]
}

// Message is that of the first problem; empty when there is none.
func (r Report) Message() string {
	if first := r.First(); first != nil {
		return first.Message
	}
	return ""
}

// Action is what an Event about the first problem names as such. Events of one reason and one action about the same object are counted
// as one, and only the text of the first is kept.
func (r Report) Action() string { return conditions.Clip(r.First().Reason, maxAction) }

// RefusedBy reports whether a router refuses something, or else a Gateway.
func (r Report) RefusedBy(router bool) bool {
	return slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.Refused && (p.Kind == capability.Route.Kind) == router })
}

// Set shows the first problem in Condition.
func (r Report) Set(ref *[]metav1.Condition, generation int64) {
	first, status := r.First(), metav1.ConditionUnknown
	if first == nil {
		conditions.Remove(ref, Condition)
		return
	}
	if first.Refused {
		status = metav1.ConditionFalse
	}
	conditions.Set(ref, Condition, status, first.Reason, first.Message, generation)
}

// Await waits until a Gateway has to have answered, nil where all have.
func (r Report) Await() error {
	if r.Due == 0 {
		return nil
	}
	return &reconciler.Wait{For: "a Gateway to answer", Retry: r.Due}
}

// Watch lets a controller follow whole objects of optional kinds: what Gateways and routers report is in their status, which is not among their metadata.
func Watch(ctx context.Context, served *capability.Watcher, from cache.Cache, c capability.Controller, kinds []schema.GroupVersionKind,
	h handler.EventHandler, only ...predicate.Predicate) {
	for _, kind := range kinds {
		served.Watch(ctx, c, kind, func() source.Source {
			return source.Kind[client.Object](from, resources.NewUnstructured(kind), h, only...)
		})
	}
}
