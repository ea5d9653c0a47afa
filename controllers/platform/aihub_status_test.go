package platform

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
)

// comparedFields contains the fields of a condition that tests compare.
type comparedFields struct {
	conditionType string
	status        metav1.ConditionStatus
	reason        string
	severity      platformv1alpha1.Severity
}

func comparedFieldsOf(list []platformv1alpha1.Condition) []comparedFields {
	var out []comparedFields
	for _, c := range list {
		out = append(out, comparedFields{c.Type, c.Status, c.Reason, c.Severity})
	}
	return out
}

// The conditions of an AIHub are in a fixed order, and the phase has a value that the platform expects.
// [modelregistry-107] [modelregistry-108] [modelregistry-109] [modelregistry-112]
func TestReportHub(t *testing.T) {
	const info = platformv1alpha1.SeverityInfo
	ok := []comparedFields{{"ProvisioningSucceeded", "True", "AllResourcesApplied", ""}, {"ModelRegistryReady", "True", "AllDeploymentsAvailable", ""}, {"CatalogReady", "True", "AllDeploymentsAvailable", ""}}
	healthy := comparedFields{"Ready", "True", "AllDependentsHealthy", ""}
	for name, tc := range map[string]struct {
		facts aihubFacts
		want  []comparedFields
		phase platformv1alpha1.Phase
		ready string
	}{
		"all conditions are True": {
			aihubFacts{generation: 3, domain: "d"}, slices.Concat([]comparedFields{healthy}, ok, []comparedFields{{"Degraded", "False", "NoDegradation", info}}), "Ready", "",
		},
		"no gateway": {
			aihubFacts{generation: 3}, slices.Concat([]comparedFields{healthy}, ok, []comparedFields{{"Degraded", "True", "GatewayDomainUnavailable", info}}), "Ready", "",
		},
		"the catalog does not run": {
			aihubFacts{generation: 3, catalog: "no catalog", domain: "d"},
			[]comparedFields{{"Ready", "False", "ChildDeploymentNotReady", ""}, ok[0], ok[1], {"CatalogReady", "False", "ChildDeploymentNotReady", ""}, {"Degraded", "False", "NoDegradation", info}},
			"Not Ready", "no catalog",
		},
		"neither component runs, and no gateway": {
			aihubFacts{generation: 3, registry: "no registry", catalog: "no catalog"},
			[]comparedFields{{"Ready", "False", "ChildDeploymentNotReady", ""}, ok[0], {"ModelRegistryReady", "False", "ChildDeploymentNotReady", ""}, {"CatalogReady", "False", "ChildDeploymentNotReady", ""}, {"Degraded", "False", "NoDegradation", info}},
			"Not Ready", "no registry",
		},
		"the reconcile failed": {
			aihubFacts{generation: 3, failure: "no namespace"},
			[]comparedFields{{"Ready", "False", "DeployFailed", ""}, {"ProvisioningSucceeded", "False", "DeployFailed", ""}, ok[1], ok[2], {"Degraded", "True", "ProvisioningFailed", ""}},
			"Not Ready", "no namespace",
		},
	} {
		t.Run(name, func(t *testing.T) {
			status := &platformv1alpha1.AIHubStatus{}
			reportAIHub(status, minutesAfterStart(0), tc.facts)
			if diff := cmp.Diff(tc.want, comparedFieldsOf(status.Conditions), cmp.AllowUnexported(comparedFields{})); diff != "" {
				t.Errorf("conditions differ (-want +got):\n%s", diff)
			}
			if status.Phase != tc.phase {
				t.Errorf("phase %q, want %q", status.Phase, tc.phase)
			}
			if m := status.Conditions[0].Message; tc.ready != "" && m != tc.ready {
				t.Errorf("message of Ready %q, want %q", m, tc.ready)
			}
			for _, c := range status.Conditions {
				if c.Message == "" || c.ObservedGeneration != 3 || !c.LastTransitionTime.Equal(new(minutesAfterStart(0))) {
					t.Errorf("got condition %+v, want a message for generation 3 and the time of the report", c)
				}
			}
			before := *status.DeepCopy()
			reportAIHub(status, minutesAfterStart(9), tc.facts)
			if diff := cmp.Diff(before, *status); diff != "" {
				t.Errorf("reporting the same facts again changes the status:\n%s", diff)
			}
		})
	}
}

func TestConditionsAreAggregated(t *testing.T) {
	c := func(conditionType string, status metav1.ConditionStatus, reason string, minutes int) platformv1alpha1.Condition {
		return platformv1alpha1.Condition{Type: conditionType, Status: status, Reason: reason, LastTransitionTime: minutesAfterStart(minutes)}
	}
	withSeverityInfo := func(c platformv1alpha1.Condition) platformv1alpha1.Condition {
		c.Severity = platformv1alpha1.SeverityInfo
		return c
	}
	allTrue := []platformv1alpha1.Condition{c("ProvisioningSucceeded", "True", "A", 0), c("ModelRegistryReady", "True", "B", 0), c("CatalogReady", "True", "C", 0)}
	for name, tc := range map[string]struct {
		list   []platformv1alpha1.Condition
		status metav1.ConditionStatus
		reason string
	}{
		"no conditions":                  {nil, "Unknown", "FirstReconcile"},
		"one condition is missing":       {allTrue[:2], "Unknown", "FirstReconcile"},
		"all conditions are True":        {allTrue, "True", "AllDependentsHealthy"},
		"other conditions are ignored":   {append(allTrue[:3:3], c("Degraded", "False", "X", 0), c("Foreign", "False", "Y", 0)), "True", "AllDependentsHealthy"},
		"False before Unknown":           {[]platformv1alpha1.Condition{c("ProvisioningSucceeded", "Unknown", "A", 9), c("ModelRegistryReady", "False", "B", 1), allTrue[2]}, "False", "B"},
		"latest False":                   {[]platformv1alpha1.Condition{c("ProvisioningSucceeded", "False", "A", 1), allTrue[1], c("CatalogReady", "False", "C", 2)}, "False", "C"},
		"first of equal transition time": {[]platformv1alpha1.Condition{allTrue[0], c("CatalogReady", "False", "C", 2), c("ModelRegistryReady", "False", "B", 2)}, "False", "B"},
		"Unknown":                        {[]platformv1alpha1.Condition{allTrue[0], c("ModelRegistryReady", "Unknown", "B", 1), allTrue[2]}, "Unknown", "B"},
		"severity Info is ignored":       {[]platformv1alpha1.Condition{allTrue[0], withSeverityInfo(c("ModelRegistryReady", "False", "B", 1)), allTrue[2]}, "True", "AllDependentsHealthy"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := readyCondition(tc.list, 4); got.Status != tc.status || got.Reason != tc.reason || got.ObservedGeneration != 4 || got.Type != "Ready" {
				t.Errorf("got condition %+v, want Ready %s with reason %s", got, tc.status, tc.reason)
			}
		})
	}
}

// Ready is True if and only if all dependents are, the phase matches Ready, foreign conditions are kept, and all conditions are in a
// fixed order.
func TestHubStatusIsConsistent(t *testing.T) {
	text := rapid.SampledFrom([]string{"", "something"})
	rapid.Check(t, func(t *rapid.T) {
		status := &platformv1alpha1.AIHubStatus{}
		foreign := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"Alpha", "Paused", "Zulu", "Middle"}), 0, 4, rapid.ID[string]).Draw(t, "foreign")
		for _, conditionType := range foreign {
			status.Conditions = append(status.Conditions, platformv1alpha1.Condition{Type: conditionType, Status: "False", Message: conditionType})
		}
		for step := range rapid.IntRange(1, 5).Draw(t, "steps") {
			f := aihubFacts{
				generation: int64(step), failure: text.Draw(t, "failure"), registry: text.Draw(t, "registry"),
				catalog: text.Draw(t, "catalog"), domain: text.Draw(t, "domain"),
			}
			reportAIHub(status, minutesAfterStart(step), f)
			healthy := f.failure == "" && f.registry == "" && f.catalog == ""
			if (status.Phase == "Ready") != healthy || (status.Conditions[0].Status == "True") != healthy {
				t.Fatalf("%+v: phase %q, %+v", f, status.Phase, status.Conditions[0])
			}
		}
		conditionTypes := make([]string, 0, len(status.Conditions))
		for _, c := range status.Conditions {
			conditionTypes = append(conditionTypes, c.Type)
		}
		others := append([]string{"Degraded"}, foreign...)
		slices.Sort(others)
		if want := append([]string{"Ready", "ProvisioningSucceeded", "ModelRegistryReady", "CatalogReady"}, others...); !slices.Equal(conditionTypes, want) {
			t.Fatalf("order %v, want %v", conditionTypes, want)
		}
	})
}

// The releases of the build and of the platform become one list with unique names and without empty versions. [modelregistry-114]
// [modelregistry-111]
func TestHubReleases(t *testing.T) {
	r := func(name, version string) platformv1alpha1.Release {
		return platformv1alpha1.Release{Name: name, Version: version}
	}
	fallback := platformv1alpha1.Release{Name: "model-registry-operator", Version: "unknown", RepoURL: "https://github.com/opendatahub-io/model-registry-operator"}
	for name, tc := range map[string]struct {
		build    []platformv1alpha1.Release
		platform string
		want     []platformv1alpha1.Release
	}{
		"two releases":           {[]platformv1alpha1.Release{r("a", "1"), r("b", "2")}, "", []platformv1alpha1.Release{r("a", "1"), r("b", "2")}},
		"duplicate name":         {[]platformv1alpha1.Release{r("a", "1"), r("a", "2")}, "", []platformv1alpha1.Release{r("a", "1")}},
		"no version":             {[]platformv1alpha1.Release{r("a", "")}, "", []platformv1alpha1.Release{r("a", "unknown")}},
		"no release":             {nil, "", []platformv1alpha1.Release{fallback}},
		"no name":                {[]platformv1alpha1.Release{r("", "1")}, "", []platformv1alpha1.Release{fallback}},
		"with the platform":      {[]platformv1alpha1.Release{r("a", "1")}, "2.30.0", []platformv1alpha1.Release{r("a", "1"), r("platform", "2.30.0")}},
		"only the platform":      {nil, "2.30.0", []platformv1alpha1.Release{fallback, r("platform", "2.30.0")}},
		"release named platform": {[]platformv1alpha1.Release{r("platform", "1")}, "2", []platformv1alpha1.Release{fallback, r("platform", "2")}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, aihubReleases(tc.build, tc.platform)); diff != "" {
				t.Errorf("releases differ (-want +got):\n%s", diff)
			}
		})
	}
}
