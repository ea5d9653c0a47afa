package framework

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/odh-platform/odh-platform-operator/test/rights"
)

func TestComponentsOfManagers(t *testing.T) {
	for name, c := range map[string]struct {
		managers [][]string
		want     []string
	}{
		"all":             {[][]string{{"--leader-elect"}}, nil},
		"all but one":     {[][]string{{"--components=*,-mlflow"}}, nil},
		"one component":   {[][]string{{"--components=mlflow"}}, []string{"mlflow"}},
		"of two managers": {[][]string{{"--components=raycluster,appwrapper"}, {"--components=appwrapper,mlflow"}}, []string{"appwrapper", "mlflow", "raycluster"}},
		"one and all":     {[][]string{{"--components=mlflow"}, {}}, nil},
		"all and one":     {[][]string{{}, {"--components=mlflow"}}, nil},
	} {
		managers := &recordedManagers{}
		for _, args := range c.managers {
			managers.add("manager", "ns", args)
		}
		if difference := cmp.Diff(c.want, managers.components); difference != "" {
			t.Errorf("%s: unexpected components (-want +got):\n%s", name, difference)
		}
		if len(managers.accounts) != 1 {
			t.Errorf("%s: got accounts %v, want 1", name, managers.accounts)
		}
	}
}

func TestAllowedRefusals(t *testing.T) {
	managers := &recordedManagers{allowedRefusals: []allowedRefusal{{resource: "gadgets.example.com", from: 10}, {resource: "pods"}}}
	for _, c := range []struct {
		use    rights.Use
		offset int64
		want   bool
	}{
		{rights.Use{Group: "example.com", Resource: "gadgets"}, 9, false},
		{rights.Use{Group: "example.com", Resource: "gadgets"}, 10, true},
		{rights.Use{Group: "example.com", Resource: "gadgets/status"}, 11, true},
		{rights.Use{Group: "example.org", Resource: "gadgets"}, 11, false},
		{rights.Use{Resource: "pods"}, 0, true},
	} {
		if got := managers.allows(c.use, c.offset); got != c.want {
			t.Errorf("%v at %d: %v, want %v", c.use, c.offset, got, c.want)
		}
	}
}

func TestAllRan(t *testing.T) {
	report := func(succeeded, focused bool, states ...types.SpecState) ginkgo.Report {
		r := ginkgo.Report{SuiteSucceeded: succeeded, SuiteHasProgrammaticFocus: focused}
		for _, state := range states {
			spec := ginkgo.SpecReport{State: state, NumAttempts: 1}
			if state == types.SpecStateSkipped {
				spec.NumAttempts = 0
			}
			r.SpecReports = append(r.SpecReports, spec)
		}
		return r
	}
	for name, c := range map[string]struct {
		report ginkgo.Report
		want   bool
	}{
		"all":      {report(true, false, types.SpecStatePassed, types.SpecStatePassed), true},
		"failed":   {report(false, false, types.SpecStatePassed), false},
		"focused":  {report(true, true, types.SpecStatePassed), false},
		"filtered": {report(true, false, types.SpecStatePassed, types.SpecStateSkipped), false},
	} {
		if got := allRan(c.report); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
	selfSkipped := report(true, false, types.SpecStatePassed)
	selfSkipped.SpecReports = append(selfSkipped.SpecReports, ginkgo.SpecReport{State: types.SpecStateSkipped, NumAttempts: 1})
	if !allRan(selfSkipped) {
		t.Error("a spec that skips itself does not count as run")
	}
	withoutNightly := report(true, false, types.SpecStatePassed, types.SpecStateSkipped)
	withoutNightly.SpecReports[1].LeafNodeLabels = []string{nightly}
	if !allRan(withoutNightly) {
		t.Error("a suite without its nightly specs does not count as run")
	}
}
