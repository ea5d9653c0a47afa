package podset

import (
	"errors"
	"strconv"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
)

// Where pods carry their index, for topology-aware scheduling.
const (
	jobIndexLabel      = "batch.kubernetes.io/job-completion-index"
	jobSetIndexLabel   = "jobset.sigs.k8s.io/job-index"
	kubeflowIndexLabel = "training.kubeflow.org/replica-index"
)

func inferPod(map[string]any) ([]inferred, error) {
	return []inferred{podSet(Root, 1, nil)}, nil
}

// inferReplicas is for the kinds with spec.replicas and spec.template.
func inferReplicas(object map[string]any) ([]inferred, error) {
	replicas, err := count(nested.Map(object, "spec"), "spec", "replicas", 1)
	if err != nil {
		return nil, err
	}
	return []inferred{podSet(Root+".spec.template", replicas, nil)}, nil
}

func inferJob(object map[string]any) ([]inferred, error) {
	pods, err := jobPods(nested.Map(object, "spec"), "spec")
	if err != nil {
		return nil, err
	}
	return []inferred{podSet(Root+".spec.template", pods, map[string]string{awv1beta2.AnnotationPodIndexLabel: jobIndexLabel})}, nil
}

// jobPods is the number of pods that a Job runs at a time: parallelism, or completions when they are fewer. What is no
// whole number counts as absent, and the API server refuses it.
func jobPods(spec map[string]any, place string) (int32, error) {
	pods, err := count(wholeOnly(spec, "parallelism"), place, "parallelism", 1)
	if err != nil {
		return 0, err
	}
	completions, err := count(wholeOnly(spec, "completions"), place, "completions", pods)
	return min(pods, completions), err
}

// wholeOnly is a map with the field if that is a whole number.
func wholeOnly(spec map[string]any, field string) map[string]any {
	if number, ok := spec[field].(int64); ok {
		return map[string]any{field: number}
	}
	return nil
}

func inferJobSet(object map[string]any) ([]inferred, error) {
	jobs := nested.List(object, "spec", "replicatedJobs")
	var sets []inferred
	for i, entry := range jobs {
		job := nested.Map(entry)
		if job["template"] == nil {
			continue
		}
		place := indexed("spec.replicatedJobs", i)
		replicas, err := count(job, place, "replicas", 1)
		if err != nil {
			return nil, err
		}
		each, err := jobPods(nested.Map(job, "template", "spec"), place+".template.spec")
		if err != nil {
			return nil, err
		}
		pods, err := product(place, replicas, each)
		if err != nil {
			return nil, err
		}
		sets = append(sets, podSet(Root+"."+place+".template.spec.template", pods, map[string]string{
			awv1beta2.AnnotationPodIndexLabel:      jobIndexLabel,
			awv1beta2.AnnotationSubGroupIndexLabel: jobSetIndexLabel,
			awv1beta2.AnnotationSubGroupCount:      strconv.Itoa(int(replicas)),
		}))
	}
	return sets, nil
}

// kubeflow is for the kinds with one entry per role below spec.<field>; roles that are absent have no pods.
func kubeflow(field string, roles ...string) func(map[string]any) ([]inferred, error) {
	return func(object map[string]any) ([]inferred, error) {
		var sets []inferred
		for _, role := range roles {
			spec := nested.Map(object, "spec", field, role)
			if spec["template"] == nil {
				continue
			}
			place := "spec." + field + "." + role
			replicas, err := count(spec, place, "replicas", 1)
			if err != nil {
				return nil, err
			}
			sets = append(sets, podSet(Root+"."+place+".template", replicas,
				map[string]string{awv1beta2.AnnotationPodIndexLabel: kubeflowIndexLabel}))
		}
		return sets, nil
	}
}

var errTrainJob = errors.New("the pods of a TrainJob are described in its runtime, to which no path of a pod set can point, so their requests cannot be counted. " +
	"Create the TrainJob outside of an AppWrapper and give it the queue label itself, which Kueue's integration trainer.kubeflow.org/trainjob reads")

// refuseTrainJob: what is in a TrainJob has no containers, so that the quota would be asked for nothing.
func refuseTrainJob(map[string]any) ([]inferred, error) { return nil, errTrainJob }

// inferLeaderWorkerSet counts, in each of the groups, one leader and the workers that fill the group up to its size. Without
// a template of its own the leader is made from that of the workers.
func inferLeaderWorkerSet(object map[string]any) ([]inferred, error) {
	const place = "spec.leaderWorkerTemplate"
	groups, err := count(nested.Map(object, "spec"), "spec", "replicas", 1)
	if err != nil {
		return nil, err
	}
	group := nested.Map(object, "spec", "leaderWorkerTemplate")
	size, err := count(group, place, "size", 1)
	if err != nil {
		return nil, err
	}
	var sets []inferred
	if group["leaderTemplate"] != nil {
		sets = append(sets, podSet(Root+"."+place+".leaderTemplate", groups, nil))
		size = max(0, size-1)
	}
	workers, err := product(place, groups, size)
	if err != nil {
		return nil, err
	}
	return append(sets, podSet(Root+"."+place+".workerTemplate", workers, nil)), nil
}
