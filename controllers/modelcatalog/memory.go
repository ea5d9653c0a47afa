package modelcatalog

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
)

const (
	// additions is how often sources may be added in a row, each of which replaces the pod.
	additions = 6
	// additionsPerSecond are granted in addition: one a minute.
	additionsPerSecond = 1.0 / 60
	// presence is how long an object that the pods mount counts as there once it was found.
	presence = 10 * time.Minute
)

// version identifies one state of one object.
type version struct {
	uid     types.UID
	version string
}

// recollection is what is remembered of one Catalog as long as the process lives. It saves reading what was read, and bounds how often
// pods are replaced. Reconciles of one Catalog never overlap.
type recollection struct {
	// good are the versions of objects that were read and found as they should be, by name.
	good map[string]version
	// present is when objects that the pods mount were found, by kind and name.
	present map[string]time.Time
	budget  flowcontrol.PassiveRateLimiter // of additions
	// sources are those that were taken last, before the cache shows it; postponed means that there are others.
	sources   []string
	postponed bool
	// withoutLeftovers: nothing of older releases is left.
	withoutLeftovers bool
}

// remembered returns the recollection of a Catalog.
func (r *catalogs) remembered(uid types.UID) *recollection {
	known, ok := r.recollections.Get(uid)
	if !ok {
		known = &recollection{good: map[string]version{}, present: map[string]time.Time{}, budget: flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(additionsPerSecond, additions, r.clock)}
		r.recollections.Set(uid, known)
	}
	return known
}

// isGood reports whether this state of an object was found good.
func (r *recollection) isGood(name string, o metav1.Object) bool {
	return r.good[name] == version{o.GetUID(), o.GetResourceVersion()}
}

// found notes that a state of an object is good.
func (r *recollection) found(name string, o metav1.Object) {
	r.good[name] = version{o.GetUID(), o.GetResourceVersion()}
}
