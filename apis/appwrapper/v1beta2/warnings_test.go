package v1beta2

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// D24: an annotation without effect is told about, a misspelt one with the right name.
func TestWarnings(t *testing.T) {
	aw := &AppWrapper{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			"example.com/free":           "x",
			AnnotationDeletionOnFailure:  "5m",
			AnnotationTerminalExitCodes:  "1",
			AnnotationPrefix + "volume":  "11",
			AnnotationSubGroupCount:      "2",
			AnnotationPrefix + "retries": "5",
			// The sample wrapped-failing-pod has this one.
			AnnotationPrefix + "delectionOnFailureGracePeriodDuration": "5m",
		}},
		Spec: AppWrapperSpec{Components: []AppWrapperComponent{
			{Annotations: map[string]string{"free": "x"}},
			{
				Annotations: map[string]string{AnnotationRetryLimit: "5"},
				PodSets: []AppWrapperPodSet{{}, {Annotations: map[string]string{
					AnnotationSubGroupCount: "2", AnnotationPrefix + "tas-sub-group-size": "2", "kueue.x-k8s.io/other": "y",
				}}},
			},
		}},
	}
	want := []string{
		`metadata.annotations: "workload.codeflare.dev.appwrapper/delectionOnFailureGracePeriodDuration" is not known and has no effect: write "workload.codeflare.dev.appwrapper/deletionOnFailureGracePeriodDuration"`,
		`metadata.annotations: "workload.codeflare.dev.appwrapper/retries" is not known and has no effect: remove it`,
		`metadata.annotations: "workload.codeflare.dev.appwrapper/tas-sub-group-count" is not known and has no effect: remove it`,
		`metadata.annotations: "workload.codeflare.dev.appwrapper/volume" is not known and has no effect: remove it`,
		`spec.components[1].annotations: "workload.codeflare.dev.appwrapper/retryLimit" has no effect on a component: set it in the metadata of the AppWrapper`,
		`spec.components[1].podSets[1].annotations: "workload.codeflare.dev.appwrapper/tas-sub-group-size" is not known and has no effect: remove it`,
	}
	if got := Warnings(aw); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := Warnings(&AppWrapper{}); len(got) != 0 {
		t.Errorf("nothing to warn of, got %q", got)
	}
}

func TestEdits(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"delection", "deletion", 1}, {"kitten", "sitting", 3}} {
		if got := edits(test.a, test.b); got != test.want {
			t.Errorf("%q to %q: got %d, want %d", test.a, test.b, got, test.want)
		}
	}
}
