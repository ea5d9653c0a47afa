package podset

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// formatPodSets formats pod sets as "path=replicas" with annotations.
func formatPodSets(sets []awv1beta2.AppWrapperPodSet) string {
	var lines []string
	for _, set := range sets {
		line := fmt.Sprintf("%s=%d", set.Path, *set.Replicas)
		for _, key := range slices.Sorted(maps.Keys(set.Annotations)) {
			line += " " + strings.TrimPrefix(key, awv1beta2.AnnotationPrefix) + "=" + set.Annotations[key]
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ")
}

const (
	jobAnnotation      = " tas-pod-index-label=batch.kubernetes.io/job-completion-index"
	kubeflowAnnotation = " tas-pod-index-label=training.kubeflow.org/replica-index"
	jobSetAnnotations  = jobAnnotation + " tas-sub-group-count=%d tas-sub-group-index-label=jobset.sigs.k8s.io/job-index"
)

func job(spec string) string {
	return "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {" + spec + "template: " + pod + "}}"
}

func rayClusterFields(groups string) string {
	return "headGroupSpec: {template: " + pod + "}, workerGroupSpecs: [" + groups + "]"
}

// trainJob requests 32 GPUs that no path can address; only the override looks like a template.
const trainJob = `{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, spec: {runtimeRef: {name: torch},
  trainer: {numNodes: 4, resourcesPerNode: {limits: {nvidia.com/gpu: "8"}}},
  podTemplateOverrides: [{targetJobs: [{name: node}], spec: {nodeSelector: {a: b}}}]}}`

// [appwrapper-35] [appwrapper-58] Infer returns the pod sets of known kinds, and none for other kinds.
func TestInfer(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"Pod", `{apiVersion: v1, kind: Pod, spec: {containers: [{name: a}]}}`, "template=1"},
		{"Deployment", `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 7, template: ` + pod + `}}`, "template.spec.template=7"},
		{"Deployment without replicas", `{apiVersion: apps/v1, kind: Deployment, spec: {template: ` + pod + `}}`, "template.spec.template=1"},
		{"Deployment with null replicas", `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: null, template: ` + pod + `}}`, "template.spec.template=1"},
		{"StatefulSet with zero replicas", `{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 0, template: ` + pod + `}}`, "template.spec.template=0"},
		{"ReplicaSet", `{apiVersion: apps/v1, kind: ReplicaSet, spec: {replicas: 2, template: ` + pod + `}}`, "template.spec.template=2"},
		{"Job", job(""), "template.spec.template=1" + jobAnnotation},
		{"Job with parallelism below completions", job("parallelism: 2, completions: 4, "), "template.spec.template=2" + jobAnnotation},
		{"Job with parallelism above completions", job("parallelism: 8, completions: 4, "), "template.spec.template=4" + jobAnnotation},
		{"Job with completions only", job("completions: 5, "), "template.spec.template=1" + jobAnnotation},
		{"Job with a string as parallelism", job(`parallelism: "5", `), "template.spec.template=1" + jobAnnotation},
		{"Job with a fraction as completions", job(`parallelism: 3, completions: 1.5, `), "template.spec.template=3" + jobAnnotation},
		{"JobSet", jobSet, "template.spec.replicatedJobs[0].template.spec.template=4" + fmt.Sprintf(jobSetAnnotations, 2) +
			"; template.spec.replicatedJobs[1].template.spec.template=1" + fmt.Sprintf(jobSetAnnotations, 1)},
		{"JobSet with an empty entry", `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, spec: {replicatedJobs: [{name: a}, null, {replicas: 3, template: {spec: {parallelism: 4, completions: 2, template: ` + pod + `}}}]}}`,
			"template.spec.replicatedJobs[2].template.spec.template=6" + fmt.Sprintf(jobSetAnnotations, 3)},
		{"PyTorchJob", `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, spec: {pytorchReplicaSpecs: {Worker: {replicas: 4, template: ` + pod + `}, Master: {template: ` + pod + `}}}}`,
			"template.spec.pytorchReplicaSpecs.Master.template=1" + kubeflowAnnotation + "; template.spec.pytorchReplicaSpecs.Worker.template=4" + kubeflowAnnotation},
		{"PyTorchJob without a master", `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, spec: {pytorchReplicaSpecs: {Worker: {template: ` + pod + `}}}}`,
			"template.spec.pytorchReplicaSpecs.Worker.template=1" + kubeflowAnnotation},
		{"TFJob", `{apiVersion: kubeflow.org/v1, kind: TFJob, spec: {tfReplicaSpecs: {PS: {replicas: 2, template: ` + pod + `}, Chief: {template: ` + pod + `}}}}`,
			"template.spec.tfReplicaSpecs.Chief.template=1" + kubeflowAnnotation + "; template.spec.tfReplicaSpecs.PS.template=2" + kubeflowAnnotation},
		{"XGBoostJob", `{apiVersion: kubeflow.org/v1, kind: XGBoostJob, spec: {xgbReplicaSpecs: {Worker: {replicas: 4, template: ` + pod + `}, Master: {template: ` + pod + `}}}}`,
			"template.spec.xgbReplicaSpecs.Master.template=1" + kubeflowAnnotation + "; template.spec.xgbReplicaSpecs.Worker.template=4" + kubeflowAnnotation},
		{"PaddleJob", `{apiVersion: kubeflow.org/v1, kind: PaddleJob, spec: {paddleReplicaSpecs: {Worker: {replicas: 4, template: ` + pod + `}, Master: {template: ` + pod + `}}}}`,
			"template.spec.paddleReplicaSpecs.Master.template=1" + kubeflowAnnotation + "; template.spec.paddleReplicaSpecs.Worker.template=4" + kubeflowAnnotation},
		{"JAXJob", `{apiVersion: kubeflow.org/v1, kind: JAXJob, spec: {jaxReplicaSpecs: {Worker: {replicas: 4, template: ` + pod + `}}}}`,
			"template.spec.jaxReplicaSpecs.Worker.template=4" + kubeflowAnnotation},
		{"MPIJob of version v1", `{apiVersion: kubeflow.org/v1, kind: MPIJob, spec: {mpiReplicaSpecs: {Launcher: {template: ` + pod + `}, Worker: {replicas: 3, template: ` + pod + `}}}}`,
			"template.spec.mpiReplicaSpecs.Launcher.template=1" + kubeflowAnnotation + "; template.spec.mpiReplicaSpecs.Worker.template=3" + kubeflowAnnotation},
		{"MPIJob", `{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, spec: {mpiReplicaSpecs: {Launcher: {template: ` + pod + `}, Worker: {replicas: 3, template: ` + pod + `}}}}`,
			"template.spec.mpiReplicaSpecs.Launcher.template=1" + kubeflowAnnotation + "; template.spec.mpiReplicaSpecs.Worker.template=3" + kubeflowAnnotation},
		{"RayCluster", `{apiVersion: ray.io/v1, kind: RayCluster, spec: {` + rayClusterFields(`{replicas: 7, template: `+pod+`}, {name: empty}, {template: `+pod+`}`) + `}}`,
			"template.spec.headGroupSpec.template=1; template.spec.workerGroupSpecs[0].template=7; template.spec.workerGroupSpecs[2].template=1"},
		{"RayCluster with several hosts per replica", `{apiVersion: ray.io/v1, kind: RayCluster, spec: {` + rayClusterFields(`{replicas: 3, numOfHosts: 4, template: `+pod+`}, {replicas: 2, numOfHosts: 0, template: `+pod+`}`) + `}}`,
			"template.spec.headGroupSpec.template=1; template.spec.workerGroupSpecs[0].template=12; template.spec.workerGroupSpecs[1].template=2"},
		{"RayJob", `{apiVersion: ray.io/v1, kind: RayJob, spec: {entrypoint: x, rayClusterSpec: {` + rayClusterFields(`{replicas: 2, template: `+pod+`}`) + `}}}`,
			"template.spec.rayClusterSpec.headGroupSpec.template=1; template.spec.rayClusterSpec.workerGroupSpecs[0].template=2"},
		{"RayJob with a submitter", `{apiVersion: ray.io/v1, kind: RayJob, spec: {submitterPodTemplate: ` + pod + `, rayClusterSpec: {` + rayClusterFields("") + `}}}`,
			"template.spec.rayClusterSpec.headGroupSpec.template=1; template.spec.submitterPodTemplate=1"},
		{"RayJob with HTTPMode", `{apiVersion: ray.io/v1, kind: RayJob, spec: {submissionMode: HTTPMode, submitterPodTemplate: ` + pod + `, rayClusterSpec: {` + rayClusterFields("") + `}}}`,
			"template.spec.rayClusterSpec.headGroupSpec.template=1"},
		{"RayCronJob", `{apiVersion: ray.io/v1, kind: RayCronJob, spec: {jobTemplate: {submitterPodTemplate: ` + pod + `, rayClusterSpec: {` + rayClusterFields(`{replicas: 2, template: `+pod+`}`) + `}}}}`,
			"template.spec.jobTemplate.rayClusterSpec.headGroupSpec.template=1; template.spec.jobTemplate.rayClusterSpec.workerGroupSpecs[0].template=2; template.spec.jobTemplate.submitterPodTemplate=1"},
		{"RayService", `{apiVersion: ray.io/v1, kind: RayService, spec: {rayClusterConfig: {` + rayClusterFields(`{replicas: 2, template: `+pod+`}`) + `}}}`,
			"template.spec.rayClusterConfig.headGroupSpec.template=1; template.spec.rayClusterConfig.workerGroupSpecs[0].template=2"},
		{"LeaderWorkerSet", `{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, spec: {replicas: 2, leaderWorkerTemplate: {size: 3, leaderTemplate: ` + pod + `, workerTemplate: ` + pod + `}}}`,
			"template.spec.leaderWorkerTemplate.leaderTemplate=2; template.spec.leaderWorkerTemplate.workerTemplate=4"},
		{"LeaderWorkerSet without a leader template", `{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, spec: {replicas: 2, leaderWorkerTemplate: {size: 3, workerTemplate: ` + pod + `}}}`,
			"template.spec.leaderWorkerTemplate.workerTemplate=6"},
		{"unknown version of a known kind", `{apiVersion: apps/v1beta1, kind: Deployment, spec: {template: ` + pod + `}}`, ""},
		{"Service", `{apiVersion: v1, kind: Service}`, ""},
		{"LeaderWorkerSet of another group", `{apiVersion: example.com/v1, kind: LeaderWorkerSet}`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			u := parseObject(t, test.text)
			sets, err := Infer(u)
			if err != nil {
				t.Fatal(err)
			}
			if got := formatPodSets(sets); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if sets == nil {
				t.Error("got a nil list, which the status would encode as null")
			}
			if count, known, errs := Check(sets, u, nil); count != len(sets) || !known || len(errs) != 0 {
				t.Errorf("Check of the inferred pod sets: got count %d, errors %v, want %d and none", count, errs, len(sets))
			}
		})
	}
}

// [D23] Infer rejects invalid numbers of pods, missing or invalid pod templates, and pods that are not in the object.
func TestInferRejects(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"replicas that are not a number", `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: two, template: ` + pod + `}}`, "spec.replicas is two: write a whole number"},
		{"fractional replicas", `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 1.5, template: ` + pod + `}}`, "spec.replicas is 1.5"},
		{"negative replicas", `{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: -1, template: ` + pod + `}}`, "spec.replicas is -1"},
		{"replicas above int32", `{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 2147483648, template: ` + pod + `}}`, "spec.replicas is 2147483648"},
		{"negative parallelism", job("parallelism: -2, "), "spec.parallelism is -2"},
		{"negative completions", job("completions: -2, "), "spec.completions is -2"},
		{"no template", `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 2}}`, "template.spec.template does not refer to a v1.PodSpecTemplate: at path position 'template.spec' missing field 'template'"},
		{"no spec", `{apiVersion: v1, kind: Pod}`, "template does not refer to a v1.PodSpecTemplate: content at template does not contain a spec"},
		{"containers that are not a list", `{apiVersion: v1, kind: Pod, spec: {containers: 5}}`, "content at template.spec not parseable as a v1.PodSpec"},
		{"too many pods of a JobSet", `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, spec: {replicatedJobs: [{replicas: 65536, template: {spec: {parallelism: 65536, template: ` + pod + `}}}]}}`, "spec.replicatedJobs[0] requests more than 2147483647 pods"},
		{"negative parallelism in a JobSet", `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, spec: {replicatedJobs: [{template: {spec: {parallelism: -1, template: ` + pod + `}}}]}}`, "spec.replicatedJobs[0].template.spec.parallelism is -1"},
		{"replicas of a JobSet that are not a number", `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, spec: {replicatedJobs: [{replicas: x, template: {}}]}}`, "spec.replicatedJobs[0].replicas is x"},
		{"negative replicas of a PyTorchJob", `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, spec: {pytorchReplicaSpecs: {Worker: {replicas: -4, template: ` + pod + `}}}}`, "spec.pytorchReplicaSpecs.Worker.replicas is -4"},
		{"negative hosts", `{apiVersion: ray.io/v1, kind: RayCluster, spec: {` + rayClusterFields(`{numOfHosts: -1, template: `+pod+`}`) + `}}`, "spec.workerGroupSpecs[0].numOfHosts is -1"},
		{"replicas of a worker group that are not a number", `{apiVersion: ray.io/v1, kind: RayCluster, spec: {` + rayClusterFields(`{replicas: [], template: `+pod+`}`) + `}}`, "spec.workerGroupSpecs[0].replicas is []"},
		{"too many hosts of a worker group", `{apiVersion: ray.io/v1, kind: RayCluster, spec: {` + rayClusterFields(`{replicas: 2147483647, numOfHosts: 2, template: `+pod+`}`) + `}}`, "spec.workerGroupSpecs[0] requests more than"},
		{"negative minReplicas", `{apiVersion: ray.io/v1, kind: RayCluster, spec: {` + rayClusterFields(`{minReplicas: -1, template: `+pod+`}`) + `}}`, "spec.workerGroupSpecs[0].minReplicas is -1"},
		{"RayCluster without a head", `{apiVersion: ray.io/v1, kind: RayCluster, spec: {}}`, "at path position 'template.spec' missing field 'headGroupSpec'"},
		{"RayJob with clusterSelector", `{apiVersion: ray.io/v1, kind: RayJob, spec: {clusterSelector: {ray.io/cluster: mine}}}`, "spec.clusterSelector selects an existing Ray cluster"},
		{"RayCronJob with clusterSelector", `{apiVersion: ray.io/v1, kind: RayCronJob, spec: {jobTemplate: {clusterSelector: {a: b}}}}`, "the AppWrapper: set spec.jobTemplate.rayClusterSpec instead"},
		{"negative replicas of a LeaderWorkerSet", `{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, spec: {replicas: -2}}`, "spec.replicas is -2"},
		{"size that is not a number", `{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, spec: {leaderWorkerTemplate: {size: big}}}`, "spec.leaderWorkerTemplate.size is big"},
		{"too many pods of a LeaderWorkerSet", `{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, spec: {replicas: 65536, leaderWorkerTemplate: {size: 65536}}}`, "spec.leaderWorkerTemplate requests more than"},
		{"TrainJob", trainJob, "the pods of a TrainJob are described in its runtime"},
	} {
		t.Run(test.name, func(t *testing.T) {
			sets, err := Infer(parseObject(t, test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got pod sets %s, error %v, want an error that contains %q", formatPodSets(sets), err, test.want)
			}
		})
	}
}

// [appwrapper-14] Declared pod sets have precedence, and are stored unchanged.
func TestForComponent(t *testing.T) {
	c := newComponent(t, job("parallelism: 4, "))
	sets, err := ForComponent(c)
	if err != nil || formatPodSets(sets) != "template.spec.template=4"+jobAnnotation {
		t.Errorf("no declaration: got %s, error %v", formatPodSets(sets), err)
	}
	c.PodSets = []awv1beta2.AppWrapperPodSet{{Path: "template.spec.template"}}
	sets, err = ForComponent(c)
	if err != nil || len(sets) != 1 || sets[0].Replicas != nil || sets[0].Annotations != nil {
		t.Errorf("declaration: got %+v, error %v, want it unchanged", sets, err)
	}
	sets[0].Path = "changed"
	if c.PodSets[0].Path == "changed" {
		t.Error("the result shares memory with the component")
	}
	if sets, err = ForComponent(newComponent(t, `{apiVersion: v1, kind: ConfigMap}`)); err != nil || sets == nil || len(sets) != 0 {
		t.Errorf("ConfigMap: got %#v, error %v, want an empty list", sets, err)
	}
	if sets, err = ForComponent(newComponent(t, `{kind: Pod}`)); err == nil {
		t.Errorf("no apiVersion: got %#v, want an error", sets)
	}
}

// [D23] Replicas and Total are not negative.
func TestReplicas(t *testing.T) {
	sets := []awv1beta2.AppWrapperPodSet{{}, {Replicas: new(int32(3))}, {Replicas: new(int32(0))}, {Replicas: new(int32(-5))}}
	for i, want := range []int32{1, 3, 0, 0} {
		if got := Replicas(sets[i]); got != want {
			t.Errorf("set %d: got %d, want %d", i, got, want)
		}
	}
	if got := Total(sets); got != 4 {
		t.Errorf("Total: got %d, want 4", got)
	}
	if got := Total([]awv1beta2.AppWrapperPodSet{{Replicas: new(int32(2147483647))}, {}}); got != 2147483647 {
		t.Errorf("Total above int32: got %d, want %d", got, 2147483647)
	}
}

// [D8] MinReady is below Total if the object may scale down, has suspended workers, or creates pods later.
func TestMinReady(t *testing.T) {
	for _, test := range []struct {
		name, text string
		total      int32
		minReady   int32
	}{
		{"Deployment", `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 7, template: ` + pod + `}}`, 7, 7},
		{"RayCluster without autoscaling", `{apiVersion: ray.io/v1, kind: RayCluster, spec: {` + rayClusterFields(`{replicas: 4, minReplicas: 1, template: `+pod+`}`) + `}}`, 5, 5},
		{"RayCluster with autoscaling", `{apiVersion: ray.io/v1, kind: RayCluster, spec: {enableInTreeAutoscaling: true, ` + rayClusterFields(`{replicas: 4, minReplicas: 1, numOfHosts: 2, template: `+pod+`}`) + `}}`, 9, 3},
		{"RayCluster with replicas below minReplicas", `{apiVersion: ray.io/v1, kind: RayCluster, spec: {enableInTreeAutoscaling: true, ` + rayClusterFields(`{replicas: 1, minReplicas: 3, template: `+pod+`}`) + `}}`, 2, 2},
		{"worker group without replicas", `{apiVersion: ray.io/v1, kind: RayCluster, spec: {` + rayClusterFields(`{template: `+pod+`}`) + `}}`, 2, 1},
		{"suspended worker group", `{apiVersion: ray.io/v1, kind: RayCluster, spec: {` + rayClusterFields(`{replicas: 3, suspend: true, template: `+pod+`}`) + `}}`, 4, 1},
		{"RayJob with a submitter", `{apiVersion: ray.io/v1, kind: RayJob, spec: {submitterPodTemplate: ` + pod + `, rayClusterSpec: {` + rayClusterFields("") + `}}}`, 2, 1},
		{"RayCronJob between runs", `{apiVersion: ray.io/v1, kind: RayCronJob, spec: {jobTemplate: {rayClusterSpec: {` + rayClusterFields(`{replicas: 2, template: `+pod+`}`) + `}}}}`, 3, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			u := parseObject(t, test.text)
			sets, err := Infer(u)
			if err != nil {
				t.Fatal(err)
			}
			if total, minReady := Total(sets), MinReady(u, sets); total != test.total || minReady != test.minReady {
				t.Errorf("got %d of %d pods, want %d of %d", minReady, total, test.minReady, test.total)
			}
		})
	}
	u := parseObject(t, `{apiVersion: example.com/v1, kind: Unknown}`)
	if got := MinReady(u, []awv1beta2.AppWrapperPodSet{{Path: "template.a", Replicas: new(int32(2))}, {Path: "template.b"}}); got != 3 {
		t.Errorf("unknown kind: got %d, want 3", got)
	}
}
