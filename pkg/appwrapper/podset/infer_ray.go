package podset

import (
	"fmt"
	"strings"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/nested"
)

// inferRayCluster returns the rule of kinds that are a Ray cluster, or have one in a field.
func inferRayCluster(path string) func(*numberReader, map[string]any) []inferredPodSet {
	return func(n *numberReader, object map[string]any) []inferredPodSet {
		return rayPods(n, nested.Map(object, strings.Split(path, ".")...), path)
	}
}

func inferRayJob(n *numberReader, object map[string]any) []inferredPodSet {
	return rayJobPods(n, nested.Map(object, "spec"), "spec")
}

// inferRayCronJob returns the pod sets of one run. No pod has to be ready, because pods exist only during a run.
func inferRayCronJob(n *numberReader, object map[string]any) []inferredPodSet {
	sets := rayJobPods(n, nested.Map(object, "spec", "jobTemplate"), "spec.jobTemplate")
	for i := range sets {
		sets[i].minReady = 0
	}
	return sets
}

// rayJobPods returns the pod sets of the cluster and, in K8sJobMode, of the submitter [D8] if the object has a template for it: without
// one, the path of a pod set would refer to no field.
func rayJobPods(n *numberReader, spec map[string]any, path string) []inferredPodSet {
	if len(nested.Map(spec, "clusterSelector")) > 0 {
		n.fail(fmt.Errorf("%s.clusterSelector selects an existing Ray cluster, whose pods are not in the AppWrapper: set %s.rayClusterSpec instead, "+
			"or create the object outside of an AppWrapper", path, path))
	}
	sets := rayPods(n, nested.Map(spec, "rayClusterSpec"), path+".rayClusterSpec")
	mode := spec["submissionMode"]
	if usesJob := mode == nil || mode == "" || mode == string(rayv1.K8sJobMode); usesJob && spec["submitterPodTemplate"] != nil {
		submitter := podSet(path+".submitterPodTemplate", 1, nil)
		submitter.optional = true
		// The submitter is created after the cluster is ready.
		submitter.minReady = 0
		sets = append(sets, submitter)
	}
	return sets
}

// rayPods returns the pod sets of the head and of each worker group with a template.
func rayPods(n *numberReader, cluster map[string]any, path string) []inferredPodSet {
	sets := []inferredPodSet{podSet(path+".headGroupSpec.template", 1, nil)}
	autoscaled := cluster["enableInTreeAutoscaling"] == true
	for i, entry := range nested.List(cluster, "workerGroupSpecs") {
		if group := nested.Map(entry); group["template"] != nil {
			sets = append(sets, rayGroup(n, group, indexPath(path+".workerGroupSpecs", i), autoscaled))
		}
	}
	return sets
}

// rayGroup returns the pod set of a worker group: each replica has numOfHosts pods [D8].
func rayGroup(n *numberReader, group map[string]any, path string, autoscaled bool) inferredPodSet {
	replicas, hosts := n.int32Field(group, path, "replicas", 1), max(1, n.int32Field(group, path, "numOfHosts", 1))
	set := podSet(path+".template", n.product(path, replicas, hosts), nil)
	if autoscaled || group["replicas"] == nil {
		set.minReady = n.product(path, min(n.int32Field(group, path, "minReplicas", 0), replicas), hosts)
	}
	if group["suspend"] == true {
		set.minReady = 0
	}
	return set
}
