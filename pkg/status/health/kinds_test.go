package health

import (
	"strings"
	"testing"
)

// healthCase is an object with its expected health. message is expected to be a substring of the message.
type healthCase struct {
	object  string
	state   State
	reason  string
	message string
}

func TestKinds(t *testing.T) {
	for group, examples := range map[string]map[string]healthCase{
		"platform": platformKinds(), "ModelMesh": modelMeshKinds(), "ray": rayClusters(), "workloads": workloads(), "other": otherKinds(),
	} {
		for name, e := range examples {
			t.Run(group+"/"+name, func(t *testing.T) {
				got := Of(parse(t, e.object))
				if got.State != e.state || got.Reason != e.reason || !strings.Contains(got.Message, e.message) || e.message == "" && !e.state.OK() && e.reason == "" {
					t.Errorf("got %+v, want %s %s with the message %q", got, e.state, e.reason, e.message)
				}
			})
		}
	}
}

func platformKinds() map[string]healthCase {
	mlflow := func(status string) string {
		return `{apiVersion: mlflow.opendatahub.io/v1, kind: MLflow, metadata: {name: mlflow, generation: 2}, status: ` + status + `}`
	}
	appWrapper := func(fields string) string {
		return `{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: a}, ` + fields + `}`
	}
	catalog := func(sources string) string {
		return `{apiVersion: aihub.opendatahub.io/v1alpha1, kind: Catalog, metadata: {name: default}, status: {conditions: [{type: Ready, status: "True", reason: Fine}], sources: [` + sources + `]}}`
	}
	return map[string]healthCase{
		"empty status":                       {mlflow(`{}`), Unknown, "", "waiting for its controller to report"},
		"ready":                              {mlflow(`{conditions: [{type: Ready, status: "True", reason: DeploymentReady}]}`), Healthy, "DeploymentReady", ""},
		"condition of a previous generation": {mlflow(`{conditions: [{type: Ready, status: "True", reason: DeploymentReady, observedGeneration: 1}]}`), Progressing, "DeploymentReady", "not processed the last change yet"},
		"missing Secret":                     {mlflow(`{conditions: [{type: Available, status: "False"}, {type: Ready, status: "False", reason: SecretMissing, message: no Secret db}, {type: Reconciling, status: "True"}]}`), Failed, "SecretMissing", "no Secret db"},
		"rolling out":                        {mlflow(`{conditions: [{type: Progressing, status: "True"}, {type: Ready, status: "False", reason: Rollout, message: wait}]}`), Progressing, "Rollout", "wait"},
		"status Unknown":                     {mlflow(`{conditions: [{type: Ready, status: Unknown, reason: NotYetKnown, message: not known yet}]}`), Progressing, "NotYetKnown", "not known yet"},
		"available, not ready":               {mlflow(`{conditions: [{type: Available, status: "True"}, {type: Ready, status: "False", reason: ClaimDiffers, message: it cannot shrink}]}`), Degraded, "ClaimDiffers", "it cannot shrink"},
		"rejected":                           {mlflow(`{conditions: [{type: Progressing, status: "True"}, {type: Ready, status: "False", reason: Refused, message: denied}, {type: Stalled, status: "True"}]}`), Failed, "Refused", "denied"},
		"warning condition":                  {mlflow(`{conditions: [{type: Ready, status: "True"}, {type: CredentialsInSpec, status: "True", reason: InURI, message: move it}]}`), Degraded, "InURI", "move it"},
		"condition of severity Info":         {mlflow(`{conditions: [{type: Ready, status: "True", reason: Fine}, {type: Degraded, status: "True", severity: Info}]}`), Healthy, "Fine", ""},
		"rejected source":                    {catalog(`{name: mine, state: Rejected, reason: Unreadable, message: no YAML}`), Degraded, "Unreadable", "source mine is not used: no YAML"},
		"accepted source":                    {catalog(`{name: mine, state: Available}`), Healthy, "Fine", ""},

		"AppWrapper managed by another controller": {appWrapper(`spec: {managedBy: other}`), Idle, "ManagedElsewhere", "other"},
		"suspended AppWrapper":                     {appWrapper(`spec: {suspend: true}, status: {phase: Suspended, conditions: [{type: Ready, status: "False", reason: Suspended, message: it waits}]}`), Idle, "Suspended", "it waits"},
		"resuming AppWrapper":                      {appWrapper(`status: {phase: Resuming, conditions: [{type: Ready, status: "False", reason: Resuming}]}`), Progressing, "Resuming", ""},
		"AppWrapper with too few ready pods":       {appWrapper(`status: {phase: Running, conditions: [{type: Ready, status: "False", reason: InsufficientPodsReady, message: 1 of 2}]}`), Progressing, "InsufficientPodsReady", "1 of 2"},
		"AppWrapper with failed pods":              {appWrapper(`status: {phase: Running, conditions: [{type: Ready, status: "False", reason: FoundFailedPods, message: one}, {type: Unhealthy, status: "True"}]}`), Degraded, "FoundFailedPods", "one"},
		"resetting AppWrapper":                     {appWrapper(`status: {phase: Resetting, conditions: [{type: Ready, status: "False", reason: Resetting}]}`), Degraded, "Resetting", ""},
		"failed AppWrapper":                        {appWrapper(`status: {phase: Failed, conditions: [{type: Ready, status: "False", reason: Failed, message: exit code 3}]}`), Failed, "Failed", "exit code 3"},
		"succeeded AppWrapper":                     {appWrapper(`status: {phase: Succeeded, conditions: [{type: Ready, status: "True", reason: Succeeded}]}`), Healthy, "Succeeded", ""},
	}
}

func modelMeshKinds() map[string]healthCase {
	predictor := func(conditions string) string {
		return `{apiVersion: serving.kserve.io/v1alpha1, kind: Predictor, metadata: {name: a}, status: {conditions: [` + conditions + `]}}`
	}
	inferenceService := func(status string) string {
		return `{apiVersion: serving.kserve.io/v1beta1, kind: InferenceService, metadata: {name: a}, status: {` + status + `}}`
	}
	servingRuntime := func(spec string) string {
		return `{apiVersion: serving.kserve.io/v1alpha1, kind: ServingRuntime, metadata: {name: a}, spec: {` + spec + `}}`
	}
	return map[string]healthCase{
		"Predictor with a loaded model":                {predictor(`{type: Ready, status: "True", reason: ModelLoaded}`), Healthy, "ModelLoaded", ""},
		"Predictor with a loading model":               {predictor(`{type: Ready, status: "False", reason: ModelLoading, message: wait}`), Progressing, "ModelLoading", "wait"},
		"Predictor with a failed model":                {predictor(`{type: Ready, status: "False", reason: ModelLoadFailed, message: no such key}, {type: Stalled, status: "True"}`), Failed, "ModelLoadFailed", "no such key"},
		"Predictor with a failed and a previous model": {predictor(`{type: Available, status: "True"}, {type: Ready, status: "False", reason: ModelLoadFailed, message: no such key}, {type: Stalled, status: "True"}`), Degraded, "ModelLoadFailed", "no such key"},

		"InferenceService":                        {inferenceService(`conditions: [{type: Ready, status: "True"}], modelStatus: {transitionStatus: UpToDate}`), Healthy, "", ""},
		"InferenceService of KServe":              {inferenceService(`conditions: [{type: Ready, status: "False", reason: Bad, message: no route}]`), Failed, "Bad", "no route"},
		"InferenceService that loads a new model": {inferenceService(`conditions: [{type: Ready, status: "True"}], modelStatus: {transitionStatus: InProgress}`), Progressing, "InProgress", "the previous model serves requests"},
		"InferenceService with a failed update":   {inferenceService(`conditions: [{type: Ready, status: "True"}], modelStatus: {transitionStatus: BlockedByFailedLoad, lastFailureInfo: {reason: ModelLoadFailed, message: no such key}}`), Degraded, "ModelLoadFailed", "no such key"},

		"ServingRuntime":           {servingRuntime(`multiModel: true, grpcEndpoint: "port:8085", containers: [{name: a, image: x}]`), Healthy, "", ""},
		"disabled ServingRuntime":  {servingRuntime(`multiModel: true, disabled: true, containers: [{name: a, image: x}]`), Idle, "NotServed", "spec.disabled"},
		"ServingRuntime of KServe": {servingRuntime(`containers: [{name: a, image: x}]`), Idle, "NotServed", "KServe"},
	}
}

func rayClusters() map[string]healthCase {
	cluster := func(fields string) string {
		return `{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: a, generation: 1}, ` + fields + `}`
	}
	return map[string]healthCase{
		"no status":                       {cluster(`status: {}`), Unknown, "", "waiting for its controller to report"},
		"suspended":                       {cluster(`spec: {suspend: true}, status: {state: suspended}`), Idle, "Suspended", ""},
		"failed":                          {cluster(`status: {state: failed, reason: no image}`), Failed, "Failed", "no image"},
		"pod creation rejected":           {cluster(`status: {state: "", conditions: [{type: RayClusterReplicaFailure, status: "True", reason: FailedCreate, message: quota}]}`), Degraded, "FailedCreate", "quota"},
		"head not ready":                  {cluster(`status: {conditions: [{type: HeadPodReady, status: "False", reason: Pending, message: not ready}]}`), Progressing, "Pending", "not ready"},
		"not provisioned":                 {cluster(`status: {conditions: [{type: RayClusterProvisioned, status: "False", reason: Provisioning, message: first time}]}`), Progressing, "Provisioning", "first time"},
		"too few workers":                 {cluster(`status: {state: ready, readyWorkerReplicas: 1, desiredWorkerReplicas: 2}`), Progressing, "WorkersNotReady", "1/2 workers ready"},
		"ready":                           {cluster(`status: {state: ready, readyWorkerReplicas: 2, desiredWorkerReplicas: 2}`), Healthy, "Ready", "2/2 workers ready"},
		"status of a previous generation": {`{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: a, generation: 2}, status: {state: ready, observedGeneration: 1}}`, Progressing, "LatestGenerationNotObserved", "generation"},
	}
}

func workloads() map[string]healthCase {
	deployment := func(spec, status string) string {
		return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 1}, spec: {` + spec + `}, status: {observedGeneration: 1, ` + status + `}}`
	}
	pod := func(status string) string {
		return `{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c}]}, status: {` + status + `}}`
	}
	return map[string]healthCase{
		"rolled out":     {deployment(`replicas: 1`, `replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1`), Healthy, "RolledOut", "1/1 ready"},
		"scaled to zero": {deployment(`replicas: 0`, ``), Idle, "ScaledToZero", ""},
		"starting":       {deployment(`replicas: 1`, `replicas: 1, updatedReplicas: 1`), Progressing, "ReplicasNotAvailable", "0/1 ready: replicas are not ready yet"},
		"exceeded quota": {deployment(`replicas: 1`, `conditions: [{type: ReplicaFailure, status: "True", message: exceeded quota}]`), Failed, "ReplicaFailure", "exceeded quota"},

		"ReplicaSet scaled to zero":          {`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a}, spec: {replicas: 0}, status: {replicas: 0}}`, Idle, "ScaledToZero", ""},
		"ReplicaSet whose pods are rejected": {`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a}, spec: {replicas: 1}, status: {replicas: 0, conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: exceeded quota}]}}`, Failed, "FailedCreate", "exceeded quota"},
		"StatefulSet scaled to zero":         {`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, generation: 1}, spec: {replicas: 0}, status: {observedGeneration: 1}}`, Idle, "ScaledToZero", ""},
		"StatefulSet whose pods start":       {`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, generation: 1}, spec: {replicas: 1}, status: {observedGeneration: 1}}`, Progressing, "LessReplicas", "0/1"},

		"ready pod":                        {pod(`phase: Running, conditions: [{type: Ready, status: "True"}], containerStatuses: [{name: c, ready: true}]`), Healthy, "", ""},
		"running pod that is not ready":    {pod(`phase: Running, conditions: [{type: Ready, status: "False", reason: ContainersNotReady, message: one}]`), Progressing, "Running", "one"},
		"completed pod":                    {pod(`phase: Succeeded`), Healthy, "Completed", ""},
		"pod whose image cannot be pulled": {pod(`phase: Pending, containerStatuses: [{name: c, image: x, state: {waiting: {reason: ImagePullBackOff}}}]`), Failed, "ImagePullBackOff", `image "x" of container c cannot be pulled`},
		"failed pod":                       {pod(`phase: Failed, containerStatuses: [{name: c, state: {terminated: {exitCode: 3, reason: Error}}}]`), Failed, "Failed", "exit"},
		"pod with a scheduling gate":       {pod(`phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: SchedulingGated, message: gates}]`), Idle, "SchedulingGated", "gates"},

		"failed Job":        {`{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded, message: too often}]}}`, Failed, "BackoffLimitExceeded", "too often"},
		"complete Job":      {`{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {conditions: [{type: Complete, status: "True"}]}}`, Healthy, "", ""},
		"suspended CronJob": {`{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}, spec: {suspend: true}}`, Idle, "Suspended", ""},
	}
}

func otherKinds() map[string]healthCase {
	httpRoute := func(status string) string {
		return `{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: a}, status: {parents: [` + status + `]}}`
	}
	autoscaler := func(reason string) string {
		return `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a}, status: {conditions: [{type: ScalingActive, status: "False", reason: ` + reason + `, message: denied}]}}`
	}
	return map[string]healthCase{
		"bound PersistentVolumeClaim":             {`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, status: {phase: Bound}}`, Healthy, "", ""},
		"pending PersistentVolumeClaim":           {`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, status: {phase: Pending}}`, Progressing, "NotBound", "Pending"},
		"lost PersistentVolumeClaim":              {`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, status: {phase: Lost}}`, Failed, "Lost", "deleted"},
		"Workload without quota":                  {`{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {name: a}, status: {conditions: [{type: QuotaReserved, status: "False", reason: Pending, message: no quota}]}}`, Idle, "Pending", "no quota"},
		"accepted HTTPRoute":                      {httpRoute(`{conditions: [{type: Accepted, status: "True"}]}`), Healthy, "", ""},
		"rejected HTTPRoute":                      {httpRoute(`{conditions: [{type: Accepted, status: "False", reason: NotAllowed, message: denied}]}`), Failed, "NotAllowed", "denied"},
		"HTTPRoute without status.parents":        {httpRoute(``), Idle, "", "router or gateway to accept it"},
		"admitted Route":                          {`{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: a}, spec: {host: x}, status: {ingress: [{conditions: [{type: Admitted, status: "True"}]}]}}`, Healthy, "", "x"},
		"HorizontalPodAutoscaler without metrics": {autoscaler("FailedGetResourceMetric"), Failed, "FailedGetResourceMetric", "denied"},
		"disabled HorizontalPodAutoscaler":        {autoscaler("ScalingDisabled"), Idle, "ScalingDisabled", "denied"},
	}
}
