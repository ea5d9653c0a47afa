package cluster

import (
	"context"
	"fmt"
	"maps"
	"sync"
)

// supply provides programs by name, each as soon as it exists: the first programs run while the last are being built.
type supply struct {
	mutex   sync.Mutex
	paths   Binaries
	done    bool
	err     error
	changed chan struct{} // closed at the next change
}

func newSupply() *supply { return &supply{paths: Binaries{}, changed: make(chan struct{})} }

// update calls change and wakes all waiting callers.
func (s *supply) update(change func()) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	change()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *supply) add(name, path string) { s.update(func() { s.paths[name] = path }) }

// complete marks the supply as complete, with the error of the build.
func (s *supply) complete(err error) { s.update(func() { s.done, s.err = true, err }) }

// path waits until a program exists, and returns its path.
func (s *supply) path(ctx context.Context, name string) (string, error) {
	for {
		s.mutex.Lock()
		path, found := s.paths[name]
		done, err, changed := s.done, s.err, s.changed
		s.mutex.Unlock()
		switch {
		case found:
			return path, nil
		case err != nil:
			return "", err
		case done:
			return "", fmt.Errorf("program %s is not part of the build", name)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return "", fmt.Errorf("waiting for program %s: %w", name, ctx.Err())
		}
	}
}

// all waits until the supply is complete, and returns all programs.
func (s *supply) all(ctx context.Context) (Binaries, error) {
	for {
		s.mutex.Lock()
		paths, done, err, changed := maps.Clone(s.paths), s.done, s.err, s.changed
		s.mutex.Unlock()
		if done {
			return paths, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for programs: %w", ctx.Err())
		}
	}
}
