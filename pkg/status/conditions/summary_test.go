package conditions

import (
	"slices"
	"testing"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

func newCondition(conditionType string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: "because " + reason}
}

// kstatusOf returns the kstatus of an object with the conditions.
func kstatusOf(t *testing.T, list []metav1.Condition) kstatus.Status {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}{Status: struct {
		Conditions []metav1.Condition `json:"conditions"`
	}{list}})
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{Object: content}
	o.SetAPIVersion("example.com/v1")
	o.SetKind("Thing")
	result, err := kstatus.Compute(o)
	if err != nil {
		t.Fatal(err)
	}
	return result.Status
}

func TestSummarize(t *testing.T) {
	up, down := newCondition("Available", metav1.ConditionTrue, "Up"), newCondition("Available", metav1.ConditionFalse, "Down")
	rollout := &Pending{Reason: "Rollout", Message: "because Rollout"}
	for name, tc := range map[string]struct {
		list    []metav1.Condition
		options SummaryOptions
		status  metav1.ConditionStatus
		reason  string
		want    kstatus.Status
	}{
		"up":                                     {[]metav1.Condition{up}, SummaryOptions{}, metav1.ConditionTrue, "Up", kstatus.CurrentStatus},
		"down":                                   {[]metav1.Condition{down}, SummaryOptions{}, metav1.ConditionFalse, "Down", kstatus.InProgressStatus},
		"no conditions":                          {nil, SummaryOptions{}, metav1.ConditionUnknown, NotYetKnown, kstatus.InProgressStatus},
		"only a False condition":                 {[]metav1.Condition{newCondition("Reconciled", metav1.ConditionFalse, "ReconcileError")}, SummaryOptions{}, metav1.ConditionFalse, "ReconcileError", kstatus.InProgressStatus},
		"Unknown condition":                      {[]metav1.Condition{newCondition("Available", metav1.ConditionUnknown, "Gone")}, SummaryOptions{}, metav1.ConditionUnknown, "Gone", kstatus.InProgressStatus},
		"down and stalled":                       {[]metav1.Condition{down}, SummaryOptions{Stalled: true}, metav1.ConditionFalse, "Down", kstatus.FailedStatus},
		"previous version is available":          {[]metav1.Condition{up}, SummaryOptions{Pending: rollout}, metav1.ConditionFalse, "Rollout", kstatus.InProgressStatus},
		"previous version is available, stalled": {[]metav1.Condition{up}, SummaryOptions{Pending: rollout, Stalled: true}, metav1.ConditionFalse, "Rollout", kstatus.FailedStatus},
		"progressing":                            {[]metav1.Condition{up, newCondition("Progressing", metav1.ConditionTrue, "Updating")}, SummaryOptions{}, metav1.ConditionFalse, "Updating", kstatus.InProgressStatus},
		"not progressing":                        {[]metav1.Condition{up, newCondition("Progressing", metav1.ConditionFalse, "Done")}, SummaryOptions{}, metav1.ConditionTrue, "Up", kstatus.CurrentStatus},
		"another condition is False":             {[]metav1.Condition{up, newCondition("StorageInSync", metav1.ConditionFalse, "ClaimDiffers")}, SummaryOptions{}, metav1.ConditionFalse, "ClaimDiffers", kstatus.InProgressStatus},
		"negative condition is True":             {[]metav1.Condition{up, newCondition("Degraded", metav1.ConditionTrue, "Worn")}, SummaryOptions{}, metav1.ConditionFalse, "Worn", kstatus.InProgressStatus},
		"informational type":                     {[]metav1.Condition{up, newCondition("CredentialsInSpec", metav1.ConditionTrue, "Password")}, SummaryOptions{InformationalConditions: []string{"CredentialsInSpec"}}, metav1.ConditionTrue, "Up", kstatus.CurrentStatus},
		"informational reason":                   {[]metav1.Condition{up, newCondition("CertificateReady", metav1.ConditionFalse, "Expires")}, SummaryOptions{InformationalConditions: []string{"Expires"}}, metav1.ConditionTrue, "Up", kstatus.CurrentStatus},
		"another condition is Unknown":           {[]metav1.Condition{up, newCondition("RouteAccepted", metav1.ConditionUnknown, "RouteUnknown")}, SummaryOptions{}, metav1.ConditionTrue, "Up", kstatus.CurrentStatus},
	} {
		t.Run(name, func(t *testing.T) {
			list := slices.Clone(tc.list)
			tc.options.ReadyCondition = "Available"
			Summarize(&list, 7, tc.options)
			ready := meta.FindStatusCondition(list, Ready)
			if ready == nil || ready.Status != tc.status || ready.Reason != tc.reason || ready.ObservedGeneration != 7 || ready.Message == "" {
				t.Errorf("got Ready condition %+v, want %s %s", ready, tc.status, tc.reason)
			}
			if got := kstatusOf(t, list); got != tc.want {
				t.Errorf("kstatus %s, want %s: %+v", got, tc.want, list)
			}
			again := slices.Clone(list)
			if Summarize(&again, 7, tc.options); !slices.Equal(again, list) {
				t.Errorf("a repeated call changed the conditions to %+v, want %+v", again, list)
			}
			list = append(list[:0], up)
			Summarize(&list, 8, SummaryOptions{ReadyCondition: "Available"})
			if got := kstatusOf(t, list); got != kstatus.CurrentStatus {
				t.Errorf("after the recovery: got kstatus %s, want %s", got, kstatus.CurrentStatus)
			}
		})
	}
}

// A Stalled condition that is already True is kept. While the ready condition is True, Ready has the reason of Stalled.
func TestStalledConditionIsKept(t *testing.T) {
	stalled := newCondition(Stalled, metav1.ConditionTrue, "RequestInvalid")
	for available, want := range map[metav1.ConditionStatus]string{metav1.ConditionTrue: "RequestInvalid", metav1.ConditionFalse: "Down"} {
		got := Summary([]metav1.Condition{newCondition("Available", available, "Down"), stalled}, SummaryOptions{ReadyCondition: "Available"})
		if got[0].Status != metav1.ConditionFalse || got[0].Reason != want || got[1].Status != "" || got[2] != stalled {
			t.Errorf("Available=%s: got %+v, want reason %s", available, got, want)
		}
	}
}

// If a component sets Ready itself, only Stalled is derived from it.
func TestSummarizeWithReadyAsReadyCondition(t *testing.T) {
	list := []metav1.Condition{newCondition(Ready, metav1.ConditionFalse, "Failed"), newCondition("PodsReady", metav1.ConditionFalse, "Gone")}
	Summarize(&list, 1, SummaryOptions{ReadyCondition: Ready, Stalled: true})
	if c := meta.FindStatusCondition(list, Stalled); len(list) != 3 || c == nil || c.Reason != "Failed" {
		t.Errorf("got conditions %+v, want Stalled with the reason of Ready", list)
	}
	if Summarize(&list, 1, SummaryOptions{ReadyCondition: Ready}); len(list) != 2 {
		t.Errorf("got conditions %+v, want Stalled removed", list)
	}
}

// collectSeries returns the labels of each series of the metric.
func collectSeries(t *testing.T) []string {
	t.Helper()
	all := make(chan prometheus.Metric, 10)
	notReady.Collect(all)
	close(all)
	var out []string
	for metric := range all {
		var m dto.Metric
		if err := metric.Write(&m); err != nil || m.GetGauge().GetValue() != 1 {
			t.Errorf("got metric %+v, error %v, want value 1", &m, err)
		}
		text := ""
		for _, label := range m.GetLabel() {
			text += label.GetValue() + " "
		}
		out = append(out, text)
	}
	return out
}

func TestNotReadySeries(t *testing.T) {
	s := NewNotReadySeries("test", "Thing")
	name := types.NamespacedName{Namespace: "a", Name: "b"}
	withReady := func(status metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{newCondition("Available", metav1.ConditionFalse, "Other"), newCondition(Ready, status, reason)}
	}
	for _, step := range []struct {
		list []metav1.Condition
		want []string
	}{
		{nil, nil},
		{withReady(metav1.ConditionUnknown, NotYetKnown), []string{"test Thing b a NotYetKnown "}},
		{withReady(metav1.ConditionFalse, "Down"), []string{"test Thing b a Down "}},
		{withReady(metav1.ConditionFalse, "Down"), []string{"test Thing b a Down "}},
		{withReady(metav1.ConditionFalse, Suspended), nil},
		{withReady(metav1.ConditionFalse, "Down"), []string{"test Thing b a Down "}},
		{append(withReady(metav1.ConditionFalse, "Down"), newCondition(deletingResources, metav1.ConditionTrue, "Started")), []string{"test Thing b a Started "}},
		{append(withReady(metav1.ConditionFalse, "Down"), newCondition(deletingResources, metav1.ConditionFalse, "Ended")), []string{"test Thing b a Down "}},
		{append(withReady(metav1.ConditionTrue, "Up"), newCondition(deletingResources, metav1.ConditionTrue, "Started")), nil},
		{withReady(metav1.ConditionTrue, "Up"), nil},
	} {
		s.Observe(name, step.list)
		if got := collectSeries(t); !slices.Equal(got, step.want) {
			t.Errorf("%+v: got series %q, want %q", step.list, got, step.want)
		}
	}
	s.Observe(name, withReady(metav1.ConditionFalse, "Down"))
	s.Forget(name)
	s.Forget(name)
	if got := collectSeries(t); got != nil {
		t.Errorf("deleted object: got series %q, want none", got)
	}
}
