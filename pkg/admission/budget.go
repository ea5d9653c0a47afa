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
	// maxReviewBody is the maximum body size of webhooks of controller-runtime.
	maxReviewBody = 7 << 20
	// acquireTimeout is how long a request waits for memory of one pool. The API server retries it after retryAfter, until its own timeout.
	acquireTimeout = 2 * time.Second
	retryAfter     = "1" // seconds
)

// MemoryLimited is a handler that defines the memory of its requests. Other handlers have the limits of admission reviews.
type MemoryLimited interface {
	http.Handler
	// MaxBodySize returns the maximum body size in bytes.
	MaxBodySize() int64
	// Weigh returns the maximum memory in bytes for evaluating a body, without the body itself.
	Weigh(body []byte) int64
}

// Budget limits the memory of all concurrent reviews and conversions, because every pod that can reach the port can send them. Large
// requests use separate pools, so that they cannot block the small requests of most writes.
type Budget struct {
	bodies  []pool // for request bodies
	decoded []pool // for decoding and evaluating them
}

// pool is memory for requests up to a size.
type pool struct {
	maxSize   int64
	semaphore *semaphore.Weighted // nil means no limit
}

// NewBudget returns a budget for the memory limit of the shipped Deployment: 240 MiB, not counting small request bodies.
func NewBudget() *Budget {
	const maxDecoded = 128 << 20
	return &Budget{
		bodies: []pool{
			{maxSize: 64 << 10},
			{maxSize: 8 << 20, semaphore: semaphore.NewWeighted(16 << 20)},
			{maxSize: 64 << 20, semaphore: semaphore.NewWeighted(64 << 20)},
		},
		decoded: []pool{
			{maxSize: 2 << 20, semaphore: semaphore.NewWeighted(32 << 20)},
			{maxSize: maxDecoded, semaphore: semaphore.NewWeighted(maxDecoded)},
		},
	}
}

// poolFor returns the smallest pool for a size, or nil if it exceeds all pools.
func poolFor(pools []pool, size int64) *pool {
	for i := range pools {
		if size <= pools[i].maxSize {
			return &pools[i]
		}
	}
	return nil
}

// errTooLarge is returned for a request that exceeds the limit of its handler or all pools.
var errTooLarge = errors.New("too large")

// Guard returns a handler that reserves memory before it calls next. It responds with status 429 if no memory is available in time, 413 if
// a request exceeds the limit of next or all pools, if possible before its body is read, and 400 if the body cannot be read.
func (b *Budget) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		release, err := b.reserve(next, r)
		defer release()
		maxBytesError := (*http.MaxBytesError)(nil)
		switch {
		case err == nil:
			ctx, cancel := context.WithTimeout(r.Context(), requestTimeout(r))
			defer cancel()
			next.ServeHTTP(w, r.WithContext(ctx))
		case errors.Is(err, errTooLarge) || errors.As(err, &maxBytesError):
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		case errors.Is(err, context.DeadlineExceeded):
			w.Header().Set("Retry-After", retryAfter)
			http.Error(w, "too many reviews and conversions are in progress: try again", http.StatusTooManyRequests)
		default:
			http.Error(w, fmt.Sprintf("reading the body: %v", err), http.StatusBadRequest)
		}
	})
}

// requestTimeout returns the timeout of the API server, which is a query parameter.
func requestTimeout(r *http.Request) time.Duration {
	const maxTimeout = 30 * time.Second // maximum of webhook configurations
	if timeout, err := time.ParseDuration(r.URL.Query().Get("timeout")); err == nil && timeout > 0 && timeout < maxTimeout {
		return timeout
	}
	return maxTimeout
}

// reserve reads the body of a request and acquires the memory for evaluating it. The caller must call release.
func (b *Budget) reserve(next http.Handler, r *http.Request) (release func(), err error) {
	var releases []func()
	release = func() {
		for _, releaseOne := range releases {
			releaseOne()
		}
	}
	acquire := func(p *pool, weight int64) error {
		ctx, cancel := context.WithTimeout(r.Context(), acquireTimeout)
		defer cancel()
		if p.semaphore == nil {
			return nil
		}
		if err := p.semaphore.Acquire(ctx, weight); err != nil {
			return fmt.Errorf("waiting for memory: %w", err)
		}
		releases = append(releases, func() { p.semaphore.Release(weight) })
		return nil
	}
	maxSize, weigh := int64(maxReviewBody), MemoryOf
	if limited, ok := next.(MemoryLimited); ok {
		maxSize, weigh = limited.MaxBodySize(), limited.Weigh
	}
	length := r.ContentLength
	if length < 0 {
		length = maxSize
	}
	bodyPool := poolFor(b.bodies, length)
	if length > maxSize || bodyPool == nil {
		return release, fmt.Errorf("a body of %d bytes is %w: send at most %d", length, errTooLarge, maxSize)
	}
	if length == 0 {
		return release, nil
	}
	if err := acquire(bodyPool, length); err != nil {
		return release, err
	}
	body, err := readBody(r, length)
	if err != nil {
		return release, err
	}
	weight := weigh(body)
	decodedPool := poolFor(b.decoded, weight)
	if decodedPool == nil {
		return release, fmt.Errorf("the body is %w: send one that takes at most %d MiB when it is decoded", errTooLarge, b.decoded[len(b.decoded)-1].maxSize>>20)
	}
	return release, acquire(decodedPool, weight)
}

// readBody reads the body of a request into a buffer of the given length.
func readBody(r *http.Request, length int64) ([]byte, error) {
	body := make([]byte, length)
	read, err := io.ReadFull(r.Body, body)
	if r.ContentLength < 0 && (errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)) {
		err = nil
	}
	if err == nil && r.ContentLength < 0 { // check for a longer body
		_, err = http.MaxBytesReader(nil, r.Body, 0).Read(make([]byte, 1))
		if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	body = body[:read]
	r.Body, r.ContentLength = bufferedBody{bytes.NewReader(body), body}, int64(read)
	return body, err
}

// bufferedBody is a request body that readBody has read.
type bufferedBody struct {
	io.Reader
	body []byte
}

// Close implements io.Closer.
func (bufferedBody) Close() error { return nil }

// Body returns the body of a request, without a copy if it is buffered.
func Body(r *http.Request) ([]byte, error) {
	if buffered, ok := r.Body.(bufferedBody); ok {
		return buffered.body, nil
	}
	return io.ReadAll(r.Body)
}
