package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/test/fakecluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

func TestStatusGolden(t *testing.T) {
	cluster := fullCluster(t)
	for name, flags := range map[string]string{"text": "", "json": "-o json", "yaml": "-o yaml"} {
		got := run(t, cluster, "status "+flags)
		got.expect(t, 1)
		framework.GoldenText(t, "testdata/golden/status-"+name+".txt", got.stdout)
		if name == "text" {
			page, err := os.ReadFile("../../docs/kubectl-odh.md")
			if err != nil || !strings.Contains(string(page), got.stdout) {
				t.Errorf("docs/kubectl-odh.md does not show this output: %v", err)
			}
		}
	}
}

// TestStatusJSON decodes the structured output.
func TestStatusJSON(t *testing.T) {
	var report struct {
		OK      bool
		Manager struct {
			Found, Leads                     bool
			Namespace, State, Image, Version string
			Lease                            struct{ Holder string }
		}
		Components []struct {
			Name, State         string
			WaitsFor            []string
			Resources, NotReady int
		}
		Resources []struct {
			Component, Kind, Namespace, Name, State, Reason, Message string
			Paused                                                   bool
		}
	}
	got := run(t, fullCluster(t), "status -o json")
	if err := json.Unmarshal([]byte(got.stdout), &report); err != nil {
		t.Fatal(err)
	}
	if report.OK || !report.Manager.Found || !report.Manager.Leads || report.Manager.Version != "v0.1.0" || report.Manager.Namespace != "opendatahub" {
		t.Errorf("unexpected report.Manager: %+v", report.Manager)
	}
	states := map[string]string{}
	for _, c := range report.Components {
		states[c.Name] = fmt.Sprintf("%s %d/%d", c.State, c.NotReady, c.Resources)
	}
	for name, want := range map[string]string{
		"platform": "on 0/1", "mlflow": "on 1/2", "modelregistry": "on 0/1", "modelcatalog": "off 0/0", "modelmesh": "on 1/4", "raycluster": "on 0/1", "appwrapper": "on 1/1",
	} {
		if states[name] != want {
			t.Errorf("%s: got %s, want %s", name, states[name], want)
		}
	}
	if first := report.Resources[0]; first.Kind != "AppWrapper" || first.State != "Failed" {
		t.Errorf("the first resource is %+v, want the failed AppWrapper", first)
	}
	for _, r := range report.Resources {
		if r.Paused != (r.Kind == "ModelRegistry") {
			t.Errorf("want Paused only for the ModelRegistry: %+v", r)
		}
	}
}

func TestStatusReadsNoSecretsOrPods(t *testing.T) {
	cluster := fullCluster(t)
	cluster.Page(1)
	run(t, cluster, "status").expect(t, 1, "AppWrapper/train", "RayCluster/demo", "Predictor/digits")
	for _, r := range cluster.Requests() {
		if r.Resource == "secrets" || r.Resource == "pods" {
			t.Errorf("status requested Secrets or pods: %+v", r)
		}
	}
	if most := cluster.MaxConcurrentRequests(); most > 12 {
		t.Errorf("got %d concurrent requests, want at most 12", most)
	}
}

func TestStatusOfANamespace(t *testing.T) {
	got := run(t, fullCluster(t), "status -n odh-model-registries")
	got.expect(t, 1, "ModelRegistry/team-a", "MLflow/mlflow", "odh-platform-operator-controller-manager in opendatahub")
	got.expectNot(t, "AppWrapper/", "Predictor/")
}

// TestStatusOfHealthyManager runs status in a cluster with a healthy manager and without custom resources.
func TestStatusOfHealthyManager(t *testing.T) {
	cluster := fakecluster.Start(t, append(fakecluster.KubernetesKinds(), fakecluster.OperatorKinds()...), fakecluster.Objects(t, "testdata/manager.yaml"))
	got := run(t, cluster, "status")
	got.expect(t, 0, "MANAGER  Healthy", "1/1 ready", "image ghcr.io/odh-platform/odh-platform-operator:v0.1.0", "Lease renewed 3s ago by odh-platform-operator-controller-manager-7d9f6c5b8-x2x4z", "There are no resources yet.")
	got.expectNot(t, "Note:")
}

func TestStatusWithoutAPIs(t *testing.T) {
	cluster := fakecluster.Start(t, fakecluster.KubernetesKinds(), fakecluster.Objects(t, "testdata/manager.yaml"))
	run(t, cluster, "status").expect(t, 0,
		"mlflow         waiting 0; the cluster does not serve MLflow.mlflow.opendatahub.io/v1",
		"platform       waiting 0; the cluster does not serve MLflowOperator.components.platform.opendatahub.io/v1alpha1, AIHub.components.platform.opendatahub.io/v1alpha1",
		"modelcatalog off 0")
}

// withoutKinds returns the objects of all other kinds.
func withoutKinds(all []unstructured.Unstructured, kinds ...string) []unstructured.Unstructured {
	var out []unstructured.Unstructured
	for _, u := range all {
		if !strings.Contains(strings.Join(kinds, " "), u.GetKind()) {
			out = append(out, u)
		}
	}
	return out
}

func TestStatusOfTheManager(t *testing.T) {
	kinds := append(fakecluster.KubernetesKinds(), fakecluster.OperatorKinds()...)
	manager := fakecluster.Objects(t, "testdata/manager.yaml")
	withChange := func(kind string, change func(u *unstructured.Unstructured)) []unstructured.Unstructured {
		var out []unstructured.Unstructured
		for _, u := range manager {
			u := *u.DeepCopy()
			if u.GetKind() == kind {
				change(&u)
			}
			out = append(out, u)
		}
		return out
	}
	set := func(value any, path ...string) func(u *unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			if err := unstructured.SetNestedField(u.Object, value, path...); err != nil {
				t.Fatal(err)
			}
		}
	}
	addSecondManager := func(u *unstructured.Unstructured) {
		other := *u.DeepCopy()
		other.SetNamespace("old")
		other.SetUID("old")
		unstructured.RemoveNestedField(other.Object, "status")
		manager = append(manager, other)
	}
	for name, c := range map[string]struct {
		objects []unstructured.Unstructured
		code    int
		parts   []string
	}{
		"neither Deployment nor Lease": {nil, 1, []string{"MANAGER  Failed", "no Deployment odh-platform-operator-controller-manager and no leading replica were found", "mlflow unknown 0"}},
		"no Deployment": {withoutKinds(manager, "Deployment"), 0, []string{
			"MANAGER  Healthy", "running, but its Deployment was not found", "Lease renewed 3s ago",
			"The enabled components are unknown: the Deployment of the manager could not be read.",
		}},
		"no Lease":       {withoutKinds(manager, "Lease"), 0, []string{"MANAGER  Healthy", "1/1 ready"}},
		"expired Lease":  {withChange("Lease", set("2026-05-01T11:00:00.000000Z", "spec", "renewTime")), 1, []string{"no replica leads: odh-platform", "renewed the Lease 60m ago"}},
		"released Lease": {withChange("Lease", set("", "spec", "holderIdentity")), 1, []string{"no replica leads: the Lease in opendatahub was released"}},
		"not ready":      {withChange("Deployment", set(int64(0), "status", "availableReplicas")), 1, []string{"MANAGER  Progressing"}},
		"scaled to zero": {withChange("Deployment", func(u *unstructured.Unstructured) {
			set(int64(0), "spec", "replicas")(u)
			set(map[string]any{"observedGeneration": int64(1)}, "status")(u)
		}), 1, []string{"MANAGER  Failed", "scaled to zero replicas, so nothing is reconciled"}},
		"invalid setting": {withChange("ConfigMap", set("perhaps", "data", "platform")), 0, []string{
			"mlflow         unknown", "The enabled components are unknown: environment variable ENABLE_PLATFORM",
		}},
		"image with a digest": {withChange("Deployment", func(u *unstructured.Unstructured) {
			containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
			containers[0].(map[string]any)["image"] = "quay.io/o/p@sha256:0123456789abcdef0123456789abcdef"
			set(containers, "spec", "template", "spec", "containers")(u)
		}), 0, []string{"image quay.io/o/p@sha256:0123456789abcdef"}},
		"no ConfigMap": {withoutKinds(manager, "ConfigMap"), 0, []string{"platform       off"}},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, fakecluster.Start(t, kinds, c.objects), "status").expect(t, c.code, c.parts...)
		})
	}
	addSecondManager(&manager[0])
	run(t, fakecluster.Start(t, kinds, manager), "status").expect(t, 0, "in opendatahub: 1/1 ready", "another manager runs in old, and both write the same objects: remove one of them")
	run(t, fakecluster.Start(t, kinds, manager), "status --manager-namespace old").expect(t, 1, "in old: 0/1 ready")
}

// TestStatusWithoutPermissions forbids requests, first all that are outside of namespace vision.
func TestStatusWithoutPermissions(t *testing.T) {
	cluster := fullCluster(t)
	cluster.Forbid(func(r fakecluster.Request) bool { return r.Namespace != "vision" || r.Resource == "rayclusters" })
	got := run(t, cluster, "status")
	got.expect(t, 1, "AppWrapper/train", "Predictor/digits", "Note: not allowed to list all namespaces; only namespace vision is shown, choose another with -n",
		"Note: not allowed to list deployments.apps in all namespaces\n", "Note: not allowed to list leases.coordination.k8s.io in all namespaces\n", "rayclusters.ray.io in namespace vision\n")
	got.expectNot(t, "RayCluster/", "ModelRegistry/")
	run(t, cluster, "status -n nowhere").expect(t, 3, "MANAGER  Unknown", "the Deployments and Leases of all namespaces could not be listed; set its namespace with --manager-namespace",
		"No resources were found; the notes list what could not be read.")
	run(t, fullCluster(t), "status -n nowhere").expect(t, 2, `namespace "nowhere" does not exist`)
	empty := fakecluster.Start(t, fakecluster.KubernetesKinds(), nil)
	empty.Forbid(func(r fakecluster.Request) bool { return r.Resource == "leases" })
	run(t, empty, "status").expect(t, 3, "MANAGER  Unknown", "Note: not allowed to list leases.coordination.k8s.io in all namespaces\n")
	cluster.Forbid(func(r fakecluster.Request) bool {
		return r.Namespace == "" && r.Selector == "" && (r.Resource == "deployments" || r.Resource == "leases")
	})
	run(t, cluster, "status").expect(t, 1, "MANAGER  Healthy", "odh-platform-operator-controller-manager in opendatahub: 1/1 ready", "Lease renewed")
}

// TestStatusWithUnreadableSettings expects a note with the settings whose defaults are assumed.
func TestStatusWithUnreadableSettings(t *testing.T) {
	cluster := fullCluster(t)
	const note = "the defaults are assumed for settings of the manager that could not be read: ENABLE_PLATFORM in ConfigMap opendatahub/"
	run(t, cluster, "status").expectNot(t, note)
	cluster.Forbid(func(r fakecluster.Request) bool { return r.Resource == "configmaps" })
	run(t, cluster, "status").expect(t, 1, "Note: "+note)
	run(t, cluster, "status -o json").expect(t, 1, note)
}

func TestStatusReportsFailedRequests(t *testing.T) {
	cluster := fullCluster(t)
	cluster.Break(func(r fakecluster.Request) bool { return r.Resource == "predictors" || r.Resource == "ray.io/v1" })
	got := run(t, cluster, "status")
	got.expect(t, 1, "Note: predictors.serving.kserve.io in all namespaces could not be read:", "Note: the API ray.io/v1 does not answer", "AppWrapper/train")
	got.expectNot(t, "Predictor/")
	cluster.Break(func(r fakecluster.Request) bool { return r.Verb != "discover" })
	run(t, cluster, "status").expect(t, 3, "MANAGER Unknown", "Note: mlflows.mlflow.opendatahub.io could not be read:")
}

func TestStatusReturnsErrors(t *testing.T) {
	cluster := fullCluster(t)
	run(t, cluster, "status mlflow").expect(t, 2, `unknown command "mlflow" for "kubectl odh status"`)
	run(t, cluster, "status --context none").expect(t, 2, `context "none" does not exist`)
	cluster.URL = "http://127.0.0.1:1"
	run(t, cluster, "status").expect(t, 2, "kubectl-odh: the API server does not answer:", "127.0.0.1:1", "choose another cluster with --context or --kubeconfig")
}

// TestStatusInFormats prints in the formats of kubectl.
func TestStatusInFormats(t *testing.T) {
	cluster := fullCluster(t)
	run(t, cluster, "status -o jsonpath={.resources[0].name}").expect(t, 1, "train")
	run(t, cluster, "status -o go-template={{.manager.namespace}}").expect(t, 1, "opendatahub")
	run(t, cluster, "status -o xml").expect(t, 2, `unable to match a printer suitable for the output format "xml"`)
}

// TestStatusOfSelectedResources lists with a label selector.
func TestStatusOfSelectedResources(t *testing.T) {
	cluster := fullCluster(t)
	run(t, cluster, "status -l team=a").expectNot(t, "AppWrapper/")
	requests := slices.DeleteFunc(cluster.Requests(), func(r fakecluster.Request) bool { return r.Resource != "appwrappers" })
	if len(requests) == 0 || slices.ContainsFunc(requests, func(r fakecluster.Request) bool { return r.Selector != "team=a" }) {
		t.Errorf("got requests %+v for AppWrappers, want lists with the label selector", requests)
	}
}

// TestStatusOfMLflowConfig expects the state of condition Ready, and Unknown without conditions.
func TestStatusOfMLflowConfig(t *testing.T) {
	for name, c := range map[string]struct {
		conditions []any
		parts      []string
	}{
		"Secret does not exist": {[]any{map[string]any{"type": "Ready", "status": "False", "reason": "ReferencesMissing", "message": "Secret x does not exist; create it"}},
			[]string{"Failed", "ReferencesMissing", "Secret x does not exist; create it"}},
		"no conditions": {nil, []string{"Unknown", "waiting for its controller to report"}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := fakecluster.Objects(t, "testdata/manager.yaml", "testdata/resources.yaml")
			objects = slices.DeleteFunc(objects, func(u unstructured.Unstructured) bool {
				return u.GetNamespace() != "opendatahub" && u.GetKind() != "MLflowConfig"
			})
			for _, u := range objects {
				if u.GetKind() == "MLflowConfig" {
					u.Object["status"] = map[string]any{"conditions": c.conditions}
				}
			}
			cluster := fakecluster.Start(t, append(fakecluster.KubernetesKinds(), fakecluster.OperatorKinds()...), objects)
			run(t, cluster, "status").expect(t, 1, append(c.parts, "MLflowConfig/mlflow")...)
			run(t, cluster, "tree mlflowconfig/mlflow").expect(t, 1, append(c.parts, "MLflowConfig/mlflow")...)
		})
	}
}
