package modelregistry

import (
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

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/redact"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// Bounds of what is read of a log: the cause of an end stands near the end.
const (
	logLines = 200
	logBytes = 64 << 10
	// maxLine bounds what of a line is quoted.
	maxLine = 400
)

const alertMark = "{{ALERT}}"

// checkFailure is how the server logs that it cannot use its database: the status and, after it, an explanation.
var checkFailure = regexp.MustCompile(`Check failed: absl::OkStatus\(\) == status \(OK vs\. (.*)\) (.*)$`)

// readLog returns the end of the log of a container.
type readLog func(ctx context.Context, pod types.NamespacedName, container string) (string, error)

// newLogReader reads logs by the API server.
func newLogReader(config *rest.Config, client *http.Client) (readLog, error) {
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

// logRun is one run of a container and what its log said.
type logRun struct {
	pod      types.UID
	restarts int32
	said     *finding
}

// logged returns what the log of a server that does not start says about the cause, nil when it says nothing. It is read once for
// each run of the container. A log that cannot be read is no obstacle: there may be none.
func (r *registries) logged(ctx context.Context, m *v1beta1.ModelRegistry, pod *corev1.Pod, status corev1.ContainerStatus) (*finding, error) {
	if known, ok := r.logs.Get(m.UID); ok && known.pod == pod.UID && known.restarts == status.RestartCount {
		return known.said, nil
	}
	text, err := r.readLog(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, resources.ServerContainer)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("The log of the server cannot be read", "pod", pod.Name, "reason", err.Error())
	}
	said := scanLog(text)
	r.logs.Set(m.UID, logRun{pod: pod.UID, restarts: status.RestartCount, said: said})
	return said, nil
}

// scanLog looks for an alert, which wins, and for the first failed check of the database, or else for the last that a newer
// server says about it.
func scanLog(text string) *finding {
	var failure, said *finding
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch alert := strings.Contains(line, alertMark); {
		case alert && unreadable.MatchString(line):
			return &finding{ReasonConfiguration, "database configuration error: " + escapePassword}
		case alert:
			return &finding{ReasonAlert, "rest container alert: " + conditions.Clip(redact.Text(line), maxLine)}
		}
		if found := checkFailure.FindStringSubmatch(line); found != nil && failure == nil {
			failure = &finding{ReasonConfiguration, "database configuration error: " + conditions.Clip(redact.Text(found[2]+": "+found[1]), maxLine)}
		}
		if cause := unconnected(line); cause != "" {
			said = &finding{ReasonConfiguration, "database configuration error: " + conditions.Clip(redact.Text(cause), maxLine)}
		}
	}
	if failure == nil {
		failure = said
	}
	return failure
}

// connecting is how a server that is written in Go logs why it does not reach its database: at each attempt, and at its end.
var connecting = regexp.MustCompile(`(?:Retrying connection to \w+ \(attempt \d+/\d+\)|error connecting to datastore): (.*)$`)

// unreadable is in lines of a server that cannot read the address of its database. They may quote the address with the
// password in it, so nothing of them is repeated.
var unreadable = regexp.MustCompile(`failed to parse PostgreSQL URL DSN|failed to parse as URL|cannot parse .?postgres`)

// escapePassword is the remedy for a password that ends in the middle, because the kubelet pastes it into a URL.
const escapePassword = "the address of the database cannot be read: where the password has one of / ? # % or a space, " +
	"let its Secret hold %2F %3F %23 %25 or %20 instead"

// unconnected is what a line of the log says about a database that cannot be used, "" when it says nothing. It never holds an
// address, since that may have a password in it.
func unconnected(line string) string {
	if unreadable.MatchString(line) {
		return escapePassword
	}
	found := connecting.FindStringSubmatch(line)
	if found == nil || strings.Contains(found[1], "://") {
		return ""
	}
	return found[1]
}
