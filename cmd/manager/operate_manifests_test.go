package main

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// selects fails the test unless a selector chooses the pods of the manager.
func selects(t *testing.T, description string, selector *metav1.LabelSelector, pods map[string]string) {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil || s.Empty() || !s.Matches(labels.Set(pods)) {
		t.Errorf("%s selects %v, the pods have %v, error %v", description, selector, pods, err)
	}
	if s.Matches(labels.Set{"app.kubernetes.io/name": "odh-platform-operator"}) {
		t.Errorf("%s selects foreign pods, such as those that components make", description)
	}
}

// The NetworkPolicy opens only the ports of the listeners, by name. The disruption budget allows the eviction of one pod, even the only one.
func TestManifestsAroundThePodsOfTheManager(t *testing.T) {
	deployment := manifest[appsv1.Deployment](t, "manager/deployment.yaml")[0]
	pods, ports := deployment.Spec.Template.Labels, map[string]corev1.ContainerPort{}
	for _, p := range deployment.Spec.Template.Spec.Containers[0].Ports {
		ports[p.Name] = p
	}
	policy := manifest[networkingv1.NetworkPolicy](t, "manager/network_policy.yaml")[0]
	selects(t, "the NetworkPolicy", &policy.Spec.PodSelector, pods)
	if !slices.Equal(policy.Spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) || len(policy.Spec.Ingress) != 1 {
		t.Fatalf("the policy is about %v", policy.Spec)
	}
	for _, p := range policy.Spec.Ingress[0].Ports {
		if port, found := ports[p.Port.StrVal]; !found || *p.Protocol != port.Protocol {
			t.Errorf("the policy lets %s through, which is no port of the manager", p.Port.String())
		}
		delete(ports, p.Port.StrVal)
	}
	if len(ports) > 0 {
		t.Errorf("the policy shuts %v", ports)
	}
	budget := manifest[policyv1.PodDisruptionBudget](t, "manager/disruption_budget.yaml")[0]
	selects(t, "the PodDisruptionBudget", budget.Spec.Selector, pods)
	if budget.Spec.MinAvailable != nil || budget.Spec.MaxUnavailable.IntValue() != 1 || *budget.Spec.UnhealthyPodEvictionPolicy != policyv1.AlwaysAllow {
		t.Errorf("a node with the only replica cannot be drained: %v", budget.Spec)
	}
	if *deployment.Spec.Replicas != 2 {
		t.Errorf("%d replicas", *deployment.Spec.Replicas)
	}
	var keys []string
	for _, spread := range deployment.Spec.Template.Spec.TopologySpreadConstraints {
		selects(t, "the spread", spread.LabelSelector, pods)
		keys = append(keys, spread.TopologyKey)
		// Otherwise a cluster with one node or zone could not complete a rollout.
		if spread.WhenUnsatisfiable != corev1.ScheduleAnyway || !slices.Equal(spread.MatchLabelKeys, []string{appsv1.DefaultDeploymentUniqueLabelKey}) {
			t.Errorf("%s: %s, by %v", spread.TopologyKey, spread.WhenUnsatisfiable, spread.MatchLabelKeys)
		}
	}
	if !slices.Equal(keys, []string{corev1.LabelHostname, corev1.LabelTopologyZone}) {
		t.Errorf("replicas are spread over %v, want %v", keys, []string{corev1.LabelHostname, corev1.LabelTopologyZone})
	}
}

// The ServiceMonitor selects the Service of the metrics and no other, and verifies a name that the certificate has.
func TestServicesOfTheManager(t *testing.T) {
	metrics, webhook := manifest[corev1.Service](t, "manager/metrics_service.yaml")[0], manifest[corev1.Service](t, "manager/webhook_service.yaml")[0]
	type serviceMonitor struct {
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			Selector  metav1.LabelSelector
			Endpoints []struct {
				Port, Scheme, Path string
				TLSConfig          struct {
					ServerName         string
					InsecureSkipVerify bool
					CA                 struct{ Secret corev1.SecretKeySelector }
				}
				Authorization struct{ Credentials corev1.SecretKeySelector }
			}
		}
	}
	monitor := manifest[serviceMonitor](t, "prometheus/service_monitor.yaml")[0]
	selector, err := metav1.LabelSelectorAsSelector(&monitor.Spec.Selector)
	if err != nil || !selector.Matches(labels.Set(metrics.Labels)) || selector.Matches(labels.Set(webhook.Labels)) {
		t.Errorf("the ServiceMonitor selects by %v, %v", monitor.Spec.Selector, err)
	}
	endpoint := monitor.Spec.Endpoints[0]
	if endpoint.Port != metrics.Spec.Ports[0].Name || endpoint.Scheme != "https" || endpoint.Path != "/metrics" {
		t.Errorf("unexpected endpoint of the ServiceMonitor: %+v", endpoint)
	}
	verified := endpoint.TLSConfig
	if verified.InsecureSkipVerify || verified.CA.Secret.Name != webhookSecret || verified.CA.Secret.Key != "ca.crt" ||
		!slices.Contains(serviceNames(load(t, "--namespace=here")), verified.ServerName) {
		t.Errorf("unexpected TLS configuration of the ServiceMonitor: %+v", verified)
	}
	if token := manifest[corev1.Secret](t, "prometheus/reader.yaml")[1]; token.Name != endpoint.Authorization.Credentials.Name ||
		token.Type != corev1.SecretTypeServiceAccountToken || endpoint.Authorization.Credentials.Key != corev1.ServiceAccountTokenKey {
		t.Errorf("unexpected credentials %+v of Secret %s", endpoint.Authorization.Credentials, token.Name)
	}
	if metrics.Name != metricsService {
		t.Errorf("the certificate is issued for %s, the Service is %s", metricsService, metrics.Name)
	}
}
