package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/test/fakecluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

func TestTreeGolden(t *testing.T) {
	cluster := fullCluster(t)
	for name, flags := range map[string]string{"text": "", "json": "-o json", "yaml": "-o yaml"} {
		got := run(t, cluster, "tree mlflow/mlflow raycluster/demo aw/train "+flags)
		got.expect(t, 1)
		framework.GoldenText(t, "testdata/golden/tree-"+name+".txt", got.stdout)
	}
}

// branch is a part of the structured output.
type branch struct {
	Kind, Namespace, Name, Relation, State, Reason, Message string
	Children                                                []branch
}

// lines formats a branch for comparisons.
func (b branch) lines(prefix string) []string {
	out := []string{strings.TrimSpace(fmt.Sprintf("%s%s/%s %s %s", prefix, b.Kind, b.Name, b.Relation, b.State))}
	for _, child := range b.Children {
		out = append(out, child.lines(prefix+"> ")...)
	}
	return out
}

// treeOf returns the only tree in the output.
func treeOf(t *testing.T, cluster *fakecluster.Cluster, line string) branch {
	t.Helper()
	var result struct {
		OK    bool
		Trees []branch
		Notes []string
	}
	got := run(t, cluster, line+" -o json")
	if err := json.Unmarshal([]byte(got.stdout), &result); err != nil {
		t.Fatalf("decoding the output: %v\n%s%s", err, got.stdout, got.stderr)
	}
	if len(result.Trees) != 1 || result.OK != (got.code == 0) {
		t.Fatalf("got %d trees, OK %t and exit code %d, want 1 tree, and OK only with exit code 0", len(result.Trees), result.OK, got.code)
	}
	return result.Trees[0]
}

func TestTreePrintsChildObjects(t *testing.T) {
	cluster := fullCluster(t)
	for line, want := range map[string]string{
		"tree mlflow mlflow": `
			MLflow/mlflow  Progressing
			> ClusterRoleBinding/mlflow owned Healthy
			> Deployment/mlflow owned Progressing
			> > ReplicaSet/mlflow-1 owned Idle
			> > ReplicaSet/mlflow-2 owned Progressing
			> > > Pod/mlflow-2-x2x4z owned Failed
			> PersistentVolumeClaim/mlflow-pvc kept Healthy
			> Secret/mlflow-tls owned Healthy
			> Service/mlflow owned Healthy`,
		"tree mr/team-a -n odh-model-registries": `
			ModelRegistry/team-a  Healthy
			> ClusterRoleBinding/team-a-auth-delegator labelled Healthy
			> Deployment/team-a owned Healthy`,
		"tree predictors.serving.kserve.io/digits": `
			Predictor/digits  Failed`,
		"tree isvc/faces": `
			InferenceService/faces  Healthy`,
		"tree inferenceservice/alone": `
			InferenceService/alone  Unknown`,
		"tree ClusterServingRuntime/mlserver-1.x": `
			ClusterServingRuntime/mlserver-1.x  Healthy
			> Deployment/modelmesh-serving-mlserver-1.x owned Healthy
			> Deployment/modelmesh-serving-mlserver-1.x owned Healthy`,
		"tree aw train": `
			AppWrapper/train  Failed
			> Job/train owned Failed
			> > Pod/train-0 owned Failed
			> Pod/train-helper labelled Healthy`,
		"tree deploy/mlflow -n opendatahub": `
			Deployment/mlflow  Progressing
			> ReplicaSet/mlflow-1 owned Idle
			> ReplicaSet/mlflow-2 owned Progressing
			> > Pod/mlflow-2-x2x4z owned Failed`,
		"tree raycluster/demo": `
			RayCluster/demo  Idle`,
		"tree secret/mlflow-tls -n opendatahub": `
			Secret/mlflow-tls  Healthy`,
	} {
		t.Run(line, func(t *testing.T) {
			var wantLines []string
			for text := range strings.Lines(strings.TrimSpace(want)) {
				wantLines = append(wantLines, strings.Join(strings.Fields(text), " "))
			}
			var got []string
			for _, text := range treeOf(t, cluster, line).lines("") {
				got = append(got, strings.Join(strings.Fields(text), " "))
			}
			if !slices.Equal(got, wantLines) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(wantLines, "\n"))
			}
		})
	}
}

// TestTreeReadsNoSecrets expects that Secrets, and objects in a namespace that is not shown, are not read in full.
func TestTreeReadsNoSecrets(t *testing.T) {
	cluster := fullCluster(t)
	cluster.Page(2)
	run(t, cluster, "tree mlflow/mlflow").expect(t, 1, "Secret/mlflow-tls", "Pod/mlflow-2-x2x4z")
	listed := false
	for _, r := range cluster.Requests() {
		listed = listed || r.Resource == "secrets"
		if !r.Metadata && (r.Resource == "secrets" || r.Namespace == "vision") {
			t.Errorf("tree read Secrets, or objects of namespace vision, in full: %+v", r)
		}
	}
	if !listed {
		t.Error("tree listed no Secrets")
	}
	if most := cluster.MaxConcurrentRequests(); most > 12 {
		t.Errorf("got %d concurrent requests, want at most 12", most)
	}
}

// deploymentWithPods returns a Deployment and its pods, one of which failed.
func deploymentWithPods(pods int) []unstructured.Unstructured {
	newObject := func(kind, name, uid, owner, ownerUID string) unstructured.Unstructured {
		u := unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
		u.SetNamespace("vision")
		u.SetName(name)
		u.Object["metadata"].(map[string]any)["uid"] = uid
		if owner != "" {
			u.Object["metadata"].(map[string]any)["ownerReferences"] = []any{
				map[string]any{"apiVersion": "apps/v1", "kind": owner, "name": owner, "uid": ownerUID, "controller": true},
			}
		}
		return u
	}
	top := newObject("Deployment", "crowd", "top", "", "")
	top.SetAPIVersion("apps/v1")
	all := []unstructured.Unstructured{top}
	for i := range pods {
		pod := newObject("Pod", fmt.Sprintf("crowd-%03d", i), fmt.Sprintf("pod-%d", i), "Deployment", "top")
		pod.Object["status"] = map[string]any{"phase": "Succeeded"}
		if i == 1 {
			pod.Object["status"] = map[string]any{"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory. "}
		}
		all = append(all, pod)
	}
	return all
}

// TestTreeOfManyObjects expects that pods are listed in pages and that no pod is read on its own.
func TestTreeOfManyObjects(t *testing.T) {
	cluster := fakecluster.Start(t, append(fakecluster.KubernetesKinds(), fakecluster.OperatorKinds()...), deploymentWithPods(300))
	cluster.Page(100)
	got := run(t, cluster, "tree deployment/crowd")
	got.expect(t, 1, "Pod/crowd-299", "Completed", "the pod was evicted (The node was low on resource: memory)")
	if n := strings.Count(got.stdout, "Pod/"); n != 300 {
		t.Errorf("got %d pods, want 300", n)
	}
	if slices.ContainsFunc(cluster.Requests(), func(r fakecluster.Request) bool { return r.Resource == "pods" && r.Verb == "get" }) {
		t.Error("tree read single pods, want only lists")
	}
}

func TestTreeHidesOldReplicaSets(t *testing.T) {
	cluster := fullCluster(t)
	run(t, cluster, "tree mlflow/mlflow").expectNot(t, "ReplicaSet/mlflow-1")
	run(t, cluster, "tree mlflow/mlflow -o json").expect(t, 1, `"mlflow-1"`)
}

// TestTreeWithoutPermissions expects the readable objects and a note for each denied request.
func TestTreeWithoutPermissions(t *testing.T) {
	cluster := fullCluster(t)
	cluster.Forbid(func(r fakecluster.Request) bool {
		return r.Namespace != "vision" && r.Resource != "clusterservingruntimes" || r.Resource == "secrets"
	})
	run(t, cluster, "tree predictor/digits").expect(t, 1, "Note: not allowed to search all namespaces; searched: vision", "Note: not allowed to list secrets in namespace vision\n")
	run(t, cluster, "tree mlflow/mlflow").expect(t, 3, "forbidden")
	run(t, cluster, "tree isvc/faces").expect(t, 3, "Healthy", "Note: not allowed to list secrets in namespace vision\n")

	cluster.Forbid(func(r fakecluster.Request) bool { return r.Resource == "pods" })
	run(t, cluster, "tree aw/train").expect(t, 1, "Job/train ", "Note: not allowed to list pods in namespace vision\n")
}

func TestTreeReportsFailedRequests(t *testing.T) {
	cluster := fullCluster(t)
	cluster.Break(func(r fakecluster.Request) bool { return r.Resource == "jobs" })
	got := run(t, cluster, "tree aw/train")
	got.expect(t, 1, "AppWrapper/train", "Note: jobs.batch in namespace vision could not be read:")
	cluster.Break(func(r fakecluster.Request) bool { return r.Verb == "get" })
	run(t, cluster, "tree aw/train").expect(t, 2, "kubectl-odh: ")
}

func TestTreeReturnsErrors(t *testing.T) {
	cluster := fullCluster(t)
	for line, want := range map[string]string{
		"tree":                     "tree: name resources of one namespace as KIND/NAME, such as mlflow/mlflow, or as KIND NAME",
		"tree mlflow":              "no name was specified",
		"tree mlflow a/b":          "there is no need to specify a resource type as a separate argument",
		"tree mlflow/a b":          "there is no need to specify a resource type as a separate argument",
		"tree mlflow/":             "arguments in resource/name form must have a single resource and name",
		"tree a/b/c":               "arguments in resource/name form may not have more than one slash",
		"tree -A mlflow/mlflow":    "tree: name resources of one namespace",
		"tree unicorn/a":           `the server doesn't have a resource type "unicorn"`,
		"tree mlflow/other":        `mlflows.mlflow.opendatahub.io "other" not found`,
		"tree aw/other":            "not found",
		"tree mlflow.other/mlflow": `the server doesn't have a resource type "mlflow"`,
		"tree mlflow/mlflow --bad": "tree: unknown flag: --bad",
	} {
		got := run(t, cluster, line)
		got.expect(t, 2, want)
		if got.stdout != "" {
			t.Errorf("%s printed %q to stdout, want nothing", line, got.stdout)
		}
	}
}

// TestTreeOfSelectedResources selects by labels, as kubectl does.
func TestTreeOfSelectedResources(t *testing.T) {
	run(t, fullCluster(t), "tree deployment -n opendatahub -l app=mlflow").expect(t, 1, "Deployment/mlflow ", "Pod/mlflow-2-x2x4z ")
}
