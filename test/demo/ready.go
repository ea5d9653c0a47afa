package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

const readyPollInterval = 200 * time.Millisecond

var errManagerExited = errors.New("the manager has exited")

// problem is an object that is not ready, with the reason.
type problem struct{ object, cause string }

// waitReady waits until all samples and all Deployments that the manager created are ready, and logs each. The error contains all details.
func (d *demo) waitReady(ctx context.Context, env *environment) error {
	err := wait.PollUntilContextTimeout(ctx, readyPollInterval, d.timeout, true, func(ctx context.Context) (bool, error) {
		if !env.managerRunning() {
			return false, errManagerExited
		}
		return len(d.check(ctx, env)) == 0, nil
	})
	if err == nil {
		return nil
	}
	cause := err.Error()
	if errors.Is(err, context.DeadlineExceeded) {
		cause = fmt.Sprintf("after %s", d.timeout)
	}
	// The timeout may have interrupted the last check, so check all objects again, even after an interrupt.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), inspectTimeout)
	defer cancel()
	return d.inspect(ctx, env, cause, d.check(ctx, env))
}

// check returns the objects that are not ready, and logs newly ready ones. It checks the Deployments that the manager created only after
// all samples are ready, to confirm the statuses of the samples.
func (d *demo) check(ctx context.Context, env *environment) []problem {
	var problems []problem
	add := func(object string, state readiness) {
		switch {
		case !state.ready:
			problems = append(problems, problem{object, state.text})
		case !env.reported[object]:
			env.reported[object] = true
			d.logf("%s: %s", object, state.text)
		}
	}
	for _, sample := range env.samples {
		add(title(sample), env.sampleReadiness(ctx, sample))
	}
	if env.placeholder != nil {
		add("Deployment "+env.placeholder.Namespace+"/"+env.placeholder.Name, env.placeholderReadiness(ctx))
	}
	if len(problems) > 0 {
		return problems
	}
	var deployments appsv1.DeploymentList
	if err := env.client.List(ctx, &deployments, client.MatchingLabels{names.OperatorLabel: names.OperatorName}); err != nil {
		return []problem{{"Deployments", err.Error()}}
	}
	for i := range deployments.Items {
		add(fmt.Sprintf("Deployment %s/%s", deployments.Items[i].Namespace, deployments.Items[i].Name), rolloutReadiness(&deployments.Items[i]))
	}
	return problems
}

// sampleReadiness returns the readiness of a sample. A sample that cannot be read is not ready.
func (env *environment) sampleReadiness(ctx context.Context, sample *unstructured.Unstructured) readiness {
	live := emptyOf(sample)
	if err := env.client.Get(ctx, client.ObjectKeyFromObject(sample), live); err != nil {
		return readiness{text: err.Error()}
	}
	state, err := readinessOf(live, kinds[sample.GroupVersionKind().GroupKind()])
	if err != nil {
		return readiness{text: err.Error()}
	}
	return state
}

// readiness is the readiness of an object, with the details of its status.
type readiness struct {
	ready bool
	text  string
}

// readinessOf returns the readiness of an object, by the condition for the current generation or by the flag of its kind. An object of a
// kind with neither is ready when it exists. A terminating object is never ready.
func readinessOf(live *unstructured.Unstructured, of kind) (readiness, error) {
	condition := of.ready
	switch {
	case live.GetDeletionTimestamp() != nil:
		return readiness{text: "it is being deleted"}, nil
	case of.flag != "":
		ready, _, err := unstructured.NestedBool(live.Object, "status", of.flag)
		return readiness{ready: ready, text: fmt.Sprintf("%s is %t", of.flag, ready)}, err
	case condition == "":
		return readiness{ready: true, text: "exists"}, nil
	}
	state, err := readStatus(live)
	if err != nil {
		return readiness{}, err
	}
	found := meta.FindStatusCondition(state.Conditions, condition)
	switch {
	case found == nil:
		return readiness{text: fmt.Sprintf("condition %s does not exist yet", condition)}, nil
	case found.ObservedGeneration != 0 && found.ObservedGeneration < live.GetGeneration(),
		state.ObservedGeneration != 0 && state.ObservedGeneration < live.GetGeneration():
		return readiness{text: fmt.Sprintf("%s is of an older generation", condition)}, nil
	}
	text := fmt.Sprintf("%s is %s, %s", condition, found.Status, found.Reason)
	if found.Message != "" {
		text += ": " + found.Message
	}
	return readiness{ready: found.Status == metav1.ConditionTrue, text: text}, nil
}

// status holds the common status fields of the operator's kinds.
type status struct {
	ObservedGeneration int64              `json:"observedGeneration"`
	Conditions         []metav1.Condition `json:"conditions"`
}

func readStatus(live *unstructured.Unstructured) (status, error) {
	var decoded struct {
		Status status `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &decoded); err != nil {
		return status{}, fmt.Errorf("reading the status of %s: %w", title(live), err)
	}
	return decoded.Status, nil
}

// emptyOf returns an empty object of the same kind.
func emptyOf(of *unstructured.Unstructured) *unstructured.Unstructured {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(of.GroupVersionKind())
	return live
}
