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
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/node/images"
)

var (
	//go:embed testdata/stuck.yaml
	stuckAppWrapper string
	//go:embed testdata/faults.yaml
	absentWebhook string
	//go:embed testdata/without_token.yaml
	withoutToken string
)

// withoutFault are the alerts whose fault no spec causes, with the reason. Package test/prometheus tests with the engine of Prometheus when
// they fire.
var withoutFault = map[string]string{
	"ODHPlatformManagerMemoryHigh":      "requires thousands of objects",
	"ODHPlatformComponentFailing":       "requires a CRD whose API is not served",
	"ODHPlatformReconcilePanics":        "requires a defect of the operator",
	"ODHPlatformWorkqueueStuck":         "requires a defect of the operator",
	"ODHPlatformWorkqueueBacklog":       "requires hundreds of objects and a slow API server",
	"ODHPlatformMigrationFailed":        "requires a broken database",
	"ODHPlatformMigrationSlow":          "requires an hour",
	"ODHPlatformCertificateExpiring":    "requires months: the manager replaces certificates that expire earlier",
	"ODHPlatformRayCertificateExpiring": "requires months",
	"ODHPlatformAPIThrottled":           "requires an API server that throttles",
	"ODHPlatformWebhookSlow":            "requires a slow API server",
	"ODHPlatformWebhookFailing":         "requires settings of models or Ray clusters that cannot be read",
	"ODHPlatformMeshEtcdUnreachable":    "requires models",
	"ODHPlatformMeshCallsFailing":       "requires models",
}

// The specs cause faults that the runbooks name, and fix them. The rules are those of config/prometheus with shorter times.
var _ = Describe("Prometheus", Ordered, ContinueOnFailure, func() {
	var (
		p         *prometheus
		namespace string
	)
	in := func(args ...string) []string { return append([]string{"-n", namespace}, args...) }
	// change patches the registry.
	change := func(ctx context.Context, patch string) {
		GinkgoHelper()
		kubectl(ctx, in("patch", "modelregistry", sample, "--type=merge", "-p", patch)...)
	}
	// reconciled makes the manager reconcile the registry.
	reconciled := func(ctx context.Context) {
		GinkgoHelper()
		change(ctx, fmt.Sprintf(`{"metadata": {"annotations": {"example.com/number": "%d"}}}`, time.Now().UnixNano()))
	}
	// deleteRole deletes a child object of the registry, which the manager creates again.
	deleteRole := func(ctx context.Context) {
		GinkgoHelper()
		kubectl(ctx, in("delete", "role", "registry-user-"+sample, "--ignore-not-found")...)
	}
	available := func(ctx context.Context) {
		GinkgoHelper()
		kubectl(ctx, in("wait", "modelregistry/"+sample, "--for=condition=Ready", fmt.Sprint("--timeout=", podTimeout))...)
	}
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
			p.describe(ctx)
		}
	}, NodeTimeout(time.Minute))

	It("loads every rule without an error", func(ctx SpecContext) {
		Eventually(ctx, p.rules, podTimeout).Should(SatisfyAll(
			HaveLen(strings.Count(p.manifests, "expr:")), HaveEach(HaveField("Health", "ok"))))
	}, SpecTimeout(specTimeout))

	It("scrapes the manager and MLflow as their ServiceMonitors request, and not without a token", func(ctx SpecContext) {
		Expect(images.MLflow(ctx, store, checkout, images.MLflowImage)).To(Succeed())
		DeferCleanup(removeMLflow)
		kubectl(ctx, "apply", "-f", filepath.Join(checkout, "config", "samples", "mlflow_minimal.yaml"))
		awaitMLflow(ctx)
		Eventually(ctx, p.services, podTimeout).WithArguments("up == 1").Should(ConsistOf("mlflow", metricsService))
		Eventually(ctx, p.services, podTimeout).WithArguments("scrape_samples_scraped > 10").Should(ConsistOf("mlflow", metricsService))
		Expect(p.series(ctx, "up == 0")).To(BeEmpty())

		disturb(ctx, withoutToken)
		Eventually(ctx, p.services, podTimeout).WithArguments("up == 0").Should(ConsistOf(metricsService))
	}, SpecTimeout(specTimeout))

	It("alerts while a resource is not ready", func(ctx SpecContext) {
		text, err := os.ReadFile(filepath.Join(checkout, "config", "samples", "modelregistry_proxy.yaml"))
		Expect(err).NotTo(HaveOccurred())
		p.expectFiring(ctx, "ODHPlatformResourceNotAvailable", once(func(ctx context.Context) {
			apply(ctx, namespace, string(text))
			change(ctx, `{"spec": {"rest": {"image": "quay.io/example/absent:1"}}}`)
		}))
		Expect(p.series(ctx, "kind:odh_platform_unavailable:sum")).NotTo(BeEmpty())
		change(ctx, `{"spec": {"rest": {"image": null}}}`)
		available(ctx)
		p.expectResolved(ctx, "ODHPlatformResourceNotAvailable")
	}, SpecTimeout(specTimeout))

	It("alerts while an AppWrapper cannot delete its pods", func(ctx SpecContext) {
		p.expectFiring(ctx, "ODHPlatformAppWrapperStuck", once(func(ctx context.Context) {
			apply(ctx, namespace, stuckAppWrapper)
			podReady(ctx, namespace, "stuck")
			kubectl(ctx, in("delete", "appwrapper", "stuck", "--wait=false")...)
		}))
		kubectl(ctx, in("patch", "pod", "stuck", "--type=merge", "-p", `{"metadata": {"finalizers": null}}`)...)
		p.expectResolved(ctx, "ODHPlatformAppWrapperStuck")
	}, SpecTimeout(specTimeout))

	It("alerts when webhooks refuse most requests", func(ctx SpecContext) {
		p.expectFiring(ctx, "ODHPlatformWebhookRefusals", func(ctx context.Context) {
			_, err := tryKubectl(ctx, strings.Repeat(unfinishedRegistry+"\n", 10), in("create", "--dry-run=server", "-f", "-")...)
			Expect(err).To(MatchError(ContainSubstring(noDatabase)))
		})
	}, SpecTimeout(specTimeout))

	It("alerts when the webhook of another program fails", func(ctx SpecContext) {
		disturb(ctx, os.Expand(absentWebhook, func(string) string { return namespace }))
		deleteRole(ctx)
		p.expectFiring(ctx, "ODHPlatformAPIErrors", reconciled)
		p.expectFiring(ctx, "ODHPlatformReconcileErrors", reconciled)
	}, SpecTimeout(specTimeout))

	It("alerts when another client deletes a child object again and again", func(ctx SpecContext) {
		p.expectFiring(ctx, "ODHPlatformWriteStorm", deleteRole)
	}, SpecTimeout(specTimeout))

	It("alerts when the manager lacks permissions", func(ctx SpecContext) {
		withoutPermission(ctx, "validatingwebhookconfigurations")
		p.expectFiring(ctx, "ODHPlatformWebhookUntrusted", once(func(ctx context.Context) {
			kubectl(ctx, "patch", "validatingwebhookconfiguration", "catalog-validating-webhook-configuration", "--type=json", "-p",
				`[{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]`)
		}))
		Eventually(ctx, p.firing, podTimeout).WithArguments(`alertname="ODHPlatformAPIForbidden"`).ShouldNot(BeEmpty())
		p.fired["ODHPlatformAPIForbidden"] = true
	}, SpecTimeout(specTimeout))

	It("alerts while no manager runs, and while another client holds its Lease", func(ctx SpecContext) {
		scale := func(ctx context.Context, replicas string) {
			GinkgoHelper()
			kubectl(ctx, "-n", operatorNamespace, "scale", managerDeployment, "--replicas="+replicas)
		}
		lease := func(ctx context.Context, spec string) {
			GinkgoHelper()
			kubectl(ctx, "-n", operatorNamespace, "patch", "lease", leaseName, "--type=merge", "-p", `{"spec": `+spec+`}`)
		}
		replicas := kubectl(ctx, "-n", operatorNamespace, "get", managerDeployment, "-o", "jsonpath={.spec.replicas}")
		p.expectFiring(ctx, "ODHPlatformManagerDown", once(func(ctx context.Context) { scale(ctx, "0") }))
		scale(ctx, replicas)
		rolledOut(ctx, operatorNamespace, managerDeployment)
		p.expectResolved(ctx, "ODHPlatformManagerDown")

		p.expectFiring(ctx, "ODHPlatformNoLeader", once(func(ctx context.Context) {
			lease(ctx, `{"holderIdentity": "another", "leaseDurationSeconds": 3600}`)
		}))
		lease(ctx, `{"holderIdentity": "", "leaseDurationSeconds": 1}`)
		p.expectResolved(ctx, "ODHPlatformNoLeader")
	}, SpecTimeout(specTimeout))

	It("alerts when the manager restarts again and again", func(ctx SpecContext) {
		const restarts = `sum(changes(process_start_time_seconds{job="` + metricsService + `"}[30m]))`
		killed := 0
		p.expectFiring(ctx, "ODHPlatformManagerRestarts", func(ctx context.Context) {
			scraped, err := p.series(ctx, fmt.Sprintf("%s >= %d", restarts, killed))
			Expect(err).NotTo(HaveOccurred())
			if len(scraped) > 0 && killManager(podsOfManager(ctx)[0]) > 0 {
				killed++
			}
		})
		rolledOut(ctx, operatorNamespace, managerDeployment)
	}, SpecTimeout(specTimeout))

	It("has data for every recording rule, and a fault or a reason for every alert", func(ctx SpecContext) {
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
		for alert := range withoutFault {
			covered = append(covered, alert)
		}
		Expect(covered).To(ConsistOf(alerts))
	}, SpecTimeout(specTimeout))
})

// disturb applies objects until the end of the spec.
func disturb(ctx context.Context, objects string) {
	GinkgoHelper()
	DeferCleanup(func(ctx context.Context) {
		_, err := tryKubectl(ctx, objects, "delete", "--ignore-not-found", "-f", "-")
		Expect(err).NotTo(HaveOccurred())
	}, NodeTimeout(podTimeout))
	apply(ctx, "", objects)
}

// withoutPermission removes the rules for resources from the ClusterRole of the manager until the end of the spec.
func withoutPermission(ctx context.Context, resources ...string) {
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
	DeferCleanup(func(ctx context.Context) { set(ctx, before) }, NodeTimeout(podTimeout))
}
