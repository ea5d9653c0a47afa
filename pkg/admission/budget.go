package admission

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// largestReview is the body that the library's webhooks accept at most.
	largestReview = 7 << 20
	// turn is how long a request waits for room. The API server sends it again after retryAfter, until its own time is over.
	turn, retryAfter = 2 * time.Second, "1"
)

// Weighed is a handler that states what its requests take; others take what a review of admission does.
type Weighed interface {
	http.Handler
	// Largest returns the size of the largest body, in bytes.
	Largest() int64
	// Weigh returns the most memory that a body of this content takes at a time, in bytes, without the body.
	Weigh(body []byte) int64
}

// Budget bounds the memory that all reviews and conversions in progress take together. Anybody who reaches the port can send them.
// Small bodies have room of their own, so that large ones cannot keep out what nearly every write is.
type Budget struct{ lanes []lane }

// lane has room for requests whose bodies are of a range of sizes.
type lane struct {
	largest int64 // body
	// bodies is room for those that are being received or held, decoded for what becomes of them; nil is no bound.
	bodies, decoded *semaphore.Weighted
	heaviest        int64 // all of decoded
}

// NewBudget returns one that fits the memory limit of the shipped Deployment: 240 MiB in all, besides small bodies that are being received.
func NewBudget() *Budget {
	const small, medium, large, wide = 32 << 20, 128 << 20, 64 << 20, 16 << 20
	shared := semaphore.NewWeighted(medium)
	return &Budget{[]lane{
		{largest: 64 << 10, decoded: semaphore.NewWeighted(small), heaviest: small},
		{largest: 8 << 20, bodies: semaphore.NewWeighted(wide), decoded: shared, heaviest: medium},
		{largest: large, bodies: semaphore.NewWeighted(large), decoded: shared, heaviest: medium},
	}}
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
			next.ServeHTTP(w, r)
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

// admit reads the body of a request, and returns when there is room for what becomes of it. The room is free after release.
func (b *Budget) admit(next http.Handler, r *http.Request) (release func(), err error) {
	var held []func()
	release = func() {
		for _, free := range held {
			free()
		}
	}
	take := func(of *semaphore.Weighted, weight int64) error {
		ctx, cancel := context.WithTimeout(r.Context(), turn)
		defer cancel()
		if of == nil {
			return nil
		}
		if err := of.Acquire(ctx, weight); err != nil {
			return fmt.Errorf("waiting for room: %w", err)
		}
		held = append(held, func() { of.Release(weight) })
		return nil
	}
	largest, weigh := int64(largestReview), Weigh
	if own, is := next.(Weighed); is {
		largest, weigh = own.Largest(), own.Weigh
	}
	length := r.ContentLength
	if length < 0 {
		length = largest
	}
	if length > largest {
		return release, fmt.Errorf("a body of %d bytes is %w: at most %d are accepted", length, errTooLarge, largest)
	}
	if length == 0 {
		return release, nil
	}
	room := b.lanes[slices.IndexFunc(b.lanes, func(l lane) bool { return length <= l.largest })]
	if err := take(room.bodies, length); err != nil {
		return release, err
	}
	body, err := receive(r, length)
	if err != nil {
		return release, err
	}
	weight := weigh(body)
	if weight > room.heaviest {
		return release, fmt.Errorf("decoded, the body would take %d MiB, and is %w: at most %d MiB are accepted", weight>>20, errTooLarge, room.heaviest>>20)
	}
	return release, take(room.decoded, weight)
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
