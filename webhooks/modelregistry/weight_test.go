package modelregistry

import (
	"context"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	pkgadmission "github.com/odh-platform/odh-platform-operator/pkg/admission"
)

// discardWriter is a response writer that stores nothing.
type discardWriter struct{ io.Writer }

func (discardWriter) Header() http.Header { return http.Header{} }
func (discardWriter) WriteHeader(int)     {}

// maxHeapGrowth returns the maximum live memory in bytes that a function adds. It runs the garbage collector continuously.
func maxHeapGrowth(run func()) int64 {
	var stats runtime.MemStats
	heapAlloc := func() int64 {
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc)
	}
	heapAlloc()
	heapAlloc() // empties pools
	initial, highest := heapAlloc(), int64(0)
	done := make(chan struct{})
	go func() {
		defer close(done)
		run()
	}()
	for {
		select {
		case <-done:
			return highest - initial
		default:
			highest = max(highest, heapAlloc())
		}
	}
}

// The estimated memory of a request is at least the memory that its handler allocates.
func TestWeightsCoverHandlerMemory(t *testing.T) {
	const size, fixed = 128 << 10, 512 << 10 // fixed covers the pools of the libraries
	repeat := func(item string) string { return `{"a":[` + strings.Repeat(item+",", size/(len(item)+1)) + `0]}` }
	settings := func(context.Context) (Settings, error) { return Settings{}, nil }
	noNamespaces := func(context.Context, string) ([]string, error) { return nil, nil }
	for name, spec := range map[string]string{
		"string":                        `{"a":"` + strings.Repeat("x", size) + `"}`,
		"string to escape":              `{"a":"` + strings.Repeat("<", size) + `"}`,
		"numbers":                       repeat("1"),
		"strings":                       repeat(`"b"`),
		"empty objects":                 repeat("{}"),
		"empty arrays":                  repeat("[]"),
		"nested arrays":                 repeat("[[[1]]]"),
		"objects":                       repeat(`{"":0}`),
		"environment variables":         repeat(`{"name":"a","value":"b"}`),
		"nested objects":                repeat(strings.Repeat(`{"":`, 60) + "1" + strings.Repeat("}", 60)),
		"nested objects with long keys": strings.Repeat(`{"`+strings.Repeat("k", size/60)+`":`, 60) + "1" + strings.Repeat("}", 60),
		"volumes":                       `{"volumes":[` + strings.Repeat(`{"emptyDir":{}},`, size/16) + `{}]}`,
	} {
		object := `{"apiVersion":"` + alpha + `","kind":"ModelRegistry","metadata":{"name":"a","namespace":"b"},"spec":` + spec + `}`
		review := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"UPDATE","object":` + object + `,"oldObject":` + object + `}}`
		conversion := `{"request":{"desiredAPIVersion":"` + beta + `","objects":[` + object + `]}}`
		for handler, test := range map[string]struct {
			next   http.Handler
			body   string
			weight int64
		}{
			"defaults":   {&admission.Webhook{Handler: &defaulter{settings}}, review, pkgadmission.MemoryOf([]byte(review))},
			"validation": {&admission.Webhook{Handler: &validator{settings, noNamespaces}}, review, pkgadmission.MemoryOf([]byte(review))},
			"conversion": {converter{}, conversion, converter{}.Weigh([]byte(conversion))},
		} {
			growth := int64(math.MaxInt64)
			// Retry, because allocations during a garbage collection count as live. A busy machine has more of them.
			for try := 0; try < 10 && growth > test.weight+fixed; try++ {
				request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(test.body))
				request.Header.Set("Content-Type", "application/json")
				growth = min(growth, maxHeapGrowth(func() { test.next.ServeHTTP(discardWriter{io.Discard}, request) }))
			}
			t.Logf("%s of %s: allocated %d KiB, estimated %d KiB", handler, name, growth>>10, test.weight>>10)
			if growth > test.weight+fixed {
				t.Errorf("%s of %s: allocated %d bytes, estimated %d", handler, name, growth, test.weight)
			}
		}
	}
}
