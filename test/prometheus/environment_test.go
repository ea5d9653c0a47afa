package prometheus

import (
	"context"
	"math"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/template"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

const evaluationInterval = 30 * time.Second

// series is a series in memory.
type series struct {
	labels labels.Labels
	points []chunks.Sample
}

// point is a sample.
type point struct {
	at int64
	v  float64
}

func (p point) T() int64                      { return p.at }
func (p point) ST() int64                     { return 0 }
func (p point) F() float64                    { return p.v }
func (p point) H() *histogram.Histogram       { return nil }
func (p point) FH() *histogram.FloatHistogram { return nil }
func (p point) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (p point) Copy() chunks.Sample           { return p }

// environment is a Prometheus with the series of one test and the results of its recording rules.
type environment struct {
	engine *promql.Engine
	series []*series
}

func newEnvironment(t *testing.T, test ruleTest) *environment {
	t.Helper()
	env := &environment{engine: promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute})}
	t.Cleanup(func() {
		if err := env.engine.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, in := range test.Input {
		name, values, err := language.ParseSeriesDesc(in.Series + " " + in.Values)
		if err != nil {
			t.Fatal(err)
		}
		l := &series{labels: name}
		for i, v := range values {
			if !v.Omitted {
				l.add(int64(i)*time.Duration(test.Interval).Milliseconds(), v.Value)
			}
		}
		env.series = append(env.series, l)
	}
	return env
}

func (l *series) add(at int64, v float64) {
	l.points = append(l.points, point{at, v})
}

// Querier implements storage.Queryable.
func (env *environment) Querier(int64, int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		set := &seriesSet{at: -1}
		for _, l := range env.series {
			mismatches := func(m *labels.Matcher) bool { return !m.Matches(l.labels.Get(m.Name)) }
			if !slices.ContainsFunc(matchers, mismatches) {
				set.found = append(set.found, l)
			}
		}
		slices.SortFunc(set.found, func(a, b *series) int { return labels.Compare(a.labels, b.labels) })
		return set
	}}, nil
}

// seriesSet is a storage.SeriesSet.
type seriesSet struct {
	found []*series
	at    int
}

func (s *seriesSet) Next() bool                        { s.at++; return s.at < len(s.found) }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

func (s *seriesSet) At() storage.Series {
	return storage.NewListSeries(s.found[s.at].labels, s.found[s.at].points)
}

func (env *environment) query(t *testing.T, expr string, at time.Time) promql.Vector {
	t.Helper()
	q, err := env.engine.NewInstantQuery(t.Context(), env, nil, expr, at)
	if err != nil {
		t.Fatalf("%s: unexpected error: %v", expr, err)
	}
	defer q.Close()
	result := q.Exec(t.Context())
	vector, err := result.Vector()
	if err != nil {
		t.Fatalf("%s: unexpected error: %v", expr, err)
	}
	return slices.Clone(vector)
}

// record evaluates a recording rule. Series that the rule no longer returns become stale.
func (env *environment) record(t *testing.T, r rulefmt.Rule, at time.Time) {
	t.Helper()
	missing := map[*series]bool{}
	for _, l := range env.series {
		if l.labels.Get(model.MetricNameLabel) == r.Record {
			missing[l] = !value.IsStaleNaN(l.points[len(l.points)-1].F())
		}
	}
	for _, sample := range env.query(t, r.Expr, at) {
		name := labels.NewBuilder(sample.Metric).Set(model.MetricNameLabel, r.Record).Labels()
		i := slices.IndexFunc(env.series, func(l *series) bool { return labels.Equal(l.labels, name) })
		if i < 0 {
			env.series = append(env.series, &series{labels: name})
			i = len(env.series) - 1
		}
		env.series[i].add(at.UnixMilli(), sample.F)
		missing[env.series[i]] = false
	}
	for l, stale := range missing {
		if stale {
			l.add(at.UnixMilli(), math.Float64frombits(value.StaleNaN))
		}
	}
}

// alert is a firing alert.
type alert struct{ labels, annotations map[string]string }

// firing evaluates the recording rules and an alert from the start until a time, and returns the alerts that fire at that time.
func (env *environment) firing(t *testing.T, rules []rulefmt.Rule, name string, until model.Duration) []alert {
	t.Helper()
	i := slices.IndexFunc(rules, func(r rulefmt.Rule) bool { return r.Alert == name })
	if i < 0 {
		t.Fatalf("alert %s does not exist", name)
	}
	rule, since := rules[i], map[string]time.Time{}
	for passed := time.Duration(0); ; passed += evaluationInterval {
		now := time.UnixMilli(0).Add(passed)
		for _, r := range rules {
			if r.Record != "" {
				env.record(t, r, now)
			}
		}
		active, pending := env.query(t, rule.Expr, now), map[string]time.Time{}
		var out []alert
		for _, sample := range active {
			key := sample.Metric.String()
			pending[key] = now
			if first, found := since[key]; found {
				pending[key] = first
			}
			if now.Sub(pending[key]) >= time.Duration(rule.For) {
				out = append(out, env.alert(t, rule, sample, now))
			}
		}
		since = pending
		if passed >= time.Duration(until) {
			return out
		}
	}
}

// alert expands the templates of an alert.
func (env *environment) alert(t *testing.T, rule rulefmt.Rule, sample promql.Sample, now time.Time) alert {
	t.Helper()
	a := alert{labels: sample.Metric.Map(), annotations: map[string]string{}}
	delete(a.labels, model.MetricNameLabel)
	data := template.AlertTemplateData(sample.Metric.Map(), nil, "", sample)
	noQueries := func(context.Context, string, time.Time) (promql.Vector, error) { return nil, nil }
	expand := func(text string) string {
		const prefix = "{{$labels := .Labels}}{{$value := .Value}}"
		expanded, err := template.NewTemplateExpander(t.Context(), prefix+text, rule.Alert, data, model.TimeFromUnixNano(now.UnixNano()), noQueries, &url.URL{}, nil).Expand()
		if err != nil {
			t.Errorf("%s: %q: unexpected error: %v", rule.Alert, text, err)
		}
		return expanded
	}
	for name, text := range rule.Labels {
		a.labels[name] = expand(text)
	}
	for name, text := range rule.Annotations {
		a.annotations[name] = expand(text)
	}
	return a
}
