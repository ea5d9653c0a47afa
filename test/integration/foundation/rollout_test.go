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
	// endpointDelay is the time for which nodes of a slow cluster route connections to a terminating pod.
	endpointDelay = 4 * time.Second
	// minWrites is the number of writes after which the whole path is known to work.
	minWrites = 20
)

// endpoint is a manager that serves webhooks on its own port.
type endpoint struct {
	*framework.Manager
	port int
}

func startEndpoint(ctx context.Context, name string) endpoint {
	GinkgoHelper()
	ports, err := env.Instance.ReservePorts(ctx, 1)
	Expect(err).NotTo(HaveOccurred())
	return endpoint{port: ports[0], Manager: startRegistryManager(ctx, name, ports[0], electionFlags(leaseDuration)...)}
}

func startRegistryManager(ctx context.Context, name string, port int, args ...string) *framework.Manager {
	GinkgoHelper()
	return startManager(ctx, framework.ManagerOptions{
		Name: name, WebhookPort: port, Args: append(args, "--enable-modelregistry"),
		Env: []string{
			"POD_NAME=" + name, "REST_IMAGE=quay.io/example/model-registry:v1", "POSTGRES_IMAGE=quay.io/example/postgresql:16",
			"KUBE_RBAC_PROXY_IMAGE=quay.io/example/kube-rbac-proxy:v1",
		},
	})
}

// terminate deletes an endpoint as Kubernetes deletes a pod: the process gets SIGTERM after the preStop hook, and nodes update the endpoints with a
// delay.
func terminate(ctx context.Context, service *framework.Service, e endpoint, preStop time.Duration) {
	GinkgoHelper()
	updated := make(chan struct{})
	time.AfterFunc(endpointDelay, func() {
		service.Remove(e.port)
		close(updated)
	})
	<-time.After(preStop)
	e.Stop(ctx)
	<-updated
}

// writer changes an object continuously.
type writer struct {
	mu      sync.Mutex
	written int
	failed  []error
}

func startWriter(ctx context.Context, c client.Client, object client.Object) *writer {
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
			w.record(ctx, c.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)))
		}
	}()
	return w
}

func (w *writer) record(ctx context.Context, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		w.written++
	case ctx.Err() == nil:
		w.failed = append(w.failed, err)
	}
}

func (w *writer) failures() []error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.failed)
}

// waitForWrites waits for more than minWrites further writes.
func (w *writer) waitForWrites() {
	GinkgoHelper()
	count := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.written
	}
	Eventually(count).Should(BeNumerically(">", count()+minWrites))
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

// create creates a registry, for which a manager must be running, and deletes it at the end of the spec.
func create(ctx context.Context, c client.Client, o *unstructured.Unstructured) {
	GinkgoHelper()
	Eventually(func() error { return c.Create(ctx, o.DeepCopy()) }).Should(Succeed(), "the API server loads a new CA with a delay")
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(c.Delete(ctx, o))).To(Succeed())
		Eventually(func() error { return c.Get(ctx, client.ObjectKeyFromObject(o), o.DeepCopy()) }).WithContext(ctx).
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
		first := startEndpoint(ctx, "manager-a")
		service := framework.Serve(installation.WebhookPort)
		service.Oldest = true
		service.Add(first.port)
		admin, object := clientWithoutWarnings(), registry(env.Namespace(ctx, "rollout"), "written")
		create(ctx, admin, object)
		writes := startWriter(ctx, admin, object)
		writes.waitForWrites()

		second := startEndpoint(ctx, "manager-b")
		service.Add(second.port)
		hook := installation.Deployment.Spec.Template.Spec.Containers[0].Lifecycle.PreStop.Sleep
		terminate(ctx, service, first, time.Duration(hook.Seconds)*time.Second)
		writes.waitForWrites()
		Expect(writes.failures()).To(BeEmpty())
		Eventually(leader).WithContext(ctx).Should(Equal("manager-b"))

		By("stopping the next pod without the preStop hook, which must cause failures")
		first.Restart(ctx)
		service.Add(first.port)
		terminate(ctx, service, second, 0)
		writes.waitForWrites()
		Expect(writes.failures()).NotTo(BeEmpty())
	}, NodeTimeout(specTimeout))
})

// clientConfigs returns the webhook client configurations of an object.
func clientConfigs(o *unstructured.Unstructured) []map[string]any {
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
		manager := startManager(ctx, framework.ManagerOptions{})
		var targets []*unstructured.Unstructured
		for _, o := range installation.Objects {
			if len(clientConfigs(o)) > 0 {
				targets = append(targets, o.DeepCopy())
			}
		}
		Expect(len(targets)).To(BeNumerically(">", 5))
		bundles := func() map[any]bool {
			found := map[any]bool{}
			for _, target := range targets {
				env.Get(ctx, target)
				for _, config := range clientConfigs(target) {
					found[config["caBundle"]] = true
				}
			}
			return found
		}
		Eventually(bundles).Should(And(HaveLen(1), Not(HaveKey(BeNil()))))
		original := bundles()
		env.WaitIdle(manager.User, idlePeriod/2, specTimeout)

		begin := env.AuditPosition()
		for _, target := range targets {
			for _, config := range clientConfigs(target) {
				config["caBundle"] = base64.StdEncoding.EncodeToString(env.Config.CAData)
			}
			Expect(env.Admin.Update(ctx, target)).To(Succeed())
		}
		Eventually(bundles).WithTimeout(10 * time.Second).Should(Equal(original))
		env.WaitIdle(manager.User, idlePeriod/2, specTimeout)
		written, metrics := env.Since(begin).ByUser(manager.User).Writes(), metricsOf(ctx, manager)
		for _, target := range targets {
			Expect(written.Where(func(e framework.Entry) bool { return e.Name == target.GetName() })).To(HaveLen(1))
			Expect(metrics).To(ContainSubstring(`odh_platform_webhook_ca_injected{kind="%s",name="%s"} 1`, target.GetKind(), target.GetName()))
		}
	}, NodeTimeout(specTimeout))
})
