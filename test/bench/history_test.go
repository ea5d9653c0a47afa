package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func measurementsOf(ratios ...float64) []measurement {
	var all []measurement
	for i, ratio := range ratios {
		all = append(all, measurement{Time: time.Unix(int64(i), 0).UTC(), Ratios: map[string]float64{"burst": ratio, "steady": 1}})
	}
	return all
}

func TestRegressions(t *testing.T) {
	for name, tc := range map[string]struct {
		previous []measurement
		now      float64
		worse    bool
	}{
		"the first measurement":        {nil, 9, false},
		"unchanged":                    {measurementsOf(2), 2, false},
		"better":                       {measurementsOf(2, 2, 2), 0.5, false},
		"worse by a fifth":             {measurementsOf(2, 2, 2), 2.4, false},
		"worse by more than a fifth":   {measurementsOf(2, 2, 2), 2.41, true},
		"one bad outlier":              {measurementsOf(2, 9, 2), 2.5, true},
		"one good outlier":             {measurementsOf(2, 0.1, 2), 2.3, false},
		"even number of measurements":  {measurementsOf(1, 3), 2.4, false},
		"worse, even number":           {measurementsOf(1, 3), 2.5, true},
		"most measurements are as bad": {measurementsOf(1, 3, 3), 3.1, false},
	} {
		got := measurementsOf(tc.now)[0].regressions(tc.previous)
		if (len(got) > 0) != tc.worse || tc.worse && !strings.HasPrefix(got[0], "burst: ") {
			t.Errorf("%s: regressions returned %q", name, got)
		}
	}
	if got := measurementsOf(9)[0].regressions([]measurement{{Ratios: map[string]float64{"another": 1}}}); got != nil {
		t.Errorf("got %q for a new ratio, want no regression", got)
	}
}

func TestAppendMeasurement(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	for _, m := range measurementsOf(slices.Repeat([]float64{2}, historyLength+5)...) {
		if err := appendMeasurement(path, m); err != nil {
			t.Fatal(err)
		}
	}
	if err := appendMeasurement(path, measurementsOf(3)[0]); !errors.Is(err, errRegression) || !strings.Contains(err.Error(), "burst: 3.00, median of 30 previous measurements 2.00") {
		t.Errorf("got error %v, want errRegression for burst", err)
	}
	all, err := readHistory(path)
	if err != nil || len(all) != historyLength+1 || all[historyLength].Ratios["burst"] != 3 || !all[0].Time.Equal(time.Unix(5, 0)) {
		t.Errorf("got %d measurements, error %v, want %d with the latest last", len(all), err, historyLength+1)
	}
	if err := os.WriteFile(path, []byte("{}\nnone\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := appendMeasurement(path, measurementsOf(1)[0]); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("got error %v for an invalid line, want its number", err)
	}
	if text, _ := os.ReadFile(path); string(text) != "{}\nnone\n" {
		t.Errorf("the invalid history was overwritten with %q", text)
	}
}
