package access

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/singleton"
)

// authName is the name of the one Auth.
const authName = "auth"

var auths = capability.PlatformAuth.GroupVersion().WithResource("auths")

// groups are those that an Auth names.
type groups struct{ Allowed, Admin []string }

// authState says what is known of Auth.
type authState int

const (
	authUnknown authState = iota
	authNotServed
	authMissing
	authInvalid
	authKnown
)

// auth is what is known of Auth. Its fields are compared, and so exported.
type auth struct {
	State   authState
	Groups  groups
	Problem string // of authInvalid
}

// readAuth takes the groups out of an Auth; nil is none. Blank names are left out.
func readAuth(object *unstructured.Unstructured) auth {
	if object == nil {
		return auth{State: authMissing}
	}
	allowed, allowedErr := groupList(object, "allowedGroups")
	admin, adminErr := groupList(object, "adminGroups")
	if err := errors.Join(allowedErr, adminErr); err != nil {
		return auth{State: authInvalid, Problem: err.Error()}
	}
	return auth{State: authKnown, Groups: groups{allowed, admin}}
}

func groupList(object *unstructured.Unstructured, field string) ([]string, error) {
	if value, found, err := unstructured.NestedFieldNoCopy(object.Object, "spec", field); err == nil && (!found || value == nil) {
		return nil, nil
	}
	list, _, err := unstructured.NestedStringSlice(object.Object, "spec", field)
	if err != nil {
		return nil, fmt.Errorf("spec.%s of Auth %s is no list of strings: name the groups one by one", field, authName)
	}
	return slices.DeleteFunc(list, func(name string) bool { return name == "" }), nil
}

// authFollower keeps what is known of Auth current while its API is served. It is a manager Runnable.
type authWatcher struct {
	*singleton.Value[auth]
	served func() capability.Set
}

func newAuthWatcher(client dynamic.Interface, served func() capability.Set, clk clock.Clock, log logr.Logger) *authWatcher {
	return &authWatcher{served: served, Value: singleton.NewValue(singleton.Options{
		Client: client.Resource(auths), Resource: auths.GroupResource(), Name: authName, Clock: clk, Log: log,
	}, readAuth)}
}

// now returns what is known at the moment, without a request.
func (f *authWatcher) current() auth {
	value, known := f.Current()
	switch {
	case !f.served().Has(capability.PlatformAuth):
		return auth{State: authNotServed}
	case !known:
		return auth{}
	}
	return value
}

// unknownRetry is how soon a namespace is reconciled again while Auth is being read for the first time. What is known then
// wakes every namespace; this is for the reconciliation that began a moment later.
const authRequeueAfter = 5 * time.Second

// Reasons of the condition NamespaceRBACReady of MLflow.
const (
	ReasonBound          = "RoleBindingsReady"
	ReasonAuthAPIMissing = "AuthAPIMissing"
	ReasonAuthMissing    = "AuthMissing"
	ReasonAuthInvalid    = "AuthInvalid"
	ReasonFailed         = "RoleBindingsFailed"
)

// report gathers what went wrong in which namespace, for the condition that the controller of MLflow writes.
type failureReport struct {
	auth      func() auth
	listeners singleton.Listeners[struct{}]

	mu       sync.Mutex
	failures map[string]string
}

// note takes in how the reconciliation of a namespace ended.
func (r *failureReport) record(namespace string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	r.mu.Lock()
	moved := r.failures[namespace] != text
	r.failures[namespace] = text
	if text == "" {
		delete(r.failures, namespace)
	}
	r.mu.Unlock()
	if moved {
		r.listeners.Notify(struct{}{})
	}
}

// State reports how access stands: status, reason and message of a condition; an empty status when nothing is known yet.
func (r *failureReport) State() (status metav1.ConditionStatus, reason, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch a := r.auth(); a.State {
	case authUnknown:
		return "", "", ""
	case authNotServed:
		return metav1.ConditionFalse, ReasonAuthAPIMissing, "No group has access through namespaces, because the cluster does not serve " +
			auths.GroupResource().String() + ": install the operator of the platform, or switch namespace RBAC off with ENABLE_NAMESPACE_RBAC=false"
	case authMissing:
		return metav1.ConditionFalse, ReasonAuthMissing, "No group has access through namespaces, because there is no Auth " + authName +
			": the operator of the platform creates it"
	case authInvalid:
		return metav1.ConditionFalse, ReasonAuthInvalid, "Access through namespaces stays as it was: " + a.Problem
	}
	if len(r.failures) > 0 {
		first := slices.Sorted(maps.Keys(r.failures))[0]
		return metav1.ConditionFalse, ReasonFailed,
			fmt.Sprintf("RoleBindings failed in %d namespace(s), the first is %s: %s", len(r.failures), first, r.failures[first])
	}
	return metav1.ConditionTrue, ReasonBound, "The groups of Auth " + authName + " have access in every namespace labelled " + WorkspaceLabel
}

// Source wakes the handler when State may have changed.
func (r *failureReport) Source(h handler.EventHandler) source.Source {
	return r.listeners.Changes(&mlflowv1.MLflow{}, h)
}
