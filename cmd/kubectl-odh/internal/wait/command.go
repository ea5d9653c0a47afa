// Package wait has the command that waits until resources are ready.
package wait

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/pkg/status/health"
)

const long = `Wait until resources are ready, or available.

Ready means that the resource works and is what its spec asks for, by the rules of
kstatus. Available means that it works, possibly as an earlier spec asked for.

The command ends early if a resource cannot become ready until its spec, or
something that it refers to, changes.

The exit code is 1 if a resource is not ready after the timeout or cannot become
ready; the message then contains the reason of the condition.`

const examples = `  kubectl odh wait mlflow/mlflow --timeout 10m
  kubectl odh wait -n team modelregistry/demo --for available`

// targets of --for, and the condition that each asks for.
var targets = map[string]string{"ready": conditions.Ready, "available": "Available"}

// Command waits.
func Command(o *cli.Options) *cobra.Command {
	var selector, target string
	var timeout time.Duration
	c := &cobra.Command{
		Use: "wait " + cli.NamedUse, Short: "Wait until resources are ready", Long: long, Example: examples, ValidArgsFunction: o.CompleteNamed,
		RunE: func(c *cobra.Command, args []string) error {
			condition, known := targets[target]
			if !known {
				return fmt.Errorf("wait --for %s: wait for ready or available", target)
			}
			cluster, infos, err := o.Select("wait", args, selector)
			if err != nil {
				return err
			}
			w := waiter{Options: o, cluster: cluster, target: target, condition: condition, over: time.After(timeout), timeout: timeout}
			return w.awaitAll(c.Context(), infos)
		},
	}
	cli.AddSelector(c, &selector)
	c.Flags().StringVar(&target, "for", "ready", "What to wait for: ready or available.")
	c.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "How long to wait for all resources together.")
	_ = c.RegisterFlagCompletionFunc("for", cobra.FixedCompletions([]string{"ready", "available"}, cobra.ShellCompDirectiveNoFileComp)) // fails for unknown flags only
	return c
}

// waiter waits for resources.
type waiter struct {
	*cli.Options
	cluster           *cli.Cluster
	target, condition string
	timeout           time.Duration
	// over receives after the timeout.
	over <-chan time.Time
}

// awaitAll waits for one resource after the other, unless one of them can never be ready.
func (w *waiter) awaitAll(ctx context.Context, infos []*resource.Info) error {
	for _, info := range infos {
		if kind := info.Mapping.GroupVersionKind.Kind; kind == "ServingRuntime" || kind == "ClusterServingRuntime" {
			return fmt.Errorf("wait: a %s has no status; wait for a model that it serves", kind)
		}
	}
	for _, info := range infos {
		if err := w.await(ctx, info); err != nil {
			return err
		}
	}
	return nil
}

// await reads a resource until it is what is waited for.
func (w *waiter) await(ctx context.Context, info *resource.Info) error {
	for {
		u, err := w.cluster.Dynamic.Resource(info.Mapping.Resource).Namespace(info.Namespace).Get(ctx, info.Name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		s := state{stuck: true, why: "it was deleted"}
		if err == nil {
			s = judge(u, w.condition)
		}
		switch {
		case s.done:
			fmt.Fprintf(w.Out, "%s is %s\n", cli.NameOf(info), w.target)
			return nil
		case s.stuck:
			return w.fail(info, s.why)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.over:
			return w.fail(info, fmt.Sprintf("timed out after %s: %s", w.timeout, s.why))
		case <-time.After(w.Interval):
		}
	}
}

func (w *waiter) fail(info *resource.Info, why string) error {
	fmt.Fprintf(w.ErrOut, "kubectl-odh: %s is not %s: %s\n", cli.NameOf(info), w.target, why)
	return cli.ErrWrong
}

// state of a resource: whether it is what is waited for, whether that takes a change by a user, and why it is not.
type state struct {
	done, stuck bool
	why         string
}

// judge goes by the rules of kstatus and by the condition. Of kinds without the condition Ready, health tells what kstatus does not know.
func judge(u *unstructured.Unstructured, condition string) state {
	result, err := kstatus.Compute(u)
	if err != nil {
		return state{why: err.Error()}
	}
	verdict := health.Of(u)
	s := state{stuck: result.Status == kstatus.FailedStatus || result.Status == kstatus.TerminatingStatus, why: cmp.Or(verdict.Message, result.Message)}
	if verdict.Reason != "" {
		s.why = verdict.Reason + ": " + s.why
	}
	found := conditionOf(u, condition)
	switch {
	case found.Type != "":
		s.why = fmt.Sprintf("%s is %s: %s: %s", condition, found.Status, found.Reason, found.Message)
		s.done = found.Status == corev1.ConditionTrue && (condition != conditions.Ready || result.Status == kstatus.CurrentStatus)
	case condition == conditions.Ready:
		s.done = result.Status == kstatus.CurrentStatus && verdict.State == health.Healthy
	default:
		s.why = "it has no condition " + condition
	}
	return s
}

// conditionOf reads a condition; it has no type where there is none.
func conditionOf(u *unstructured.Unstructured, name string) kstatus.BasicCondition {
	object, err := kstatus.GetObjectWithConditions(u.Object)
	if err != nil {
		return kstatus.BasicCondition{}
	}
	i := slices.IndexFunc(object.Status.Conditions, func(c kstatus.BasicCondition) bool { return c.Type == name })
	if i < 0 {
		return kstatus.BasicCondition{}
	}
	return object.Status.Conditions[i]
}
