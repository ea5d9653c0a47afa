package admission

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// largestReview is the body that the library's webhooks accept at most.
	largestReview = 7 << 20
	// turn is how long a request waits for room. The API server sends it again after retryAfter, until its own time is over.
	turn, retryAfter = 2 * time.Second, "1"
)

// MemoryLimited is a handler that states what its requests take; others take what a review of admission does.
type MemoryLimited interface {
	http.Handler
	// Largest returns the size of the largest body, in bytes.
	Largest() int64
	// MemoryOf returns the most memory that a body of this content takes at a time, in bytes, without the body.
	Weigh(body []byte) int64
}

// Budget bounds the memory that all reviews and conversions in progress take together. Every pod that reaches the port can send them.
// What nearly every write is, a small body that is quickly decoded, has room of its own: large ones cannot keep it out.
type Budget struct {
	bodies  []room // that are being received or held
	decoded []room // what becomes of them
}

// room is for requests up to a size.
type room struct {
	largest int64
	free    *semaphore.Weighted // nil is no bound
}

// NewBudget returns one that fits the memory limit of the shipped Deployment: 240 MiB in all, besides small bodies that are being received.
func NewBudget() *Budget {
	const heavy = 128 << 20
	return &Budget{
		bodies: []room{
			{largest: 64 << 10},
			{largest: 8 << 20, free: semaphore.NewWeighted(16 << 20)},
			{largest: 64 << 20, free: semaphore.NewWeighted(64 << 20)},
		},
		decoded: []room{
			{largest: 2 << 20, free: semaphore.NewWeighted(32 << 20)},
			{largest: heavy, free: semaphore.NewWeighted(heavy)},
		},
	}
}

// fitting returns the room for a size, nil where there is none.
func fitting(rooms []room, size int64) *room {
	for i := range rooms {
		if size <= rooms[i].largest {
			return &rooms[i]
		}
	}
	return nil
}

// errTooLarge is about a request that will never fit, whatever else is in progress.
var errTooLarge = errors.New("too large")

// Guard returns the handler within the budget. A request that finds no room in time is refused with status 429, and one that can never fit
// with 413, if possible before its body is read.
func (b *Budget) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		release, err := b.admit(next, r)
		defer release()
		tooLong := (*http.MaxBytesError)(nil)
		switch {
		case err == nil:
			ctx, cancel := context.WithTimeout(r.Context(), patience(r))
			defer cancel()
			next.ServeHTTP(w, r.WithContext(ctx))
		case errors.Is(err, errTooLarge) || errors.As(err, &tooLong):
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		case errors.Is(err, context.DeadlineExceeded):
			w.Header().Set("Retry-After", retryAfter)
			http.Error(w, "too many reviews and conversions are in progress: try again", http.StatusTooManyRequests)
		default:
			http.Error(w, fmt.Sprintf("reading the body: %v", err), http.StatusBadRequest)
		}
	})
}

// patience is how long the API server waits for an answer, which the address contains. No request is sent after that.
func patience(r *http.Request) time.Duration {
	const longest = 30 * time.Second // of all configurations
	if wait, err := time.ParseDuration(r.URL.Query().Get("timeout")); err == nil && wait > 0 && wait < longest {
		return wait
	}
	return longest
}

// admit reads the body of a request, and returns when there is room for what becomes of it. The room is free after release.
func (b *Budget) admit(next http.Handler, r *http.Request) (release func(), err error) {
	var held []func()
	release = func() {
		for _, free := range held {
			free()
		}
	}
	take := func(in *room, weight int64) error {
		ctx, cancel := context.WithTimeout(r.Context(), turn)
		defer cancel()
		if in.free == nil {
			return nil
		}
		if err := in.free.Acquire(ctx, weight); err != nil {
			return fmt.Errorf("waiting for room: %w", err)
		}
		held = append(held, func() { in.free.Release(weight) })
		return nil
	}
	largest, weigh := int64(largestReview), MemoryOf
	if own, is := next.(MemoryLimited); is {
		largest, weigh = own.Largest(), own.Weigh
	}
	length := r.ContentLength
	if length < 0 {
		length = largest
	}
	received := fitting(b.bodies, length)
	if length > largest || received == nil {
		return release, fmt.Errorf("a body of %d bytes is %w: at most %d are accepted", length, errTooLarge, largest)
	}
	if length == 0 {
		return release, nil
	}
	if err := take(received, length); err != nil {
		return release, err
	}
	body, err := receive(r, length)
	if err != nil {
		return release, err
	}
	weight := weigh(body)
	decoded := fitting(b.decoded, weight)
	if decoded == nil {
		return release, fmt.Errorf("the body is %w: decoded, it would take more than %d MiB", errTooLarge, b.decoded[len(b.decoded)-1].largest>>20)
	}
	return release, take(decoded, weight)
}

// receive puts the body of a request into memory, in a piece of the size that there is room for.
func receive(r *http.Request, length int64) ([]byte, error) {
	body := make([]byte, length)
	read, err := io.ReadFull(r.Body, body)
	if r.ContentLength < 0 && (errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)) {
		err = nil
	}
	if err == nil && r.ContentLength < 0 { // is there more?
		_, err = http.MaxBytesReader(nil, r.Body, 0).Read(make([]byte, 1))
		if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	body = body[:read]
	r.Body, r.ContentLength = received{bytes.NewReader(body), body}, int64(read)
	return body, err
}

// received is the body of a request that [Budget.Guard] has put into memory.
type received struct {
	io.Reader
	body []byte
}

// Close implements io.Closer.
func (received) Close() error { return nil }

// Body returns the body of a request, without a copy where it is in memory already.
func Body(r *http.Request) ([]byte, error) {
	if known, is := r.Body.(received); is {
		return known.body, nil
	}
	return io.ReadAll(r.Body)
}
