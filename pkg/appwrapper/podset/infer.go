package podset

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// inferredPodSet is a pod set of an object of a known kind.
type inferredPodSet struct {
	awv1beta2.AppWrapperPodSet
	// optional reports whether a declaration may omit the pod set: the CodeFlare operator did not infer it, and rejected its declaration.
	optional bool
	// minReady is the number of pods that make the object ready; below replicas if the object may scale down or creates the pods later.
	minReady int32
}

// inferenceRule infers the pod sets of one kind.
type inferenceRule struct {
	inferFunc func(n *numberReader, object map[string]any) []inferredPodSet
	// checksDeclared reports whether declared pod sets must match the inferred ones: for kinds that the CodeFlare operator knew, and kinds whose
	// pods cannot be declared. For other kinds, any declaration is accepted.
	checksDeclared bool
}

// rules are the rules of the known kinds, by "apiVersion:kind".
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
	"ray.io/v1:RayCronJob":                        {inferFunc: inferRayCronJob},
}

func ruleOf(u *unstructured.Unstructured) (inferenceRule, bool) {
	r, known := rules[u.GetAPIVersion()+":"+u.GetKind()]
	return r, known
}

// infer returns the pod sets of an object.
func (r inferenceRule) infer(u *unstructured.Unstructured) ([]inferredPodSet, error) {
	if r.inferFunc == nil {
		return nil, nil
	}
	n := &numberReader{}
	sets := r.inferFunc(n, u.Object)
	return sets, n.err
}

// Infer returns the pod sets of an object, or none for an unknown kind. Each path refers to a pod template, and replicas are not negative.
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

// ForComponent returns the pod sets of a component: the declared ones, or else the inferred ones. The result is never nil, because the status
// requires a list.
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

// Replicas returns the number of pods of a pod set: 1 if unset, at least 0.
func Replicas(set awv1beta2.AppWrapperPodSet) int32 {
	return max(0, ptr.Deref(set.Replicas, 1))
}

// Total returns the number of pods of all pod sets, at most the maximum int32.
func Total(sets []awv1beta2.AppWrapperPodSet) int32 {
	var sum int64
	for _, set := range sets {
		sum += int64(Replicas(set))
	}
	return int32(min(sum, math.MaxInt32))
}

// MinReady returns the number of pods that make the object ready. It may be below Total if pods are created later, such as for a
// RayCronJob, or if a Ray worker group is autoscaled, is suspended or leaves replicas unset: it may then have fewer pods than are queued.
func MinReady(u *unstructured.Unstructured, sets []awv1beta2.AppWrapperPodSet) int32 {
	minReady := map[string]int32{}
	// Unlike Infer, the rule alone does not decode the templates in every reconcile.
	r, _ := ruleOf(u)
	if inferred, err := r.infer(u); err == nil {
		for _, set := range inferred {
			minReady[set.Path] = set.minReady
		}
	}
	var sum int64
	for _, set := range sets {
		replicas := Replicas(set)
		if required, ok := minReady[set.Path]; ok {
			replicas = min(replicas, required)
		}
		sum += int64(replicas)
	}
	return int32(min(sum, math.MaxInt32))
}

// podSet returns a pod set whose pods must all be ready. path is the path of its template in the object.
func podSet(path string, replicas int32, annotations map[string]string) inferredPodSet {
	return inferredPodSet{
		AppWrapperPodSet: awv1beta2.AppWrapperPodSet{Path: Root + "." + path, Replicas: new(replicas), Annotations: annotations},
		minReady:         replicas,
	}
}

// numberReader reads numbers of pods, hosts and groups. After the first error, which it stores, its results are invalid.
type numberReader struct{ err error }

func (n *numberReader) fail(err error) {
	if n.err == nil {
		n.err = err
	}
}

// int32Field returns a field, or the default if it is absent or null. path is the path of the object, for errors.
func (n *numberReader) int32Field(object map[string]any, path, field string, defaultValue int32) int32 {
	value := object[field]
	if value == nil {
		return defaultValue
	}
	number, ok := value.(int64)
	if !ok || number < 0 || number > math.MaxInt32 {
		n.fail(fmt.Errorf("%s.%s is %v: write a whole number from 0 to %d", path, field, value, math.MaxInt32))
	}
	return int32(number)
}

// product returns a * b, or stores an error if the product exceeds int32.
func (n *numberReader) product(path string, a, b int32) int32 {
	result := int64(a) * int64(b)
	if result > math.MaxInt32 {
		n.fail(fmt.Errorf("%s requests more than %d pods: reduce its replicas", path, math.MaxInt32))
	}
	return int32(result)
}

func indexPath(path string, index int) string { return path + "[" + strconv.Itoa(index) + "]" }
