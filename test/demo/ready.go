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

const readyPoll = 200 * time.Millisecond

var errManagerEnded = errors.New("the manager has ended")

// problem is an object that is not ready, with the reason.
type problem struct{ object, cause string }

// waitReady waits until all samples and all Deployments of the manager are ready, and reports each. Its error contains all available
// details.
func (d *demo) waitReady(ctx context.Context, w *environment) error {
	err := wait.PollUntilContextTimeout(ctx, readyPoll, d.timeout, true, func(ctx context.Context) (bool, error) {
		if !w.managerRuns() {
			return false, errManagerEnded
		}
		return len(d.check(ctx, w)) == 0, nil
	})
	if err == nil {
		return nil
	}
	cause := err.Error()
	if errors.Is(err, context.DeadlineExceeded) {
		cause = fmt.Sprintf("after %s", d.timeout)
	}
	// The timeout may have interrupted the last check, so all objects are checked again, even after an interrupt.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), inspectTimeout)
	defer cancel()
	return d.inspect(ctx, w, cause, d.check(ctx, w))
}

// check returns objects that are not ready, and reports newly ready ones. Deployments are checked only after the samples: they
// confirm the statuses.
func (d *demo) check(ctx context.Context, w *environment) []problem {
	var problems []problem
	note := func(object string, state verdict) {
		switch {
		case !state.ready:
			problems = append(problems, problem{object, state.text})
		case !w.reported[object]:
			w.reported[object] = true
			d.say("%s: %s", object, state.text)
		}
	}
	for _, sample := range w.samples {
		note(title(sample), w.sampleVerdict(ctx, sample))
	}
	if w.placeholder != nil {
		note("Deployment "+w.placeholder.Namespace+"/"+w.placeholder.Name, w.placeholderVerdict(ctx))
	}
	if len(problems) > 0 {
		return problems
	}
	var deployments appsv1.DeploymentList
	if err := w.client.List(ctx, &deployments, client.MatchingLabels{names.OperatorLabel: names.OperatorName}); err != nil {
		return []problem{{"Deployments", err.Error()}}
	}
	for i := range deployments.Items {
		note(fmt.Sprintf("Deployment %s/%s", deployments.Items[i].Namespace, deployments.Items[i].Name), rolloutVerdict(&deployments.Items[i]))
	}
	return problems
}

// sampleVerdict returns the state of a sample. An unreadable sample is not ready.
func (env *environment) sampleVerdict(ctx context.Context, sample *unstructured.Unstructured) verdict {
	live := emptyOf(sample)
	if err := env.client.Get(ctx, client.ObjectKeyFromObject(sample), live); err != nil {
		return verdict{text: err.Error()}
	}
	state, err := isReady(live, kinds[sample.GroupVersionKind().GroupKind()])
	if err != nil {
		return verdict{text: err.Error()}
	}
	return state
}

// verdict holds whether an object is ready, and the details of its status.
type verdict struct {
	ready bool
	text  string
}

// isReady returns the verdict of the ready condition for the current generation. An object of a kind with neither condition nor flag is ready
// when it exists.
func isReady(live *unstructured.Unstructured, of kind) (verdict, error) {
	condition := of.ready
	switch {
	case live.GetDeletionTimestamp() != nil:
		return verdict{text: "it is being deleted"}, nil
	case of.flag != "":
		ready, _, err := unstructured.NestedBool(live.Object, "status", of.flag)
		return verdict{ready: ready, text: fmt.Sprintf("%s is %t", of.flag, ready)}, err
	case condition == "":
		return verdict{ready: true, text: "exists"}, nil
	}
	state, err := readStatus(live)
	if err != nil {
		return verdict{}, err
	}
	found := meta.FindStatusCondition(state.Conditions, condition)
	switch {
	case found == nil:
		return verdict{text: fmt.Sprintf("it has no condition %s yet", condition)}, nil
	case found.ObservedGeneration != 0 && found.ObservedGeneration < live.GetGeneration(),
		state.ObservedGeneration != 0 && state.ObservedGeneration < live.GetGeneration():
		return verdict{text: fmt.Sprintf("%s is that of an older generation", condition)}, nil
	}
	text := fmt.Sprintf("%s is %s, %s", condition, found.Status, found.Reason)
	if found.Message != "" {
		text += ": " + found.Message
	}
	return verdict{ready: found.Status == metav1.ConditionTrue, text: text}, nil
}

// status holds the common status fields of our kinds.
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
