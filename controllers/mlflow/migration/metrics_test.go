package migration

import (
	"testing"

	dto "github.com/prometheus/client_model/go"
)

// [D39] Each ended Job is counted once by result, and the gauge shows the age of an unfinished Job.
func TestMigrationMetrics(t *testing.T) {
	counterValue := func(result string) float64 {
		var m dto.Metric
		if err := migrationsTotal.WithLabelValues(result).Write(&m); err != nil {
			t.Fatal(err)
		}
		return m.GetCounter().GetValue()
	}
	for _, c := range []struct {
		facts *Facts
		want  string
	}{
		{factsOf(job(JobSucceeded)), resultSucceeded}, {factsOf(job(JobFailed, terminal)), resultFailed}, {factsOf(job(JobFailed, retryDue)), resultRetried},
		{factsOf(job(JobRunning)), ""}, {factsOf(), ""}, {factsOf(withCondition("False", ReasonMigrationFailed, 1)), ""},
	} {
		before := map[string]float64{}
		for _, result := range []string{resultSucceeded, resultFailed, resultRetried} {
			before[result] = counterValue(result)
		}
		d := Decide(c.facts)
		if d.Step == StepDeleteJob {
			CountRetry(&d)
		}
		if d.Record != nil {
			CountFinishedJob(&c.facts.Record, d.Record)
			CountFinishedJob(d.Record, d.Record)
		}
		for result, count := range before {
			want := count
			if result == c.want {
				want++
			}
			if got := counterValue(result); got != want {
				t.Errorf("rule %q: counter %s = %v, want %v", d.Rule, result, got, want)
			}
		}
	}
	f := factsOf(job(JobRunning, func(j *JobState) { j.StartedAt = noon.Add(-failureRetryDelay) }))
	ReportAge(f)
	var m dto.Metric
	if err := migrationSeconds.Write(&m); err != nil || m.GetGauge().GetValue() != failureRetryDelay.Seconds() {
		t.Errorf("gauge %v, error %v, want the age of the Job, %s", m.GetGauge(), err, failureRetryDelay)
	}
}
