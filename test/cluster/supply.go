package cluster

import (
	"context"
	"fmt"
	"maps"
	"sync"
)

// supply provides programs by name, each as soon as it exists: the first ones run while the last are still being built.
type supply struct {
	mutex   sync.Mutex
	paths   Binaries
	ended   bool
	err     error
	changed chan struct{} // closed at the next change
}

func newSupply() *supply { return &supply{paths: Binaries{}, changed: make(chan struct{})} }

// update changes the supply and wakes all waiting callers.
func (s *supply) update(change func()) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	change()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *supply) add(name, path string) { s.update(func() { s.paths[name] = path }) }

// end marks the supply as complete, with the error that ended the build.
func (s *supply) end(err error) { s.update(func() { s.ended, s.err = true, err }) }

// path returns the path of a program when it exists.
func (s *supply) path(ctx context.Context, name string) (string, error) {
	for {
		s.mutex.Lock()
		path, found := s.paths[name]
		ended, err, changed := s.ended, s.err, s.changed
		s.mutex.Unlock()
		switch {
		case found:
			return path, nil
		case err != nil:
			return "", err
		case ended:
			return "", fmt.Errorf("program %s is not built here", name)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return "", fmt.Errorf("waiting for program %s: %w", name, ctx.Err())
		}
	}
}

// all returns every program when the supply is complete.
func (s *supply) all(ctx context.Context) (Binaries, error) {
	for {
		s.mutex.Lock()
		paths, ended, err, changed := maps.Clone(s.paths), s.ended, s.err, s.changed
		s.mutex.Unlock()
		if ended {
			return paths, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for programs: %w", ctx.Err())
		}
	}
}
