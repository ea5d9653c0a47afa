package migration

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
)

// Values of the label result.
const (
	resultSucceeded = "succeeded"
	resultFailed    = "failed"
	resultRetried   = "retried"
)

var (
	migrationsTotal = initialize(promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
		Name: "odh_platform_mlflow_migrations_total",
		Help: "Database migration Jobs that ended, by result (succeeded, failed, retried).",
	}, []string{"result"}), resultSucceeded, resultFailed, resultRetried)
	migrationSeconds = promauto.With(metrics.Registry).NewGauge(prometheus.GaugeOpts{
		Name: "odh_platform_mlflow_migration_running_seconds",
		Help: "Age of the unfinished database migration Job when the manager last read it, 0 without a Job or while the MLflow is paused or waits for something else.",
	})
)

// initialize exports counters with the value 0, so that the first failure is an increase.
func initialize(counters *prometheus.CounterVec, values ...string) *prometheus.CounterVec {
	for _, value := range values {
		counters.WithLabelValues(value)
	}
	return counters
}

// CountFinishedJob counts a migration Job that succeeded or failed permanently, in the update of the status that records it.
func CountFinishedJob(before, after *mlflowv1.MigrationStatus) {
	switch {
	case after == nil || after.JobUID == "" || before != nil && before.JobUID == after.JobUID:
	case after.Outcome == mlflowv1.MigrationFailed:
		migrationsTotal.WithLabelValues(resultFailed).Inc()
	default:
		migrationsTotal.WithLabelValues(resultSucceeded).Inc()
	}
}

// CountRetry counts a failed migration Job that a decision deleted to repeat it.
func CountRetry(d *Decision) {
	if d.Job.Phase == JobFailed && d.Report.Reason == ReasonMigrationRetrying {
		migrationsTotal.WithLabelValues(resultRetried).Inc()
	}
}

// ReportAge sets the age of an unfinished migration Job, or 0 without one.
func ReportAge(f *Facts) {
	var age time.Duration
	if f.Observed != nil && f.Observed.Job != nil && f.Observed.Job.Phase == JobRunning {
		age = f.Now.Sub(f.Observed.Job.StartedAt)
	}
	migrationSeconds.Set(age.Seconds())
}

// ResetMetrics sets the age of the unfinished Job to 0, because the manager does not read the Job of a paused, waiting or deleted MLflow.
func ResetMetrics() { migrationSeconds.Set(0) }
