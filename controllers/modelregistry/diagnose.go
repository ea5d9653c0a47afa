package modelregistry

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	routev1 "github.com/openshift/api/route/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	pkgresources "github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/rbacproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/routestatus"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/pkg/status/serving"
)

// startupReasons are the reasons of waiting containers during a normal start.
var startupReasons = []string{"", "ContainerCreating", "PodInitializing"}

// podsOf returns the current pods in the cache that match a selector, oldest first.
func (r *registryReconciler) podsOf(ctx context.Context, m *v1beta1.ModelRegistry, selector map[string]string) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := r.pods.List(ctx, list, client.InNamespace(m.Namespace), client.MatchingLabels(selector)); err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return conditions.CurrentPods(list.Items), nil
}

// diagnose returns why a replica is unavailable: a missing reference, or else the log of the server or the status of its pods. A log or
// status is followed by the problem of a generated database, because the server waits for its database.
func (r *registryReconciler) diagnose(ctx context.Context, m *v1beta1.ModelRegistry, d *appsv1.Deployment) (*conditionReason, error) {
	if problem := r.missingReference(m, d); problem != nil {
		return problem, nil
	}
	pods, err := r.podsOf(ctx, m, resources.ServerSelector(m))
	if err != nil {
		return nil, err
	}
	problem, err := r.diagnoseServer(ctx, m, d, pods)
	if err != nil || !generatesDatabase(m) {
		return problem, err
	}
	return r.withDatabaseCause(ctx, m, *problem)
}

// resourceFields maps containers to the fields with their resources.
var resourceFields = conditions.ResourceFields{
	resources.ServerContainer: "spec.rest.resources", rbacproxy.ContainerName: "spec.kubeRBACProxy.resources", resources.DatabaseContainer: "spec.postgres.resources",
}

func (r *registryReconciler) diagnoseServer(ctx context.Context, m *v1beta1.ModelRegistry, d *appsv1.Deployment, pods []corev1.Pod) (*conditionReason, error) {
	for i := range pods {
		if !pods[i].DeletionTimestamp.IsZero() {
			continue
		}
		if problem, err := r.diagnosePod(ctx, m, d, &pods[i]); problem != nil || err != nil {
			return problem, err
		}
	}
	if cause := resourceFields.Cause(d, pods); cause != "" {
		return &conditionReason{serving.ReasonUnavailable, "Deployment is unavailable: " + cause}, nil
	}
	problem := &conditionReason{serving.ReasonStarting, fmt.Sprintf("Deployment is unavailable: %d containers unavailable: waiting for its Pods", d.Status.UnavailableReplicas)}
	if serving.RolloutFailed(d.Status) {
		problem.reason = serving.ReasonUnavailable
		if d.Status.UnavailableReplicas == 0 {
			problem.message = "Deployment is unavailable: " + conditions.Rollout(d).Message
		}
	}
	return problem, nil
}

// withDatabaseCause returns a problem of the server with the problem of its generated database.
func (r *registryReconciler) withDatabaseCause(ctx context.Context, m *v1beta1.ModelRegistry, problem conditionReason) (*conditionReason, error) {
	pods, err := r.podsOf(ctx, m, resources.DatabaseSelector(m))
	if err != nil {
		return nil, err
	}
	cause, err := r.DatabaseCause(ctx, m.Namespace, resources.DatabaseName(m), pods, resourceFields)
	if err != nil {
		return nil, err
	}
	problem.message += cause
	if cause != "" && len(pods) == 0 || slices.ContainsFunc(pods, func(p corev1.Pod) bool { return !isStarting(&p) }) {
		problem.reason = serving.ReasonUnavailable
	}
	return &problem, nil
}

// isStarting reports whether a pod starts normally or runs: scheduling has not failed, and no container has restarted, has terminated or is
// stuck.
func isStarting(pod *corev1.Pod) bool {
	for _, status := range pod.Status.ContainerStatuses {
		if status.RestartCount > 0 || isStuck(status) || !status.Ready && status.State.Terminated != nil {
			return false
		}
	}
	return !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse
	})
}

// missingReference returns a reason if a Secret or ConfigMap that pods need to start is missing, or nil.
func (r *registryReconciler) missingReference(m *v1beta1.ModelRegistry, d *appsv1.Deployment) *conditionReason {
	missing := r.stateOf(m).missingReferences
	if len(missing) == 0 {
		return nil
	}
	if name := missing[0].Name; name == resources.ServingSecretName(m) && managesCertificate(m) && !serving.RolloutFailed(d.Status) {
		return &conditionReason{serving.ReasonStarting, "Deployment is unavailable: waiting for Secret " + name}
	}
	return &conditionReason{serving.ReasonUnavailable, "Deployment is unavailable: " + missing[0].String()}
}

func (r *registryReconciler) diagnosePod(ctx context.Context, m *v1beta1.ModelRegistry, d *appsv1.Deployment, pod *corev1.Pod) (*conditionReason, error) {
	if problem, err := r.problemOfServer(ctx, m, pod); problem != nil || err != nil {
		return problem, err
	}
	reason := serving.ReasonUnavailable
	if isStarting(pod) && !serving.RolloutFailed(d.Status) {
		reason = serving.ReasonStarting
	}
	if unready := unreadyContainers(pod); unready != "" {
		return &conditionReason{reason, fmt.Sprintf("Deployment is unavailable: pod %s has unready containers [%s]", pod.Name, unready)}, nil
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse {
			return &conditionReason{reason, fmt.Sprintf("Deployment is unavailable: pod %s containers not ready: {reason: %s, message: %s}",
				pod.Name, c.Reason, c.Message)}, nil
		}
	}
	return nil, nil
}

// isStuck reports whether a container waits for a reason other than its normal start.
func isStuck(status corev1.ContainerStatus) bool {
	return !status.Ready && status.State.Waiting != nil && !slices.Contains(startupReasons, status.State.Waiting.Reason)
}

// unreadyContainers describes the waiting and terminated containers of a pod.
func unreadyContainers(pod *corev1.Pod) string {
	var descriptions []string
	for _, status := range pod.Status.ContainerStatuses {
		waiting, terminated := status.State.Waiting, status.State.Terminated
		switch {
		case status.Ready:
		case waiting != nil:
			reason, message := stableWaiting(waiting)
			descriptions = append(descriptions, fmt.Sprintf("%s: {waiting: {reason: %s, message: %s}}", status.Name, reason, message))
		case terminated != nil:
			descriptions = append(descriptions, fmt.Sprintf("%s: {terminated: {reason: %s, message: %s}}", status.Name, terminated.Reason, terminated.Message))
		}
	}
	return strings.Join(descriptions, ", ")
}

var backOffTime = regexp.MustCompile(`^back-off \S+ `)

// stableWaiting returns the reason and message of a waiting container, which are the same for each restart and each attempt to pull its
// image.
func stableWaiting(waiting *corev1.ContainerStateWaiting) (reason, message string) {
	reason, message = waiting.Reason, waiting.Message
	switch reason {
	case "CrashLoopBackOff":
		message = backOffTime.ReplaceAllString(message, "")
	case "ErrImagePull":
		reason = "ImagePullBackOff"
	case "ImagePullBackOff":
		if _, cause, found := strings.Cut(message, ": ErrImagePull: "); found {
			message = cause
		}
	}
	return reason, message
}

// checkProxy returns why clients cannot reach the server through its proxy, or an empty conditionReason.
func (r *registryReconciler) checkProxy(ctx context.Context, m *v1beta1.ModelRegistry, d *appsv1.Deployment) (conditionReason, error) {
	pods, err := r.podsOf(ctx, m, resources.ServerSelector(m))
	if err != nil {
		return conditionReason{}, err
	}
	if message := checkProxyPods(resources.ServiceName(m), pods); message != "" {
		if problem := r.missingReference(m, d); problem != nil && !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return hasProxy(&p) }) {
			message = problem.message // pods with a proxy do not start without the Secret
		}
		return conditionReason{message: message}, nil
	}
	if m.Spec.KubeRBACProxy.ServiceRoute == v1beta1.RouteDisabled || !r.stateOf(m).platform.Served.Has(capability.Route) {
		return conditionReason{}, nil
	}
	route := pkgresources.NewUnstructured(capability.Route)
	err = r.FullObjects.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: resources.SecureRouteName(m)}, route)
	if client.IgnoreNotFound(err) != nil {
		return conditionReason{}, fmt.Errorf("reading Route %s: %w", resources.SecureRouteName(m), err)
	}
	if apierrors.IsNotFound(err) {
		return conditionReason{message: fmt.Sprintf("KubeRBACProxy Route %s is unavailable: waiting for its creation", resources.SecureRouteName(m))}, nil
	}
	typed, err := pkgresources.Decode[routev1.Route](route)
	if err != nil {
		return conditionReason{}, err
	}
	return checkRoute(typed), nil
}

// checkProxyPods returns a message unless one active pod has a proxy and only ready containers, including injected ones.
func checkProxyPods(deployment string, pods []corev1.Pod) string {
	if len(pods) == 0 {
		return "No Pods found for Deployment " + deployment + ": see the Events of its ReplicaSets"
	}
	message := "No active Pods found for Deployment " + deployment + ": waiting for new Pods"
	for i := range pods {
		if !pods[i].DeletionTimestamp.IsZero() {
			continue
		}
		if message = checkProxyPod(&pods[i]); message == "" {
			return ""
		}
	}
	return message
}

func checkProxyPod(pod *corev1.Pod) string {
	if !hasProxy(pod) {
		return "kube-rbac-proxy proxy unavailable in Pod " + pod.Name + ": waiting for a Pod with the proxy"
	}
	if len(pod.Status.ContainerStatuses) < len(pod.Spec.Containers) {
		return "container status not yet available in Pod " + pod.Name + ": waiting for the kubelet"
	}
	for _, status := range pod.Status.ContainerStatuses {
		if !status.Ready {
			return fmt.Sprintf("container %s not ready in Pod %s: see its log", status.Name, pod.Name)
		}
	}
	return ""
}

// checkRoute returns a reason unless a router admits the Route.
func checkRoute(route *routev1.Route) conditionReason {
	admitted, rejection := routestatus.Admitted(route)
	switch {
	case admitted:
		return conditionReason{}
	case rejection != nil:
		return conditionReason{rejection.Reason, rejection.Message}
	}
	return conditionReason{message: fmt.Sprintf("KubeRBACProxy Route %s is unavailable: Host %s in Route %s is unavailable: waiting for a router to admit it", route.Name, route.Spec.Host, route.Name)}
}
