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
	infer func(n *numbers, object map[string]any) []inferred
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
	"ray.io/v1:RayCluster":                        {infer: rayClusterAt("spec"), binding: true},
	"ray.io/v1:RayJob":                            {infer: inferRayJob, binding: true},
	"ray.io/v1:RayService":                        {infer: rayClusterAt("spec.rayClusterConfig")},
}

func ruleOf(u *unstructured.Unstructured) (rule, bool) {
	r, known := rules[u.GetAPIVersion()+":"+u.GetKind()]
	return r, known
}

// sets are the pod sets of an object by the rule of its kind.
func (r rule) sets(u *unstructured.Unstructured) ([]inferred, error) {
	if r.infer == nil {
		return nil, nil
	}
	n := &numbers{}
	sets := r.infer(n, u.Object)
	if n.err != nil {
		return nil, n.err
	}
	return sets, nil
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
	r, _ := ruleOf(u)
	sets, err := r.sets(u)
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
	r, _ := ruleOf(u)
	if own, err := r.sets(u); err == nil {
		for _, set := range own {
			least[set.Path] = set.least
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

// podSet makes a pod set all of whose pods are needed. The place is that of its template in the object.
func podSet(place string, replicas int32, annotations map[string]string) inferred {
	return inferred{
		AppWrapperPodSet: awv1beta2.AppWrapperPodSet{Path: Root + "." + place, Replicas: new(replicas), Annotations: annotations},
		least:            replicas,
	}
}

// numbers reads numbers of pods, hosts and groups. It keeps the first error, after which what it returns is of no use.
type numbers struct{ err error }

func (n *numbers) fail(err error) {
	if n.err == nil {
		n.err = err
	}
}

// of reads a field. Absent and null give the other value. The place, for messages, is where the object stands.
func (n *numbers) of(object map[string]any, place, field string, otherwise int32) int32 {
	value := object[field]
	if value == nil {
		return otherwise
	}
	number, ok := value.(int64)
	if !ok || number < 0 || number > math.MaxInt32 {
		n.fail(fmt.Errorf("%s.%s is %v: write a whole number from 0 to %d", place, field, value, math.MaxInt32))
	}
	return int32(number)
}

// product multiplies two of them.
func (n *numbers) product(place string, a, b int32) int32 {
	result := int64(a) * int64(b)
	if result > math.MaxInt32 {
		n.fail(fmt.Errorf("%s asks for more than %d pods: lower its numbers", place, math.MaxInt32))
	}
	return int32(result)
}

func indexed(path string, index int) string { return path + "[" + strconv.Itoa(index) + "]" }
