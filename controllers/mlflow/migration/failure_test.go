package migration

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
)

// terminatedPod returns a failed pod that was created the given number of minutes after noon, and whose containers exited with the codes.
func terminatedPod(minute int, codes map[string]int32, changes ...func(*corev1.Pod)) corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(noon.Add(time.Duration(minute) * time.Minute))}}
	pod.Status.Phase = corev1.PodFailed
	for name, code := range codes {
		status := corev1.ContainerStatus{Name: name}
		status.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", Message: "postgresql://user:secret@db"}
		if name == resources.MigrationContainer {
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
		} else {
			pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, status)
		}
	}
	for _, change := range changes {
		change(&pod)
	}
	return pod
}

func failedJob(reason, message string) *batchv1.Job {
	return &batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{
		{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: reason, Message: message},
	}}}
}

func TestClassifyFailure(t *testing.T) {
	migrate := func(code int32) map[string]int32 { return map[string]int32{resources.MigrationContainer: code} }
	backoff := failedJob("BackoffLimitExceeded", "Job has reached the specified backoff limit")
	policy := failedJob("PodFailurePolicy", "Container db-migrate for pod ns/x failed with exit code 11 matching FailJob rule at index 0")
	checkJob := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{resources.CheckForAnnotation: "a"}}, Status: batchv1.JobStatus{Failed: 2}}
	for name, c := range map[string]struct {
		job  *batchv1.Job
		pods []corev1.Pod
		want Failure
	}{
		"[mlflow-43] 10": {backoff, []corev1.Pod{terminatedPod(0, migrate(10), withTerminationMessage("this image is old\nmlflow=3.13.0 schema=- database=-"))}, Failure{true, "migration image reports an unexpected MLflow version 3.13.0; expected 3.14.0 or newer: set spec.image to such an image"}},
		"[mlflow-43] 11": {backoff, []corev1.Pod{terminatedPod(0, migrate(11))}, Failure{true, "operator-managed migration only supports SQL backend store URIs: use one that begins with sqlite, postgresql or mysql"}},
		"[mlflow-43] 12": {backoff, []corev1.Pod{terminatedPod(0, migrate(12))}, Failure{true, "operator-managed migration only supports SQL registry store URIs: use one that begins with sqlite, postgresql or mysql"}},
		"[mlflow-43] 13": {backoff, []corev1.Pod{terminatedPod(0, migrate(13))}, Failure{true, "migration completed but the resulting schema revision does not match the image's Alembic head: another program may have changed the schema; restore a backup, or run mlflow db upgrade with this image"}},
		"[mlflow-43] 14": {backoff, []corev1.Pod{terminatedPod(0, migrate(14))}, Failure{true, "migration failed because Alembic could not resolve the schema revision graph: a newer MLflow has probably migrated the database; use an image of that version, or restore a backup"}},
		"[mlflow-43] 17": {backoff, []corev1.Pod{terminatedPod(0, migrate(17), withTerminationMessage("hunter2\nmlflow=3.14.0 schema=b7e4c1a90f23 database=f4a9b2c7d1e6"))},
			Failure{true, "the database has schema revision f4a9b2c7d1e6 of a newer MLflow, and the image contains MLflow 3.14.0, which supports schema revisions up to b7e4c1a90f23: " +
				"use an image with the MLflow version that migrated the database, or a newer one, or restore an older backup"}},
		"[mlflow-43] 15": {backoff, []corev1.Pod{terminatedPod(0, migrate(15))}, Failure{false, "migration failed due to a retryable database or migration error"}},
		"[mlflow-43] [mlflow-44] unknown exit code": {backoff, []corev1.Pod{terminatedPod(0, migrate(1))},
			Failure{false, "migration Job container exited with code 1"}},
		"reason OOMKilled": {backoff, []corev1.Pod{terminatedPod(0, migrate(137), func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State.Terminated.Reason = "OOMKilled" })},
			Failure{false, "OOMKilled"}},
		"evicted pod": {backoff, []corev1.Pod{terminatedPod(0, migrate(137), func(p *corev1.Pod) { p.Status.Reason = "Evicted" })},
			Failure{false, "Evicted"}},
		"several pods: the newest": {backoff, []corev1.Pod{terminatedPod(5, migrate(14)), terminatedPod(9, migrate(15)), terminatedPod(1, migrate(11))},
			Failure{false, "migration failed due to a retryable database or migration error"}},
		"init container failed too": {backoff, []corev1.Pod{terminatedPod(0, map[string]int32{resources.MigrationContainer: 13, "combine-ca-bundles": 2})},
			Failure{true, "migration completed but the resulting schema revision does not match the image's Alembic head: another program may have changed the schema; restore a backup, or run mlflow db upgrade with this image"}},
		"init container failed": {backoff, []corev1.Pod{terminatedPod(0, map[string]int32{"combine-ca-bundles": 2})},
			Failure{false, "migration Job container exited with code 2"}},
		"init container succeeded, no other status": {backoff, []corev1.Pod{terminatedPod(0, map[string]int32{"combine-ca-bundles": 0})},
			Failure{false, "Job has reached the specified backoff limit"}},
		"[mlflow-51] no pods":                 {backoff, nil, Failure{false, "Job has reached the specified backoff limit"}},
		"[D15] exit code in the message only": {policy, nil, Failure{true, "operator-managed migration only supports SQL backend store URIs: use one that begins with sqlite, postgresql or mysql"}},
		"message of another rule":             {failedJob("PodFailurePolicy", "some other rule"), nil, Failure{false, "some other rule"}},
		"reason without message":              {failedJob("DeadlineExceeded", ""), nil, Failure{false, "DeadlineExceeded"}},
		"count of failures only":              {&batchv1.Job{Status: batchv1.JobStatus{Failed: 4}}, nil, Failure{false, "migration Job failed after 4 attempt(s)"}},
		"check, unknown exit code":            {checkJob, []corev1.Pod{terminatedPod(0, migrate(1))}, Failure{false, "check Job container exited with code 1"}},
		"check, count of failures only":       {checkJob, nil, Failure{false, "check Job failed after 2 attempt(s)"}},
		"empty status":                        {&batchv1.Job{}, nil, Failure{false, "migration Job failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Classify(c.job, c.pods, "3.14.0"); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func withTerminationMessage(message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State.Terminated.Message = message }
}

// [mlflow-44] Only the last line of the termination message is parsed, and only if it has the form of a report.
func TestReportOf(t *testing.T) {
	podsWith := func(message string) []corev1.Pod {
		return []corev1.Pod{terminatedPod(0, map[string]int32{resources.MigrationContainer: 17}, withTerminationMessage(message))}
	}
	if code, found := ReportOf(&batchv1.Job{}, podsWith("x\nmlflow=3.18.0.dev0 schema=- database=none\n")); code != 17 || found != (resources.ImageReport{MLflow: "3.18.0.dev0", Database: "none"}) {
		t.Errorf("ReportOf returned code %d and report %+v", code, found)
	}
	for _, message := range []string{"", "postgresql://user:hunter2@db", "mlflow=hunter2 schema=a database=b", "mlflow=3.14.0 schema=a:b database=b", "mlflow=3.14.0 schema=a database=b\nmore"} {
		if _, found := ReportOf(&batchv1.Job{}, podsWith(message)); found != (resources.ImageReport{}) {
			t.Errorf("the message %q was parsed as %+v, want no report", message, found)
		}
	}
	if code, _ := ReportOf(&batchv1.Job{}, nil); code != 0 {
		t.Errorf("without a pod: got code %d, want 0", code)
	}
	refused := failedJob("PodFailurePolicy", "Container db-migrate for pod ns/x failed with exit code 17 matching FailJob rule at index 0")
	if code, _ := ReportOf(refused, nil); code != resources.ExitNewerDatabase {
		t.Errorf("without a pod, and with code 17 in the condition: got code %d", code)
	}
}

func TestJobPhase(t *testing.T) {
	failureTarget := &batchv1.Job{Status: batchv1.JobStatus{Failed: 4, Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue}}}}
	notFailed := &batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionFalse}}}}
	for name, c := range map[string]struct {
		job  *batchv1.Job
		want jobPhase
	}{
		"[mlflow-40] FailureTarget": {failureTarget, JobRunning}, "not failed": {notFailed, JobRunning}, "new": {&batchv1.Job{}, JobRunning},
		"failed": {failedJob("x", "y"), JobFailed}, "succeeded": {&batchv1.Job{Status: batchv1.JobStatus{Succeeded: 1}}, JobSucceeded},
	} {
		if got := PhaseOf(c.job); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// A Job can be replaced only while its program is not running.
func TestIsMigrating(t *testing.T) {
	status := func(name string, phase corev1.PodPhase, state corev1.ContainerState) corev1.Pod {
		return corev1.Pod{Status: corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{{Name: name, State: state}}}}
	}
	runningState := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	exitedState := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	waitingState := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}
	for name, c := range map[string]struct {
		pods []corev1.Pod
		want bool
	}{
		"no pod":                        {nil, false},
		"waiting for its image":         {[]corev1.Pod{status(resources.MigrationContainer, corev1.PodPending, waitingState)}, false},
		"running":                       {[]corev1.Pod{status(resources.MigrationContainer, corev1.PodRunning, runningState)}, true},
		"one of two running":            {[]corev1.Pod{status(resources.MigrationContainer, corev1.PodFailed, exitedState), status(resources.MigrationContainer, corev1.PodRunning, runningState)}, true},
		"terminated, pod still running": {[]corev1.Pod{status(resources.MigrationContainer, corev1.PodRunning, exitedState)}, true},
		"terminated, pod succeeded":     {[]corev1.Pod{status(resources.MigrationContainer, corev1.PodSucceeded, exitedState)}, true},
		"pod failed":                    {[]corev1.Pod{status(resources.MigrationContainer, corev1.PodFailed, exitedState)}, false},
		"other container running":       {[]corev1.Pod{status("injected", corev1.PodRunning, runningState)}, false},
	} {
		if got := IsMigrating(c.pods); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
}

// An attempt that failed is reported while the Job continues with the next one.
func TestFailedAttemptMessage(t *testing.T) {
	failed := func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }
	next := corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending}}
	for name, c := range map[string]struct {
		pods []corev1.Pod
		want string
	}{
		"no failed pod": {[]corev1.Pod{next}, ""},
		"retryable error": {[]corev1.Pod{terminatedPod(1, map[string]int32{resources.MigrationContainer: 15}, failed), next},
			"an attempt failed (migration failed due to a retryable database or migration error), and another follows; see the log of the failed pod"},
		"no container status": {[]corev1.Pod{{Status: corev1.PodStatus{Phase: corev1.PodFailed}}}, "an attempt failed, and another follows; see the log of the failed pod"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := FailedAttemptMessage(&batchv1.Job{}, c.pods, "3.14.0"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
