package logs

import (
	"bufio"
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
)

// Stream is the log of a container.
type Stream struct {
	Namespace, Pod, Container string
	Options                   corev1.PodLogOptions
}

// Streams are the logs of the containers of a pod in the order in which they start. With options for the previous containers, only those
// that have one are among them, and with the name of a container only that.
func Streams(pod *corev1.Pod, options corev1.PodLogOptions) []Stream {
	previous := map[string]bool{}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		previous[status.Name] = status.RestartCount > 0
	}
	var out []Stream
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if options.Container != "" && options.Container != c.Name || options.Previous && !previous[c.Name] {
			continue
		}
		s := Stream{Namespace: pod.Namespace, Pod: pod.Name, Container: c.Name, Options: options}
		s.Options.Container = c.Name
		out = append(out, s)
	}
	return out
}

// Lines reads a log; each line has its end.
func (s Stream) Lines(ctx context.Context, cluster *cli.Cluster, line func(string)) error {
	stream, err := cluster.Pods.Pods(s.Namespace).GetLogs(s.Pod, &s.Options).Stream(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }() // only read
	for reader := bufio.NewReader(stream); ; {
		text, err := reader.ReadString('\n')
		if text != "" {
			line(strings.TrimSuffix(text, "\n") + "\n")
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
