//go:build e2e

package e2e_test

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/node/images"
)

var (
	//go:embed testdata/stuck.yaml
	stuckAppWrapper string
	//go:embed testdata/unreachable_webhook.yaml
	unreachableWebhook string
	//go:embed testdata/without_token.yaml
	monitorWithoutToken string
	//go:embed testdata/throttled_apiserver.yaml
	throttledAPIServer string
	//go:embed testdata/unresponsive_pod.yaml
	unresponsivePod string
	//go:embed testdata/waiting.yaml
	waitingAppWrapper string
	//go:embed testdata/mesh_unreachable.yaml
	meshUnreachable string
)

const (
	// backlog is a number of AppWrappers that exceeds the threshold of ODHPlatformWorkqueueBacklog.
	backlog = 150
	// setUnknownSchema is a command that sets a schema version which no release of MLflow has.
	setUnknownSchema = `python3 -c 'import sqlite3; c = sqlite3.connect("/mlflow/mlflow.db"); c.execute("update alembic_version set version_num = 0"); c.commit()'`
)

// untriggeredAlerts maps the alerts that no spec triggers to the reason. Package test/prometheus tests these alerts with the engine of
// Prometheus.
var untriggeredAlerts = map[string]string{
	"ODHPlatformManagerMemoryHigh":   "requires thousands of objects",
	"ODHPlatformComponentFailing":    "requires a CRD whose API is not served",
	"ODHPlatformReconcilePanics":     "requires a defect of the operator",
	"ODHPlatformWorkqueueStuck":      "requires a defect of the operator",
	"ODHPlatformMigrationSlow":       "requires an hour",
	"ODHPlatformWebhookSlow":         "requires access reviews that exceed a second",
	"ODHPlatformCertificateExpiring": "requires months: the manager replaces certificates long before they expire",
}

// The specs reproduce the faults of runbooks. The rules are those of config/prometheus with short durations.
var _ = Describe("Prometheus", Ordered, ContinueOnFailure, func() {
	var (
		p         *prometheus
		namespace string
	)
	in := func(args ...string) []string { return append([]string{"-n", namespace}, args...) }
	// patchRegistry patches the registry.
	patchRegistry := func(ctx context.Context, patch string) {
		GinkgoHelper()
		kubectl(ctx, in("patch", "modelregistry", sample, "--type=merge", "-p", patch)...)
	}
	// touchRegistry changes an annotation of the registry, so that the manager reconciles it.
	touchRegistry := func(ctx context.Context) {
		GinkgoHelper()
		patchRegistry(ctx, fmt.Sprintf(`{"metadata": {"annotations": {"example.com/number": "%d"}}}`, time.Now().UnixNano()))
	}
	// deleteRole deletes a child object of the registry, which the manager recreates.
	deleteRole := func(ctx context.Context) {
		GinkgoHelper()
		kubectl(ctx, in("delete", "role", "registry-user-"+sample, "--ignore-not-found")...)
	}
	waitReady := func(ctx context.Context) {
		GinkgoHelper()
		kubectl(ctx, in("wait", "modelregistry/"+sample, "--for=condition=Ready", fmt.Sprint("--timeout=", podTimeout))...)
	}
	// once returns a function that causes the fault only in the first call.
	once := func(fault func(ctx context.Context)) func(context.Context) {
		done := false
		return func(ctx context.Context) {
			GinkgoHelper()
			if !done {
				done = true
				fault(ctx)
			}
		}
	}

	BeforeAll(func(ctx SpecContext) {
		p = startPrometheus(ctx)
		namespace = env.Namespace(ctx, "watched")
		DeferCleanup(func(ctx context.Context) {
			kubectl(ctx, in("delete", "modelregistry", sample, "--ignore-not-found", "--timeout=60s")...)
		}, NodeTimeout(podTimeout))
	}, NodeTimeout(startTimeout))

	AfterEach(func(ctx SpecContext) {
		if CurrentSpecReport().Failed() && p != nil {
			p.printState(ctx)
		}
	}, NodeTimeout(time.Minute))

	It("loads every rule without an error", func(ctx SpecContext) {
		Eventually(ctx, p.rules, podTimeout).Should(SatisfyAll(
			HaveLen(strings.Count(p.manifests, "expr:")), HaveEach(HaveField("Health", "ok"))))
	}, SpecTimeout(specTimeout))

	It("scrapes MLflow, and the manager only with a token, and alerts when a migration fails", func(ctx SpecContext) {
		Expect(images.MLflow(ctx, store, checkout, images.MLflowImage)).To(Succeed())
		DeferCleanup(removeMLflow)
		kubectl(ctx, "apply", "-f", filepath.Join(checkout, "config", "samples", "mlflow_minimal.yaml"))
		waitMLflowReady(ctx)
		Eventually(ctx, p.services, podTimeout).WithArguments("up == 1").Should(ConsistOf("mlflow", metricsService))
		Eventually(ctx, p.services, podTimeout).WithArguments("scrape_samples_scraped > 10").Should(ConsistOf("mlflow", metricsService))
		Expect(p.series(ctx, "up == 0")).To(BeEmpty())

		applyTemporarily(ctx, monitorWithoutToken)
		Eventually(ctx, p.services, podTimeout).WithArguments("up == 0").Should(ConsistOf(metricsService))

		p.expectFiring(ctx, once(func(ctx context.Context) {
			runInServer(ctx, setUnknownSchema)
			kubectl(ctx, "patch", "mlflow", "mlflow", "--type=merge", "-p", `{"spec": {"migration": {"mode": "Always"}}}`)
		}), "ODHPlatformMigrationFailed")
		removeMLflow(ctx)
		p.expectResolved(ctx, "ODHPlatformResourceNotAvailable")
	}, SpecTimeout(specTimeout))

	It("alerts while a resource is not ready", func(ctx SpecContext) {
		text, err := os.ReadFile(filepath.Join(checkout, "config", "samples", "modelregistry_proxy.yaml"))
		Expect(err).NotTo(HaveOccurred())
		p.expectFiring(ctx, once(func(ctx context.Context) {
			apply(ctx, namespace, string(text))
			patchRegistry(ctx, `{"spec": {"rest": {"image": "quay.io/example/absent:1"}}}`)
		}), "ODHPlatformResourceNotAvailable")
		Expect(p.series(ctx, "kind:odh_platform_unavailable:sum")).NotTo(BeEmpty())
		patchRegistry(ctx, `{"spec": {"rest": {"image": null}}}`)
		waitReady(ctx)
		p.expectResolved(ctx, "ODHPlatformResourceNotAvailable")
	}, SpecTimeout(specTimeout))

	It("alerts while an AppWrapper cannot delete its pods", func(ctx SpecContext) {
		p.expectFiring(ctx, once(func(ctx context.Context) {
			apply(ctx, namespace, stuckAppWrapper)
			waitPodReady(ctx, namespace, "stuck")
			kubectl(ctx, in("delete", "appwrapper", "stuck", "--wait=false")...)
		}), "ODHPlatformAppWrapperStuck")
		kubectl(ctx, in("patch", "pod", "stuck", "--type=merge", "-p", `{"metadata": {"finalizers": null}}`)...)
		p.expectResolved(ctx, "ODHPlatformAppWrapperStuck")
	}, SpecTimeout(specTimeout))

	It("alerts when webhooks reject most requests", func(ctx SpecContext) {
		p.expectFiring(ctx, func(ctx context.Context) {
			_, err := tryKubectl(ctx, strings.Repeat(registryWithoutDatabase+"\n", 10), in("create", "--dry-run=server", "-f", "-")...)
			Expect(err).To(MatchError(ContainSubstring(noDatabaseMessage)))
		}, "ODHPlatformWebhookRefusals")
	}, SpecTimeout(specTimeout))

	It("alerts when another client deletes a child object repeatedly", func(ctx SpecContext) {
		p.expectFiring(ctx, deleteRole, "ODHPlatformWriteStorm")
	}, SpecTimeout(specTimeout))

	It("alerts when the webhook of another project fails", func(ctx SpecContext) {
		applyTemporarily(ctx, os.Expand(unreachableWebhook, func(string) string { return namespace }))
		deleteRole(ctx)
		p.expectFiring(ctx, touchRegistry, "ODHPlatformAPIErrors", "ODHPlatformReconcileErrors")
	}, SpecTimeout(specTimeout))

	It("alerts when a webhook cannot review the permissions of authors", func(ctx SpecContext) {
		p.expectFiring(ctx, func(ctx context.Context) {
			restore := removePermission(ctx, "subjectaccessreviews")
			Eventually(ctx, func(ctx context.Context) error {
				_, err := tryKubectl(ctx, readSample("modelregistry_postgres.yaml"), in("create", "--dry-run=server", "-f", "-")...)
				return err
			}, podTimeout).Should(MatchError(ContainSubstring("the permissions of the author")))
			restore(ctx) // without the permission, the manager rejects the requests of Prometheus too
		}, "ODHPlatformWebhookFailing", "ODHPlatformAPIForbidden")
	}, SpecTimeout(specTimeout))

	It("alerts while the API server is slow and throttles the manager", func(ctx SpecContext) {
		apply(ctx, namespace, unresponsivePod)
		waitPodReady(ctx, namespace, "unresponsive")
		throttling := applyTemporarily(ctx, os.Expand(throttledAPIServer, func(string) string {
			return kubectl(ctx, in("get", "pod", "unresponsive", "-o", "jsonpath={.status.podIP}")...)
		}))
		p.expectFiring(ctx, once(func(ctx context.Context) {
			_, err := tryKubectl(ctx, strings.Repeat(waitingAppWrapper, backlog), in("create", "-f", "-")...)
			Expect(err).NotTo(HaveOccurred())
		}), "ODHPlatformWorkqueueBacklog", "ODHPlatformAPIThrottled")
		throttling.delete(ctx)
		p.expectResolved(ctx, "ODHPlatformWorkqueueBacklog")
		kubectl(ctx, in("delete", "appwrappers", "--all", fmt.Sprint("--timeout=", podTimeout))...)
	}, SpecTimeout(specTimeout))

	It("alerts while etcd and the pods of models do not respond", func(ctx SpecContext) {
		runMake(ctx, "install-kserve-crds")
		mesh := env.Namespace(ctx, "mesh")
		kubectl(ctx, "label", "namespace", mesh, "modelmesh-enabled=true")
		applyTemporarily(ctx, os.Expand(meshUnreachable, func(string) string { return mesh }))
		p.expectFiring(ctx, func(context.Context) {}, "ODHPlatformMeshEtcdUnreachable", "ODHPlatformMeshCallsFailing")
	}, SpecTimeout(specTimeout))

	It("alerts when a CA that a user created for a Ray cluster expires soon", func(ctx SpecContext) {
		Expect(cluster.InstallSet(ctx, env.Config, cluster.KubeRay)).To(Succeed())
		names := raycluster.View(map[string]any{"metadata": map[string]any{"namespace": namespace, "name": "demo"}}).HashedNames()
		caSecret, err := certs.EnsureRoot(nil, certs.RootOptions{CommonName: "authority", Lifetime: 7 * 24 * time.Hour}, time.Now())
		Expect(err).NotTo(HaveOccurred())
		Expect(env.Admin.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: names.CASecret}, Data: caSecret.Data})).To(Succeed())
		p.expectFiring(ctx, once(func(ctx context.Context) { apply(ctx, namespace, readSample("raycluster.yaml")) }), "ODHPlatformRayCertificateExpiring")
		kubectl(ctx, in("delete", "raycluster", "demo", fmt.Sprint("--timeout=", podTimeout))...)
	}, SpecTimeout(specTimeout))

	It("alerts when the manager cannot write its CA to a webhook configuration", func(ctx SpecContext) {
		removePermission(ctx, "validatingwebhookconfigurations")
		p.expectFiring(ctx, once(func(ctx context.Context) {
			kubectl(ctx, "patch", "validatingwebhookconfiguration", "catalog-validating-webhook-configuration", "--type=json", "-p",
				`[{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]`)
		}), "ODHPlatformWebhookUntrusted")
	}, SpecTimeout(specTimeout))

	It("alerts while no manager runs, and while another client holds its Lease", func(ctx SpecContext) {
		scale := func(ctx context.Context, replicas string) {
			GinkgoHelper()
			kubectl(ctx, "-n", operatorNamespace, "scale", managerDeployment, "--replicas="+replicas)
		}
		patchLease := func(ctx context.Context, spec string) {
			GinkgoHelper()
			kubectl(ctx, "-n", operatorNamespace, "patch", "lease", leaseName, "--type=merge", "-p", `{"spec": `+spec+`}`)
		}
		replicas := kubectl(ctx, "-n", operatorNamespace, "get", managerDeployment, "-o", "jsonpath={.spec.replicas}")
		p.expectFiring(ctx, once(func(ctx context.Context) { scale(ctx, "0") }), "ODHPlatformManagerDown")
		scale(ctx, replicas)
		waitRollout(ctx, operatorNamespace, managerDeployment)
		p.expectResolved(ctx, "ODHPlatformManagerDown")

		p.expectFiring(ctx, once(func(ctx context.Context) {
			patchLease(ctx, `{"holderIdentity": "another", "leaseDurationSeconds": 3600}`)
		}), "ODHPlatformNoLeader")
		patchLease(ctx, `{"holderIdentity": "", "leaseDurationSeconds": 1}`)
		p.expectResolved(ctx, "ODHPlatformNoLeader")
	}, SpecTimeout(specTimeout))

	It("alerts when the manager restarts repeatedly", func(ctx SpecContext) {
		const restarts = `sum(changes(process_start_time_seconds{job="` + metricsService + `"}[30m]))`
		killed := 0
		p.expectFiring(ctx, func(ctx context.Context) {
			scraped, err := p.series(ctx, fmt.Sprintf("%s >= %d", restarts, killed))
			Expect(err).NotTo(HaveOccurred())
			pods := managerPodUIDs(ctx)
			// Kill the pods in turn: the kubelet doubles the backoff of a pod with each restart.
			if len(scraped) > 0 && len(pods) > 0 && killManager(pods[killed%len(pods)]) > 0 {
				killed++
			}
		}, "ODHPlatformManagerRestarts")
		waitRollout(ctx, operatorNamespace, managerDeployment)
	}, SpecTimeout(specTimeout))

	It("has data for every recording rule, and a spec or a reason for every alert", func(ctx SpecContext) {
		rules, err := p.rules(ctx)
		Expect(err).NotTo(HaveOccurred())
		var alerts, covered []string
		for _, rule := range rules {
			if rule.Type == "alerting" {
				alerts = append(alerts, rule.Name)
			} else {
				Expect(p.series(ctx, fmt.Sprintf("last_over_time(%s[1h])", rule.Name))).NotTo(BeEmpty(), rule.Name)
			}
		}
		for alert := range p.fired {
			covered = append(covered, alert)
		}
		for alert := range untriggeredAlerts {
			covered = append(covered, alert)
		}
		Expect(covered).To(ConsistOf(alerts))
	}, SpecTimeout(specTimeout))
})

// temporaryObjects are manifests of objects that are deleted after the spec at the latest.
type temporaryObjects string

// applyTemporarily applies objects, and deletes them after the spec.
func applyTemporarily(ctx context.Context, objects string) temporaryObjects {
	GinkgoHelper()
	temporary := temporaryObjects(objects)
	DeferCleanup(temporary.delete, NodeTimeout(podTimeout))
	apply(ctx, "", objects)
	return temporary
}

// delete deletes the objects.
func (o temporaryObjects) delete(ctx context.Context) {
	GinkgoHelper()
	_, err := tryKubectl(ctx, string(o), "delete", "--ignore-not-found", "-f", "-")
	Expect(err).NotTo(HaveOccurred())
}

// removePermission removes the rules for resources from the ClusterRole of the manager. The returned function restores the rules; it also
// runs after the spec.
func removePermission(ctx context.Context, resources ...string) (restore func(ctx context.Context)) {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "odh-platform-operator-manager"}}
	Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(role), role)).To(Succeed())
	set := func(ctx context.Context, rules []rbacv1.PolicyRule) {
		GinkgoHelper()
		original := role.DeepCopy()
		role.Rules = rules
		Expect(env.Admin.Patch(ctx, role, client.MergeFrom(original))).To(Succeed())
	}
	before := slices.Clone(role.Rules)
	set(ctx, slices.DeleteFunc(slices.Clone(before), func(rule rbacv1.PolicyRule) bool {
		return slices.ContainsFunc(resources, func(resource string) bool { return slices.Contains(rule.Resources, resource) })
	}))
	Expect(len(role.Rules)).To(BeNumerically("<", len(before)))
	restore = func(ctx context.Context) {
		GinkgoHelper()
		set(ctx, before)
	}
	DeferCleanup(restore, NodeTimeout(podTimeout))
	return restore
}
