package access

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/follow"
)

// authName is the name of the one Auth.
const authName = "auth"

var auths = capability.PlatformAuth.GroupVersion().WithResource("auths")

// groups are those that an Auth names.
type groups struct{ allowed, admin []string }

// authState says what is known of Auth.
type authState int

const (
	authUnknown authState = iota
	authNotServed
	authMissing
	authInvalid
	authKnown
)

// auth is what is known of Auth.
type auth struct {
	state   authState
	groups  groups
	problem string // of authInvalid
}

// readAuth takes the groups out of an Auth; nil is none. Blank names are left out.
func readAuth(object *unstructured.Unstructured) auth {
	if object == nil {
		return auth{state: authMissing}
	}
	allowed, allowedErr := groupList(object, "allowedGroups")
	admin, adminErr := groupList(object, "adminGroups")
	if err := errors.Join(allowedErr, adminErr); err != nil {
		return auth{state: authInvalid, problem: err.Error()}
	}
	return auth{state: authKnown, groups: groups{allowed, admin}}
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
type authFollower struct {
	*follow.Follower
	// listeners hear of every change of what is known.
	listeners follow.Listeners[auth]

	mu      sync.Mutex
	served  bool
	current auth
}

func newAuthFollower(client dynamic.Interface, clk clock.Clock, log logr.Logger) *authFollower {
	f := &authFollower{current: auth{state: authNotServed}}
	f.Follower = follow.New(follow.Options{
		Client: client.Resource(auths), Resource: auths.GroupResource(), Name: authName, Clock: clk, Log: log,
		Take: func(object *unstructured.Unstructured) { f.learn(readAuth(object)) },
	})
	return f
}

// observe follows Auth while the cluster serves it. What was known counts no more when the API goes.
func (f *authFollower) observe(set capability.Set) {
	served := set.Has(capability.PlatformAuth)
	f.mu.Lock()
	changed := served != f.served
	f.served = served
	f.mu.Unlock()
	if !changed {
		return
	}
	f.learn(auth{})
	f.SetServed(served)
}

// now returns what is known at the moment, without a request.
func (f *authFollower) now() auth {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.current
}

// learn stores what is known and wakes the listeners when it is news.
func (f *authFollower) learn(next auth) {
	f.mu.Lock()
	if !f.served {
		next = auth{state: authNotServed}
	}
	news := !reflect.DeepEqual(next, f.current)
	f.current = next
	f.mu.Unlock()
	if news {
		f.listeners.Notify(next)
	}
}

// unknownRetry is how soon a namespace is reconciled again while Auth is being read for the first time. What is known then
// wakes every namespace; this is for the reconciliation that began a moment later.
const unknownRetry = 5 * time.Second
