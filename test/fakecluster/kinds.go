package fakecluster

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// Objects reads the objects of YAML files.
func Objects(t testing.TB, paths ...string) []unstructured.Unstructured {
	t.Helper()
	var all []unstructured.Unstructured
	for _, path := range paths {
		found, err := framework.ReadObjects(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range found {
			all = append(all, *u)
		}
	}
	return all
}

// KubernetesKinds returns the built-in kinds that tests need.
func KubernetesKinds() []Kind {
	return []Kind{
		kind("", "v1", "Pod", "pods", true, "po"),
		kind("", "v1", "Service", "services", true, "svc"),
		kind("", "v1", "Secret", "secrets", true),
		kind("", "v1", "ConfigMap", "configmaps", true, "cm"),
		kind("", "v1", "ServiceAccount", "serviceaccounts", true, "sa"),
		kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", true, "pvc"),
		kind("", "v1", "Event", "events", true, "ev"),
		kind("", "v1", "Namespace", "namespaces", false, "ns"),
		kind("apps", "v1", "Deployment", "deployments", true, "deploy"),
		kind("apps", "v1", "ReplicaSet", "replicasets", true, "rs"),
		kind("batch", "v1", "Job", "jobs", true),
		kind("coordination.k8s.io", "v1", "Lease", "leases", true),
		kind("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", false),
		kind("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", true),
		kind("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", true, "netpol"),
	}
}

// OperatorKinds returns the kinds of all components.
func OperatorKinds() []Kind {
	return []Kind{
		kind("mlflow.opendatahub.io", "v1", "MLflow", "mlflows", false, "mlf"),
		kind("mlflow.kubeflow.org", "v1", "MLflowConfig", "mlflowconfigs", true),
		kind("components.platform.opendatahub.io", "v1alpha1", "MLflowOperator", "mlflowoperators", false),
		kind("components.platform.opendatahub.io", "v1alpha1", "AIHub", "aihubs", false),
		kind("modelregistry.opendatahub.io", "v1beta1", "ModelRegistry", "modelregistries", true, "mr"),
		kind("modelregistry.opendatahub.io", "v1alpha1", "ModelRegistry", "modelregistries", true, "mr"),
		kind("aihub.opendatahub.io", "v1alpha1", "Catalog", "catalogs", true),
		kind("serving.kserve.io", "v1beta1", "InferenceService", "inferenceservices", true, "isvc"),
		kind("serving.kserve.io", "v1alpha1", "Predictor", "predictors", true),
		kind("serving.kserve.io", "v1alpha1", "ServingRuntime", "servingruntimes", true),
		kind("serving.kserve.io", "v1alpha1", "ClusterServingRuntime", "clusterservingruntimes", false),
		kind("ray.io", "v1", "RayCluster", "rayclusters", true),
		kind("workload.codeflare.dev", "v1beta2", "AppWrapper", "appwrappers", true, "aw"),
	}
}

func kind(group, version, name, resource string, namespaced bool, short ...string) Kind {
	return Kind{schema.GroupVersionKind{Group: group, Version: version, Kind: name}, resource, short, namespaced}
}
