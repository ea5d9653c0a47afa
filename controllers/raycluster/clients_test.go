package raycluster

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// codeflare-sdk finds the HTTPRoute of a dashboard by two labels, and builds its URL from the host of the Gateway and the namespace
// and name of the cluster.
func TestClientsFindTheDashboard(t *testing.T) {
	selector, err := labels.Parse("ray.io/cluster-name=demo,ray.io/cluster-namespace=team1")
	if err != nil {
		t.Fatal(err)
	}
	u := clusterFrom(t, demoCluster("ray.openshift.ai/version: 1.0.0", fmt.Sprintf(injectedHead, "kube-rbac-proxy")))
	found := 0
	for _, o := range buildObjects(t, u, inputsFor(u, false, withExposure(config.ExposeGateway), withBackendTLS)) {
		if o.GetKind() != "HTTPRoute" || !selector.Matches(labels.Set(o.GetLabels())) {
			continue
		}
		found++
		parents, _, _ := unstructured.NestedSlice(o.Object, "spec", "parentRefs")
		if parent := parents[0].(map[string]any); parent["name"] == nil || parent["namespace"] == nil {
			t.Errorf("parentRef %v lacks the name or the namespace of the Gateway", parent)
		}
		rules, _, _ := unstructured.NestedSlice(o.Object, "spec", "rules")
		matches, _, _ := unstructured.NestedSlice(rules[0].(map[string]any), "matches")
		if path, _, _ := unstructured.NestedString(matches[0].(map[string]any), "path", "value"); path != "/ray/team1/demo" {
			t.Errorf("path %s, want %s", path, "/ray/team1/demo")
		}
	}
	if found != 1 {
		t.Errorf("got %d HTTPRoutes with the labels, want 1", found)
	}
}
