package podset

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// RayJobs whose cluster outlives them, and clusters with an autoscaler, are rejected as by Kueue.
func TestQuotaErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"a RayJob that shuts down":       {`{apiVersion: ray.io/v1, kind: RayJob, spec: {shutdownAfterJobFinishes: true, rayClusterSpec: {}}}`, nil},
		"a RayJob by its default":        {`{apiVersion: ray.io/v1, kind: RayJob, spec: {rayClusterSpec: {}}}`, []string{"spec.shutdownAfterJobFinishes"}},
		"a RayJob that sets it false":    {`{apiVersion: ray.io/v1, kind: RayJob, spec: {shutdownAfterJobFinishes: false, rayClusterSpec: {enableInTreeAutoscaling: true}}}`, []string{"spec.shutdownAfterJobFinishes", "spec.rayClusterSpec.enableInTreeAutoscaling"}},
		"a RayCluster that grows":        {`{apiVersion: ray.io/v1, kind: RayCluster, spec: {enableInTreeAutoscaling: true}}`, []string{"spec.enableInTreeAutoscaling"}},
		"a RayCluster that does not":     {`{apiVersion: ray.io/v1, kind: RayCluster, spec: {enableInTreeAutoscaling: false}}`, nil},
		"a RayService that grows":        {`{apiVersion: ray.io/v1, kind: RayService, spec: {rayClusterConfig: {enableInTreeAutoscaling: true}}}`, []string{"spec.rayClusterConfig.enableInTreeAutoscaling"}},
		"a RayJob that is suspended":     {`{apiVersion: ray.io/v1, kind: RayJob, spec: {suspend: true, shutdownAfterJobFinishes: true, rayClusterSpec: {suspend: true}}}`, []string{"spec.suspend", "spec.rayClusterSpec.suspend"}},
		"a RayCluster that is suspended": {`{apiVersion: ray.io/v1, kind: RayCluster, spec: {suspend: true}}`, []string{"spec.suspend"}},
		"a RayCluster that is not":       {`{apiVersion: ray.io/v1, kind: RayCluster, spec: {suspend: false}}`, nil},
		"a RayCronJob whose runs end":    {`{apiVersion: ray.io/v1, kind: RayCronJob, spec: {jobTemplate: {shutdownAfterJobFinishes: true, rayClusterSpec: {}}}}`, nil},
		"a RayCronJob without an end": {`{apiVersion: ray.io/v1, kind: RayCronJob, spec: {suspend: true, jobTemplate: {suspend: true, rayClusterSpec: {enableInTreeAutoscaling: true, suspend: true}}}}`,
			[]string{"spec.jobTemplate.shutdownAfterJobFinishes", "spec.jobTemplate.suspend", "spec.suspend", "spec.jobTemplate.rayClusterSpec.enableInTreeAutoscaling", "spec.jobTemplate.rayClusterSpec.suspend"}},
		"RayJob of another API group": {`{apiVersion: example.com/v1, kind: RayJob, spec: {}}`, nil},
		"a Job":                       {job(""), nil},
	} {
		var got []string
		for _, fault := range QuotaErrors(object(t, tc.text), nil) {
			got = append(got, fault.Field)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestRaiseTTL(t *testing.T) {
	for name, tc := range map[string]struct {
		text     string
		path     []string
		want     int64
		reported bool
	}{
		"a Job of a second":         {job("ttlSecondsAfterFinished: 1, "), []string{"spec", "ttlSecondsAfterFinished"}, 3600, true},
		"Job with a TTL of 0":       {job("ttlSecondsAfterFinished: 0, "), []string{"spec", "ttlSecondsAfterFinished"}, 3600, true},
		"a Job of a day":            {job("ttlSecondsAfterFinished: 86400, "), []string{"spec", "ttlSecondsAfterFinished"}, 86400, false},
		"a PyTorchJob of a minute":  {`{apiVersion: kubeflow.org/v1, kind: PyTorchJob, spec: {runPolicy: {ttlSecondsAfterFinished: 60}}}`, []string{"spec", "runPolicy", "ttlSecondsAfterFinished"}, 3600, true},
		"a JobSet of a minute":      {`{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, spec: {ttlSecondsAfterFinished: 60}}`, []string{"spec", "ttlSecondsAfterFinished"}, 3600, true},
		"RayJob with a TTL":         {`{apiVersion: ray.io/v1, kind: RayJob, spec: {ttlSecondsAfterFinished: 60}}`, []string{"spec", "ttlSecondsAfterFinished"}, 60, false},
		"a kind that is not judged": {`{apiVersion: example.com/v1, kind: Own, spec: {ttlSecondsAfterFinished: 60}}`, []string{"spec", "ttlSecondsAfterFinished"}, 60, false},
	} {
		u := object(t, tc.text)
		reported := RaiseTTL(u)
		got, _, err := unstructured.NestedInt64(u.Object, tc.path...)
		if err != nil || got != tc.want || (reported != "") != tc.reported {
			t.Errorf("%s: got %d, want %d (message %q, error %v)", name, got, tc.want, reported, err)
		}
	}
	for _, text := range []string{job(""), job("ttlSecondsAfterFinished: soon, "), `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, spec: {}}`} {
		if reported := RaiseTTL(object(t, text)); reported != "" {
			t.Errorf("%s: got %q, want an empty string", text, reported)
		}
	}
}
