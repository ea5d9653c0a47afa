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

// blockedNamespace is a namespace in which all writes of the manager to registries block until the context released is cancelled, and then
// fail.
type blockedNamespace struct {
	namespace string
	released  context.Context // cancelled to let blocked writes return

	mu        sync.Mutex
	blocked   int
	attempted map[string]bool // names of the registries with a write
}

func (s *blockedNamespace) fault(r *http.Request) metav1.StatusReason {
	if r.Method == http.MethodGet || !strings.Contains(r.URL.Path, "/namespaces/"+s.namespace+"/modelregistries/") {
		return ""
	}
	s.add(1, path.Base(strings.TrimSuffix(r.URL.Path, "/status")))
	<-s.released.Done()
	s.add(-1)
	return metav1.StatusReasonInternalError
}

func (s *blockedNamespace) add(delta int, names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blocked += delta
	for _, name := range names {
		s.attempted[name] = true
	}
}

// state returns the number of blocked writes and of registries with a write.
func (s *blockedNamespace) state() [2]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return [2]int{s.blocked, len(s.attempted)}
}

var _ = Describe("A namespace with 300 registries whose writes block or fail", func() {
	const registries, workers = 300, 4

	It("leaves a worker for other namespaces", func(ctx SpecContext) {
		install(ctx)
		crasher := env.StartCrasher(ctx, startRegistryManager(ctx, "manager", installation.WebhookPort), specTimeout)
		released, release := context.WithCancel(ctx)
		s := &blockedNamespace{namespace: env.Namespace(ctx, "many"), released: released, attempted: map[string]bool{}}
		crasher.Inject(s.fault)
		admin := clientWithoutWarnings()
		DeferCleanup(func(ctx SpecContext) {
			release()
			// On a loaded machine, a single request can exceed the timeout of the API server.
			Eventually(admin.DeleteAllOf).WithContext(ctx).WithArguments(registry(s.namespace, ""), client.InNamespace(s.namespace)).WithTimeout(specTimeout).Should(Succeed())
		}, NodeTimeout(specTimeout))
		for i := range registries {
			Expect(admin.Create(ctx, registry(s.namespace, fmt.Sprintf("broken-%d", i)))).To(Succeed())
		}
		Eventually(s.state).Should(Equal([2]int{workers - 1, workers - 1}))

		other := env.Namespace(ctx, "other")
		create(ctx, admin, registry(other, "healthy"))
		env.WaitFor(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "healthy"}}, nil)
		Expect(s.state()).To(Equal([2]int{workers - 1, workers - 1}), "another registry of the blocked namespace was reconciled")

		release()
		Eventually(func() int { return s.state()[1] }).WithTimeout(specTimeout).Should(Equal(registries), "some registries were not reconciled")
	}, NodeTimeout(specTimeout))
})
