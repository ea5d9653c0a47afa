package modelregistry_plain_test

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// isRegistryRequest reports whether a request is for an object of a registry: no lease, Event, status or watch.
func isRegistryRequest(r *http.Request) bool {
	return strings.Contains(r.URL.Path, "/namespaces/"+namespace+"/") && r.URL.Query().Get("watch") == "" &&
		!strings.Contains(r.URL.Path, "/events") && !strings.Contains(r.URL.Path, "/leases") && !strings.Contains(r.URL.Path, "/modelregistries") &&
		!strings.Contains(r.URL.Path, "webhook-cert")
}

var _ = Describe("An error of the API server", func() {
	It("is reported with the error of the API server, until a reconcile succeeds [modelregistry-100] [modelregistry-102]", func(ctx SpecContext) {
		between := env.StartCrasher(ctx, manager, specTimeout)
		for name, method := range map[string]string{"reads": http.MethodGet, "creates": http.MethodPost} {
			between.Inject(func(r *http.Request) metav1.StatusReason {
				if r.Method == method && isRegistryRequest(r) {
					return metav1.StatusReasonInternalError
				}
				return ""
			})
			m := registry("no-"+name, generated)
			env.Create(ctx, m)
			env.WaitForCondition(ctx, m, "Available", metav1.ConditionFalse, "DeploymentUnavailable")
			Expect(framework.FindCondition(m.Status.Conditions, "Available").Message).To(And(HavePrefix("unexpected reconcile error: "), ContainSubstring(framework.FaultText)), name)
			between.Inject(nil)
			waitAvailable(ctx, m)
		}
		var mu sync.Mutex
		random := rand.New(rand.NewPCG(1, 2))
		between.Inject(func(r *http.Request) metav1.StatusReason {
			mu.Lock()
			defer mu.Unlock()
			if isRegistryRequest(r) && random.IntN(100) < 15 {
				return metav1.StatusReasonInternalError
			}
			return ""
		})
		m := registry("sometimes", generated, proxied)
		env.Create(ctx, certificate(m), m)
		waitAvailable(ctx, m)
	}, NodeTimeout(specTimeout))

	It("does not cause the deletion of a Deployment [D9]", func(ctx SpecContext) {
		m := registry("forbidden", generated)
		env.Create(ctx, m)
		waitAvailable(ctx, m)
		server, database := deployment(m), deployment(m)
		database.Name += "-postgres"
		env.Get(ctx, server)
		env.Get(ctx, database)
		between := env.StartCrasher(ctx, manager, specTimeout)
		for _, reason := range []metav1.StatusReason{metav1.StatusReasonForbidden, metav1.StatusReasonInvalid} {
			between.Inject(func(r *http.Request) metav1.StatusReason {
				if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/deployments/") {
					return reason
				}
				return ""
			})
			start := env.AuditPosition()
			env.Patch(ctx, m, map[string]any{"spec": map[string]any{"rest": map[string]any{"image": "quay.io/example/model-registry:" + strings.ToLower(string(reason))}}})
			env.WaitFor(ctx, m, func(g Gomega) {
				g.Expect(framework.FindCondition(m.Status.Conditions, "Available").Message).To(ContainSubstring(framework.FaultText), "%s", reason)
			})
			Expect(env.Since(start).ByUser(manager.User).Where(func(e framework.Entry) bool { return e.Verb == "delete" })).To(BeEmpty())
			between.Inject(nil)
			if reason == metav1.StatusReasonInvalid { // an invalid object is not sent again before a change
				env.Patch(ctx, m, map[string]any{"spec": map[string]any{"rest": map[string]any{"image": "quay.io/example/model-registry:corrected"}}})
			}
			waitAvailable(ctx, m)
		}
		for _, d := range []client.Object{server, database} {
			uid := d.GetUID()
			env.Get(ctx, d)
			Expect(d.GetUID()).To(Equal(uid))
		}
	}, NodeTimeout(specTimeout))

	It("can occur after any write: a restarted manager continues", func(ctx SpecContext) {
		between := env.StartCrasher(ctx, manager, specTimeout)
		m := registry("killed")
		crashes := between.CrashAfterEvery(ctx, func() {
			Expect(env.Admin.Create(ctx, registry("killed", generated))).To(Succeed())
		}, func(g Gomega) {
			g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(m), m)).To(Succeed())
			g.Expect(m.Finalizers).To(ContainElement(v1beta1.Finalizer))
			g.Expect(framework.FindCondition(m.Status.Conditions, "Available").Status).To(Equal(metav1.ConditionTrue))
		}, func(int) {
			secrets := &corev1.SecretList{}
			Expect(env.Admin.List(ctx, secrets, client.InNamespace(namespace), client.MatchingLabels{"platform.opendatahub.io/component": "modelregistry"})).To(Succeed())
			Expect(secrets.Items).To(HaveLen(1))
			env.Delete(ctx, m)
			for _, data := range []client.Object{child(m, &corev1.PersistentVolumeClaim{}, "-postgres-storage"), child(m, &corev1.Secret{}, "-postgres-credentials")} {
				Eventually(func() bool {
					return apierrors.IsNotFound(env.Admin.Get(ctx, client.ObjectKeyFromObject(data), data))
				}).WithContext(ctx).WithTimeout(specTimeout).Should(BeTrue(), "its data goes with it, as the spec says")
			}
		})
		Expect(crashes).To(BeNumerically(">=", 10), "credentials, claim, database, server, and its status")
	}, NodeTimeout(2*specTimeout))
})
