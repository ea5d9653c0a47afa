package modelcatalog

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/pkg/status/serving"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// running returns a Deployment that has been available for a time, with additional conditions.
func running(since time.Duration, more ...appsv1.DeploymentCondition) *appsv1.Deployment {
	d := &appsv1.Deployment{}
	d.Status.Conditions = append(more, appsv1.DeploymentCondition{
		Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-since)),
	})
	return d
}

func endpoints(ready *bool, addresses ...string) []discoveryv1.EndpointSlice {
	return []discoveryv1.EndpointSlice{{Endpoints: []discoveryv1.Endpoint{{
		Addresses: addresses, Conditions: discoveryv1.EndpointConditions{Ready: ready},
	}}}}
}

func waitingStatus(container, reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: container, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
}

func podWith(initial, others []corev1.ContainerStatus) corev1.Pod {
	return corev1.Pod{Status: corev1.PodStatus{InitContainerStatuses: initial, ContainerStatuses: others}}
}

// [D18] A container that waits for its init containers is not a problem.
func TestAddPodCause(t *testing.T) {
	one := func(reason, message string) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{waitingStatus("catalog", reason, message)}
	}
	asked := serving.Unavailable("as before")
	terminated := podWith(nil, one("ErrImagePull", "x"))
	terminated.DeletionTimestamp = new(metav1.NewTime(now))
	unschedulable := corev1.Pod{}
	unschedulable.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/1 nodes are available: 1 Insufficient cpu."}}
	for name, c := range map[string]struct {
		pods []corev1.Pod
		want string
	}{
		"no pods":          {nil, "DeploymentUnavailable as before"},
		"starting":         {[]corev1.Pod{podWith(nil, one("ContainerCreating", ""))}, "DeploymentUnavailable as before"},
		"initialising":     {[]corev1.Pod{podWith(nil, one("PodInitializing", ""))}, "DeploymentUnavailable as before"},
		"no image":         {[]corev1.Pod{podWith(nil, one("ErrImagePull", "not there"))}, "ConfigurationError container catalog waiting: not there"},
		"without message":  {[]corev1.Pod{podWith(nil, one("CreateContainerError", ""))}, "ConfigurationError container catalog waiting: CreateContainerError"},
		"ends and ends":    {[]corev1.Pod{podWith(nil, one("CrashLoopBackOff", "back-off 20s restarting"))}, "ConfigurationError container catalog waiting: CrashLoopBackOff"},
		"before the start": {[]corev1.Pod{podWith([]corev1.ContainerStatus{waitingStatus("catalog-data-init", "InvalidImageName", "bad")}, one("PodInitializing", ""))}, "ConfigurationError container catalog-data-init waiting: bad"},
		"being deleted":    {[]corev1.Pod{terminated}, "DeploymentUnavailable as before"},
		"nowhere to run":   {[]corev1.Pod{unschedulable}, "DeploymentUnavailable Deployment is unavailable: the pod cannot be scheduled"},
	} {
		a := addPodCause(asked, &appsv1.Deployment{}, c.pods)
		if got := a.Reason + " " + a.Message; !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: got  %s\nwant %s", name, got, c.want)
		}
	}
}

func catalogNamed(namespace, name, uid string, age time.Duration) aihubv1alpha1.Catalog {
	c := aihubv1alpha1.Catalog{}
	c.Namespace, c.Name, c.CreationTimestamp = namespace, name, metav1.NewTime(now.Add(-age))
	c.UID = types.UID(uid)
	return c
}

// [D23] One Catalog is active; each other one names it and the fix.
func TestInactiveState(t *testing.T) {
	first, second := catalogNamed("a", "catalog", "1", 2*time.Hour), catalogNamed("b", "catalog", "2", time.Hour)
	twin, misnamed := catalogNamed("c", "catalog", "3", 2*time.Hour), catalogNamed("a", "other", "4", 3*time.Hour)
	going := catalogNamed("d", "catalog", "5", 5*time.Hour)
	going.DeletionTimestamp = new(metav1.NewTime(now))
	all := []aihubv1alpha1.Catalog{second, twin, first, misnamed, going}
	for name, c := range map[string]struct {
		catalog   aihubv1alpha1.Catalog
		namespace string
		reason    string
		says      string
	}{
		"the oldest":                   {first, "", "", ""},
		"a younger one":                {second, "", ReasonNotActive, "namespace a"},
		"same creation time":           {twin, "", ReasonNotActive, "namespace a"},
		"of another name":              {misnamed, "", ReasonMisplaced, `named "catalog"`},
		"in another namespace":         {first, "b", ReasonMisplaced, "namespace b"},
		"in the one for catalogs":      {second, "b", "", ""},
		"other Catalog is terminating": {catalogNamed("e", "catalog", "6", 0), "e", "", ""},
	} {
		a := inactiveState(&c.catalog, append(all, c.catalog), c.namespace)
		if a.Reason != c.reason || !strings.Contains(a.Message, c.says) {
			t.Errorf("%s: unexpected reason %s or message %q", name, a.Reason, a.Message)
		}
		if c.reason != "" && !strings.Contains(a.Message, "delete") {
			t.Errorf("%s: %q names no remedy", name, a.Message)
		}
	}
	if activeCatalog(nil, "") != nil {
		t.Error("activeCatalog returns a Catalog of an empty list")
	}
}

func TestSetAvailable(t *testing.T) {
	c := sample()
	c.Generation = 3
	setAvailable(c, serving.Unavailable("why"))
	got, _ := conditions.Get(c.Status.Conditions, ConditionAvailable)
	if got.Status != metav1.ConditionFalse || got.Reason != serving.ReasonUnavailable || got.Message != "why" || got.ObservedGeneration != 3 {
		t.Errorf("got condition %+v, want False with the reason and message of the server, for generation 3", got)
	}
}
