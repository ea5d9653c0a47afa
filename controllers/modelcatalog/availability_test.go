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
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/pkg/status/serving"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// availableDeployment returns a Deployment that has been available for a duration, with additional conditions.
func availableDeployment(since time.Duration, more ...appsv1.DeploymentCondition) *appsv1.Deployment {
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

func podWith(initStatuses, statuses []corev1.ContainerStatus) corev1.Pod {
	return corev1.Pod{Status: corev1.PodStatus{InitContainerStatuses: initStatuses, ContainerStatuses: statuses}}
}

// [D18] A container that waits for its init containers is not a problem.
func TestAddPodCause(t *testing.T) {
	waiting := func(reason, message string) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{waitingStatus("catalog", reason, message)}
	}
	unavailable := serving.Unavailable("unchanged")
	terminating := podWith(nil, waiting("ErrImagePull", "x"))
	terminating.DeletionTimestamp = new(metav1.NewTime(now))
	unschedulable := corev1.Pod{}
	unschedulable.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/1 nodes are available: 1 Insufficient cpu."}}
	for name, test := range map[string]struct {
		pods []corev1.Pod
		want string
	}{
		"no pods":          {nil, "DeploymentUnavailable unchanged"},
		"creating":         {[]corev1.Pod{podWith(nil, waiting("ContainerCreating", ""))}, "DeploymentUnavailable unchanged"},
		"initializing":     {[]corev1.Pod{podWith(nil, waiting("PodInitializing", ""))}, "DeploymentUnavailable unchanged"},
		"image pull error": {[]corev1.Pod{podWith(nil, waiting("ErrImagePull", "not there"))}, "ConfigurationError container catalog waiting: not there"},
		"without message":  {[]corev1.Pod{podWith(nil, waiting("CreateContainerError", ""))}, "ConfigurationError container catalog waiting: CreateContainerError"},
		"crash loop":       {[]corev1.Pod{podWith(nil, waiting("CrashLoopBackOff", "back-off 20s restarting"))}, "ConfigurationError container catalog waiting: CrashLoopBackOff"},
		"init container":   {[]corev1.Pod{podWith([]corev1.ContainerStatus{waitingStatus("catalog-data-init", "InvalidImageName", "bad")}, waiting("PodInitializing", ""))}, "ConfigurationError container catalog-data-init waiting: bad"},
		"terminating":      {[]corev1.Pod{terminating}, "DeploymentUnavailable unchanged"},
		"unschedulable":    {[]corev1.Pod{unschedulable}, "DeploymentUnavailable Deployment is unavailable: the pod cannot be scheduled"},
	} {
		state := addPodCause(unavailable, &appsv1.Deployment{}, test.pods)
		if got := state.Reason + " " + state.Message; !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: got  %s\nwant %s", name, got, test.want)
		}
	}
}

func catalogNamed(namespace, name, uid string, age time.Duration) aihubv1alpha1.Catalog {
	c := aihubv1alpha1.Catalog{}
	c.Namespace, c.Name, c.CreationTimestamp = namespace, name, metav1.NewTime(now.Add(-age))
	c.UID = types.UID(uid)
	return c
}

// [D23] One Catalog is active. The messages of the others contain the cause and the fix.
func TestInactiveState(t *testing.T) {
	first, second := catalogNamed("a", "catalog", "1", 2*time.Hour), catalogNamed("b", "catalog", "2", time.Hour)
	sameAge, misnamed := catalogNamed("c", "catalog", "3", 2*time.Hour), catalogNamed("a", "other", "4", 3*time.Hour)
	terminating := catalogNamed("d", "catalog", "5", 5*time.Hour)
	terminating.DeletionTimestamp = new(metav1.NewTime(now))
	all := []aihubv1alpha1.Catalog{second, sameAge, first, misnamed, terminating}
	for name, test := range map[string]struct {
		catalog   aihubv1alpha1.Catalog
		namespace string
		reason    string
		message   string
	}{
		"oldest that is not terminating":       {first, "", "", ""},
		"younger":                              {second, "", ReasonNotActive, "namespace a"},
		"same creation time":                   {sameAge, "", ReasonNotActive, "namespace a"},
		"other name":                           {misnamed, "", ReasonMisplaced, `named "catalog"`},
		"outside of the namespace":             {first, "b", ReasonMisplaced, "namespace b"},
		"in the configured namespace":          {second, "b", "", ""},
		"only one in the configured namespace": {catalogNamed("e", "catalog", "6", 0), "e", "", ""},
	} {
		state := inactiveState(&test.catalog, append(all, test.catalog), test.namespace)
		if state.Reason != test.reason || !strings.Contains(state.Message, test.message) {
			t.Errorf("%s: unexpected reason %s or message %q", name, state.Reason, state.Message)
		}
		if test.reason != "" && !strings.Contains(state.Message, "delete") {
			t.Errorf("%s: message %q does not contain the fix", name, state.Message)
		}
	}
	if resources.ActiveCatalog(nil, "") != nil {
		t.Error("ActiveCatalog returns a Catalog of an empty list")
	}
}

func TestSetAvailable(t *testing.T) {
	c := newCatalog()
	c.Generation = 3
	setAvailable(c, serving.Unavailable("message"))
	got, _ := conditions.Get(c.Status.Conditions, ConditionAvailable)
	if got.Status != metav1.ConditionFalse || got.Reason != serving.ReasonUnavailable || got.Message != "message" || got.ObservedGeneration != 3 {
		t.Errorf("got condition %+v, want False with the reason and message of the server, for generation 3", got)
	}
}
