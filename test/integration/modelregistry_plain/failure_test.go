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

// isChildRequest reports whether a request reads or writes a child object of a registry.
func isChildRequest(r *http.Request) bool {
	return strings.Contains(r.URL.Path, "/namespaces/"+namespace+"/") && r.URL.Query().Get("watch") == "" &&
		!strings.Contains(r.URL.Path, "/events") && !strings.Contains(r.URL.Path, "/leases") && !strings.Contains(r.URL.Path, "/modelregistries") &&
		!strings.Contains(r.URL.Path, "webhook-cert")
}

var _ = Describe("A failure", func() {
	It("is reported with the error of the API server, until a reconcile succeeds [modelregistry-100] [modelregistry-102]", func(ctx SpecContext) {
		crasher := env.StartCrasher(ctx, manager, specTimeout)
		for name, method := range map[string]string{"reads": http.MethodGet, "creates": http.MethodPost} {
			crasher.Inject(func(r *http.Request) metav1.StatusReason {
				if r.Method == method && isChildRequest(r) {
					return metav1.StatusReasonInternalError
				}
				return ""
			})
			registry := newRegistry("no-"+name, withGeneratedDatabase)
			env.Create(ctx, registry)
			env.WaitForCondition(ctx, registry, "Available", metav1.ConditionFalse, "DeploymentUnavailable")
			Expect(framework.FindCondition(registry.Status.Conditions, "Available").Message).To(And(HavePrefix("unexpected reconcile error: "), ContainSubstring(framework.FaultText)), name)
			crasher.Inject(nil)
			waitAvailable(ctx, registry)
		}
		var mu sync.Mutex
		random := rand.New(rand.NewPCG(1, 2))
		crasher.Inject(func(r *http.Request) metav1.StatusReason {
			mu.Lock()
			defer mu.Unlock()
			if isChildRequest(r) && random.IntN(100) < 15 {
				return metav1.StatusReasonInternalError
			}
			return ""
		})
		registry := newRegistry("sometimes", withGeneratedDatabase, withProxy)
		env.Create(ctx, proxyCertificate(registry), registry)
		waitAvailable(ctx, registry)
	}, NodeTimeout(specTimeout))

	It("does not cause the deletion of a Deployment [D9]", func(ctx SpecContext) {
		registry := newRegistry("forbidden", withGeneratedDatabase)
		env.Create(ctx, registry)
		waitAvailable(ctx, registry)
		server, database := deploymentOf(registry), deploymentOf(registry)
		database.Name += "-postgres"
		env.Get(ctx, server)
		env.Get(ctx, database)
		crasher := env.StartCrasher(ctx, manager, specTimeout)
		for _, reason := range []metav1.StatusReason{metav1.StatusReasonForbidden, metav1.StatusReasonInvalid} {
			crasher.Inject(func(r *http.Request) metav1.StatusReason {
				if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/deployments/") {
					return reason
				}
				return ""
			})
			start := env.AuditPosition()
			env.Patch(ctx, registry, map[string]any{"spec": map[string]any{"rest": map[string]any{"image": "quay.io/example/model-registry:" + strings.ToLower(string(reason))}}})
			env.WaitFor(ctx, registry, func(g Gomega) {
				g.Expect(framework.FindCondition(registry.Status.Conditions, "Available").Message).To(ContainSubstring(framework.FaultText), "%s", reason)
			})
			Expect(env.Since(start).ByUser(manager.User).Where(func(e framework.Entry) bool { return e.Verb == "delete" })).To(BeEmpty())
			crasher.Inject(nil)
			if reason == metav1.StatusReasonInvalid { // an invalid object is written again only after a change
				env.Patch(ctx, registry, map[string]any{"spec": map[string]any{"rest": map[string]any{"image": "quay.io/example/model-registry:corrected"}}})
			}
			waitAvailable(ctx, registry)
		}
		for _, deployment := range []client.Object{server, database} {
			uid := deployment.GetUID()
			env.Get(ctx, deployment)
			Expect(deployment.GetUID()).To(Equal(uid))
		}
	}, NodeTimeout(specTimeout))

	It("of the manager after any write is corrected by its restart", func(ctx SpecContext) {
		crasher := env.StartCrasher(ctx, manager, specTimeout)
		registry := newRegistry("killed")
		crashes := crasher.CrashAfterEvery(ctx, func() {
			Expect(env.Admin.Create(ctx, newRegistry("killed", withGeneratedDatabase))).To(Succeed())
		}, func(g Gomega) {
			g.Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(registry), registry)).To(Succeed())
			g.Expect(registry.Finalizers).To(ContainElement(v1beta1.Finalizer))
			g.Expect(framework.FindCondition(registry.Status.Conditions, "Available").Status).To(Equal(metav1.ConditionTrue))
		}, func(int) {
			secrets := &corev1.SecretList{}
			Expect(env.Admin.List(ctx, secrets, client.InNamespace(namespace), client.MatchingLabels{"platform.opendatahub.io/component": "modelregistry"})).To(Succeed())
			Expect(secrets.Items).To(HaveLen(1))
			env.Delete(ctx, registry)
			for _, data := range []client.Object{child(registry, &corev1.PersistentVolumeClaim{}, "-postgres-storage"), child(registry, &corev1.Secret{}, "-postgres-credentials")} {
				Eventually(func() bool {
					return apierrors.IsNotFound(env.Admin.Get(ctx, client.ObjectKeyFromObject(data), data))
				}).WithContext(ctx).WithTimeout(specTimeout).Should(BeTrue(), "retentionPolicy Delete deletes the data")
			}
		})
		Expect(crashes).To(BeNumerically(">=", 10), "the manager writes credentials, claim, database, server and status")
	}, NodeTimeout(2*specTimeout))
})
