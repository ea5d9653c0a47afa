package modelsource

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// silence is how long nothing must come before a stream counts as having told everything that there is.
const silence = 500 * time.Millisecond

// Feed has models that are told over a stream: first all that there are, with no word about the end of that, then every change.
type Feed interface {
	StatusWriter
	// Stream hands over the models until ctx ends or something breaks. It returns an error in any case, and calls handle from one
	// goroutine at a time, never after it has returned.
	Stream(ctx context.Context, handle func(Change)) error
}

// Streamed is a Source on a Feed. A broken stream is opened anew; what the new one does not tell is gone.
type Streamed struct {
	*memory
	feed Feed
}

var _ Source = &Streamed{}

// NewStreamed returns a source that knows nothing before it is started.
func NewStreamed(o Options, f Feed) *Streamed { return &Streamed{memory: newMemory(o, f), feed: f} }

// Start implements Source. It returns when the stream has been silent for half a second; the error is that of ctx.
func (s *Streamed) Start(ctx context.Context) error {
	known := make(chan struct{})
	go s.follow(ctx, known)
	select {
	case <-known:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the stream of %s: %w", s.Title, ctx.Err())
	}
}

// follow keeps a stream open until ctx ends. Known is closed when the first one has told what there is.
func (s *Streamed) follow(ctx context.Context, known chan struct{}) {
	for {
		if err := s.read(ctx, known); ctx.Err() == nil {
			s.Log.Info("The stream of models broke; it is opened anew", "source", s.Name, "reason", reason(err))
		}
		if s.pause(ctx) != nil {
			return
		}
	}
}

// read reads one stream. In the silence after its beginning it forgets what was not told.
func (s *Streamed) read(ctx context.Context, known chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes, ended := make(chan Change), make(chan error, 1)
	go func() {
		ended <- s.feed.Stream(ctx, func(c Change) {
			select {
			case changes <- c:
			case <-ctx.Done():
			}
		})
	}()
	told, latest := map[types.NamespacedName]bool{}, uint64(0)
	quiet := s.Clock.After(silence)
	for {
		select {
		case err := <-ended:
			return err
		case c := <-changes:
			s.take(c)
			if told != nil {
				told[nameOf(c.Entry)] = true
				latest = max(latest, number(c.Entry.Version))
				quiet = s.Clock.After(silence)
			}
		case <-quiet:
			s.complete(told, latest, known)
			told, quiet = nil, nil
		}
	}
}

// complete forgets what a whole stream did not tell.
func (s *Streamed) complete(told map[types.NamespacedName]bool, latest uint64, known chan struct{}) {
	for _, name := range s.retain(told, max(latest, s.newest())) {
		s.listeners.Notify(name)
	}
	select {
	case <-known: // it was known already
	default:
		close(known)
	}
}

// newest is the greatest version of what is known.
func (m *memory) newest() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out uint64
	for _, h := range m.entries {
		out = max(out, h.version)
	}
	return out
}
