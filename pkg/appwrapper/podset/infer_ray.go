package podset

import (
	"errors"

	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/nested"
)

var errClusterSelector = errors.New("spec.clusterSelector runs a RayJob on an existing cluster, so it has no pods of its own to queue: " +
	"describe the cluster in spec.rayClusterSpec, or create the RayJob outside of an AppWrapper")

func inferRayCluster(object map[string]any) ([]inferred, error) {
	return rayPods(nested.Map(object, "spec"), "spec")
}

func inferRayService(object map[string]any) ([]inferred, error) {
	return rayPods(nested.Map(object, "spec", "rayClusterConfig"), "spec.rayClusterConfig")
}

// inferRayJob has the pods of the cluster and, last, that of the submitter (D8), if it has a template in the object: that
// of KubeRay's own making cannot be reached by a path.
func inferRayJob(object map[string]any) ([]inferred, error) {
	spec := nested.Map(object, "spec")
	if selector := nested.Map(spec, "clusterSelector"); len(selector) > 0 {
		return nil, errClusterSelector
	}
	sets, err := rayPods(nested.Map(spec, "rayClusterSpec"), "spec.rayClusterSpec")
	if err != nil {
		return nil, err
	}
	mode := spec["submissionMode"]
	if byJob := mode == nil || mode == "" || mode == string(rayv1.K8sJobMode); byJob && spec["submitterPodTemplate"] != nil {
		submitter := podSet(Root+".spec.submitterPodTemplate", 1, nil)
		submitter.optional = true
		// The submitter comes when the cluster is ready, so the cluster is ready without it.
		submitter.least = 0
		sets = append(sets, submitter)
	}
	return sets, nil
}

// rayPods has the head and then each group of workers that has a template.
func rayPods(cluster map[string]any, place string) ([]inferred, error) {
	sets := []inferred{podSet(Root+"."+place+".headGroupSpec.template", 1, nil)}
	autoscaled := cluster["enableInTreeAutoscaling"] == true
	groups := nested.List(cluster, "workerGroupSpecs")
	for i, entry := range groups {
		group := nested.Map(entry)
		if group["template"] == nil {
			continue
		}
		set, err := rayGroup(group, indexed(place+".workerGroupSpecs", i), autoscaled)
		if err != nil {
			return nil, err
		}
		sets = append(sets, set)
	}
	return sets, nil
}

// rayGroup counts a group of workers: each replica has numOfHosts pods (D8).
func rayGroup(group map[string]any, place string, autoscaled bool) (inferred, error) {
	replicas, err := count(group, place, "replicas", 1)
	if err != nil {
		return inferred{}, err
	}
	hosts, err := count(group, place, "numOfHosts", 1)
	if err != nil {
		return inferred{}, err
	}
	hosts = max(1, hosts)
	pods, err := product(place, replicas, hosts)
	if err != nil {
		return inferred{}, err
	}
	set := podSet(Root+"."+place+".template", pods, nil)
	if autoscaled || group["replicas"] == nil {
		minimum, err := count(group, place, "minReplicas", 0)
		if err != nil {
			return inferred{}, err
		}
		if set.least, err = product(place, min(minimum, replicas), hosts); err != nil {
			return inferred{}, err
		}
	}
	if group["suspend"] == true {
		set.least = 0
	}
	return set, nil
}
