// Package wait has the command that waits until resources are ready.
package wait

import (
	"cmp"
	"context"
	"fmt"
	"time"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/odh-platform/odh-platform-operator/cmd/internal/kinds"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
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
			for _, info := range infos {
				if kinds.IsRuntime(info.Mapping.GroupVersionKind) {
					return fmt.Errorf("wait: a %s has no status; wait for a model that it serves", info.Mapping.GroupVersionKind.Kind)
				}
			}
			w := waiter{o, cluster, target, condition, timeout}
			limited, cancel := context.WithTimeout(c.Context(), timeout)
			defer cancel()
			for _, info := range infos {
				if err := w.await(c.Context(), limited, info); err != nil {
					return err
				}
			}
			return nil
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
}

// await reads a resource until it is what is waited for, or can never be, or the limited context ends.
func (w waiter) await(ctx, limited context.Context, info *resource.Info) error {
	var s state
	err := wait.PollUntilContextCancel(limited, w.Interval, true, func(context.Context) (bool, error) {
		// A request is not cut short: its answer says why the resource is not ready.
		u, err := w.cluster.Dynamic.Resource(info.Mapping.Resource).Namespace(info.Namespace).Get(ctx, info.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			s = state{stuck: true, why: "it was deleted"}
		case err != nil:
			return false, err
		default:
			s = judge(u, w.condition)
		}
		return s.done || s.stuck, nil
	})
	switch {
	case err != nil && (limited.Err() == nil || ctx.Err() != nil):
		return err
	case s.done:
		fmt.Fprintf(w.Out, "%s is %s\n", cli.NameOf(info), w.target)
		return nil
	case !s.stuck:
		s.why = fmt.Sprintf("timed out after %s: %s", w.timeout, s.why)
	}
	fmt.Fprintf(w.ErrOut, "kubectl-odh: %s is not %s: %s\n", cli.NameOf(info), w.target, s.why)
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
	found, has := conditions.Get(fetch.As[conditioned](u).Status.Conditions, condition)
	switch {
	case has:
		s.why = fmt.Sprintf("%s is %s: %s: %s", condition, found.Status, found.Reason, found.Message)
		s.done = found.Status == metav1.ConditionTrue && (condition != conditions.Ready || result.Status == kstatus.CurrentStatus)
	case condition == conditions.Ready:
		s.done = result.Status == kstatus.CurrentStatus && verdict.State == health.Healthy
	default:
		s.why = "it has no condition " + condition
	}
	return s
}

// conditioned is what kinds with conditions have in common.
type conditioned struct {
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}
