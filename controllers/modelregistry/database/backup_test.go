package database

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestBackupCondition(t *testing.T) {
	at := func(hour int) *metav1.Time { return new(metav1.Date(2026, 1, 2, hour, 0, 0, 0, time.UTC)) }
	running := []corev1.ObjectReference{{Name: "job"}}
	for name, test := range map[string]struct {
		suspend *bool
		status  batchv1.CronJobStatus
		want    metav1.ConditionStatus
		reason  string
		message string
	}{
		"no backup yet":             {nil, batchv1.CronJobStatus{}, metav1.ConditionUnknown, ReasonPending, "15 3 * * *"},
		"first backup running":      {nil, batchv1.CronJobStatus{LastScheduleTime: at(3), Active: running}, metav1.ConditionUnknown, ReasonPending, "15 3 * * *"},
		"first backup failed":       {nil, batchv1.CronJobStatus{LastScheduleTime: at(3)}, metav1.ConditionFalse, ReasonFailed, "The backup of 2026-01-02T03:00:00Z failed (no backup has succeeded yet)"},
		"backup succeeded":          {new(false), batchv1.CronJobStatus{LastScheduleTime: at(3), LastSuccessfulTime: at(4)}, metav1.ConditionTrue, ReasonSucceeded, "2026-01-02T04:00:00Z"},
		"next backup running":       {nil, batchv1.CronJobStatus{LastScheduleTime: at(5), LastSuccessfulTime: at(4), Active: running}, metav1.ConditionTrue, ReasonSucceeded, "2026-01-02T04:00:00Z"},
		"next backup failed":        {nil, batchv1.CronJobStatus{LastScheduleTime: at(5), LastSuccessfulTime: at(4)}, metav1.ConditionFalse, ReasonFailed, "the last successful backup ended at 2026-01-02T04:00:00Z"},
		"suspended after a failure": {new(true), batchv1.CronJobStatus{LastScheduleTime: at(5)}, metav1.ConditionFalse, ReasonSuspended, "spec.postgres.backup.suspend"},
	} {
		job := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo-postgres-backup"}, Status: test.status}
		job.Spec.Schedule, job.Spec.Suspend = "15 3 * * *", test.suspend
		if got := BackupCondition(job); got.Status != test.want || got.Reason != test.reason || !strings.Contains(got.Message, test.message) {
			t.Errorf("%s: got condition %+v, want %s with reason %s and message %q", name, got, test.want, test.reason, test.message)
		}
	}
}
