package admission

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// endlessReader is a body without an end that counts the bytes read.
type endlessReader struct{ read int }

func (e *endlessReader) Read(p []byte) (int, error) {
	e.read += len(p)
	return len(p), nil
}

// post posts a body with the given Content-Length, or without one for -1.
func post(ctx context.Context, to http.Handler, body io.Reader, length int64) *httptest.ResponseRecorder {
	request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", body)
	request.ContentLength = length
	recorder := httptest.NewRecorder()
	to.ServeHTTP(recorder, request)
	return recorder
}

// blockingHandler is a handler that returns when its channel is closed.
type blockingHandler chan struct{}

func (b blockingHandler) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	select {
	case <-b:
	case <-r.Context().Done():
	}
}

// jsonString returns a JSON string of the given length.
func jsonString(length int) *strings.Reader {
	return strings.NewReader(`"` + strings.Repeat("x", length-2) + `"`)
}

// fillBudget starts count requests of a size, which keep their memory.
func fillBudget(t *testing.T, guard http.Handler, size, count int) {
	t.Helper()
	for range count {
		go post(t.Context(), guard, jsonString(size), int64(size))
	}
	synctest.Wait()
}

const (
	mebibyte = 1 << 20
	// halfPool is half of the pool for bodies of up to 8 MiB.
	halfPool = 8 * mebibyte
)

type sizedHandler struct {
	http.Handler
	largest, weight int64
}

func (s sizedHandler) MaxBodySize() int64 { return s.largest }
func (s sizedHandler) Weigh([]byte) int64 { return s.weight }

func TestRequestsWaitForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(blockingHandler)
		guard := NewBudget().Guard(sizedHandler{end, halfPool, 1})
		fillBudget(t, guard, halfPool, 2)
		status := make(chan int)
		go func() { status <- post(t.Context(), guard, jsonString(halfPool), halfPool).Code }()
		time.Sleep(acquireTimeout - time.Millisecond)
		synctest.Wait()
		select {
		case code := <-status:
			t.Fatalf("got status %d before memory was released", code)
		default:
		}
		close(end)
		if code := <-status; code != http.StatusOK {
			t.Errorf("got status %d after memory was released, want 200", code)
		}
	})
}

func TestExhaustedBudgetReturnsRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, tc := range map[string]struct {
			size, count int
			weight      int64
		}{
			"body memory":     {halfPool, 2, 1},
			"decoding memory": {mebibyte, 1, 65 * mebibyte},
		} {
			guard := NewBudget().Guard(sizedHandler{make(blockingHandler), halfPool, tc.weight})
			fillBudget(t, guard, tc.size, tc.count)
			started := time.Now()
			got := post(t.Context(), guard, jsonString(tc.size), int64(tc.size))
			if got.Code != http.StatusTooManyRequests || got.Header().Get("Retry-After") != retryAfter {
				t.Errorf("%s: got status %d and headers %v, want 429 with Retry-After", name, got.Code, got.Header())
			}
			if waited := time.Since(started); waited != acquireTimeout {
				t.Errorf("%s: waited for %s, want %s", name, waited, acquireTimeout)
			}
		}
	})
}

func TestLargeRequestsDoNotBlockSmallOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(blockingHandler)
		b := NewBudget()
		fillBudget(t, b.Guard(sizedHandler{end, halfPool, 64 * mebibyte}), halfPool, 20)
		fillBudget(t, b.Guard(sizedHandler{end, halfPool, 9 * mebibyte}), 60<<10, 40) // small bodies that need much memory for decoding
		if got := post(t.Context(), b.Guard(http.NotFoundHandler()), jsonString(1000), 1000); got.Code != http.StatusNotFound {
			t.Errorf("got status %d", got.Code)
		}
		close(end)
	})
}

func TestTooLargeBodyIsRejectedUnread(t *testing.T) {
	body := &endlessReader{}
	got := post(t.Context(), NewBudget().Guard(http.NotFoundHandler()), body, maxReviewBody+1)
	if got.Code != http.StatusRequestEntityTooLarge || body.read > 0 {
		t.Errorf("got status %d after %d bytes were read", got.Code, body.read)
	}
}

func TestTooLargeDecodedBodyIsRejected(t *testing.T) {
	next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the body was passed on, although it is too large") })
	guard := NewBudget().Guard(next)
	for name, body := range map[string]string{
		"small objects": "[" + strings.Repeat(`{"":0},`, maxReviewBody/7-1) + "0]",
		"depth":         strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1),
	} {
		got := post(t.Context(), guard, strings.NewReader(body), int64(len(body)))
		if got.Code != http.StatusRequestEntityTooLarge || !strings.Contains(got.Body.String(), "decoded") {
			t.Errorf("%s: got status %d and body %s, want 413", name, got.Code, got.Body)
		}
	}
}

func TestBodiesOfUnknownLength(t *testing.T) {
	var seen int
	next := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := Body(r)
		seen = len(body)
		if all, readErr := io.ReadAll(r.Body); err != nil || readErr != nil || len(all) != seen || r.ContentLength != int64(seen) {
			t.Errorf("read %d bytes, want %d; errors %v and %v", len(all), seen, err, readErr)
		}
	})
	guard := NewBudget().Guard(next)
	for _, length := range []int{2, 1000, maxReviewBody} {
		if got := post(t.Context(), guard, jsonString(length), -1); got.Code != http.StatusOK || seen != length {
			t.Errorf("got status %d and %d bytes, want 200 and %d", got.Code, seen, length)
		}
	}
	for name, body := range map[string]io.Reader{"one byte too many": jsonString(maxReviewBody + 1), "endless": &endlessReader{}} {
		if got := post(t.Context(), guard, body, -1); got.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: got status %d", name, got.Code)
		}
	}
	synctest.Test(t, func(t *testing.T) { // a body of unknown length reserves the maximum size
		end := make(blockingHandler)
		guard := NewBudget().Guard(sizedHandler{end, halfPool, 1})
		for range 2 {
			go post(t.Context(), guard, jsonString(10), -1)
		}
		synctest.Wait()
		if got := post(t.Context(), guard, jsonString(10), -1); got.Code != http.StatusTooManyRequests {
			t.Errorf("got status %d", got.Code)
		}
		close(end)
	})
}

func TestTruncatedBodies(t *testing.T) {
	if got := post(t.Context(), NewBudget().Guard(http.NotFoundHandler()), jsonString(10), 20); got.Code != http.StatusBadRequest {
		t.Errorf("got status %d", got.Code)
	}
}

// The memory of a request is released after a response, a panic, a client timeout, or a failed read of the body.
func TestMemoryIsReleased(t *testing.T) {
	panics := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	for name, tc := range map[string]struct {
		next http.Handler
		body func() io.Reader
	}{
		"response":                   {http.NotFoundHandler(), func() io.Reader { return jsonString(halfPool) }},
		"panic":                      {panics, func() io.Reader { return jsonString(halfPool) }},
		"client timeout":             {make(blockingHandler), func() io.Reader { return jsonString(halfPool) }},
		"a body that cannot be read": {http.NotFoundHandler(), func() io.Reader { return io.MultiReader(jsonString(9), failingReader{}) }},
	} {
		b := NewBudget()
		for range 5 {
			func() {
				defer func() { _ = recover() }()
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
				defer cancel()
				post(ctx, b.Guard(sizedHandler{tc.next, halfPool, 100 * mebibyte}), tc.body(), halfPool)
			}()
		}
		for _, want := range []struct {
			pool   pool
			weight int64
		}{{b.bodies[1], 2 * halfPool}, {b.decoded[1], 128 * mebibyte}} {
			if !want.pool.semaphore.TryAcquire(want.weight) {
				t.Errorf("%s: %d bytes were not released", name, want.weight)
			}
		}
	}
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("reset by peer") }

func TestCanceledRequestStopsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guard := NewBudget().Guard(sizedHandler{make(blockingHandler), halfPool, 1})
		fillBudget(t, guard, halfPool, 2)
		ctx, cancel := context.WithCancel(t.Context())
		started := time.Now()
		cancel()
		post(ctx, guard, jsonString(halfPool), halfPool)
		if waited := time.Since(started); waited > 0 {
			t.Errorf("waited for %s, want an immediate return", waited)
		}
	})
}

func TestMemoryOf(t *testing.T) {
	for body, want := range map[string]int64{
		``:                       0,
		`1`:                      0,
		`"abc"`:                  4 * bytesPerByte,
		`"a\"[{,"`:               7 * bytesPerByte,
		`{}`:                     bytesPerValue + bytesPerByte,
		`{"a":1}`:                bytesPerValue + bytesPerObject + 6*bytesPerByte,
		`[1,2]`:                  2*bytesPerValue + 4*bytesPerByte,
		`[[`:                     2*bytesPerValue + 2*bytesPerByte,
		`]]`:                     0,
		`"`:                      bytesPerByte,
		strings.Repeat("[", 101): math.MaxInt64,
	} {
		if got := MemoryOf([]byte(body)); got != want {
			t.Errorf("MemoryOf(%s) = %d, want %d", body, got, want)
		}
	}
	const pathLength = 2 // the length of the path of the items
	if got, want := MemoryOfItems([]byte(`{"a":[{},{"b":1},{}],"c":[1,2,3,4]}`), 2), MemoryOf([]byte(`{"b":1}`))+pathLength; got != want {
		t.Errorf("MemoryOfItems = %d, want %d", got, want)
	}
	// Each path of a chain of objects contains those before it.
	key := strings.Repeat("k", 1000)
	chain := strings.Repeat(`{"`+key+`":`, 50) + "1" + strings.Repeat("}", 50)
	if got := MemoryOf([]byte(chain)); got < 50*49/2*1000 {
		t.Errorf("MemoryOf of nested objects = %d, want the length of all paths", got)
	}
}
