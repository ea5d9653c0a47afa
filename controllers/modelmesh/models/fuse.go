package models

import (
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// fuseProbe is how long the models of a namespace wait for what the one among them learns that tries a mesh which did not answer:
// a call may take ten seconds, and the workers are for all namespaces.
const fuseProbe = 10 * time.Second

// fuses keep a mesh that does not answer from holding up the models of other namespaces. The zero value is ready.
type fuses struct {
	mu   sync.Mutex
	next map[string]time.Time
}

// closed tells whether the mesh of a namespace may be called. After a failure one caller at a time may.
func (f *fuses) closed(namespace string, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	next, blown := f.next[namespace]
	if blown && now.Before(next) {
		return false
	}
	if blown {
		f.next[namespace] = now.Add(fuseProbe)
	}
	return true
}

// heard takes the result of a call. An answer is one, even if it is an error, unless it says that nobody answered.
func (f *fuses) heard(namespace string, err error, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if code := status.Code(err); code != codes.Unavailable && code != codes.DeadlineExceeded {
		delete(f.next, namespace)
		return
	}
	if f.next == nil {
		f.next = map[string]time.Time{}
	}
	f.next[namespace] = now.Add(pauseMin)
}

// replace closes the fuse of a mesh that is not the one that it was.
func (f *fuses) replace(namespace string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.next, namespace)
}
