package health

import (
	"github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	mlflowconfigv1 "github.com/odh-platform/odh-platform-operator/apis/mlflowconfig/v1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
)

// key is a kind in whatever version.
type key struct{ group, kind string }

const meshGroup = "serving.kserve.io"

// judges know more about a kind than the rules for all.
var judges = map[key]judge{
	{mlflowv1.GroupVersion.Group, "MLflow"}:                 byCondition("Available", "Progressing"),
	{mlflowconfigv1.GroupVersion.Group, "MLflowConfig"}:     byCondition("ReferencesReady", ""),
	{platformv1alpha1.GroupVersion.Group, "MLflowOperator"}: byCondition("Ready", ""),
	{platformv1alpha1.GroupVersion.Group, "AIHub"}:          byCondition("Ready", ""),
	{v1beta1.GroupVersion.Group, v1beta1.Kind}:              byCondition("Available", "Progressing"),
	{v1alpha1.GroupVersion.Group, v1alpha1.Kind}:            catalog,
	{v1beta2.GroupVersion.Group, v1beta2.Kind}:              appWrapper,
	{meshGroup, "Predictor"}:                                predictor,
	{meshGroup, "InferenceService"}:                         inferenceService,
	{meshGroup, "ServingRuntime"}:                           servingRuntime,
	{meshGroup, "ClusterServingRuntime"}:                    servingRuntime,
	{"ray.io", "RayCluster"}:                                rayCluster,
	{"apps", "Deployment"}:                                  deployment,
	{"apps", "ReplicaSet"}:                                  replicaSet,
	{"apps", "StatefulSet"}:                                 statefulSet,
	{"", "Pod"}:                                             pod,
	{"", "PersistentVolumeClaim"}:                           claim,
	{"", "Service"}:                                         service,
	{"batch", "Job"}:                                        job,
	{"batch", "CronJob"}:                                    cronJob,
	{"route.openshift.io", "Route"}:                         route,
	{"gateway.networking.k8s.io", "HTTPRoute"}:              httpRoute,
	{"autoscaling", "HorizontalPodAutoscaler"}:              autoscaler,
	{"policy", "PodDisruptionBudget"}:                       computed,
	{"kueue.x-k8s.io", "Workload"}:                          kueueWorkload,
}

// plain kinds have no status worth a request; Secrets are not read for more than their names.
var plain = map[key]bool{
	{"", "Secret"}:                                      true,
	{"", "ConfigMap"}:                                   true,
	{"", "ServiceAccount"}:                              true,
	{"", "Endpoints"}:                                   true,
	{"discovery.k8s.io", "EndpointSlice"}:               true,
	{"rbac.authorization.k8s.io", "Role"}:               true,
	{"rbac.authorization.k8s.io", "RoleBinding"}:        true,
	{"rbac.authorization.k8s.io", "ClusterRole"}:        true,
	{"rbac.authorization.k8s.io", "ClusterRoleBinding"}: true,
	{"authorization.openshift.io", "Role"}:              true,
	{"authorization.openshift.io", "RoleBinding"}:       true,
	{"networking.k8s.io", "NetworkPolicy"}:              true,
	{"gateway.networking.k8s.io", "ReferenceGrant"}:     true,
	{"monitoring.coreos.com", "ServiceMonitor"}:         true,
	{"monitoring.coreos.com", "PodMonitor"}:             true,
	{"monitoring.coreos.com", "PrometheusRule"}:         true,
	{"console.openshift.io", "ConsoleLink"}:             true,
	{"user.openshift.io", "Group"}:                      true,
	{"coordination.k8s.io", "Lease"}:                    true,
	{"apps", "ControllerRevision"}:                      true,
	{"template.openshift.io", "Template"}:               true,
}
