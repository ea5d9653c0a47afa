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

// discard is a response writer without memory.
type discard struct{ io.Writer }

func (discard) Header() http.Header { return http.Header{} }
func (discard) WriteHeader(int)     {}

// maxHeapGrowth returns the maximum live memory in bytes that a function adds. It runs the garbage collector continuously.
func maxHeapGrowth(do func()) int64 {
	var stats runtime.MemStats
	heapInUse := func() int64 {
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc)
	}
	heapInUse()
	heapInUse() // empties pools
	before, highest := heapInUse(), int64(0)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		do()
	}()
	for {
		select {
		case <-ended:
			return highest - before
		default:
			highest = max(highest, heapInUse())
		}
	}
}

// The estimated memory of any body covers the memory of its handler.
func TestWeightsCoverHandlerMemory(t *testing.T) {
	const size, fixed = 128 << 10, 512 << 10 // pools of the libraries
	many := func(item string) string { return `{"a":[` + strings.Repeat(item+",", size/(len(item)+1)) + `0]}` }
	settings := func(context.Context) (Settings, error) { return Settings{}, nil }
	none := func(context.Context, string) ([]string, error) { return nil, nil }
	for name, spec := range map[string]string{
		"text":             `{"a":"` + strings.Repeat("x", size) + `"}`,
		"text to escape":   `{"a":"` + strings.Repeat("<", size) + `"}`,
		"numbers":          many("1"),
		"texts":            many(`"b"`),
		"empty objects":    many("{}"),
		"empty lists":      many("[]"),
		"lists of lists":   many("[[[1]]]"),
		"objects":          many(`{"":0}`),
		"variables":        many(`{"name":"a","value":"b"}`),
		"chains":           many(strings.Repeat(`{"":`, 60) + "1" + strings.Repeat("}", 60)),
		"chains with keys": strings.Repeat(`{"`+strings.Repeat("k", size/60)+`":`, 60) + "1" + strings.Repeat("}", 60),
		"volumes":          `{"volumes":[` + strings.Repeat(`{"emptyDir":{}},`, size/16) + `{}]}`,
	} {
		object := `{"apiVersion":"` + alpha + `","kind":"ModelRegistry","metadata":{"name":"a","namespace":"b"},"spec":` + spec + `}`
		review := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"UPDATE","object":` + object + `,"oldObject":` + object + `}}`
		conversion := `{"request":{"desiredAPIVersion":"` + beta + `","objects":[` + object + `]}}`
		for handler, tc := range map[string]struct {
			next   http.Handler
			body   string
			weight int64
		}{
			"defaults":   {&admission.Webhook{Handler: &defaulter{settings}}, review, pkgadmission.MemoryOf([]byte(review))},
			"validation": {&admission.Webhook{Handler: &validator{settings, none}}, review, pkgadmission.MemoryOf([]byte(review))},
			"conversion": {converter{}, conversion, converter{}.Weigh([]byte(conversion))},
		} {
			took := int64(math.MaxInt64)
			// Allocations during a garbage collection count as live. On a busy machine, there are more of them.
			for try := 0; try < 10 && took > tc.weight+fixed; try++ {
				request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(tc.body))
				request.Header.Set("Content-Type", "application/json")
				took = min(took, maxHeapGrowth(func() { tc.next.ServeHTTP(discard{io.Discard}, request) }))
			}
			t.Logf("%s of %s: %d KiB of %d KiB", handler, name, took>>10, tc.weight>>10)
			if took > tc.weight+fixed {
				t.Errorf("%s of %s take %d bytes and are taken for %d", handler, name, took, tc.weight)
			}
		}
	}
}
