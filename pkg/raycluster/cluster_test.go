package raycluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestView(t *testing.T) {
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
  workerGroupSpecs: [{}, {}]
`)
	if !c.Deleted() || !c.Suspended() || !c.Autoscaled() || !c.ManagedElsewhere() || c.ManagedBy() != ManagerMultiKueue || c.Hashed() ||
		c.HeadAccount() != "mine" || !c.HasPullSecrets() || c.Workers() != 2 || c.Owner() != "RayJob" || c.Name() != "c" || c.Namespace() != "ns" {
		t.Errorf("%+v", c)
	}
	for name, odd := range map[string]Cluster{
		"nothing":     {},
		"empty":       clusterOf(t, "{}"),
		"other types": clusterOf(t, "metadata: [1]\nspec: {suspend: 'true', managedBy: 5, headGroupSpec: text, workerGroupSpecs: {}}"),
		"types below": clusterOf(t, "metadata: {name: 1, annotations: x, ownerReferences: {}}\nspec: {headGroupSpec: {template: {spec: [1]}}}"),
	} {
		if odd.Deleted() || odd.Suspended() || odd.Autoscaled() || odd.ManagedElsewhere() || odd.Hashed() || odd.HeadAccount() != "" ||
			odd.HasPullSecrets() || odd.Workers() != 0 || odd.Name() != "" || odd.Owner() != "" || odd.OwnSecurity() != (OwnSecurity{}) {
			t.Errorf("%s: %+v", name, odd)
		}
	}
	if c := clusterOf(t, "spec: {managedBy: ray.io/kuberay-operator}"); c.ManagedElsewhere() {
		t.Error("KubeRay is here")
	}
	if _, err := Parse([]byte("[")); err == nil {
		t.Error("no object")
	}
}

func TestOwnSecurity(t *testing.T) {
	for spec, want := range map[string]OwnSecurity{
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
		if diff := cmp.Diff(want, clusterOf(t, "spec: "+spec).OwnSecurity()); diff != "" {
			t.Errorf("%s: %s", spec, diff)
		}
	}
}
