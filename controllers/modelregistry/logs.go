package modelregistry

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/redact"
	"github.com/odh-platform/odh-platform-operator/pkg/reference"
)

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

// problemOfServer returns the problem in the log of the server if its container is not ready, or nil. The problem is kept during restarts,
// because a container in its normal start has not logged it again yet.
func (r *registryReconciler) problemOfServer(ctx context.Context, m *v1beta1.ModelRegistry, pod *corev1.Pod) (*conditionReason, error) {
	for _, status := range pod.Status.ContainerStatuses {
		switch last := r.stateOf(m).lastLog; {
		case status.Name != resources.ServerContainer || status.Ready:
		case isStuck(status):
			return r.problemInLog(ctx, m, pod, status)
		case last != nil && last.pod == pod.UID:
			return last.problem, nil
		}
	}
	return nil, nil
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
		return &conditionReason{ReasonConfiguration, "database configuration error: " + redact.Clip(values.Text(cause), maxLineLength)}
	}
	var failedCheck, connectionErr *conditionReason
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		cause := connectionError(line)
		switch alert := strings.Contains(line, alertMarker); {
		case alert && cause == unparsableURLMessage:
			return misconfigured(cause)
		case alert:
			return &conditionReason{ReasonAlert, "rest container alert: " + redact.Clip(values.Text(line), maxLineLength)}
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
