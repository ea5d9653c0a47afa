package modelregistry

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/conditions"
	"github.com/odh-platform/odh-platform-operator/pkg/redact"
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

// logMemory reads the log of a container once for each of its runs.
type logMemory struct {
	read readLog

	mu     sync.Mutex
	owners map[types.UID]run
}

// run is one run of a container and what its log said.
type run struct {
	pod      types.UID
	restarts int32
	said     *finding
}

func (l *logMemory) forget(owner types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.owners, owner)
}

func (l *logMemory) recall(owner, pod types.UID, restarts int32) (*finding, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known, ok := l.owners[owner]
	return known.said, ok && known.pod == pod && known.restarts == restarts
}

func (l *logMemory) remember(owner types.UID, known run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owners == nil {
		l.owners = map[types.UID]run{}
	}
	l.owners[owner] = known
}

// logged returns what the log of a server that does not start says about the cause, nil when it says nothing. A log that cannot
// be read is no obstacle: there may be none.
func (r *registries) logged(ctx context.Context, m *v1beta1.ModelRegistry, pod *corev1.Pod, status corev1.ContainerStatus) (*finding, error) {
	if said, ok := r.logs.recall(m.UID, pod.UID, status.RestartCount); ok {
		return said, nil
	}
	text, err := r.logs.read(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, restContainer)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("The log of the server cannot be read", "pod", pod.Name, "reason", err.Error())
	}
	said := scanLog(text)
	r.logs.remember(m.UID, run{pod: pod.UID, restarts: status.RestartCount, said: said})
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
