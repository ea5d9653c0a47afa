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
type inferredPodSet struct {
	awv1beta2.AppWrapperPodSet
	// optional sets may be missing in a declaration: the operator that we replace did not know them and refused them.
	optional bool
	// least is the number of pods without which the object is not ready; below replicas when a part may scale down.
	minReady int32
}

// rule infers the pod sets of one kind. The object's fields are below "spec".
type inferenceRule struct {
	inferFunc func(n *numberReader, object map[string]any) []inferredPodSet
	// binding rules also judge a declaration. They are those of the operator that we replace, and those of kinds whose pods
	// no declaration can describe. For the other kinds a declaration was taken as it is, and still is.
	checksDeclared bool
}

// rules has the known kinds, by "apiVersion:kind".
var rules = map[string]inferenceRule{
	"v1:Pod":                                      {inferFunc: inferPod, checksDeclared: true},
	"apps/v1:Deployment":                          {inferFunc: inferReplicas, checksDeclared: true},
	"apps/v1:StatefulSet":                         {inferFunc: inferReplicas, checksDeclared: true},
	"apps/v1:ReplicaSet":                          {inferFunc: inferReplicas},
	"batch/v1:Job":                                {inferFunc: inferJob, checksDeclared: true},
	"jobset.x-k8s.io/v1alpha2:JobSet":             {inferFunc: inferJobSet, checksDeclared: true},
	"kubeflow.org/v1:PyTorchJob":                  {inferFunc: inferKubeflow("pytorchReplicaSpecs", "Master", "Worker"), checksDeclared: true},
	"kubeflow.org/v1:TFJob":                       {inferFunc: inferKubeflow("tfReplicaSpecs", "Chief", "Master", "PS", "Worker", "Evaluator")},
	"kubeflow.org/v1:XGBoostJob":                  {inferFunc: inferKubeflow("xgbReplicaSpecs", "Master", "Worker")},
	"kubeflow.org/v1:PaddleJob":                   {inferFunc: inferKubeflow("paddleReplicaSpecs", "Master", "Worker")},
	"kubeflow.org/v1:JAXJob":                      {inferFunc: inferKubeflow("jaxReplicaSpecs", "Worker")},
	"kubeflow.org/v1:MPIJob":                      {inferFunc: inferKubeflow("mpiReplicaSpecs", "Launcher", "Worker")},
	"kubeflow.org/v2beta1:MPIJob":                 {inferFunc: inferKubeflow("mpiReplicaSpecs", "Launcher", "Worker")},
	"trainer.kubeflow.org/v1alpha1:TrainJob":      {inferFunc: rejectTrainJob, checksDeclared: true},
	"leaderworkerset.x-k8s.io/v1:LeaderWorkerSet": {inferFunc: inferLeaderWorkerSet},
	"ray.io/v1:RayCluster":                        {inferFunc: inferRayCluster("spec"), checksDeclared: true},
	"ray.io/v1:RayJob":                            {inferFunc: inferRayJob, checksDeclared: true},
	"ray.io/v1:RayService":                        {inferFunc: inferRayCluster("spec.rayClusterConfig")},
}

func ruleOf(u *unstructured.Unstructured) (inferenceRule, bool) {
	r, known := rules[u.GetAPIVersion()+":"+u.GetKind()]
	return r, known
}

// sets are the pod sets of an object by the rule of its kind.
func (r inferenceRule) infer(u *unstructured.Unstructured) ([]inferredPodSet, error) {
	if r.inferFunc == nil {
		return nil, nil
	}
	n := &numberReader{}
	sets := r.inferFunc(n, u.Object)
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

func infer(u *unstructured.Unstructured) ([]inferredPodSet, error) {
	r, _ := ruleOf(u)
	sets, err := r.infer(u)
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
func ForComponent(component *awv1beta2.AppWrapperComponent) ([]awv1beta2.AppWrapperPodSet, error) {
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
func MinReady(u *unstructured.Unstructured, sets []awv1beta2.AppWrapperPodSet) int32 {
	least := map[string]int32{}
	// The templates were checked when the pod sets were found, so they are not decoded again with every reconcile.
	r, _ := ruleOf(u)
	if own, err := r.infer(u); err == nil {
		for _, set := range own {
			least[set.Path] = set.minReady
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
func podSet(place string, replicas int32, annotations map[string]string) inferredPodSet {
	return inferredPodSet{
		AppWrapperPodSet: awv1beta2.AppWrapperPodSet{Path: Root + "." + place, Replicas: new(replicas), Annotations: annotations},
		minReady:         replicas,
	}
}

// numbers reads numbers of pods, hosts and groups. It keeps the first error, after which what it returns is of no use.
type numberReader struct{ err error }

func (n *numberReader) fail(err error) {
	if n.err == nil {
		n.err = err
	}
}

// of reads a field. Absent and null give the other value. The place, for messages, is where the object stands.
func (n *numberReader) int32Field(object map[string]any, place, field string, otherwise int32) int32 {
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
func (n *numberReader) product(place string, a, b int32) int32 {
	result := int64(a) * int64(b)
	if result > math.MaxInt32 {
		n.fail(fmt.Errorf("%s asks for more than %d pods: lower its numbers", place, math.MaxInt32))
	}
	return int32(result)
}

func indexPath(path string, index int) string { return path + "[" + strconv.Itoa(index) + "]" }
