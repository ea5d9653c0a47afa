package podset

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// inferred is a pod set that a known kind has.
type inferred struct {
	awv1beta2.AppWrapperPodSet
	// optional sets may be missing in a declaration: the operator that we replace did not know them and refused them.
	optional bool
	// least is the number of pods without which the object is not ready; below replicas when a part may scale down.
	least int32
}

// rule infers the pod sets of one kind. The object's fields are below "spec".
type rule struct {
	infer func(object map[string]any) ([]inferred, error)
	// binding rules also judge a declaration. They are those of the operator that we replace, and those of kinds whose pods
	// no declaration can describe. For the other kinds a declaration was taken as it is, and still is.
	binding bool
}

// rules has the known kinds, by "apiVersion:kind".
var rules = map[string]rule{
	"v1:Pod":                                      {infer: inferPod, binding: true},
	"apps/v1:Deployment":                          {infer: inferReplicas, binding: true},
	"apps/v1:StatefulSet":                         {infer: inferReplicas, binding: true},
	"apps/v1:ReplicaSet":                          {infer: inferReplicas},
	"batch/v1:Job":                                {infer: inferJob, binding: true},
	"jobset.x-k8s.io/v1alpha2:JobSet":             {infer: inferJobSet, binding: true},
	"kubeflow.org/v1:PyTorchJob":                  {infer: kubeflow("pytorchReplicaSpecs", "Master", "Worker"), binding: true},
	"kubeflow.org/v1:TFJob":                       {infer: kubeflow("tfReplicaSpecs", "Chief", "Master", "PS", "Worker", "Evaluator")},
	"kubeflow.org/v1:XGBoostJob":                  {infer: kubeflow("xgbReplicaSpecs", "Master", "Worker")},
	"kubeflow.org/v1:PaddleJob":                   {infer: kubeflow("paddleReplicaSpecs", "Master", "Worker")},
	"kubeflow.org/v1:JAXJob":                      {infer: kubeflow("jaxReplicaSpecs", "Worker")},
	"kubeflow.org/v1:MPIJob":                      {infer: kubeflow("mpiReplicaSpecs", "Launcher", "Worker")},
	"kubeflow.org/v2beta1:MPIJob":                 {infer: kubeflow("mpiReplicaSpecs", "Launcher", "Worker")},
	"trainer.kubeflow.org/v1alpha1:TrainJob":      {infer: refuseTrainJob, binding: true},
	"leaderworkerset.x-k8s.io/v1:LeaderWorkerSet": {infer: inferLeaderWorkerSet},
	"ray.io/v1:RayCluster":                        {infer: inferRayCluster, binding: true},
	"ray.io/v1:RayJob":                            {infer: inferRayJob, binding: true},
	"ray.io/v1:RayService":                        {infer: inferRayService},
}

func ruleOf(u *unstructured.Unstructured) (rule, bool) {
	r, known := rules[u.GetAPIVersion()+":"+u.GetKind()]
	return r, known
}

// Infer returns the pod sets of an object of a known kind, and none for other kinds. Each path leads to a pod template, and
// no number of replicas is below zero.
func Infer(u *unstructured.Unstructured) ([]awv1beta2.AppWrapperPodSet, error) {
	sets, err := infer(u)
	if err != nil {
		return nil, err
	}
	result := make([]awv1beta2.AppWrapperPodSet, 0, len(sets))
	for _, set := range sets {
		result = append(result, set.AppWrapperPodSet)
	}
	return result, nil
}

func infer(u *unstructured.Unstructured) ([]inferred, error) {
	r, known := ruleOf(u)
	if !known {
		return nil, nil
	}
	sets, err := r.infer(u.Object)
	if err != nil {
		return nil, err
	}
	for _, set := range sets {
		if err := CheckTemplate(u.Object, set.Path); err != nil {
			return nil, fmt.Errorf("%s does not refer to a v1.PodSpecTemplate: %w", set.Path, err)
		}
	}
	return sets, nil
}

// Of returns the pod sets that hold for a component: the declared ones, else the inferred ones. The result is never nil,
// because the status has to have a list.
func Of(component *awv1beta2.AppWrapperComponent) ([]awv1beta2.AppWrapperPodSet, error) {
	if len(component.PodSets) > 0 {
		return slices.Clone(component.PodSets), nil
	}
	u, err := Decode(component)
	if err != nil {
		return nil, err
	}
	return Infer(u)
}

// Replicas is the number of pods of a pod set: 1 when absent, and none when it is below zero.
func Replicas(set awv1beta2.AppWrapperPodSet) int32 {
	if set.Replicas == nil {
		return 1
	}
	return max(0, *set.Replicas)
}

// Total is the number of pods of all pod sets, at most the greatest int32.
func Total(sets []awv1beta2.AppWrapperPodSet) int32 {
	var sum int64
	for _, set := range sets {
		sum += int64(Replicas(set))
	}
	return int32(min(sum, math.MaxInt32))
}

// Least is the number of pods without which the object is not ready. It is below Total where the object scales itself
// down: the worker groups of a Ray cluster with its autoscaler may shrink to their minimum, and a group without replicas
// or with suspend starts at less than what is queued for it.
func Least(u *unstructured.Unstructured, sets []awv1beta2.AppWrapperPodSet) int32 {
	least := map[string]int32{}
	// The templates were checked when the pod sets were found, so they are not decoded again with every reconcile.
	if r, known := ruleOf(u); known {
		if own, err := r.infer(u.Object); err == nil {
			for _, set := range own {
				least[set.Path] = set.least
			}
		}
	}
	var sum int64
	for _, set := range sets {
		replicas := Replicas(set)
		if needed, ok := least[set.Path]; ok {
			replicas = min(replicas, needed)
		}
		sum += int64(replicas)
	}
	return int32(min(sum, math.MaxInt32))
}

// podSet makes a pod set all of whose pods are needed.
func podSet(path string, replicas int32, annotations map[string]string) inferred {
	return inferred{
		AppWrapperPodSet: awv1beta2.AppWrapperPodSet{Path: path, Replicas: new(replicas), Annotations: annotations},
		least:            replicas,
	}
}

// count reads a number of pods, hosts or groups. Absent and null give the other value. The place, for messages, is where
// the object stands.
func count(object map[string]any, place, field string, otherwise int32) (int32, error) {
	value, found := object[field]
	if !found || value == nil {
		return otherwise, nil
	}
	number, ok := value.(int64)
	if !ok || number < 0 || number > math.MaxInt32 {
		return 0, fmt.Errorf("%s.%s is %v: write a whole number from 0 to %d", place, field, value, math.MaxInt32)
	}
	return int32(number), nil
}

// product multiplies numbers of pods.
func product(place string, factors ...int32) (int32, error) {
	result := int64(1)
	for _, factor := range factors {
		if result *= int64(factor); result > math.MaxInt32 {
			return 0, fmt.Errorf("%s asks for more than %d pods: lower its numbers", place, math.MaxInt32)
		}
	}
	return int32(result), nil
}

func indexed(path string, index int) string { return path + "[" + strconv.Itoa(index) + "]" }
