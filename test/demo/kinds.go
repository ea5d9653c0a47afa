package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind describes the readiness of a kind of sample. An object is ready when it exists if both fields are empty.
type kind struct {
	// ready is the condition that is True when an object is ready.
	ready string
	// flag is the status field that is true when an object of a kind without conditions is ready.
	flag string
}

// meshGroup is the API group of runtimes and models.
const meshGroup = "serving.kserve.io"

// kinds maps every kind in the kustomizations of samples to its readiness.
var kinds = map[schema.GroupKind]kind{
	{Kind: "Namespace"}: {},
	{Kind: "Secret"}:    {},
	{Kind: "ConfigMap"}: {},

	{Group: "mlflow.opendatahub.io", Kind: "MLflow"}:     {ready: "Available"},
	{Group: "mlflow.kubeflow.org", Kind: "MLflowConfig"}: {},

	{Group: "modelregistry.opendatahub.io", Kind: "ModelRegistry"}: {ready: "Available"},

	catalog: {ready: "Available"},

	{Group: "workload.codeflare.dev", Kind: "AppWrapper"}: {ready: "PodsReady"},

	{Group: meshGroup, Kind: "ClusterServingRuntime"}: {},
	{Group: meshGroup, Kind: "Predictor"}:             {flag: "available"},
	{Group: meshGroup, Kind: "InferenceService"}:      {ready: "Ready"},

	rayCluster: {ready: "RayClusterProvisioned"},
}

// catalog is a kind that is not created on a real node, because its server is available only as an image.
var catalog = schema.GroupKind{Group: "aihub.opendatahub.io", Kind: "Catalog"}

// rayCluster is the kind that requires KubeRay.
var rayCluster = schema.GroupKind{Group: "ray.io", Kind: "RayCluster"}

func isRay(sample *unstructured.Unstructured) bool {
	return sample.GroupVersionKind().GroupKind() == rayCluster
}

// checkKinds returns an error for samples of kinds whose readiness is unknown.
func checkKinds(samples []*unstructured.Unstructured) error {
	for _, sample := range samples {
		group := sample.GroupVersionKind().GroupKind()
		if _, ok := kinds[group]; !ok {
			return fmt.Errorf("the readiness of sample %s %s is unknown: add %s to the table in test/demo/kinds.go", group.Kind, sample.GetName(), group)
		}
	}
	return nil
}

// nextCommands returns commands to try in a ready demo. Each of them terminates.
func nextCommands(namespace string, real bool) []string {
	servers := "modelregistry,catalogs.aihub.opendatahub.io,predictor,inferenceservice,deployment"
	if real {
		servers = "modelregistry,deployment,pod"
	}
	return []string{
		"kubectl get mlflow",
		"kubectl odh status",
		"kubectl odh doctor",
		"kubectl odh tree mlflow/mlflow",
		fmt.Sprintf("kubectl -n %s get appwrapper,deployment", namespace),
		fmt.Sprintf("kubectl -n %s get raycluster,networkpolicy", namespace),
		fmt.Sprintf("kubectl -n %s get %s", namespace, servers),
		fmt.Sprintf("kubectl -n %s get all,pvc,networkpolicy", namespace),
		fmt.Sprintf("kubectl -n %[1]s delete deployment mlflow; kubectl -n %[1]s wait --for=create deployment/mlflow && "+
			"kubectl -n %[1]s rollout status deployment/mlflow", namespace),
	}
}
