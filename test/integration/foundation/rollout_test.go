package foundation

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	// learning is how long the nodes of a slow cluster still send connections to a terminating pod.
	learning = 4 * time.Second
	// several writes confirm that all parts of the path work.
	several = 20
)

// endpoint is a manager that serves webhooks on its own port.
type endpoint struct {
	*framework.Manager
	port int
}

func endpointOf(ctx context.Context, name string) endpoint {
	GinkgoHelper()
	ports, err := env.Instance.ReservePorts(ctx, 1)
	Expect(err).NotTo(HaveOccurred())
	return endpoint{port: ports[0], Manager: startRegistries(ctx, name, ports[0], elected(lease)...)}
}

func startRegistries(ctx context.Context, name string, port int, args ...string) *framework.Manager {
	GinkgoHelper()
	return start(ctx, framework.ManagerOptions{
		Name: name, WebhookPort: port, Args: append(args, "--enable-modelregistry"),
		Env: []string{
			"POD_NAME=" + name, "REST_IMAGE=quay.io/example/model-registry:v1", "POSTGRES_IMAGE=quay.io/example/postgresql:16",
			"KUBE_RBAC_PROXY_IMAGE=quay.io/example/kube-rbac-proxy:v1",
		},
	})
}

// end deletes an endpoint like a pod: nodes stop sending connections late, and the process gets SIGTERM after the preStop hook.
func end(ctx context.Context, service *framework.Service, e endpoint, preStop time.Duration) {
	GinkgoHelper()
	notified := make(chan struct{})
	time.AfterFunc(learning, func() {
		service.Remove(e.port)
		close(notified)
	})
	<-time.After(preStop)
	e.Stop(ctx)
	<-notified
}

// writer changes an object continuously.
type writer struct {
	mu      sync.Mutex
	written int
	refused []error
}

func write(ctx context.Context, c client.Client, object client.Object) *writer {
	ctx, cancel := context.WithCancel(ctx)
	w, done := &writer{}, make(chan struct{})
	DeferCleanup(func() {
		cancel()
		<-done
	})
	go func() {
		defer close(done)
		for n := 0; ctx.Err() == nil; n++ {
			patch := fmt.Appendf(nil, `{"metadata": {"annotations": {"example.com/change": "%d"}}}`, n)
			w.note(ctx, c.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)))
		}
	}()
	return w
}

func (w *writer) note(ctx context.Context, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		w.written++
	case ctx.Err() == nil:
		w.refused = append(w.refused, err)
	}
}

func (w *writer) refusals() []error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.refused)
}

// goesOn waits for several more writes.
func (w *writer) goesOn() {
	GinkgoHelper()
	count := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.written
	}
	Eventually(count).Should(BeNumerically(">", count()+several))
}

// registry returns a ModelRegistry of the deprecated version, whose changes pass the conversion and both webhooks.
func registry(namespace, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "modelregistry.opendatahub.io/v1alpha1", "kind": "ModelRegistry",
		"metadata": map[string]any{"namespace": namespace, "name": name},
		"spec": map[string]any{
			"rest": map[string]any{}, "grpc": map[string]any{}, "postgres": map[string]any{"host": "db", "username": "u", "database": "d"},
		},
	}}
}

// create creates a registry and deletes it at the end of the spec; a manager must have been started before.
func create(ctx context.Context, who client.Client, o *unstructured.Unstructured) {
	GinkgoHelper()
	Eventually(func() error { return who.Create(ctx, o.DeepCopy()) }).Should(Succeed(), "the API server learns a new CA a moment after it was written")
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(who.Delete(ctx, o))).To(Succeed())
		Eventually(func() error { return who.Get(ctx, client.ObjectKeyFromObject(o), o.DeepCopy()) }).WithContext(ctx).
			Should(Satisfy(apierrors.IsNotFound))
	}, NodeTimeout(specTimeout))
}

// clientWithoutWarnings returns a client of the administrator that ignores the deprecation warning.
func clientWithoutWarnings() client.Client {
	GinkgoHelper()
	config := rest.CopyConfig(env.Config)
	config.WarningHandler = rest.NoWarnings{}
	c, err := client.New(config, client.Options{})
	Expect(err).NotTo(HaveOccurred())
	return c
}

var _ = Describe("A rollout of the manager", func() {
	It("rejects no write, because of readiness and the preStop hook", func(ctx SpecContext) {
		first := endpointOf(ctx, "manager-a")
		service := framework.Serve(installation.WebhookPort)
		service.Oldest = true
		service.Add(first.port)
		admin, object := clientWithoutWarnings(), registry(env.Namespace(ctx, "rollout"), "written")
		create(ctx, admin, object)
		writes := write(ctx, admin, object)
		writes.goesOn()

		second := endpointOf(ctx, "manager-b")
		service.Add(second.port)
		hook := installation.Deployment.Spec.Template.Spec.Containers[0].Lifecycle.PreStop.Sleep
		end(ctx, service, first, time.Duration(hook.Seconds)*time.Second)
		writes.goesOn()
		Expect(writes.refusals()).To(BeEmpty())
		Eventually(leader).WithContext(ctx).Should(Equal("manager-b"))

		By("stopping the next pod without the preStop hook, which must fail")
		first.Restart(ctx)
		service.Add(first.port)
		end(ctx, service, second, 0)
		writes.goesOn()
		Expect(writes.refusals()).NotTo(BeEmpty())
	}, NodeTimeout(specTimeout))
})

// callers returns the webhook client configurations of an object.
func callers(o *unstructured.Unstructured) []map[string]any {
	var found []map[string]any
	hooks, _, _ := unstructured.NestedFieldNoCopy(o.Object, "webhooks")
	list, _ := hooks.([]any)
	conversion, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "conversion", "webhook")
	for _, hook := range append(list, conversion) {
		if fields, ok := hook.(map[string]any); ok {
			found = append(found, fields["clientConfig"].(map[string]any))
		}
	}
	return found
}

var _ = Describe("The CA of the webhooks", func() {
	It("is restored immediately wherever it is overwritten, before the next periodic check", func(ctx SpecContext) {
		manager := start(ctx, framework.ManagerOptions{})
		var targets []*unstructured.Unstructured
		for _, o := range installation.Objects {
			if len(callers(o)) > 0 {
				targets = append(targets, o.DeepCopy())
			}
		}
		Expect(len(targets)).To(BeNumerically(">", 5))
		bundles := func() map[any]bool {
			found := map[any]bool{}
			for _, target := range targets {
				env.Get(ctx, target)
				for _, config := range callers(target) {
					found[config["caBundle"]] = true
				}
			}
			return found
		}
		Eventually(bundles).Should(And(HaveLen(1), Not(HaveKey(BeNil()))))
		right := bundles()
		env.WaitIdle(manager.User, quiet/2, specTimeout)

		begin := env.AuditPosition()
		for _, target := range targets {
			for _, config := range callers(target) {
				config["caBundle"] = base64.StdEncoding.EncodeToString(env.Config.CAData)
			}
			Expect(env.Admin.Update(ctx, target)).To(Succeed())
		}
		Eventually(bundles).WithTimeout(10 * time.Second).Should(Equal(right))
		env.WaitIdle(manager.User, quiet/2, specTimeout)
		written, metrics := env.Since(begin).ByUser(manager.User).Writes(), metricsOf(ctx, manager)
		for _, target := range targets {
			Expect(written.Where(func(e framework.Entry) bool { return e.Name == target.GetName() })).To(HaveLen(1))
			Expect(metrics).To(ContainSubstring(`odh_platform_webhook_ca_injected{kind="%s",name="%s"} 1`, target.GetKind(), target.GetName()))
		}
	}, NodeTimeout(specTimeout))
})
