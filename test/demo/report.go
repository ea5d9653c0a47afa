package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

const (
	inspectTimeout = 20 * time.Second
	columnGap      = 3
)

// row is a condition of an object, or an object without conditions.
type row struct{ kind, name, condition, status, reason, age string }

// rows returns the current conditions of the samples. With an error, it returns those of the samples that it has read.
func (env *environment) rows(ctx context.Context, now time.Time) ([]row, error) {
	var rows []row
	var errs []error
	for _, sample := range env.samples {
		live := emptyOf(sample)
		err := env.client.Get(ctx, client.ObjectKeyFromObject(sample), live)
		if apierrors.IsNotFound(err) {
			rows = append(rows, row{kind: sample.GetKind(), name: sample.GetName(), condition: "does not exist"})
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("reading %s: %w", title(sample), err))
			continue
		}
		more, err := rowsOf(live, now)
		rows, errs = append(rows, more...), append(errs, err)
	}
	return rows, errors.Join(errs...)
}

// rowsOf returns the rows of an object. The age is the time since the last transition or, without conditions, since the creation.
func rowsOf(live *unstructured.Unstructured, now time.Time) ([]row, error) {
	state, err := readStatus(live)
	if err != nil {
		return nil, err
	}
	if len(state.Conditions) == 0 {
		return []row{{
			kind: live.GetKind(), name: live.GetName(), age: duration.HumanDuration(now.Sub(live.GetCreationTimestamp().Time)),
		}}, nil
	}
	var rows []row
	for _, c := range state.Conditions {
		rows = append(rows, row{
			kind: live.GetKind(), name: live.GetName(), condition: c.Type, status: string(c.Status), reason: c.Reason,
			age: duration.HumanDuration(now.Sub(c.LastTransitionTime.Time)),
		})
	}
	return rows, nil
}

// table renders rows with a header, and dashes in empty cells.
func table(rows []row) string {
	lines := [][]string{{"KIND", "NAME", "CONDITION", "STATUS", "REASON", "AGE"}}
	for _, r := range rows {
		lines = append(lines, []string{r.kind, r.name, r.condition, r.status, r.reason, r.age})
	}
	return columns(lines)
}

// columns aligns cells without trailing spaces.
func columns(lines [][]string) string {
	var text strings.Builder
	aligned := tabwriter.NewWriter(&text, 0, 0, columnGap, ' ', 0)
	for _, cells := range lines {
		for i, cell := range cells {
			if cell == "" {
				cell = "-"
			}
			end := "\t"
			if i == len(cells)-1 {
				end = "\n"
			}
			fmt.Fprint(aligned, cell+end)
		}
	}
	_ = aligned.Flush() // a strings.Builder returns no errors
	return text.String()
}

// failure is the error of a demo that did not become ready, with all details for users.
type failure struct {
	cause    string
	problems []problem
	rows     []row
	pods     []corev1.Pod
	manager  string // state of the manager
	logPath  string
	logTail  string
	errs     []error // errors while collecting details
}

// inspect collects the details of a failure.
func (d *demo) inspect(ctx context.Context, env *environment, cause string, problems []problem) error {
	f := &failure{cause: cause, problems: problems}
	f.manager, f.logPath, f.logTail = env.describeManager(ctx)
	var err error
	if f.rows, err = env.rows(ctx, d.clock.Now()); err != nil {
		f.errs = append(f.errs, err)
	}
	var pods corev1.PodList
	if err := env.client.List(ctx, &pods); err != nil {
		f.errs = append(f.errs, fmt.Errorf("listing Pods: %w", err))
	}
	f.pods = pods.Items
	return f
}

// Error returns a text with paragraphs: unready objects, conditions, pods, manager.
func (f *failure) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "not ready: %s\n", f.cause)
	for _, p := range f.problems {
		fmt.Fprintf(&text, "  %s: %s\n", p.object, p.cause)
	}
	fmt.Fprintf(&text, "\nConditions:\n%s\nPods:\n%s", indent(table(f.rows)), indent(podTable(f.pods)))
	for _, err := range f.errs {
		fmt.Fprintf(&text, "  (%v)\n", err)
	}
	fmt.Fprintf(&text, "\nThe manager %s. Last lines of %s:\n%s", f.manager, f.logPath, indent(f.logTail))
	return strings.TrimRight(text.String(), "\n")
}

// podTable renders the states and problems of pods.
func podTable(pods []corev1.Pod) string {
	if len(pods) == 0 {
		return "no pods\n"
	}
	lines := [][]string{{"NAMESPACE", "NAME", "PHASE", "READY", "PROBLEM"}}
	for i := range pods {
		pod := &pods[i]
		lines = append(lines, []string{
			pod.Namespace, pod.Name, string(pod.Status.Phase), fmt.Sprintf("%d/%d", readyContainers(pod), len(pod.Spec.Containers)),
			conditions.Diagnose(pods[i : i+1]),
		})
	}
	return columns(lines)
}

func readyContainers(pod *corev1.Pod) int {
	ready := 0
	for _, container := range pod.Status.ContainerStatuses {
		if container.Ready {
			ready++
		}
	}
	return ready
}

// indent indents every line by two spaces and ends the text with one newline.
func indent(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return "  " + strings.Join(lines, "\n  ") + "\n"
}
