package health

import (
	"strings"
	"testing"
)

// said is an object and its expected health; the message only as far as it matters.
type said struct {
	object  string
	state   State
	reason  string
	message string
}

func TestKinds(t *testing.T) {
	for group, examples := range map[string]map[string]said{
		"ours": managed(), "mesh": mesh(), "ray": rayClusters(), "workloads": workloads(), "others": others(),
	} {
		for name, e := range examples {
			t.Run(group+"/"+name, func(t *testing.T) {
				got := Of(parse(t, e.object))
				if got.State != e.state || got.Reason != e.reason || !strings.Contains(got.Message, e.message) || e.message == "" && !e.state.OK() && e.reason == "" {
					t.Errorf("%+v, want %s %s %q", got, e.state, e.reason, e.message)
				}
			})
		}
	}
}

func managed() map[string]said {
	mlflow := func(status string) string {
		return `{apiVersion: mlflow.opendatahub.io/v1, kind: MLflow, metadata: {name: mlflow, generation: 2}, status: ` + status + `}`
	}
	wrapper := func(fields string) string {
		return `{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: a}, ` + fields + `}`
	}
	catalog := func(sources string) string {
		return `{apiVersion: aihub.opendatahub.io/v1alpha1, kind: Catalog, metadata: {name: default}, status: {conditions: [{type: Ready, status: "True", reason: Fine}], sources: [` + sources + `]}}`
	}
	return map[string]said{
		"nothing reported":       {mlflow(`{}`), Unknown, "", "waiting for its controller to report"},
		"ready":                  {mlflow(`{conditions: [{type: Ready, status: "True", reason: DeploymentReady}]}`), Healthy, "DeploymentReady", ""},
		"about an older spec":    {mlflow(`{conditions: [{type: Ready, status: "True", reason: DeploymentReady, observedGeneration: 1}]}`), Progressing, "DeploymentReady", "not processed the last change yet"},
		"a Secret is missing":    {mlflow(`{conditions: [{type: Available, status: "False"}, {type: Ready, status: "False", reason: SecretMissing, message: no Secret db}, {type: Reconciling, status: "True"}]}`), Failed, "SecretMissing", "no Secret db"},
		"rolling out":            {mlflow(`{conditions: [{type: Progressing, status: "True"}, {type: Ready, status: "False", reason: Rollout, message: wait}]}`), Progressing, "Rollout", "wait"},
		"not known":              {mlflow(`{conditions: [{type: Ready, status: Unknown, reason: NotYetKnown, message: not known yet}]}`), Progressing, "NotYetKnown", "not known yet"},
		"serves, and is at odds": {mlflow(`{conditions: [{type: Available, status: "True"}, {type: Ready, status: "False", reason: ClaimDiffers, message: it cannot shrink}]}`), Degraded, "ClaimDiffers", "it cannot shrink"},
		"rejected":               {mlflow(`{conditions: [{type: Progressing, status: "True"}, {type: Ready, status: "False", reason: Refused, message: denied}, {type: Stalled, status: "True"}]}`), Failed, "Refused", "denied"},
		"advice":                 {mlflow(`{conditions: [{type: Ready, status: "True"}, {type: CredentialsInSpec, status: "True", reason: InURI, message: move it}]}`), Degraded, "InURI", "move it"},
		"information":            {mlflow(`{conditions: [{type: Ready, status: "True", reason: Fine}, {type: Degraded, status: "True", severity: Info}]}`), Healthy, "Fine", ""},
		"a rejected source":      {catalog(`{name: mine, state: Rejected, reason: Unreadable, message: no YAML}`), Degraded, "Unreadable", "source mine is not used: no YAML"},
		"a good source":          {catalog(`{name: mine, state: Available}`), Healthy, "Fine", ""},

		"a wrapper of another":       {wrapper(`spec: {managedBy: other}`), Idle, "ManagedElsewhere", "other"},
		"a wrapper in the queue":     {wrapper(`spec: {suspend: true}, status: {phase: Suspended, conditions: [{type: Ready, status: "False", reason: Suspended, message: it waits}]}`), Idle, "Suspended", "it waits"},
		"a wrapper that starts":      {wrapper(`status: {phase: Resuming, conditions: [{type: Ready, status: "False", reason: Resuming}]}`), Progressing, "Resuming", ""},
		"a wrapper short of pods":    {wrapper(`status: {phase: Running, conditions: [{type: Ready, status: "False", reason: InsufficientPodsReady, message: 1 of 2}]}`), Progressing, "InsufficientPodsReady", "1 of 2"},
		"a wrapper with bad pods":    {wrapper(`status: {phase: Running, conditions: [{type: Ready, status: "False", reason: FoundFailedPods, message: one}, {type: Unhealthy, status: "True"}]}`), Degraded, "FoundFailedPods", "one"},
		"a wrapper that tries again": {wrapper(`status: {phase: Resetting, conditions: [{type: Ready, status: "False", reason: Resetting}]}`), Degraded, "Resetting", ""},
		"a wrapper that failed":      {wrapper(`status: {phase: Failed, conditions: [{type: Ready, status: "False", reason: Failed, message: exit code 3}]}`), Failed, "Failed", "exit code 3"},
		"a wrapper that succeeded":   {wrapper(`status: {phase: Succeeded, conditions: [{type: Ready, status: "True", reason: Succeeded}]}`), Healthy, "Succeeded", ""},
	}
}

func mesh() map[string]said {
	predictor := func(conditions string) string {
		return `{apiVersion: serving.kserve.io/v1alpha1, kind: Predictor, metadata: {name: a}, status: {conditions: [` + conditions + `]}}`
	}
	service := func(status string) string {
		return `{apiVersion: serving.kserve.io/v1beta1, kind: InferenceService, metadata: {name: a}, status: {` + status + `}}`
	}
	runtime := func(spec string) string {
		return `{apiVersion: serving.kserve.io/v1alpha1, kind: ServingRuntime, metadata: {name: a}, spec: {` + spec + `}}`
	}
	return map[string]said{
		"loaded":                 {predictor(`{type: Ready, status: "True", reason: ModelLoaded}`), Healthy, "ModelLoaded", ""},
		"loading":                {predictor(`{type: Ready, status: "False", reason: ModelLoading, message: wait}`), Progressing, "ModelLoading", "wait"},
		"failed":                 {predictor(`{type: Ready, status: "False", reason: ModelLoadFailed, message: no such key}, {type: Stalled, status: "True"}`), Failed, "ModelLoadFailed", "no such key"},
		"the former one answers": {predictor(`{type: Available, status: "True"}, {type: Ready, status: "False", reason: ModelLoadFailed, message: no such key}, {type: Stalled, status: "True"}`), Degraded, "ModelLoadFailed", "no such key"},

		"a service":                   {service(`conditions: [{type: Ready, status: "True"}], modelStatus: {transitionStatus: UpToDate}`), Healthy, "", ""},
		"a service of KServe":         {service(`conditions: [{type: Ready, status: "False", reason: Bad, message: no route}]`), Failed, "Bad", "no route"},
		"a service with a new model":  {service(`conditions: [{type: Ready, status: "True"}], modelStatus: {transitionStatus: InProgress}`), Progressing, "InProgress", "the previous model serves requests"},
		"a service with a bad update": {service(`conditions: [{type: Ready, status: "True"}], modelStatus: {transitionStatus: BlockedByFailedLoad, lastFailureInfo: {reason: ModelLoadFailed, message: no such key}}`), Degraded, "ModelLoadFailed", "no such key"},

		"a runtime":             {runtime(`multiModel: true, grpcEndpoint: "port:8085", containers: [{name: a, image: x}]`), Healthy, "", ""},
		"a runtime that is off": {runtime(`multiModel: true, disabled: true, containers: [{name: a, image: x}]`), Idle, "NotServed", "spec.disabled"},
		"a runtime of KServe":   {runtime(`containers: [{name: a, image: x}]`), Idle, "NotServed", "KServe"},
	}
}

func rayClusters() map[string]said {
	cluster := func(fields string) string {
		return `{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: a, generation: 1}, ` + fields + `}`
	}
	return map[string]said{
		"new":           {cluster(`status: {}`), Unknown, "", "waiting for its controller to report"},
		"suspended":     {cluster(`spec: {suspend: true}, status: {state: suspended}`), Idle, "Suspended", ""},
		"failed":        {cluster(`status: {state: failed, reason: no image}`), Failed, "Failed", "no image"},
		"rejected":      {cluster(`status: {state: "", conditions: [{type: RayClusterReplicaFailure, status: "True", reason: FailedCreate, message: quota}]}`), Degraded, "FailedCreate", "quota"},
		"no head":       {cluster(`status: {conditions: [{type: HeadPodReady, status: "False", reason: Pending, message: not ready}]}`), Progressing, "Pending", "not ready"},
		"being made":    {cluster(`status: {conditions: [{type: RayClusterProvisioned, status: "False", reason: Provisioning, message: first time}]}`), Progressing, "Provisioning", "first time"},
		"few workers":   {cluster(`status: {state: ready, readyWorkerReplicas: 1, desiredWorkerReplicas: 2}`), Progressing, "WorkersNotReady", "1/2 workers ready"},
		"ready":         {cluster(`status: {state: ready, readyWorkerReplicas: 2, desiredWorkerReplicas: 2}`), Healthy, "Ready", "2/2 workers ready"},
		"an older spec": {`{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: a, generation: 2}, status: {state: ready, observedGeneration: 1}}`, Progressing, "LatestGenerationNotObserved", "generation"},
	}
}

func workloads() map[string]said {
	deployment := func(spec, status string) string {
		return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 1}, spec: {` + spec + `}, status: {observedGeneration: 1, ` + status + `}}`
	}
	pod := func(status string) string {
		return `{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c}]}, status: {` + status + `}}`
	}
	return map[string]said{
		"rolled out":     {deployment(`replicas: 1`, `replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1`), Healthy, "RolledOut", "1/1 ready"},
		"scaled to zero": {deployment(`replicas: 0`, ``), Idle, "ScaledToZero", ""},
		"starting":       {deployment(`replicas: 1`, `replicas: 1, updatedReplicas: 1`), Progressing, "ReplicasNotAvailable", "0/1 ready: replicas are not ready yet"},
		"a quota":        {deployment(`replicas: 1`, `conditions: [{type: ReplicaFailure, status: "True", message: exceeded quota}]`), Failed, "ReplicaFailure", "exceeded quota"},

		"a former ReplicaSet": {`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a}, spec: {replicas: 0}, status: {replicas: 0}}`, Idle, "ScaledToZero", ""},
		"rejected pod":        {`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a}, spec: {replicas: 1}, status: {replicas: 0, conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: exceeded quota}]}}`, Failed, "FailedCreate", "exceeded quota"},
		"a set without pods":  {`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, generation: 1}, spec: {replicas: 0}, status: {observedGeneration: 1}}`, Idle, "ScaledToZero", ""},
		"a set that starts":   {`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, generation: 1}, spec: {replicas: 1}, status: {observedGeneration: 1}}`, Progressing, "LessReplicas", "0/1"},

		"a pod that runs":     {pod(`phase: Running, conditions: [{type: Ready, status: "True"}], containerStatuses: [{name: c, ready: true}]`), Healthy, "", ""},
		"a pod that starts":   {pod(`phase: Running, conditions: [{type: Ready, status: "False", reason: ContainersNotReady, message: one}]`), Progressing, "Running", "one"},
		"a pod that is over":  {pod(`phase: Succeeded`), Healthy, "Completed", ""},
		"a pod without image": {pod(`phase: Pending, containerStatuses: [{name: c, image: x, state: {waiting: {reason: ImagePullBackOff}}}]`), Failed, "ImagePullBackOff", `image "x" of container c cannot be pulled`},
		"a pod that crashes":  {pod(`phase: Failed, containerStatuses: [{name: c, state: {terminated: {exitCode: 3, reason: Error}}}]`), Failed, "Failed", "exit"},
		"a gated pod":         {pod(`phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: SchedulingGated, message: gates}]`), Idle, "SchedulingGated", "gates"},

		"a failed Job":        {`{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded, message: too often}]}}`, Failed, "BackoffLimitExceeded", "too often"},
		"a Job that is over":  {`{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {conditions: [{type: Complete, status: "True"}]}}`, Healthy, "", ""},
		"a suspended CronJob": {`{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}, spec: {suspend: true}}`, Idle, "Suspended", ""},
	}
}

func others() map[string]said {
	route := func(status string) string {
		return `{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: a}, status: {parents: [` + status + `]}}`
	}
	scaler := func(reason string) string {
		return `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a}, status: {conditions: [{type: ScalingActive, status: "False", reason: ` + reason + `, message: denied}]}}`
	}
	return map[string]said{
		"a claim":                   {`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, status: {phase: Bound}}`, Healthy, "", ""},
		"a claim that waits":        {`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, status: {phase: Pending}}`, Progressing, "NotBound", "Pending"},
		"a lost claim":              {`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, status: {phase: Lost}}`, Failed, "Lost", "deleted"},
		"a Workload in the queue":   {`{apiVersion: kueue.x-k8s.io/v1beta1, kind: Workload, metadata: {name: a}, status: {conditions: [{type: QuotaReserved, status: "False", reason: Pending, message: no quota}]}}`, Idle, "Pending", "no quota"},
		"an accepted route":         {route(`{conditions: [{type: Accepted, status: "True"}]}`), Healthy, "", ""},
		"rejected route":            {route(`{conditions: [{type: Accepted, status: "False", reason: NotAllowed, message: denied}]}`), Failed, "NotAllowed", "denied"},
		"a route without a gateway": {route(``), Idle, "", "router or gateway to accept it"},
		"an admitted Route":         {`{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: a}, spec: {host: x}, status: {ingress: [{conditions: [{type: Admitted, status: "True"}]}]}}`, Healthy, "", "x"},
		"a scaler":                  {scaler("FailedGetResourceMetric"), Failed, "FailedGetResourceMetric", "denied"},
		"a scaler that rests":       {scaler("ScalingDisabled"), Idle, "ScalingDisabled", "denied"},
	}
}
