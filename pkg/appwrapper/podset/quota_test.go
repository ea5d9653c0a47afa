package podset

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func rayClusterText(groups string) string {
	return `{apiVersion: ray.io/v1, kind: RayCluster, spec: {workerGroupSpecs: [` + groups + `]}}`
}

// QuotaErrors rejects RayJobs that retain their cluster, clusters with autoscaling or with replicas outside of their bounds, and suspended
// objects.
func TestQuotaErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"RayJob with shutdownAfterJobFinishes":      {`{apiVersion: ray.io/v1, kind: RayJob, spec: {shutdownAfterJobFinishes: true, rayClusterSpec: {}}}`, nil},
		"RayJob with defaults":                      {`{apiVersion: ray.io/v1, kind: RayJob, spec: {rayClusterSpec: {}}}`, []string{"spec.shutdownAfterJobFinishes"}},
		"RayJob without shutdown, with autoscaling": {`{apiVersion: ray.io/v1, kind: RayJob, spec: {shutdownAfterJobFinishes: false, rayClusterSpec: {enableInTreeAutoscaling: true}}}`, []string{"spec.shutdownAfterJobFinishes", "spec.rayClusterSpec.enableInTreeAutoscaling"}},
		"RayCluster with autoscaling":               {`{apiVersion: ray.io/v1, kind: RayCluster, spec: {enableInTreeAutoscaling: true}}`, []string{"spec.enableInTreeAutoscaling"}},
		"RayCluster without autoscaling":            {`{apiVersion: ray.io/v1, kind: RayCluster, spec: {enableInTreeAutoscaling: false}}`, nil},
		"RayService with autoscaling":               {`{apiVersion: ray.io/v1, kind: RayService, spec: {rayClusterConfig: {enableInTreeAutoscaling: true}}}`, []string{"spec.rayClusterConfig.enableInTreeAutoscaling"}},
		"suspended RayJob":                          {`{apiVersion: ray.io/v1, kind: RayJob, spec: {suspend: true, shutdownAfterJobFinishes: true, rayClusterSpec: {suspend: true}}}`, []string{"spec.suspend", "spec.rayClusterSpec.suspend"}},
		"suspended RayCluster":                      {`{apiVersion: ray.io/v1, kind: RayCluster, spec: {suspend: true}}`, []string{"spec.suspend"}},
		"RayCluster with suspend false":             {`{apiVersion: ray.io/v1, kind: RayCluster, spec: {suspend: false}}`, nil},
		"RayCronJob with shutdownAfterJobFinishes":  {`{apiVersion: ray.io/v1, kind: RayCronJob, spec: {jobTemplate: {shutdownAfterJobFinishes: true, rayClusterSpec: {}}}}`, nil},
		"suspended RayCronJob without shutdown, with autoscaling": {`{apiVersion: ray.io/v1, kind: RayCronJob, spec: {suspend: true, jobTemplate: {suspend: true, rayClusterSpec: {enableInTreeAutoscaling: true, suspend: true}}}}`,
			[]string{"spec.jobTemplate.shutdownAfterJobFinishes", "spec.jobTemplate.suspend", "spec.suspend", "spec.jobTemplate.rayClusterSpec.enableInTreeAutoscaling", "spec.jobTemplate.rayClusterSpec.suspend"}},
		"RayCluster with replicas below minReplicas":   {rayClusterText(`{replicas: 1, minReplicas: 50, maxReplicas: 50}`), []string{"spec.workerGroupSpecs[0].replicas"}},
		"RayCluster with replicas above maxReplicas":   {rayClusterText(`{replicas: 1}, {replicas: 4, maxReplicas: 2}`), []string{"spec.workerGroupSpecs[1].replicas"}},
		"RayCluster with replicas within their bounds": {rayClusterText(`{replicas: 2, minReplicas: 2, maxReplicas: 2}, {minReplicas: 1}`), nil},
		"RayCluster without replicas, maxReplicas 0":   {rayClusterText(`{maxReplicas: 0}`), nil}, // KubeRay creates no pods
		"RayCluster without replicas, minReplicas 2":   {rayClusterText(`{minReplicas: 2}`), []string{"spec.workerGroupSpecs[0].replicas"}},
		"RayCluster with invalid replicas":             {rayClusterText(`{replicas: "2", minReplicas: 1}`), nil}, // Check reports them
		"RayCronJob with replicas below minReplicas": {`{apiVersion: ray.io/v1, kind: RayCronJob, spec: {jobTemplate: {shutdownAfterJobFinishes: true, rayClusterSpec: {workerGroupSpecs: [{replicas: 1, minReplicas: 2}]}}}}`,
			[]string{"spec.jobTemplate.rayClusterSpec.workerGroupSpecs[0].replicas"}},
		"suspended Job":               {job("suspend: true, "), []string{"spec.suspend"}},
		"Job with suspend false":      {job("suspend: false, "), nil},
		"suspended JobSet":            {`{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, spec: {suspend: true}}`, []string{"spec.suspend"}},
		"suspended PyTorchJob":        {`{apiVersion: kubeflow.org/v1, kind: PyTorchJob, spec: {runPolicy: {suspend: true}}}`, []string{"spec.runPolicy.suspend"}},
		"RayJob of another API group": {`{apiVersion: example.com/v1, kind: RayJob, spec: {}}`, nil},
		"Job":                         {job(""), nil},
	} {
		var got []string
		for _, err := range QuotaErrors(parseObject(t, tc.text), nil) {
			got = append(got, err.Field)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestRaiseTTL(t *testing.T) {
	for name, tc := range map[string]struct {
		text        string
		path        []string
		want        int64
		wantWarning bool
	}{
		"Job with a TTL of a second":        {job("ttlSecondsAfterFinished: 1, "), []string{"spec", "ttlSecondsAfterFinished"}, 3600, true},
		"Job with a TTL of 0":               {job("ttlSecondsAfterFinished: 0, "), []string{"spec", "ttlSecondsAfterFinished"}, 3600, true},
		"Job with a TTL of a day":           {job("ttlSecondsAfterFinished: 86400, "), []string{"spec", "ttlSecondsAfterFinished"}, 86400, false},
		"PyTorchJob with a TTL of a minute": {`{apiVersion: kubeflow.org/v1, kind: PyTorchJob, spec: {runPolicy: {ttlSecondsAfterFinished: 60}}}`, []string{"spec", "runPolicy", "ttlSecondsAfterFinished"}, 3600, true},
		"JobSet with a TTL of a minute":     {`{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, spec: {ttlSecondsAfterFinished: 60}}`, []string{"spec", "ttlSecondsAfterFinished"}, 3600, true},
		"RayJob with a TTL":                 {`{apiVersion: ray.io/v1, kind: RayJob, spec: {ttlSecondsAfterFinished: 60}}`, []string{"spec", "ttlSecondsAfterFinished"}, 60, false},
		"unknown kind with a TTL":           {`{apiVersion: example.com/v1, kind: Unknown, spec: {ttlSecondsAfterFinished: 60}}`, []string{"spec", "ttlSecondsAfterFinished"}, 60, false},
	} {
		u := parseObject(t, tc.text)
		warning := RaiseTTL(u)
		got, _, err := unstructured.NestedInt64(u.Object, tc.path...)
		if err != nil || got != tc.want || (warning != "") != tc.wantWarning {
			t.Errorf("%s: got TTL %d, warning %q, error %v, want TTL %d, warning %t", name, got, warning, err, tc.want, tc.wantWarning)
		}
	}
	for _, text := range []string{job(""), job("ttlSecondsAfterFinished: soon, "), `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, spec: {}}`} {
		if warning := RaiseTTL(parseObject(t, text)); warning != "" {
			t.Errorf("%s: got warning %q, want none", text, warning)
		}
	}
}
