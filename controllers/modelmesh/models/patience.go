package models

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// pauseMin and pauseMax bound the pauses between questions that nobody prompted. The mesh writes into etcd what happens to a
	// model, so they matter only where that is out of sight.
	pauseMin, pauseMax = time.Second, time.Minute
	// loadMin and loadMax bound the pauses between orders to load the same model at once. A load that fails is an event, and one
	// that is ordered with each event would never end.
	loadMin, loadMax = 10 * time.Second, 10 * time.Minute
	// patienceWithRuntimes is how long a runtime that the mesh does not know may take to become known: the kubelet brings its
	// labels to the pods after minutes.
	patienceWithRuntimes = 5 * time.Minute
	// jitter spreads questions that many models ask for the same cause.
	jitter = 0.3
	// lag is the first pause while the cache has not seen the last write to an object. The object itself wakes when it comes, so the
	// pauses may grow.
	lag = 25 * time.Millisecond
	// maxBehind is after how many such pauses, about three minutes in all, the version of our last write counts no more: the cluster
	// was restored to a time before it.
	maxBehind = 13
)

// pause is the time before the next of several attempts, the first being 1.
func pause(attempt int, least, most time.Duration) time.Duration {
	d := least
	for ; attempt > 1 && d < most; attempt-- {
		d *= 2
	}
	return wait.Jitter(min(d, most), jitter)
}

// askAgain plans the next question.
func (e *entry) askAgain(now time.Time) {
	e.attempts++
	e.again = now.Add(pause(e.attempts, pauseMin, pauseMax))
}

// rest says that nothing is to be asked until somebody has news.
func (e *entry) rest() { e.again, e.attempts = time.Time{}, 0 }

// due tells whether the mesh has to be asked about what is asked for.
func (e *entry) due(asked string, now time.Time) bool {
	return e.stale || e.asked != asked || e.outcome == unasked && e.again.IsZero() ||
		!e.again.IsZero() && !now.Before(e.again)
}

// begin drops what was learnt about something else.
func (e *entry) begin(asked string) {
	if e.asked != asked {
		*e = entry{asked: asked, version: e.version, uid: e.uid, behind: e.behind}
	}
}

// mayLoad tells whether the mesh may be told to load at once.
func (e *entry) mayLoad(now time.Time) bool { return !now.Before(e.loadAgain) }

// ordered notes that the mesh was told to load at once.
func (e *entry) ordered(now time.Time) {
	e.loads++
	e.loadAgain = now.Add(pause(e.loads, loadMin, loadMax))
}

// awaits tells whether a runtime that is there but not known may still become known, and notes since when it is awaited.
func (e *entry) awaits(now time.Time) bool {
	if e.awaited.IsZero() {
		e.awaited = now
	}
	return now.Sub(e.awaited) < patienceWithRuntimes
}
