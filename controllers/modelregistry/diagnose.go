package modelregistry

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	routev1 "github.com/openshift/api/route/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/redact"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
	pkgresources "github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/rbacproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/routestatus"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/pkg/status/serving"
)

// startupReasons are the reasons of waiting containers during a normal start.
var startupReasons = []string{"", "ContainerCreating", "PodInitializing"}

// podsOf returns the pods in the cache that match a selector, oldest first.
func (r *registryReconciler) podsOf(ctx context.Context, m *v1beta1.ModelRegistry, selector map[string]string) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := r.pods.List(ctx, list, client.InNamespace(m.Namespace), client.MatchingLabels(selector)); err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return list.Items, nil
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
	problem = ptr.To(*problem) // problemInLog stores the original
	return problem, r.addDatabaseCause(ctx, m, problem)
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

// addDatabaseCause adds the problem of a generated database.
func (r *registryReconciler) addDatabaseCause(ctx context.Context, m *v1beta1.ModelRegistry, problem *conditionReason) error {
	pods, err := r.podsOf(ctx, m, resources.DatabaseSelector(m))
	if err != nil {
		return err
	}
	cause, err := r.DatabaseCause(ctx, m.Namespace, resources.DatabaseName(m), pods, resourceFields)
	if err != nil {
		return err
	}
	problem.message += cause
	if cause != "" && len(pods) == 0 || slices.ContainsFunc(pods, func(p corev1.Pod) bool { return !isStarting(&p) }) {
		problem.reason = serving.ReasonUnavailable
	}
	return nil
}

// isStarting reports whether a pod starts normally or runs: it is scheduled, and no container has restarted, failed or is stuck.
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
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name != resources.ServerContainer || !isStuck(status) {
			continue
		}
		if problem, err := r.problemInLog(ctx, m, pod, status); problem != nil || err != nil {
			return problem, err
		}
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
			descriptions = append(descriptions, fmt.Sprintf("%s: {waiting: {reason: %s, message: %s}}", status.Name, waiting.Reason, waiting.Message))
		case terminated != nil:
			descriptions = append(descriptions, fmt.Sprintf("%s: {terminated: {reason: %s, message: %s}}", status.Name, terminated.Reason, terminated.Message))
		}
	}
	return strings.Join(descriptions, ", ")
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

// Limits of the part at the end of a log that is read.
const (
	logLines = 200
	logBytes = 64 << 10
	// maxLineLength is the maximum number of bytes of a quoted line.
	maxLineLength = 400
)

const alertMarker = "{{ALERT}}"

// failedCheckLine matches the log line of a server that cannot use its database. Its groups are the status and the explanation.
var failedCheckLine = regexp.MustCompile(`Check failed: absl::OkStatus\(\) == status \(OK vs\. (.*)\) (.*)$`)

// logReader returns the end of the log of a container.
type logReader func(ctx context.Context, pod types.NamespacedName, container string) (string, error)

// newLogReader returns a logReader that uses the API server.
func newLogReader(config *rest.Config, client *http.Client) (logReader, error) {
	c := rest.CopyConfig(config)
	c.GroupVersion, c.APIPath, c.NegotiatedSerializer = &corev1.SchemeGroupVersion, "/api", scheme.Codecs.WithoutConversion()
	reader, err := rest.RESTClientForConfigAndClient(c, client)
	if err != nil {
		return nil, fmt.Errorf("building the client for logs: %w", err)
	}
	return func(ctx context.Context, pod types.NamespacedName, container string) (string, error) {
		text, err := reader.Get().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("log").
			Param("container", container).Param("tailLines", strconv.Itoa(logLines)).Param("limitBytes", strconv.Itoa(logBytes)).
			DoRaw(ctx)
		return string(text), err
	}, nil
}

// scannedLog identifies a log by pod and restart of the container, and contains the problem in it, or nil.
type scannedLog struct {
	pod      types.UID
	restarts int32
	problem  *conditionReason
}

// problemInLog returns the problem in the log of a server that does not start, or nil. It stores the result for the last log that it read.
// An unreadable log is not an error: it may not exist yet.
func (r *registryReconciler) problemInLog(ctx context.Context, m *v1beta1.ModelRegistry, pod *corev1.Pod, status corev1.ContainerStatus) (*conditionReason, error) {
	s := r.stateOf(m)
	if s.lastLog != nil && s.lastLog.pod == pod.UID && s.lastLog.restarts == status.RestartCount {
		return s.lastLog.problem, nil
	}
	text, err := r.readPodLog(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, resources.ServerContainer)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("The log of the server cannot be read", "pod", pod.Name, "reason", err.Error())
	}
	secrets, err := r.databaseSecrets(ctx, m)
	if err != nil {
		return nil, err
	}
	s.lastLog = &scannedLog{pod: pod.UID, restarts: status.RestartCount, problem: scanLog(text, redact.ValuesOf(secrets...))}
	return s.lastLog.problem, nil
}

// databaseSecrets returns the Secrets with which the server connects to its database, without missing ones.
func (r *registryReconciler) databaseSecrets(ctx context.Context, m *v1beta1.ModelRegistry) ([]*corev1.Secret, error) {
	refs := serverReferences(m)
	if generatesDatabase(m) {
		refs = append(refs, databaseReferences(m)...)
	}
	var secrets []*corev1.Secret
	for _, ref := range reference.Merge(refs) {
		if ref.Kind != reference.Secret {
			continue
		}
		secret := &corev1.Secret{}
		err := r.APIReader.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: ref.Name}, secret)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading Secret %s: %w", ref.Name, err)
		}
		if err == nil {
			secrets = append(secrets, secret)
		}
	}
	return secrets, nil
}

// scanLog returns the first alert, or else the first failed check of the database, or else the last connection error. It redacts the
// values of the Secrets with which the server connects.
func scanLog(text string, values redact.Values) *conditionReason {
	misconfigured := func(cause string) *conditionReason {
		return &conditionReason{ReasonConfiguration, "database configuration error: " + conditions.Clip(values.Text(cause), maxLineLength)}
	}
	var failedCheck, connectionErr *conditionReason
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		cause := connectionError(line)
		switch alert := strings.Contains(line, alertMarker); {
		case alert && cause == unparsableURLMessage:
			return misconfigured(cause)
		case alert:
			return &conditionReason{ReasonAlert, "rest container alert: " + conditions.Clip(values.Text(line), maxLineLength)}
		case cause != "":
			connectionErr = misconfigured(cause)
		}
		if match := failedCheckLine.FindStringSubmatch(line); match != nil && failedCheck == nil {
			failedCheck = misconfigured(match[2] + ": " + match[1])
		}
	}
	return cmp.Or(failedCheck, connectionErr)
}

// connectionErrorLine matches the log of servers in Go at each failed connection attempt and when they give up.
var connectionErrorLine = regexp.MustCompile(`(?:Retrying connection to \w+ \(attempt \d+/\d+\)|error connecting to datastore): (.*)$`)

// unparsableURLLine matches errors about the URL of the database. They may contain the password, so they are never quoted.
var unparsableURLLine = regexp.MustCompile(`failed to parse PostgreSQL URL DSN|failed to parse as URL|cannot parse .?postgres`)

// unparsableURLMessage explains how to escape a password that the kubelet inserts into a URL.
const unparsableURLMessage = "the address of the database cannot be parsed: percent-encode / ? # % and spaces of the password, " +
	"as %2F %3F %23 %25 and %20, in its Secret"

// connectionError returns the database error in a log line, or "". It never returns a URL, which may contain a password.
func connectionError(line string) string {
	if unparsableURLLine.MatchString(line) {
		return unparsableURLMessage
	}
	match := connectionErrorLine.FindStringSubmatch(line)
	if match == nil || strings.Contains(match[1], "://") {
		return ""
	}
	return match[1]
}
