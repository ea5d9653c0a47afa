package podset

import (
	"errors"
	"strings"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/nested"
)

var errClusterSelector = errors.New("spec.clusterSelector runs a RayJob on an existing cluster, so it has no pods of its own to queue: " +
	"describe the cluster in spec.rayClusterSpec, or create the RayJob outside of an AppWrapper")

// rayClusterAt is for the kinds that are a cluster, or describe one in a field.
func inferRayCluster(place string) func(*numberReader, map[string]any) []inferredPodSet {
	return func(n *numberReader, object map[string]any) []inferredPodSet {
		return rayPods(n, nested.Map(object, strings.Split(place, ".")...), place)
	}
}

// inferRayJob has the pods of the cluster and, last, that of the submitter (D8), if it has a template in the object: that
// of KubeRay's own making cannot be reached by a path.
func inferRayJob(n *numberReader, object map[string]any) []inferredPodSet {
	spec := nested.Map(object, "spec")
	if len(nested.Map(spec, "clusterSelector")) > 0 {
		n.fail(errClusterSelector)
	}
	sets := rayPods(n, nested.Map(spec, "rayClusterSpec"), "spec.rayClusterSpec")
	mode := spec["submissionMode"]
	if byJob := mode == nil || mode == "" || mode == string(rayv1.K8sJobMode); byJob && spec["submitterPodTemplate"] != nil {
		submitter := podSet("spec.submitterPodTemplate", 1, nil)
		submitter.optional = true
		// The submitter comes when the cluster is ready, so the cluster is ready without it.
		submitter.minReady = 0
		sets = append(sets, submitter)
	}
	return sets
}

// rayPods has the head and then each group of workers that has a template.
func rayPods(n *numberReader, cluster map[string]any, place string) []inferredPodSet {
	sets := []inferredPodSet{podSet(place+".headGroupSpec.template", 1, nil)}
	autoscaled := cluster["enableInTreeAutoscaling"] == true
	for i, entry := range nested.List(cluster, "workerGroupSpecs") {
		if group := nested.Map(entry); group["template"] != nil {
			sets = append(sets, rayGroup(n, group, indexPath(place+".workerGroupSpecs", i), autoscaled))
		}
	}
	return sets
}

// rayGroup counts a group of workers: each replica has numOfHosts pods (D8).
func rayGroup(n *numberReader, group map[string]any, place string, autoscaled bool) inferredPodSet {
	replicas, hosts := n.int32Field(group, place, "replicas", 1), max(1, n.int32Field(group, place, "numOfHosts", 1))
	set := podSet(place+".template", n.product(place, replicas, hosts), nil)
	if autoscaled || group["replicas"] == nil {
		set.minReady = n.product(place, min(n.int32Field(group, place, "minReplicas", 0), replicas), hosts)
	}
	if group["suspend"] == true {
		set.minReady = 0
	}
	return set
}
