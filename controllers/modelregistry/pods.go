package modelregistry

import (
	"cmp"
	"context"
	"fmt"
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
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	common "github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/pkg/status/serving"
)

// starting are the reasons for which a container waits while all is well.
var starting = []string{"", "ContainerCreating", "PodInitializing"}

// podsOf lists pods from the cache, oldest first.
func (r *registries) podsOf(ctx context.Context, m *v1beta1.ModelRegistry, selector map[string]string) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := r.pods.List(ctx, list, client.InNamespace(m.Namespace), client.MatchingLabels(selector)); err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return list.Items, nil
}

// diagnose says why a replica is unavailable: what the server logged, else what its pods say, else what those of its database
// say. The database has the labels of the registry but for one, which distinguishes them.
func (r *registries) diagnose(ctx context.Context, m *v1beta1.ModelRegistry, d *appsv1.Deployment) (*finding, error) {
	if f, err := r.missing(ctx, m, d); f != nil || err != nil {
		return f, err
	}
	pods, err := r.podsOf(ctx, m, resources.ServerSelector(m))
	if err != nil {
		return nil, err
	}
	for i := range pods {
		if !pods[i].DeletionTimestamp.IsZero() {
			continue
		}
		if f, err := r.diagnosePod(ctx, m, d, &pods[i]); f != nil || err != nil {
			return f, err
		}
	}
	f := &finding{serving.ReasonStarting, fmt.Sprintf("Deployment is unavailable: %d containers unavailable", d.Status.UnavailableReplicas)}
	if serving.GivenUp(d.Status) {
		f.reason = serving.ReasonUnavailable
		if d.Status.UnavailableReplicas == 0 {
			f.message = "Deployment is unavailable: " + conditions.Rollout(d).Message
		}
	}
	if !generates(m) {
		return f, nil
	}
	return f, r.addDatabase(ctx, m, f)
}

// addDatabase adds to a finding what the pods of a generated database show.
func (r *registries) addDatabase(ctx context.Context, m *v1beta1.ModelRegistry, f *finding) error {
	pods, err := r.podsOf(ctx, m, resources.DatabaseSelector(m))
	if err != nil {
		return err
	}
	if cause := conditions.Diagnose(pods); cause != "" {
		f.message += "; its database: " + cause
	}
	if slices.ContainsFunc(pods, func(p corev1.Pod) bool { return !comingUp(&p) }) {
		f.reason = serving.ReasonUnavailable
	}
	return nil
}

// comingUp says whether a pod is on its way, or up: no container of it has ended or waits for anything but its start, and a node
// was found for it.
func comingUp(pod *corev1.Pod) bool {
	for _, status := range pod.Status.ContainerStatuses {
		if status.RestartCount > 0 || stuck(status) || !status.Ready && status.State.Terminated != nil {
			return false
		}
	}
	return !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse
	})
}

// missing names a Secret or ConfigMap without which the pods do not start.
func (r *registries) missing(ctx context.Context, m *v1beta1.ModelRegistry, d *appsv1.Deployment) (*finding, error) {
	used, err := r.completed(m)
	if err != nil {
		return nil, err
	}
	resolved, err := r.references.Resolve(ctx, m.UID, m.Namespace, consumed(m, used))
	if err != nil {
		return nil, err
	}
	absent, err := r.references.Absent(ctx, m.Namespace, reference.OfPods(&m.Spec.Pods))
	all := append(resolved.Missing, absent...)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	first := all[0]
	if first.Name == resources.ServingSecretName(m) && m.Spec.KubeRBACProxy.TLSCertificateSecret == nil && !serving.GivenUp(d.Status) {
		return &finding{serving.ReasonStarting, "Deployment is unavailable: Secret " + first.Name + " has not been made yet"}, nil
	}
	return &finding{serving.ReasonUnavailable, "Deployment is unavailable: " + first.String()}, nil
}

func (r *registries) diagnosePod(ctx context.Context, m *v1beta1.ModelRegistry, d *appsv1.Deployment, pod *corev1.Pod) (*finding, error) {
	if status, ok := statusOf(pod, resources.ServerContainer); ok && stuck(status) {
		f, err := r.logged(ctx, m, pod, status)
		if f != nil || err != nil {
			return f, err
		}
	}
	reason := serving.ReasonUnavailable
	if comingUp(pod) && !serving.GivenUp(d.Status) {
		reason = serving.ReasonStarting
	}
	if unready := unreadyContainers(pod); unready != "" {
		return &finding{reason, fmt.Sprintf("Deployment is unavailable: pod %s has unready containers [%s]", pod.Name, unready)}, nil
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse {
			return &finding{reason, fmt.Sprintf("Deployment is unavailable: pod %s containers not ready: {reason: %s, message: %s}",
				pod.Name, c.Reason, c.Message)}, nil
		}
	}
	return nil, nil
}

// stuck says whether a container waits for something else than its start.
func stuck(status corev1.ContainerStatus) bool {
	return !status.Ready && status.State.Waiting != nil && !slices.Contains(starting, status.State.Waiting.Reason)
}

// unreadyContainers describes the containers of a pod that wait or have ended.
func unreadyContainers(pod *corev1.Pod) string {
	var all []string
	for _, status := range pod.Status.ContainerStatuses {
		waiting, ended := status.State.Waiting, status.State.Terminated
		switch {
		case status.Ready:
		case waiting != nil:
			all = append(all, fmt.Sprintf("%s: {waiting: {reason: %s, message: %s}}", status.Name, waiting.Reason, waiting.Message))
		case ended != nil:
			all = append(all, fmt.Sprintf("%s: {terminated: {reason: %s, message: %s}}", status.Name, ended.Reason, ended.Message))
		}
	}
	return strings.Join(all, ", ")
}

func statusOf(pod *corev1.Pod, container string) (corev1.ContainerStatus, bool) {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == container {
			return status, true
		}
	}
	return corev1.ContainerStatus{}, false
}

// checkProxy says what keeps callers from reaching the server through its proxy; empty when nothing does.
func (r *registries) checkProxy(ctx context.Context, m *v1beta1.ModelRegistry, d *appsv1.Deployment) (string, error) {
	pods, err := r.podsOf(ctx, m, resources.ServerSelector(m))
	if err != nil {
		return "", err
	}
	if message := judgePods(resources.ServiceName(m), pods); message != "" {
		if slices.ContainsFunc(pods, func(p corev1.Pod) bool { return hasProxy(&p) }) {
			return message, nil
		}
		f, err := r.missing(ctx, m, d)
		if f != nil {
			message = f.message // without it no pod with a proxy starts
		}
		return message, err
	}
	routed := m.Spec.KubeRBACProxy.ServiceRoute != v1beta1.RouteDisabled && r.served().Has(capability.Route)
	if !routed {
		return "", nil
	}
	route := wholeObject(capability.Route)
	err = r.whole.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: resources.SecureRouteName(m)}, route)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading Route %s: %w", resources.SecureRouteName(m), err)
	}
	if apierrors.IsNotFound(err) {
		return fmt.Sprintf("KubeRBACProxy Route %s is unavailable: it does not exist yet", resources.SecureRouteName(m)), nil
	}
	typed, err := common.Decode[routev1.Route](route)
	if err != nil {
		return "", err
	}
	return judgeRoute(typed), nil
}

// judgePods demands one active pod in which everything is ready, the proxy among it. Containers that others inject count like
// any other.
func judgePods(deployment string, pods []corev1.Pod) string {
	if len(pods) == 0 {
		return "No Pods found for Deployment " + deployment
	}
	message := "No active Pods found for Deployment " + deployment
	for i := range pods {
		if !pods[i].DeletionTimestamp.IsZero() {
			continue
		}
		if message = judgePod(&pods[i]); message == "" {
			return ""
		}
	}
	return message
}

func judgePod(pod *corev1.Pod) string {
	if !hasProxy(pod) {
		return "kube-rbac-proxy proxy unavailable in Pod " + pod.Name
	}
	if len(pod.Status.ContainerStatuses) < len(pod.Spec.Containers) {
		return "container status not yet available in Pod " + pod.Name
	}
	for _, status := range pod.Status.ContainerStatuses {
		if !status.Ready {
			return fmt.Sprintf("container %s not ready in Pod %s", status.Name, pod.Name)
		}
	}
	return ""
}

// judgeRoute demands that a router admits the Route.
func judgeRoute(route *routev1.Route) string {
	detail := ""
	for _, ingress := range route.Status.Ingress {
		for _, c := range ingress.Conditions {
			if c.Type != routev1.RouteAdmitted {
				continue
			}
			if c.Status == corev1.ConditionTrue {
				return ""
			}
			detail = fmt.Sprintf("{reason: %s, message: %s}", c.Reason, c.Message)
		}
	}
	return strings.TrimRight(fmt.Sprintf("KubeRBACProxy Route %s is unavailable: Host %s in Route %s is unavailable: %s",
		route.Name, route.Spec.Host, route.Name, detail), " ")
}
