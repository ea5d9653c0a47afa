package foundation

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stuck is a namespace in which all writes to registries block until the context answers ends, and then fail.
type stuck struct {
	namespace string
	answers   context.Context // ends when blocked writes are answered

	mu      sync.Mutex
	waiting int
	tried   map[string]bool // names of the registries with a write
}

func (s *stuck) fault(r *http.Request) metav1.StatusReason {
	if r.Method == http.MethodGet || !strings.Contains(r.URL.Path, "/namespaces/"+s.namespace+"/modelregistries/") {
		return ""
	}
	s.note(1, path.Base(strings.TrimSuffix(r.URL.Path, "/status")))
	<-s.answers.Done()
	s.note(-1)
	return metav1.StatusReasonInternalError
}

func (s *stuck) note(more int, names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting += more
	for _, name := range names {
		s.tried[name] = true
	}
}

// state returns the number of blocked writes and of registries with a write.
func (s *stuck) state() [2]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return [2]int{s.waiting, len(s.tried)}
}

var _ = Describe("One tenant with three hundred registries that time out or fail", func() {
	const many, workers = 300, 4

	It("leaves a worker to the other namespaces, which do not wait", func(ctx SpecContext) {
		install(ctx)
		crasher := env.StartCrasher(ctx, startRegistries(ctx, "manager", installation.WebhookPort), specTimeout)
		answers, answer := context.WithCancel(ctx)
		s := &stuck{namespace: env.Namespace(ctx, "many"), answers: answers, tried: map[string]bool{}}
		crasher.Inject(s.fault)
		admin := clientWithoutWarnings()
		DeferCleanup(func(ctx SpecContext) {
			answer()
			// On a loaded machine a single request exceeds the timeout of the API server.
			Eventually(admin.DeleteAllOf).WithContext(ctx).WithArguments(registry(s.namespace, ""), client.InNamespace(s.namespace)).WithTimeout(specTimeout).Should(Succeed())
		}, NodeTimeout(specTimeout))
		for i := range many {
			Expect(admin.Create(ctx, registry(s.namespace, fmt.Sprintf("broken-%d", i)))).To(Succeed())
		}
		Eventually(s.state).Should(Equal([2]int{workers - 1, workers - 1}))

		other := env.Namespace(ctx, "other")
		create(ctx, admin, registry(other, "fine"))
		env.WaitFor(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "fine"}}, nil)
		Expect(s.state()).To(Equal([2]int{workers - 1, workers - 1}), "the others were still being tried")

		answer()
		Eventually(func() int { return s.state()[1] }).WithTimeout(specTimeout).Should(Equal(many), "and no object is forgotten")
	}, NodeTimeout(specTimeout))
})
