package health

import "testing"

func TestPlatformAndServers(t *testing.T) {
	check(t, []example{
		{
			name: "a new MLflow",
			object: `
apiVersion: mlflow.opendatahub.io/v1
kind: MLflow
metadata: {name: mlflow}
`,
			want: Verdict{State: Unknown, Message: "no controller has reported on it yet"},
		},
		{
			name: "an MLflow that starts",
			object: `
apiVersion: mlflow.opendatahub.io/v1
kind: MLflow
metadata: {name: mlflow}
status:
  conditions:
  - {type: Available, status: "False", reason: DeploymentNotReady, message: 0/1 replicas ready}
  - {type: Progressing, status: "True", reason: DeploymentProgressing}
`,
			want: Verdict{State: Progressing, Reason: "DeploymentNotReady", Message: "0/1 replicas ready"},
		},
		{
			name: "an MLflow that cannot be made",
			object: `
apiVersion: mlflow.opendatahub.io/v1
kind: MLflow
metadata: {name: mlflow}
status:
  conditions:
  - {type: Available, status: "False", reason: RenderFailed, message: spec is wrong}
  - {type: Progressing, status: "False", reason: RenderFailed}
`,
			want: Verdict{State: Failed, Reason: "RenderFailed", Message: "spec is wrong"},
		},
		{
			name: "an MLflow that works and shows a password",
			object: `
apiVersion: mlflow.opendatahub.io/v1
kind: MLflow
metadata: {name: mlflow}
status:
  conditions:
  - {type: Available, status: "True", reason: DeploymentReady}
  - {type: Progressing, status: "False", reason: ReconcileComplete}
  - {type: CredentialsInSpec, status: "True", reason: PasswordInURI, message: use a Secret}
`,
			want: Verdict{State: Degraded, Reason: "PasswordInURI", Message: "use a Secret"},
		},
		{
			name: "an MLflow that works and whose claim differs",
			object: `
apiVersion: mlflow.opendatahub.io/v1
kind: MLflow
metadata: {name: mlflow}
status:
  conditions:
  - {type: Available, status: "True", reason: DeploymentReady}
  - {type: StorageInSync, status: "False", reason: ClaimDiffers, message: it cannot shrink}
`,
			want: Verdict{State: Degraded, Reason: "ClaimDiffers", Message: "it cannot shrink"},
		},
		{
			name: "the settings of a workspace",
			object: `
apiVersion: mlflow.kubeflow.org/v1
kind: MLflowConfig
metadata: {name: mlflow, namespace: team, generation: 4}
status:
  observedGeneration: 4
  conditions:
  - {type: ReferencesReady, status: "False", reason: ReferencesMissing, message: Secret s does not exist, lastTransitionTime: "2026-05-01T06:00:00Z"}
`,
			want: Verdict{State: Failed, Reason: "ReferencesMissing", Message: "Secret s does not exist", Since: at(6)},
		},
		{
			name: "an MLflowOperator",
			object: `
apiVersion: components.platform.opendatahub.io/v1alpha1
kind: MLflowOperator
metadata: {name: default}
status:
  phase: Ready
  conditions:
  - {type: Ready, status: "True", reason: Ready}
`,
			want: Verdict{State: Healthy, Reason: "Ready"},
		},
		{
			name: "an AIHub without a domain",
			object: `
apiVersion: components.platform.opendatahub.io/v1alpha1
kind: AIHub
metadata: {name: default}
status:
  conditions:
  - {type: Ready, status: "True", reason: AllDependentsHealthy}
  - {type: Degraded, status: "True", severity: Info, reason: GatewayDomainUnavailable}
`,
			want: Verdict{State: Healthy, Reason: "AllDependentsHealthy"},
		},
		{
			name: "an AIHub without its catalog",
			object: `
apiVersion: components.platform.opendatahub.io/v1alpha1
kind: AIHub
metadata: {name: default}
status:
  conditions:
  - {type: Ready, status: "False", reason: ChildDeploymentNotReady, message: the catalog is switched off}
`,
			want: Verdict{State: Failed, Reason: "ChildDeploymentNotReady", Message: "the catalog is switched off"},
		},
		{
			name: "a registry whose database is gone",
			object: `
apiVersion: modelregistry.opendatahub.io/v1beta1
kind: ModelRegistry
metadata: {name: a, namespace: registries}
status:
  conditions:
  - {type: Available, status: "False", reason: ConfigurationError, message: Secret a does not exist}
`,
			want: Verdict{State: Failed, Reason: "ConfigurationError", Message: "Secret a does not exist"},
		},
		{
			name: "a registry that left a database behind",
			object: `
apiVersion: modelregistry.opendatahub.io/v1beta1
kind: ModelRegistry
metadata: {name: a, namespace: registries}
status:
  conditions:
  - {type: Available, status: "True", reason: DeploymentAvailable}
  - {type: UnusedDatabase, status: "True", reason: DatabaseKept, message: it is not used any more}
`,
			want: Verdict{State: Degraded, Reason: "DatabaseKept", Message: "it is not used any more"},
		},
		{
			name: "a catalog",
			object: `
apiVersion: aihub.opendatahub.io/v1alpha1
kind: Catalog
metadata: {name: catalog, namespace: registries}
status:
  conditions: [{type: Available, status: "True", reason: DeploymentAvailable}]
  sources: [{name: good, state: Accepted, reason: Mounted}]
`,
			want: Verdict{State: Healthy, Reason: "DeploymentAvailable"},
		},
		{
			name: "a catalog with a source that is no YAML",
			object: `
apiVersion: aihub.opendatahub.io/v1alpha1
kind: Catalog
metadata: {name: catalog, namespace: registries}
status:
  conditions: [{type: Available, status: "True", reason: DeploymentAvailable}]
  sources:
  - {name: good, state: Accepted}
  - {name: bad, state: Rejected, reason: ContentNotUnderstood, message: line 3 is no YAML}
`,
			want: Verdict{State: Degraded, Reason: "ContentNotUnderstood", Message: "source bad is not used: line 3 is no YAML"},
		},
		{
			name: "a catalog that does not run, whatever its sources are",
			object: `
apiVersion: aihub.opendatahub.io/v1alpha1
kind: Catalog
metadata: {name: catalog, namespace: registries}
status:
  conditions: [{type: Available, status: "False", reason: DeploymentUnavailable, message: no pods}]
  sources: [{name: bad, state: Rejected, reason: ContentNotUnderstood}]
`,
			want: Verdict{State: Failed, Reason: "DeploymentUnavailable", Message: "no pods"},
		},
		{
			name: "a catalog whose server has only just got ready",
			object: `
apiVersion: aihub.opendatahub.io/v1alpha1
kind: Catalog
metadata: {name: catalog, namespace: registries}
status:
  conditions: [{type: Available, status: "False", reason: DeploymentCooldown, message: a moment}]
`,
			want: Verdict{State: Progressing, Reason: "DeploymentCooldown", Message: "a moment"},
		},
	})
}

func TestAppWrapper(t *testing.T) {
	check(t, []example{
		{
			name: "new",
			object: `
apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata: {name: a, namespace: team}
`,
			want: Verdict{State: Progressing},
		},
		{
			name: "in the queue",
			object: `
apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata: {name: a, namespace: team}
status: {phase: Suspended}
`,
			want: Verdict{State: Idle, Reason: "Suspended", Message: "it waits for Kueue, or for spec.suspend to become false"},
		},
		{
			name: "being deployed",
			object: `
apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata: {name: a, namespace: team}
status: {phase: Resuming}
`,
			want: Verdict{State: Progressing, Reason: "Resuming"},
		},
		{
			name: "running",
			object: `
apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata: {name: a, namespace: team}
status:
  phase: Running
  conditions:
  - {type: PodsReady, status: "True", reason: SufficientPodsReady, message: 2 pods running, lastTransitionTime: "2026-05-01T06:00:00Z"}
  - {type: Unhealthy, status: "False", reason: FoundNoFailedPods}
`,
			want: Verdict{State: Healthy, Reason: "Running", Message: "2 pods running", Since: at(6)},
		},
		{
			name: "running, its pods start",
			object: `
apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata: {name: a, namespace: team}
status:
  phase: Running
  conditions:
  - {type: PodsReady, status: "False", reason: InsufficientPodsReady, message: 1 pods pending}
`,
			want: Verdict{State: Progressing, Reason: "InsufficientPodsReady", Message: "1 pods pending"},
		},
		{
			name: "running, nothing is known of pods",
			object: `
apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata: {name: a, namespace: team}
status: {phase: Running}
`,
			want: Verdict{State: Progressing, Reason: "Running"},
		},
		{
			name: "running, with failed pods",
			object: `
apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata: {name: a, namespace: team}
status:
  phase: Running
  conditions:
  - {type: PodsReady, status: "True", reason: SufficientPodsReady}
  - {type: Unhealthy, status: "True", reason: FoundFailedPods, message: pod a-0 ended with exit code 1}
`,
			want: Verdict{State: Degraded, Reason: "FoundFailedPods", Message: "pod a-0 ended with exit code 1"},
		},
		{
			name: "being reset",
			object: `
apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata: {name: a, namespace: team}
status:
  phase: Resetting
  resettingCount: 1
  lastFailure: {time: "2026-05-01T05:00:00Z", reason: FoundFailedPods, message: pod a-0 on node n ended with exit code 1}
`,
			want: Verdict{State: Degraded, Reason: "Resetting", Message: "pod a-0 on node n ended with exit code 1", Since: at(5)},
		},
		{
			name: "failed, with what the condition says",
			object: `
apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata: {name: a, namespace: team}
status:
  phase: Failed
  conditions:
  - {type: Unhealthy, status: "True", reason: CreateFailed, message: "pods is forbidden: exceeded quota"}
`,
			want: Verdict{State: Failed, Reason: "Failed", Message: "pods is forbidden: exceeded quota"},
		},
		{
			name: "succeeded",
			object: `
apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata: {name: a, namespace: team}
status: {phase: Succeeded}
`,
			want: Verdict{State: Healthy, Reason: "Succeeded"},
		},
		{
			name: "ending",
			object: `
apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata: {name: a, namespace: team}
status: {phase: Terminating}
`,
			want: Verdict{State: Deleting, Reason: "Terminating"},
		},
		{
			name: "in a phase of the future",
			object: `
apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata: {name: a, namespace: team}
status: {phase: Hibernating}
`,
			want: Verdict{State: Unknown, Reason: "Hibernating"},
		},
		{
			name: "of another controller",
			object: `
apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata: {name: a, namespace: team}
spec: {managedBy: kueue.x-k8s.io/multikueue}
status: {phase: Failed}
`,
			want: Verdict{State: Idle, Reason: "ManagedElsewhere", Message: "spec.managedBy gives it to kueue.x-k8s.io/multikueue"},
		},
		{
			name: "of ours by name",
			object: `
apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata: {name: a, namespace: team}
spec: {managedBy: workload.codeflare.dev/appwrapper-controller}
status: {phase: Suspending}
`,
			want: Verdict{State: Progressing, Reason: "Suspending"},
		},
	})
}

func TestRayCluster(t *testing.T) {
	check(t, []example{
		{
			name: "new",
			object: `
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: a, namespace: team}
`,
			want: Verdict{State: Unknown, Message: "KubeRay has not reported on it yet"},
		},
		{
			name: "ready",
			object: `
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: a, namespace: team, generation: 1}
status:
  state: ready
  observedGeneration: 1
  readyWorkerReplicas: 2
  desiredWorkerReplicas: 2
  conditions:
  - {type: HeadPodReady, status: "True", reason: HeadPodRunningAndReady}
  - {type: RayClusterProvisioned, status: "True", reason: AllPodRunningAndReadyFirstTime, lastTransitionTime: "2026-05-01T04:00:00Z"}
  - {type: RayClusterSuspended, status: "False", reason: RayClusterSuspended}
`,
			want: Verdict{State: Healthy, Reason: "Ready", Message: "2/2 workers ready", Since: at(4)},
		},
		{
			name: "with a worker that is not ready",
			object: `
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: a, namespace: team}
status:
  state: ready
  readyWorkerReplicas: 1
  desiredWorkerReplicas: 2
`,
			want: Verdict{State: Progressing, Reason: "WorkersNotReady", Message: "1/2 workers ready"},
		},
		{
			name: "with a head that is not ready",
			object: `
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: a, namespace: team}
status:
  state: ready
  conditions:
  - {type: HeadPodReady, status: "False", reason: ContainersNotReady, message: the image is pulled}
`,
			want: Verdict{State: Progressing, Reason: "ContainersNotReady", Message: "the image is pulled"},
		},
		{
			name: "being provisioned",
			object: `
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: a, namespace: team}
status:
  conditions:
  - {type: RayClusterProvisioned, status: "False", reason: RayClusterPodsProvisioning, message: pods are made}
`,
			want: Verdict{State: Progressing, Reason: "RayClusterPodsProvisioning", Message: "pods are made"},
		},
		{
			name: "without room for its pods",
			object: `
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: a, namespace: team}
status:
  conditions:
  - {type: RayClusterReplicaFailure, status: "True", reason: FailedCreateHeadPod, message: exceeded quota}
`,
			want: Verdict{State: Failed, Reason: "FailedCreateHeadPod", Message: "exceeded quota"},
		},
		{
			name: "failed, as older releases of KubeRay say",
			object: `
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: a, namespace: team}
status: {state: failed, reason: no image}
`,
			want: Verdict{State: Failed, Reason: "Failed", Message: "no image"},
		},
		{
			name: "suspended",
			object: `
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: a, namespace: team}
spec: {suspend: true}
status: {state: suspended}
`,
			want: Verdict{State: Idle, Reason: "Suspended"},
		},
		{
			name: "being suspended",
			object: `
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: a, namespace: team}
spec: {suspend: true}
status: {state: ready}
`,
			want: Verdict{State: Progressing, Reason: "Suspending", Message: "KubeRay is to remove its pods"},
		},
		{
			name: "changed a moment ago",
			object: `
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: a, namespace: team, generation: 2}
status: {state: ready, observedGeneration: 1}
`,
			want: Verdict{State: Progressing, Message: "the last change is being taken up"},
		},
	})
}
