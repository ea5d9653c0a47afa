package access

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

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

// authName is the name of the singleton Auth.
const authName = "auth"

var auths = capability.PlatformAuth.GroupVersion().WithResource("auths")

// groups holds the groups of an Auth.
type groups struct{ Allowed, Admin []string }

// authState is the state of Auth in the cluster.
type authState int

const (
	authUnknown authState = iota
	authNotServed
	authMissing
	authInvalid
	authKnown
)

// auth is the observed Auth. Its fields are exported, because equality.Semantic.DeepEqual panics on unexported fields.
type auth struct {
	State   authState
	Groups  groups
	Problem string // of authInvalid
}

// readAuth returns the state and the groups of an Auth, or authMissing for nil. Empty names are ignored.
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
		return nil, fmt.Errorf("spec.%s of Auth %s is not a list of strings: list each group as a string", field, authName)
	}
	return slices.DeleteFunc(list, func(name string) bool { return name == "" }), nil
}

// authWatcher watches Auth while its API is served. It is a manager.Runnable.
type authWatcher struct {
	*singleton.Value[auth]
	served func() capability.Set
}

func newAuthWatcher(client dynamic.Interface, served func() capability.Set, clk clock.Clock, log logr.Logger) *authWatcher {
	return &authWatcher{served: served, Value: singleton.NewValue(singleton.Options{
		Client: client.Resource(auths), Resource: auths.GroupResource(), Name: authName, Clock: clk, Log: log,
	}, singleton.Unknown, readAuth)}
}

// current returns the observed Auth without a request.
func (w *authWatcher) current() auth {
	value, known := w.Current()
	switch {
	case !w.served().Has(capability.PlatformAuth):
		return auth{State: authNotServed}
	case !known:
		return auth{}
	}
	return value
}

// Reasons of the condition NamespaceRBACReady of MLflow.
const (
	ReasonBound          = "RoleBindingsReady"
	ReasonAuthAPIMissing = "AuthAPIMissing"
	ReasonAuthMissing    = "AuthMissing"
	ReasonAuthInvalid    = "AuthInvalid"
	ReasonFailed         = "RoleBindingsFailed"
)

// Report stores the errors by namespace, for the condition that the MLflow controller writes.
type Report struct {
	auth      func() auth
	listeners singleton.Listeners[struct{}]

	mu       sync.Mutex
	failures map[string]string
}

// record stores the result of the reconcile of a namespace.
func (r *Report) record(namespace string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	r.mu.Lock()
	changed := r.failures[namespace] != text
	r.failures[namespace] = text
	if text == "" {
		delete(r.failures, namespace)
	}
	r.mu.Unlock()
	if changed {
		r.listeners.Notify(struct{}{})
	}
}

// State returns status, reason and message of the condition, or an empty status until Auth is read.
func (r *Report) State() (status metav1.ConditionStatus, reason, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch a := r.auth(); a.State {
	case authUnknown:
		return "", "", ""
	case authNotServed:
		return metav1.ConditionFalse, ReasonAuthAPIMissing, "No group has access through namespaces, because the cluster does not serve " +
			auths.GroupResource().String() + ": install the platform operator, or switch namespace RBAC off with ENABLE_NAMESPACE_RBAC=false"
	case authMissing:
		return metav1.ConditionFalse, ReasonAuthMissing, "No group has access through namespaces, because there is no Auth " + authName +
			": check that the platform operator, which creates it, is running"
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

// Source returns a source that calls the handler when State may have changed.
func (r *Report) Source(h handler.EventHandler) source.Source {
	return r.listeners.EventSource(&mlflowv1.MLflow{}, h)
}
