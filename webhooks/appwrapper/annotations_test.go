package appwrapper

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// [D24] An annotation without effect causes a warning, which contains the correct key for a misspelled one.
func TestWarnings(t *testing.T) {
	aw := &v1beta2.AppWrapper{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			"example.com/annotation":             "x",
			v1beta2.AnnotationDeletionOnFailure:  "5m",
			v1beta2.AnnotationTerminalExitCodes:  "1",
			v1beta2.AnnotationPrefix + "volume":  "11",
			v1beta2.AnnotationSubGroupCount:      "2",
			v1beta2.AnnotationPrefix + "retries": "5",
			// config/samples/appwrapper_failing_pod.yaml has this annotation.
			v1beta2.AnnotationPrefix + "delectionOnFailureGracePeriodDuration": "5m",
		}},
		Spec: v1beta2.AppWrapperSpec{Components: []v1beta2.AppWrapperComponent{
			{Annotations: map[string]string{"annotation": "x"}},
			{
				Annotations: map[string]string{v1beta2.AnnotationRetryLimit: "5"},
				PodSets: []v1beta2.AppWrapperPodSet{{}, {Annotations: map[string]string{
					v1beta2.AnnotationSubGroupCount: "2", v1beta2.AnnotationPrefix + "tas-sub-group-size": "2", "kueue.x-k8s.io/other": "y",
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
	if got := ineffectiveAnnotations(aw); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got warnings\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := ineffectiveAnnotations(&v1beta2.AppWrapper{}); len(got) != 0 {
		t.Errorf("no annotations: got warnings %q, want none", got)
	}
}
