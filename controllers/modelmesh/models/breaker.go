package models

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// probe is how long the models of a namespace wait for what the one among them learns that tries a mesh which did not answer: a
	// call may take ten seconds, and the workers are for all namespaces.
	probe = 10 * time.Second
	// maxCalls is how many calls to the mesh of one namespace may be under way: one that is slow must not hold all workers.
	maxCalls = 4
)

var (
	errSilent = errors.New("it did not answer a moment ago")
	errBusy   = errors.New("other calls to it are under way")
)

// breakers keep a mesh that does not answer, or slowly, from holding up the models of other namespaces. The zero value is ready.
type breakers struct {
	mu     sync.Mutex
	spaces map[string]*breaker
}

// breaker is that of one namespace. It exists while calls are under way or the last one failed.
type breaker struct {
	calls int
	// next is when the next call is allowed; zero while the mesh answers.
	next time.Time
	// last is what the last call failed with.
	last error
}

// allow begins a call, which done has to end; errSilent and errBusy refuse it. After a failure one caller at a time may.
func (b *breakers) allow(namespace string, now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.spaces[namespace]
	if s == nil {
		s = &breaker{}
		if b.spaces == nil {
			b.spaces = map[string]*breaker{}
		}
		b.spaces[namespace] = s
	}
	switch {
	case s.calls >= maxCalls:
		return errBusy
	case s.next.IsZero():
	case now.Before(s.next):
		return fmt.Errorf("%w: %w", errSilent, s.last)
	default:
		s.next = now.Add(probe)
	}
	s.calls++
	return nil
}

// done takes the result of a call. An answer is one, even if it is an error, unless it says that no server answered.
func (b *breakers) done(namespace string, err error, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.spaces[namespace]
	s.calls--
	if code := status.Code(err); code == codes.Unavailable || code == codes.DeadlineExceeded {
		s.next, s.last = now.Add(pauseMin), err
		return
	}
	s.next, s.last = time.Time{}, nil
	if s.calls == 0 {
		delete(b.spaces, namespace)
	}
}

// reset allows all calls to a mesh that is not the one that it was.
func (b *breakers) reset(namespace string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.spaces[namespace]; s != nil {
		s.next, s.last = time.Time{}, nil
		if s.calls == 0 {
			delete(b.spaces, namespace)
		}
	}
}
