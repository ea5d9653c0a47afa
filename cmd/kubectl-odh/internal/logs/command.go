// Package logs prints the logs of the pods that belong to resources, and of the manager.
package logs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/installed"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/tree"
)

const long = `Print the logs of the pods that belong to resources, or of the manager.

The pods are those that "tree" shows: for a model, those of the runtimes that may
serve it. With more than one container, each line begins with the names of its pod
and its container. Pods that start later are not followed.`

const examples = `  kubectl odh logs mlflow/mlflow -f
  kubectl odh logs -n team predictor/digits -c mm --tail 100
  kubectl odh logs manager --previous`

// theManager are the arguments that stand for the manager.
var theManager = []string{"manager"}

// options are the flags of the command.
type options struct {
	*cli.Options
	corev1.PodLogOptions
	selector string
	tail     int64
	since    time.Duration
}

// Command prints logs.
func Command(common *cli.Options) *cobra.Command {
	o := &options{Options: common}
	c := &cobra.Command{
		Use: "logs (manager | KIND/NAME... | KIND NAME... | KIND -l LABELS)", Short: "Print the logs of resources or of the manager", Long: long, Example: examples,
		ValidArgsFunction: func(c *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
			found, directive := o.CompleteNamed(c, args, word)
			return append(found, theManager...), directive
		},
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args) },
	}
	cli.AddSelector(c, &o.selector)
	c.Flags().BoolVarP(&o.Follow, "follow", "f", false, "Keep running, and print new lines.")
	c.Flags().BoolVarP(&o.Previous, "previous", "p", false, "Print the logs of the previous containers, which ended.")
	c.Flags().StringVarP(&o.Container, "container", "c", "", "Print the logs of the containers of this name. By default of all.")
	c.Flags().Int64Var(&o.tail, "tail", -1, "Number of lines to begin with, from the end; -1 for all.")
	c.Flags().DurationVar(&o.since, "since", 0, "Print lines that are not older than this.")
	c.Flags().BoolVar(&o.Timestamps, "timestamps", false, "Print the time of each line.")
	return c
}

func (o *options) run(ctx context.Context, args []string) error {
	if !slices.Equal(args, theManager) {
		if err := o.CheckNamed("logs", args, o.selector); err != nil {
			return err
		}
	}
	if o.tail >= 0 {
		o.TailLines = &o.tail
	}
	if o.since > 0 {
		o.SinceSeconds = new(int64(o.since.Seconds()))
	}
	cluster, reader, err := o.Read(ctx)
	if err != nil {
		return err
	}
	roots, err := o.roots(ctx, cluster, reader, args)
	if err != nil {
		return err
	}
	parts, notes := tree.Parts(ctx, reader, roots)
	var streams []Stream
	for _, n := range parts {
		if n.Kind != "Pod" {
			continue
		}
		pod, err := cluster.Pods.Pods(n.Namespace).Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		streams = append(streams, Streams(pod, o.PodLogOptions)...)
	}
	return o.print(ctx, cluster, streams, notes)
}

// roots are the objects whose pods matter.
func (o *options) roots(
	ctx context.Context, cluster *cli.Cluster, reader fetch.Reader, args []string,
) ([]*unstructured.Unstructured, error) {
	if slices.Equal(args, theManager) {
		m, err := installed.Require(ctx, o.Options, reader)
		return []*unstructured.Unstructured{m.Live}, err
	}
	infos, err := o.Named(cluster, args, o.selector)
	var out []*unstructured.Unstructured
	for _, info := range infos {
		out = append(out, info.Object.(*unstructured.Unstructured))
	}
	return out, err
}

// print prints one stream after the other, or all at once if they are followed. What it could not find for lack of a permission it names.
func (o *options) print(ctx context.Context, cluster *cli.Cluster, streams []Stream, notes []string) error {
	if len(streams) == 0 && len(notes) > 0 {
		return fmt.Errorf("%w: no container was found: %s", cli.ErrUnknown, strings.Join(notes, "; "))
	}
	if len(streams) == 0 {
		return errors.New("logs: no container was found; kubectl odh tree shows what belongs to a resource")
	}
	for _, note := range notes {
		if strings.Contains(note, "pods") { // other objects have no logs
			fmt.Fprintf(o.ErrOut, "Note: %s\n", note)
		}
	}
	var group errgroup.Group
	if !o.Follow {
		group.SetLimit(1)
	}
	var mu sync.Mutex
	for _, s := range streams {
		prefix := ""
		if len(streams) > 1 {
			prefix = "[" + s.Pod + "/" + s.Container + "] "
		}
		group.Go(func() error {
			err := s.Lines(ctx, cluster, func(line string) {
				mu.Lock()
				defer mu.Unlock()
				fmt.Fprint(o.Out, prefix+line)
			})
			if err == nil || ctx.Err() != nil || len(streams) == 1 || apierrors.IsForbidden(err) {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(o.ErrOut, "Note: %s%v\n", prefix, err) // such as that the container has not started; the others have logs
			return nil
		})
	}
	return group.Wait()
}

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
	for reader := bufio.NewReader(stream); err == nil; {
		var text string
		if text, err = reader.ReadString('\n'); text != "" {
			line(strings.TrimSuffix(text, "\n") + "\n")
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
