package raycluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestClusterFields(t *testing.T) {
	c := clusterOf(t, `
metadata:
  name: c
  namespace: ns
  deletionTimestamp: "2026-01-01T00:00:00Z"
  ownerReferences: [{kind: Other}, {kind: RayJob, controller: true}]
spec:
  suspend: true
  enableInTreeAutoscaling: true
  managedBy: kueue.x-k8s.io/multikueue
  headGroupSpec: {template: {spec: {serviceAccountName: mine, imagePullSecrets: [{name: p}]}}}
  workerGroupSpecs: [{groupName: a}, {groupName: b, template: {spec: {imagePullSecrets: [{name: p}]}}}]
`)
	if !c.Terminating() || !c.Suspended() || !c.HasAutoscaler() || !c.ManagedElsewhere() || c.ManagedBy() != ManagerMultiKueue || c.HasHashedNames() ||
		c.HeadServiceAccount() != "mine" || !c.HasPullSecrets("headgroup") || c.HasPullSecrets("a") || !c.HasPullSecrets("b") || c.WorkerGroupCount() != 2 || c.OwnerKind() != "RayJob" || c.Name() != "c" || c.Namespace() != "ns" {
		t.Errorf("unexpected values of the fields of %+v", c)
	}
	for name, malformed := range map[string]Cluster{
		"unset":            {},
		"empty object":     clusterOf(t, "{}"),
		"top-level fields": clusterOf(t, "metadata: [1]\nspec: {suspend: 'true', managedBy: 5, headGroupSpec: text, workerGroupSpecs: {}}"),
		"nested fields":    clusterOf(t, "metadata: {name: 1, annotations: x, ownerReferences: {}}\nspec: {headGroupSpec: {template: {spec: [1]}}}"),
	} {
		if malformed.Terminating() || malformed.Suspended() || malformed.HasAutoscaler() || malformed.ManagedElsewhere() || malformed.HasHashedNames() || malformed.HeadServiceAccount() != "" ||
			malformed.HasPullSecrets("a") || malformed.WorkerGroupCount() != 0 || malformed.Name() != "" || malformed.OwnerKind() != "" || malformed.UserSecurity() != (UserSecurity{}) {
			t.Errorf("%s: want zero values, got %+v", name, malformed)
		}
	}
	if c := clusterOf(t, "spec: {managedBy: ray.io/kuberay-operator}"); c.ManagedElsewhere() {
		t.Error("a cluster that KubeRay manages counts as managed elsewhere")
	}
	if _, err := Parse([]byte("[")); err == nil {
		t.Error("want an error for invalid JSON")
	}
}

func TestUserSecurity(t *testing.T) {
	for spec, want := range map[string]UserSecurity{
		"{}":                              {},
		"{authOptions: {mode: token}}":    {Token: true},
		"{authOptions: {mode: disabled}}": {},
		"{authOptions: {mode: disabled, enableK8sTokenAuth: true}}": {},
		"{authOptions: {mode: token, enableK8sTokenAuth: true}}":    {Token: true, KubernetesToken: true},
		"{tlsOptions: {enabled: true}}":                             {MTLS: true},
		"{tlsOptions: {}}":                                          {},
		"{networkPolicy: {mode: DenyAll}}":                          {NetworkPolicy: true},
		"{networkPolicy: {}}":                                       {NetworkPolicy: true},
		"{networkPolicy: null}":                                     {},
	} {
		if diff := cmp.Diff(want, clusterOf(t, "spec: "+spec).UserSecurity()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", spec, diff)
		}
	}
}

// Port looks up ports by name in the Ray container of the head, as KubeRay does.
func TestPort(t *testing.T) {
	named := clusterOf(t, `spec: {headGroupSpec: {template: {spec: {containers: [{name: ray-head, ports: [{name: serve, containerPort: 9000},
  {name: dashboard, containerPort: 8266}, {name: client, containerPort: 10002}, {name: metrics, containerPort: 8081}, {name: dashboard-agent, containerPort: 52366}]},
  {name: other, ports: [{name: client, containerPort: 1}]}]}}}}`)
	invalid := clusterOf(t, `spec: {headGroupSpec: {template: {spec: {containers: [{ports: [{name: serve, containerPort: "9000"}, {name: dashboard, containerPort: -1}, 5]}]}}}}`)
	for port, want := range map[Port][2]int32{
		PortDashboard: {8266, 8265}, PortClient: {10002, 10001}, PortMetrics: {8081, 8080}, PortServe: {9000, 8000}, PortAgent: {52366, 52365},
	} {
		if got := [3]int32{named.Port(port), invalid.Port(port), (Cluster{}).Port(port)}; got != [3]int32{want[0], want[1], want[1]} {
			t.Errorf("%s: got %v, want %v", port, got, [3]int32{want[0], want[1], want[1]})
		}
	}
}
