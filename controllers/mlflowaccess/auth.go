package mlflowaccess

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
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

// readAuth takes the groups out of an Auth; nil is none. Blank names stand for nobody and are left out.
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

// follower keeps what is known of Auth current while its API is served. It never lists more than the one object.
type follower struct {
	client dynamic.Interface
	served func() capability.Set

	mu      sync.Mutex
	current auth
	run     int // how often the API has appeared: what a former run still has to say counts no more
}

// now returns what is known at the moment, without a request.
func (f *follower) now() auth {
	if !f.served().Has(capability.PlatformAuth) {
		return auth{state: authNotServed}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.current
}

// follow watches Auth until ctx ends, and returns at once. It calls changed whenever something else is known than before,
// and once after ctx has ended.
func (f *follower) follow(ctx context.Context, changed func()) error {
	run := f.begin()
	informer := toolscache.NewSharedIndexInformer(f.only(), &unstructured.Unstructured{}, 0, nil)
	look := func() {
		if f.take(run, informer.GetStore()) {
			changed()
		}
	}
	handle, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { look() }, UpdateFunc: func(any, any) { look() }, DeleteFunc: func(any) { look() },
	})
	if err != nil {
		return fmt.Errorf("following Auth: %w", err)
	}
	go informer.RunWithContext(ctx)
	go func() {
		if toolscache.WaitForCacheSync(ctx.Done(), handle.HasSynced) {
			look() // there may be none, of which no event tells
		}
	}()
	context.AfterFunc(ctx, func() {
		f.end(run)
		changed()
	})
	return nil
}

func (f *follower) begin() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.run++
	f.current = auth{}
	return f.run
}

func (f *follower) end(run int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if run == f.run {
		f.run++
		f.current = auth{}
	}
}

// take evaluates what the store holds, and reports whether that is news. It may be called from several places at once:
// whoever comes last sees the latest.
func (f *follower) take(run int, store toolscache.Store) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	var object *unstructured.Unstructured
	if found, exists, err := store.GetByKey(authName); err == nil && exists {
		object, _ = found.(*unstructured.Unstructured)
	}
	next := readAuth(object)
	if run != f.run || reflect.DeepEqual(next, f.current) {
		return false
	}
	f.current = next
	return true
}

// only lists and watches the one Auth: the shipped role admits no more.
func (f *follower) only() toolscache.ListerWatcher {
	resource, selector := f.client.Resource(auths), "metadata.name="+authName
	return toolscache.ToListWatcherWithWatchListSemantics(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = selector
			return resource.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = selector
			return resource.Watch(ctx, options)
		},
	}, f.client)
}

// unknownRetry is how soon a namespace is looked at again while Auth is being read for the first time. What is known then
// wakes every namespace; this is for the pass that began a moment later.
const unknownRetry = 5 * time.Second
