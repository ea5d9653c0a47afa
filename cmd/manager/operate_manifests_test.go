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

// expectSelects fails the test unless a selector matches the pods of the manager, and not those of components.
func expectSelects(t *testing.T, description string, selector *metav1.LabelSelector, pods map[string]string) {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil || s.Empty() || !s.Matches(labels.Set(pods)) {
		t.Errorf("%s selects %v, the pods have %v, error %v", description, selector, pods, err)
	}
	if s.Matches(labels.Set{"app.kubernetes.io/name": "odh-platform-operator"}) {
		t.Errorf("%s selects foreign pods, such as those of components", description)
	}
}

// The NetworkPolicy allows only the ports of the listeners. The PodDisruptionBudget allows the eviction of one pod, even of the only one.
func TestNetworkPolicyAndDisruptionBudgetOfManager(t *testing.T) {
	deployment := readManifests[appsv1.Deployment](t, "manager/deployment.yaml")[0]
	pods, ports := deployment.Spec.Template.Labels, map[string]corev1.ContainerPort{}
	for _, p := range deployment.Spec.Template.Spec.Containers[0].Ports {
		ports[p.Name] = p
	}
	policy := readManifests[networkingv1.NetworkPolicy](t, "manager/network_policy.yaml")[0]
	expectSelects(t, "the NetworkPolicy", &policy.Spec.PodSelector, pods)
	if !slices.Equal(policy.Spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) || len(policy.Spec.Ingress) != 1 {
		t.Fatalf("unexpected NetworkPolicy: %v", policy.Spec)
	}
	for _, p := range policy.Spec.Ingress[0].Ports {
		if port, found := ports[p.Port.StrVal]; !found || *p.Protocol != port.Protocol {
			t.Errorf("the NetworkPolicy allows %s, which is not a port of the manager", p.Port.String())
		}
		delete(ports, p.Port.StrVal)
	}
	if len(ports) > 0 {
		t.Errorf("the NetworkPolicy does not allow %v", ports)
	}
	budget := readManifests[policyv1.PodDisruptionBudget](t, "manager/disruption_budget.yaml")[0]
	expectSelects(t, "the PodDisruptionBudget", budget.Spec.Selector, pods)
	if budget.Spec.MinAvailable != nil || budget.Spec.MaxUnavailable.IntValue() != 1 || *budget.Spec.UnhealthyPodEvictionPolicy != policyv1.AlwaysAllow {
		t.Errorf("a node with the only replica cannot be drained: %v", budget.Spec)
	}
	if *deployment.Spec.Replicas != 2 {
		t.Errorf("got %d replicas, want 2", *deployment.Spec.Replicas)
	}
	var keys []string
	for _, spread := range deployment.Spec.Template.Spec.TopologySpreadConstraints {
		expectSelects(t, "the topology spread constraint", spread.LabelSelector, pods)
		keys = append(keys, spread.TopologyKey)
		// Otherwise a cluster with one node or zone could not complete a rollout.
		if spread.WhenUnsatisfiable != corev1.ScheduleAnyway || !slices.Equal(spread.MatchLabelKeys, []string{appsv1.DefaultDeploymentUniqueLabelKey}) {
			t.Errorf("%s: unexpected whenUnsatisfiable %s or matchLabelKeys %v", spread.TopologyKey, spread.WhenUnsatisfiable, spread.MatchLabelKeys)
		}
	}
	if !slices.Equal(keys, []string{corev1.LabelHostname, corev1.LabelTopologyZone}) {
		t.Errorf("replicas are spread over %v, want %v", keys, []string{corev1.LabelHostname, corev1.LabelTopologyZone})
	}
}

// The ServiceMonitor selects only the metrics Service, and verifies a name of its certificate.
func TestServiceMonitorOfManager(t *testing.T) {
	metrics, webhook := readManifests[corev1.Service](t, "manager/metrics_service.yaml")[0], readManifests[corev1.Service](t, "manager/webhook_service.yaml")[0]
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
	monitor := readManifests[serviceMonitor](t, "prometheus/service_monitor.yaml")[0]
	selector, err := metav1.LabelSelectorAsSelector(&monitor.Spec.Selector)
	if err != nil || !selector.Matches(labels.Set(metrics.Labels)) || selector.Matches(labels.Set(webhook.Labels)) {
		t.Errorf("the ServiceMonitor selects the wrong Services: selector %v, error %v", monitor.Spec.Selector, err)
	}
	endpoint := monitor.Spec.Endpoints[0]
	if endpoint.Port != metrics.Spec.Ports[0].Name || endpoint.Scheme != "https" || endpoint.Path != "/metrics" {
		t.Errorf("unexpected endpoint of the ServiceMonitor: %+v", endpoint)
	}
	tlsConfig := endpoint.TLSConfig
	if tlsConfig.InsecureSkipVerify || tlsConfig.CA.Secret.Name != webhookSecret || tlsConfig.CA.Secret.Key != "ca.crt" ||
		!slices.Contains(serviceNames(load(t, "--namespace=here")), tlsConfig.ServerName) {
		t.Errorf("unexpected TLS configuration of the ServiceMonitor: %+v", tlsConfig)
	}
	if token := readManifests[corev1.Secret](t, "prometheus/reader.yaml")[1]; token.Name != endpoint.Authorization.Credentials.Name ||
		token.Type != corev1.SecretTypeServiceAccountToken || endpoint.Authorization.Credentials.Key != corev1.ServiceAccountTokenKey {
		t.Errorf("unexpected credentials %+v of Secret %s", endpoint.Authorization.Credentials, token.Name)
	}
	if metrics.Name != metricsService {
		t.Errorf("the certificate is issued for %s, the Service is %s", metricsService, metrics.Name)
	}
}
