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

// endless is an endless body that counts the bytes read.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	e.read += len(p)
	return len(p), nil
}

// send posts a body whose length is declared as such; -1 is unknown.
func send(ctx context.Context, to http.Handler, body io.Reader, length int64) *httptest.ResponseRecorder {
	request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", body)
	request.ContentLength = length
	recorder := httptest.NewRecorder()
	to.ServeHTTP(recorder, request)
	return recorder
}

// blocking is a handler that does not return before its channel is closed.
type blocking chan struct{}

func (b blocking) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	select {
	case <-b:
	case <-r.Context().Done():
	}
}

// text is a body of JSON of a length.
func text(length int) *strings.Reader {
	return strings.NewReader(`"` + strings.Repeat("x", length-2) + `"`)
}

// full has so many requests in progress that no other one of the size fits.
func full(t *testing.T, guard http.Handler, size, count int) {
	t.Helper()
	for range count {
		go send(t.Context(), guard, text(size), int64(size))
	}
	synctest.Wait()
}

const (
	mebibyte = 1 << 20
	// two bodies of this size fill a lane.
	half = 8 * mebibyte
)

type sized struct {
	http.Handler
	largest, weight int64
}

func (s sized) Largest() int64     { return s.largest }
func (s sized) Weigh([]byte) int64 { return s.weight }

func TestRequestsWaitForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(blocking)
		guard := NewBudget().Guard(sized{end, half, 1})
		full(t, guard, half, 2)
		answer := make(chan int)
		go func() { answer <- send(t.Context(), guard, text(half), half).Code }()
		time.Sleep(acquireTimeout - time.Millisecond)
		synctest.Wait()
		select {
		case code := <-answer:
			t.Fatalf("status %d at once", code)
		default:
		}
		close(end)
		if code := <-answer; code != http.StatusOK {
			t.Errorf("status %d when there is room", code)
		}
	})
}

func TestExhaustedBudgetReturnsRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, tc := range map[string]struct {
			size, count int
			weight      int64
		}{
			"to receive it": {half, 2, 1},
			"to decode it":  {mebibyte, 1, 65 * mebibyte},
		} {
			guard := NewBudget().Guard(sized{make(blocking), half, tc.weight})
			full(t, guard, tc.size, tc.count)
			begun := time.Now()
			got := send(t.Context(), guard, text(tc.size), int64(tc.size))
			if got.Code != http.StatusTooManyRequests || got.Header().Get("Retry-After") != retryAfter {
				t.Errorf("no room %s: status %d, headers %v", name, got.Code, got.Header())
			}
			if waited := time.Since(begun); waited != acquireTimeout {
				t.Errorf("no free slot, %s: waited for %s, want %s", name, waited, acquireTimeout)
			}
		}
	})
}

func TestLargeRequestsDoNotBlockSmallOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(blocking)
		b := NewBudget()
		full(t, b.Guard(sized{end, half, 64 * mebibyte}), half, 20)
		full(t, b.Guard(sized{end, half, 9 * mebibyte}), 60<<10, 40) // small, and heavy when they are decoded
		if got := send(t.Context(), b.Guard(http.NotFoundHandler()), text(1000), 1000); got.Code != http.StatusNotFound {
			t.Errorf("status %d", got.Code)
		}
		close(end)
	})
}

func TestTooLargeBodyIsRejectedUnread(t *testing.T) {
	body := &endless{}
	got := send(t.Context(), NewBudget().Guard(http.NotFoundHandler()), body, maxReviewBody+1)
	if got.Code != http.StatusRequestEntityTooLarge || body.read > 0 {
		t.Errorf("status %d, %d bytes read", got.Code, body.read)
	}
}

func TestTooLargeDecodedBodyIsRejected(t *testing.T) {
	next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the body was passed on, although it is too large") })
	guard := NewBudget().Guard(next)
	for name, body := range map[string]string{
		"small objects": "[" + strings.Repeat(`{"":0},`, maxReviewBody/7-1) + "0]",
		"depth":         strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1),
	} {
		got := send(t.Context(), guard, strings.NewReader(body), int64(len(body)))
		if got.Code != http.StatusRequestEntityTooLarge || !strings.Contains(got.Body.String(), "decoded") {
			t.Errorf("%s: status %d: %s", name, got.Code, got.Body)
		}
	}
}

func TestBodiesOfUnknownLength(t *testing.T) {
	var seen int
	next := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := Body(r)
		seen = len(body)
		if all, readErr := io.ReadAll(r.Body); err != nil || readErr != nil || len(all) != seen || r.ContentLength != int64(seen) {
			t.Errorf("%d of %d bytes: %v, %v", len(all), seen, err, readErr)
		}
	})
	guard := NewBudget().Guard(next)
	for _, length := range []int{2, 1000, maxReviewBody} {
		if got := send(t.Context(), guard, text(length), -1); got.Code != http.StatusOK || seen != length {
			t.Errorf("status %d, %d of %d bytes", got.Code, seen, length)
		}
	}
	for name, body := range map[string]io.Reader{"one byte too many": text(maxReviewBody + 1), "without an end": &endless{}} {
		if got := send(t.Context(), guard, body, -1); got.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: status %d", name, got.Code)
		}
	}
	synctest.Test(t, func(t *testing.T) { // it takes the room of the largest
		end := make(blocking)
		guard := NewBudget().Guard(sized{end, half, 1})
		for range 2 {
			go send(t.Context(), guard, text(10), -1)
		}
		synctest.Wait()
		if got := send(t.Context(), guard, text(10), -1); got.Code != http.StatusTooManyRequests {
			t.Errorf("status %d", got.Code)
		}
		close(end)
	})
}

func TestTruncatedBodies(t *testing.T) {
	if got := send(t.Context(), NewBudget().Guard(http.NotFoundHandler()), text(10), 20); got.Code != http.StatusBadRequest {
		t.Errorf("status %d", got.Code)
	}
}

// The memory of every request is released.
func TestMemoryIsReleased(t *testing.T) {
	panics := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	for name, tc := range map[string]struct {
		next http.Handler
		body func() io.Reader
	}{
		"answered":      {http.NotFoundHandler(), func() io.Reader { return text(half) }},
		"a panic":       {panics, func() io.Reader { return text(half) }},
		"the client":    {make(blocking), func() io.Reader { return text(half) }},
		"a broken body": {http.NotFoundHandler(), func() io.Reader { return io.MultiReader(text(9), broken{}) }},
	} {
		b := NewBudget()
		for range 5 {
			func() {
				defer func() { _ = recover() }()
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
				defer cancel()
				send(ctx, b.Guard(sized{tc.next, half, 100 * mebibyte}), tc.body(), half)
			}()
		}
		for _, all := range []struct {
			of     pool
			weight int64
		}{{b.bodies[1], 2 * half}, {b.decoded[1], 128 * mebibyte}} {
			if !all.of.semaphore.TryAcquire(all.weight) {
				t.Errorf("after %s room for %d bytes is missing", name, all.weight)
			}
		}
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("reset by peer") }

func TestCanceledRequestStopsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guard := NewBudget().Guard(sized{make(blocking), half, 1})
		full(t, guard, half, 2)
		ctx, cancel := context.WithCancel(t.Context())
		begun := time.Now()
		cancel()
		send(ctx, guard, text(half), half)
		if waited := time.Since(begun); waited > 0 {
			t.Errorf("waited for %s", waited)
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
			t.Errorf("%s weighs %d, want %d", body, got, want)
		}
	}
	const before = 2 // the text before it counts as its path
	if got, want := MemoryOfItems([]byte(`{"a":[{},{"b":1},{}],"c":[1,2,3,4]}`), 2), MemoryOf([]byte(`{"b":1}`))+before; got != want {
		t.Errorf("the heaviest weighs %d, want %d", got, want)
	}
	// Each path of a chain of objects contains those before it.
	key := strings.Repeat("k", 1000)
	chain := strings.Repeat(`{"`+key+`":`, 50) + "1" + strings.Repeat("}", 50)
	if got := MemoryOf([]byte(chain)); got < 50*49/2*1000 {
		t.Errorf("a chain weighs %d", got)
	}
}
