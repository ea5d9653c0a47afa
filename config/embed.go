// Package shipped embeds the manifests of CRDs, roles and webhooks, with which `kubectl odh doctor` compares a cluster, and the manifests
// that the manager applies if OLM installs it.
package shipped

import "embed"

// Files are the manifests, by their paths below config.
//
//go:embed crd/bases/*.yaml rbac webhook
var Files embed.FS

// The alerts, and the ServiceMonitor for a certificate that the manager issues.
var (
	//go:embed prometheus/rules.yaml
	PrometheusRule string
	//go:embed prometheus/service_monitor.yaml
	ServiceMonitor string
)

// Examples are the samples that the OpenShift console offers in addition to those in the CSV.
//
//go:embed samples/appwrapper_deployment.yaml samples/appwrapper_failing_*.yaml samples/appwrapper_gpu_job.yaml samples/appwrapper_jobset.yaml
//go:embed samples/appwrapper_leader_worker_set.yaml samples/appwrapper_pod.yaml samples/appwrapper_pytorch_job.yaml
//go:embed samples/mlflow_*.yaml samples/modelmesh_predictor_*.yaml
//go:embed samples/modelregistry_*mysql.yaml samples/modelregistry_*postgres.yaml samples/modelregistry_proxy.yaml
var Examples embed.FS
