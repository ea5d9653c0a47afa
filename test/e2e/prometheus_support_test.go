//go:build e2e

package e2e_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/node/images"
)

const (
	monitoringNamespace = "monitoring"
	metricsService      = "odh-platform-operator-metrics"
)

//go:embed testdata/prometheus.yaml
var prometheusObjects string

// intervalPattern matches the durations in rules and monitors, which the specs shorten.
var intervalPattern = regexp.MustCompile(`\b(for|interval): \w+`)

// prometheus is a client of the API of Prometheus.
type prometheus struct {
	server *externalProxy
	// manifests are the manifests of config/prometheus with short durations.
	manifests string
	// fired contains the alerts that have fired.
	fired map[string]bool
}

// startPrometheus installs the Prometheus operator with the manifests of its release, a Prometheus, and config/prometheus with short durations.
func startPrometheus(ctx context.Context) *prometheus {
	GinkgoHelper()
	programs, err := cluster.BuildMonitoring(ctx, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	Expect(images.Monitoring(store, programs)).To(Succeed())
	files, err := cluster.MonitoringDir(ctx)
	Expect(err).NotTo(HaveOccurred())
	kubectl(ctx, "apply", "--server-side", "-f", filepath.Join(files, "bundle.yaml"))
	kubectl(ctx, "wait", "crd", "--all", "--for=condition=Established", fmt.Sprint("--timeout=", podTimeout))
	kubectl(ctx, "apply", "-f", filepath.Join(files, "example", "rbac", "prometheus", "prometheus-cluster-role.yaml"))
	waitRollout(ctx, "default", "deployment/prometheus-operator")
	apply(ctx, "", prometheusObjects)
	manifests := intervalPattern.ReplaceAllString(kubectl(ctx, "kustomize", filepath.Join(checkout, "config", "prometheus")), "$1: 5s")
	apply(ctx, "", manifests)
	kubectl(ctx, "-n", monitoringNamespace, "wait", "prometheus/all", "--for=condition=Available", fmt.Sprint("--timeout=", podTimeout))
	server := &externalProxy{address: kubectl(ctx, "-n", monitoringNamespace, "get", "pod", "prometheus-all-0", "-o", "jsonpath={.status.podIP}")}
	return &prometheus{server: server, manifests: manifests, fired: map[string]bool{}}
}

// get decodes the data of a response of the API.
func (p *prometheus) get(ctx context.Context, path string, data any) error {
	body, err := p.server.get(ctx, "http://prometheus:9090/api/v1/"+path)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(body), &struct{ Data any }{data})
}

// series returns the labels of the series that an expression selects.
func (p *prometheus) series(ctx context.Context, expression string) (all []map[string]string, err error) {
	var data struct {
		Result []struct{ Metric map[string]string }
	}
	err = p.get(ctx, "query?query="+url.QueryEscape(expression), &data)
	for _, result := range data.Result {
		all = append(all, result.Metric)
	}
	return all, err
}

// services returns the sorted names of the Services of the series that an expression selects.
func (p *prometheus) services(ctx context.Context, expression string) (names []string, err error) {
	found, err := p.series(ctx, expression)
	for _, labels := range found {
		names = append(names, labels["service"])
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

// loadedRule is a rule in a response of the API.
type loadedRule struct{ Type, Name, Query, Health, LastError string }

func (p *prometheus) rules(ctx context.Context) (all []loadedRule, err error) {
	var data struct {
		Groups []struct{ Rules []loadedRule }
	}
	err = p.get(ctx, "rules", &data)
	for _, group := range data.Groups {
		all = append(all, group.Rules...)
	}
	return all, err
}

// firing returns the firing alerts.
func (p *prometheus) firing(ctx context.Context) (alerts []string, err error) {
	found, err := p.series(ctx, `ALERTS{alertstate="firing"}`)
	for _, labels := range found {
		alerts = append(alerts, labels["alertname"])
	}
	return alerts, err
}

// expectFiring expects that the alerts do not fire, and repeats a fault until all of them do.
func (p *prometheus) expectFiring(ctx context.Context, fault func(ctx context.Context), alerts ...string) {
	GinkgoHelper()
	By(strings.Join(alerts, ", "))
	start := time.Now()
	Expect(p.firing(ctx)).NotTo(ContainElement(BeElementOf(alerts)))
	Eventually(ctx, func(ctx context.Context) ([]string, error) {
		fault(ctx)
		return p.firing(ctx)
	}, podTimeout).Should(ContainElements(alerts))
	for _, alert := range alerts {
		p.fired[alert] = true
	}
	AddReportEntry(strings.Join(alerts, ", "), fmt.Sprint("after ", time.Since(start).Round(time.Second)))
}

// expectResolved expects that an alert no longer fires.
func (p *prometheus) expectResolved(ctx context.Context, alert string) {
	GinkgoHelper()
	Eventually(ctx, p.firing, podTimeout).ShouldNot(ContainElement(alert))
}

// printState prints the rules and the series that can explain a failure.
func (p *prometheus) printState(ctx context.Context) {
	rules, err := p.rules(ctx)
	GinkgoWriter.Println(rules, err)
	for _, expression := range []string{"ALERTS", "up", `odh_platform_resource_not_ready`, "controller:odh_platform_reconcile_errors:ratio_rate10m"} {
		found, err := p.series(ctx, expression)
		GinkgoWriter.Println(found, err)
	}
}
