// Package logs prints the logs of the pods that belong to resources, and of the manager.
package logs

import (
	"context"
	"errors"
	"fmt"
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
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/installed"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/served"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/tree"
)

const long = `Print the logs of the pods that belong to resources, or of the manager.

The pods are those that "tree" shows: for a model, those of the runtimes that may
serve it. With more than one container, each line begins with the names of its pod
and its container. Pods that start later are not followed.`

const examples = `  kubectl odh logs mlflow/mlflow -f
  kubectl odh logs -n team predictor/digits -c mm --tail 100
  kubectl odh logs manager --previous`

// theManager is the argument that stands for the manager.
const theManager = "manager"

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
			return append(found, theManager), directive
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
	ofManager := slices.Equal(args, []string{theManager})
	if !ofManager {
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
	cluster, err := o.Connect()
	if err != nil {
		return err
	}
	var roots []*unstructured.Unstructured
	if ofManager {
		roots, err = o.manager(ctx, cluster)
	} else {
		roots, err = o.named(cluster, args)
	}
	if err != nil {
		return err
	}
	parts, notes, err := tree.Parts(ctx, cluster, roots)
	if err != nil {
		return err
	}
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

func (o *options) named(cluster *cli.Cluster, args []string) ([]*unstructured.Unstructured, error) {
	infos, err := o.Named(cluster, args, o.selector)
	var out []*unstructured.Unstructured
	for _, info := range infos {
		out = append(out, info.Object.(*unstructured.Unstructured))
	}
	return out, err
}

// manager is the Deployment of the manager.
func (o *options) manager(ctx context.Context, cluster *cli.Cluster) ([]*unstructured.Unstructured, error) {
	set, err := served.Read(ctx, cluster.Discovery)
	if err != nil {
		return nil, err
	}
	var gaps fetch.Gaps
	m := installed.Find(ctx, cluster.Reader(), set, o.ManagerNamespace, cluster.Namespace, &gaps)
	switch {
	case m.Deployment == nil && m.Hidden:
		return nil, fmt.Errorf("%w: %s; name the namespace of the manager with --manager-namespace", cli.ErrUnknown, strings.Join(gaps.Lines(), "; "))
	case m.Deployment == nil:
		return nil, fmt.Errorf("logs: there is no Deployment %s; name its namespace with --manager-namespace", installed.DeploymentName)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m.Deployment)
	u := &unstructured.Unstructured{Object: content}
	u.SetAPIVersion("apps/v1")
	u.SetKind("Deployment")
	return []*unstructured.Unstructured{u}, err
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
