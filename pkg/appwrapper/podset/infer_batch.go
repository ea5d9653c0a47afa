package podset

import (
	"errors"
	"strconv"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
)

// Labels with the index of a pod or its Job, for topology-aware scheduling.
const (
	jobIndexLabel      = "batch.kubernetes.io/job-completion-index"
	jobSetIndexLabel   = "jobset.sigs.k8s.io/job-index"
	kubeflowIndexLabel = "training.kubeflow.org/replica-index"
)

func inferPod(*numberReader, map[string]any) []inferredPodSet {
	return []inferredPodSet{{AppWrapperPodSet: awv1beta2.AppWrapperPodSet{Path: Root, Replicas: new(int32(1))}, minReady: 1}}
}

// inferReplicas is the rule of kinds with spec.replicas and spec.template.
func inferReplicas(n *numberReader, object map[string]any) []inferredPodSet {
	return []inferredPodSet{podSet("spec.template", n.int32Field(nested.Map(object, "spec"), "spec", "replicas", 1), nil)}
}

func inferJob(n *numberReader, object map[string]any) []inferredPodSet {
	pods := jobPods(n, nested.Map(object, "spec"), "spec")
	return []inferredPodSet{podSet("spec.template", pods, map[string]string{awv1beta2.AnnotationPodIndexLabel: jobIndexLabel})}
}

// jobPods returns the maximum number of concurrent pods of a Job: parallelism, or completions if that is less. A value that is not an integer
// counts as absent; the API server rejects it.
func jobPods(n *numberReader, spec map[string]any, path string) int32 {
	pods := n.int32Field(integerField(spec, "parallelism"), path, "parallelism", 1)
	return min(pods, n.int32Field(integerField(spec, "completions"), path, "completions", pods))
}

// integerField returns a map with only the field, or nil if its value is not an integer.
func integerField(spec map[string]any, field string) map[string]any {
	if number, ok := spec[field].(int64); ok {
		return map[string]any{field: number}
	}
	return nil
}

func inferJobSet(n *numberReader, object map[string]any) []inferredPodSet {
	var sets []inferredPodSet
	for i, entry := range nested.List(object, "spec", "replicatedJobs") {
		job := nested.Map(entry)
		if job["template"] == nil {
			continue
		}
		path := indexPath("spec.replicatedJobs", i)
		replicas := n.int32Field(job, path, "replicas", 1)
		podsPerJob := jobPods(n, nested.Map(job, "template", "spec"), path+".template.spec")
		sets = append(sets, podSet(path+".template.spec.template", n.product(path, replicas, podsPerJob), map[string]string{
			awv1beta2.AnnotationPodIndexLabel:      jobIndexLabel,
			awv1beta2.AnnotationSubGroupIndexLabel: jobSetIndexLabel,
			awv1beta2.AnnotationSubGroupCount:      strconv.Itoa(int(replicas)),
		}))
	}
	return sets
}

// inferKubeflow returns the rule of kinds with one entry per role below spec.<field>; absent roles have no pods.
func inferKubeflow(field string, roles ...string) func(*numberReader, map[string]any) []inferredPodSet {
	return func(n *numberReader, object map[string]any) []inferredPodSet {
		var sets []inferredPodSet
		for _, role := range roles {
			spec, path := nested.Map(object, "spec", field, role), "spec."+field+"."+role
			if spec["template"] != nil {
				replicas := n.int32Field(spec, path, "replicas", 1)
				sets = append(sets, podSet(path+".template", replicas, map[string]string{awv1beta2.AnnotationPodIndexLabel: kubeflowIndexLabel}))
			}
		}
		return sets
	}
}

var errTrainJob = errors.New("the pods of a TrainJob are described in its runtime, to which no path of a pod set can point, so their requests cannot be counted. " +
	"Create the TrainJob outside of an AppWrapper and give it the queue label itself, which Kueue's integration trainer.kubeflow.org/trainjob reads")

// rejectTrainJob rejects a TrainJob: it has no containers, so the requested quota would be zero.
func rejectTrainJob(n *numberReader, _ map[string]any) []inferredPodSet {
	n.fail(errTrainJob)
	return nil
}

// inferLeaderWorkerSet counts a leader and the remaining workers in each group. Without a leader template, the leader uses the worker template.
func inferLeaderWorkerSet(n *numberReader, object map[string]any) []inferredPodSet {
	const path = "spec.leaderWorkerTemplate"
	groups := n.int32Field(nested.Map(object, "spec"), "spec", "replicas", 1)
	group := nested.Map(object, "spec", "leaderWorkerTemplate")
	size := n.int32Field(group, path, "size", 1)
	var sets []inferredPodSet
	if group["leaderTemplate"] != nil {
		sets = append(sets, podSet(path+".leaderTemplate", groups, nil))
		size = max(0, size-1)
	}
	return append(sets, podSet(path+".workerTemplate", n.product(path, groups, size), nil))
}
