package health

import "testing"

func TestDeployment(t *testing.T) {
	check(t, []example{
		{
			name: "rolled out",
			object: `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, generation: 1}
spec: {replicas: 2}
status: {observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2}
`,
			want: Verdict{State: Healthy, Reason: "RolledOut", Message: "2/2 ready"},
		},
		{
			name: "scaled to zero",
			object: `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, generation: 1}
spec: {replicas: 0}
status: {observedGeneration: 1}
`,
			want: Verdict{State: Idle, Reason: "ScaledToZero", Message: "the Deployment is scaled to zero replicas"},
		},
		{
			name: "starting",
			object: `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, generation: 1}
spec: {}
status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1}
`,
			want: Verdict{State: Progressing, Reason: "ReplicasNotAvailable", Message: "0/1 ready: replicas are not ready yet"},
		},
		{
			name: "no controller has looked at the last change",
			object: `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, generation: 2}
spec: {replicas: 1}
status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1}
`,
			want: Verdict{State: Progressing, Reason: "RolloutNotObserved", Message: "1/1 ready: the last change of the Deployment is being taken up"},
		},
		{
			name: "beyond its deadline",
			object: `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, generation: 1}
spec: {replicas: 1}
status:
  observedGeneration: 1
  replicas: 1
  updatedReplicas: 1
  conditions:
  - {type: Progressing, status: "False", reason: ProgressDeadlineExceeded}
`,
			want: Verdict{State: Failed, Reason: "ProgressDeadlineExceeded", Message: "0/1 ready: the rollout made no progress within its deadline"},
		},
		{
			name: "no pods are let in",
			object: `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, generation: 1}
spec: {replicas: 1}
status:
  observedGeneration: 1
  conditions:
  - {type: ReplicaFailure, status: "True", reason: FailedCreate, message: exceeded quota}
`,
			want: Verdict{State: Failed, Reason: "ReplicaFailure", Message: "0/1 ready: pods cannot be created: exceeded quota"},
		},
		{
			name: "of an unexpected shape",
			object: `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec: {replicas: many}
`,
			want: Verdict{State: Unknown, Message: "its status has an unexpected shape"},
		},
	})
}

func TestReplicas(t *testing.T) {
	check(t, []example{
		{
			name: "a ReplicaSet of a former template",
			object: `
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: a}
spec: {replicas: 0}
`,
			want: Verdict{State: Idle, Reason: "ScaledToZero"},
		},
		{
			name: "a ReplicaSet whose pods are available",
			object: `
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: a}
spec: {replicas: 2}
status: {replicas: 2, availableReplicas: 2}
`,
			want: Verdict{State: Healthy, Message: "2/2 ready"},
		},
		{
			name: "a ReplicaSet of which one pod is missing",
			object: `
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: a}
spec: {replicas: 2}
status: {replicas: 2, availableReplicas: 1}
`,
			want: Verdict{State: Progressing, Reason: "ReplicasNotAvailable", Message: "1/2 ready"},
		},
		{
			name: "a ReplicaSet that may not create pods",
			object: `
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: a}
status:
  conditions:
  - {type: ReplicaFailure, status: "True", reason: FailedCreate, message: "pods is forbidden: exceeded quota"}
`,
			want: Verdict{State: Failed, Reason: "FailedCreate", Message: "pods is forbidden: exceeded quota"},
		},
		{
			name: "a StatefulSet",
			object: `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: a}
spec: {replicas: 1}
status: {replicas: 1, currentReplicas: 1, updatedReplicas: 1, readyReplicas: 1}
`,
			want: Verdict{State: Healthy},
		},
		{
			name: "a StatefulSet in the middle of an update",
			object: `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: a}
spec: {replicas: 3}
status: {replicas: 3, currentReplicas: 2, updatedReplicas: 1, readyReplicas: 3}
`,
			want: Verdict{State: Progressing, Reason: "LessCurrent", Message: "current: 2/3"},
		},
		{
			name: "a DaemonSet",
			object: `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: a, generation: 1}
status: {observedGeneration: 1, desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 1}
`,
			want: Verdict{State: Progressing, Reason: "LessAvailable", Message: "Available: 1/2"},
		},
		{
			name: "a DaemonSet that no controller has looked at",
			object: `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: a, generation: 2}
status: {observedGeneration: 1}
`,
			want: Verdict{State: Progressing, Reason: "LatestGenerationNotObserved", Message: "DaemonSet generation is 2, but latest observed generation is 1"},
		},
	})
}

func TestJobs(t *testing.T) {
	check(t, []example{
		{
			name: "complete",
			object: `
apiVersion: batch/v1
kind: Job
metadata: {name: a}
status:
  conditions:
  - {type: SuccessCriteriaMet, status: "True", reason: CompletionsReached}
  - {type: Complete, status: "True", reason: CompletionsReached, lastTransitionTime: "2026-05-01T09:00:00Z"}
`,
			want: Verdict{State: Healthy, Reason: "CompletionsReached", Since: at(9)},
		},
		{
			name: "failed",
			object: `
apiVersion: batch/v1
kind: Job
metadata: {name: a}
status:
  conditions:
  - {type: Failed, status: "True", reason: BackoffLimitExceeded, message: Job has reached the specified backoff limit}
`,
			want: Verdict{State: Failed, Reason: "BackoffLimitExceeded", Message: "Job has reached the specified backoff limit"},
		},
		{
			name: "suspended",
			object: `
apiVersion: batch/v1
kind: Job
metadata: {name: a}
status:
  conditions:
  - {type: Suspended, status: "True", reason: JobSuspended}
`,
			want: Verdict{State: Idle, Reason: "JobSuspended"},
		},
		{
			name: "resumed and at work",
			object: `
apiVersion: batch/v1
kind: Job
metadata: {name: a}
status:
  active: 2
  conditions:
  - {type: Suspended, status: "False", reason: JobResumed}
`,
			want: Verdict{State: Progressing, Message: "2 pods at work"},
		},
		{
			name: "a CronJob",
			object: `
apiVersion: batch/v1
kind: CronJob
metadata: {name: a}
spec: {schedule: "@daily"}
`,
			want: Verdict{State: Healthy, Message: "runs at @daily"},
		},
		{
			name: "a CronJob that is suspended",
			object: `
apiVersion: batch/v1
kind: CronJob
metadata: {name: a}
spec: {schedule: "@daily", suspend: true}
`,
			want: Verdict{State: Idle, Reason: "Suspended"},
		},
	})
}

func TestPod(t *testing.T) {
	check(t, []example{
		{
			name: "ready",
			object: `
apiVersion: v1
kind: Pod
metadata: {name: a}
spec: {containers: [{name: one}, {name: two}]}
status:
  phase: Running
  conditions:
  - {type: Ready, status: "True", lastTransitionTime: "2026-05-01T07:00:00Z"}
  containerStatuses:
  - {name: one, ready: true}
  - {name: two, ready: true}
`,
			want: Verdict{State: Healthy, Reason: "Running", Message: "2/2 ready", Since: at(7)},
		},
		{
			name: "starting",
			object: `
apiVersion: v1
kind: Pod
metadata: {name: a}
spec: {containers: [{name: one}, {name: two}]}
status:
  phase: Running
  containerStatuses:
  - {name: one, ready: true}
  - {name: two, ready: false, state: {waiting: {reason: ContainerCreating}}}
`,
			want: Verdict{State: Progressing, Reason: "Running", Message: "1/2 ready"},
		},
		{
			name: "completed",
			object: `
apiVersion: v1
kind: Pod
metadata: {name: a}
spec: {containers: [{name: one}]}
status: {phase: Succeeded}
`,
			want: Verdict{State: Healthy, Reason: "Completed"},
		},
		{
			name: "image cannot be pulled",
			object: `
apiVersion: v1
kind: Pod
metadata: {name: a}
spec: {containers: [{name: one}]}
status:
  phase: Pending
  containerStatuses:
  - {name: one, image: "a/b:c", state: {waiting: {reason: ImagePullBackOff, message: Back-off}}}
`,
			want: Verdict{
				State: Failed, Reason: "ImagePullBackOff",
				Message: `image "a/b:c" of container one cannot be pulled; check its name, the registry and the pull secrets`,
			},
		},
		{
			name: "no node",
			object: `
apiVersion: v1
kind: Pod
metadata: {name: a}
spec: {containers: [{name: one}]}
status:
  phase: Pending
  conditions:
  - {type: PodScheduled, status: "False", reason: Unschedulable, message: "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."}
`,
			want: Verdict{
				State: Failed, Reason: "Unschedulable",
				Message: "the pod cannot be scheduled (Insufficient nvidia.com/gpu); free capacity, or change resources, nodeSelector, affinity or tolerations",
			},
		},
		{
			name: "crashes again and again",
			object: `
apiVersion: v1
kind: Pod
metadata: {name: a}
spec: {containers: [{name: one}]}
status:
  phase: Running
  containerStatuses:
  - name: one
    ready: false
    state: {waiting: {reason: CrashLoopBackOff}}
    lastState: {terminated: {exitCode: 2, reason: Error}}
`,
			want: Verdict{State: Failed, Reason: "CrashLoopBackOff", Message: "container one ends with exit code 2; see its log"},
		},
		{
			name: "the init container crashes",
			object: `
apiVersion: v1
kind: Pod
metadata: {name: a}
spec: {containers: [{name: one}]}
status:
  phase: Pending
  initContainerStatuses:
  - name: first
    ready: false
    state: {terminated: {exitCode: 1, reason: Error}}
  containerStatuses:
  - {name: one, ready: false, state: {waiting: {reason: PodInitializing}}}
`,
			want: Verdict{State: Failed, Reason: "Error", Message: "container first ends with exit code 1; see its log"},
		},
		{
			name: "failed without a word about containers",
			object: `
apiVersion: v1
kind: Pod
metadata: {name: a}
spec: {containers: [{name: one}]}
status: {phase: Failed, reason: NodeLost, message: the node is gone}
`,
			want: Verdict{State: Failed, Reason: "NodeLost", Message: "the node is gone"},
		},
		{
			name: "held back by Kueue",
			object: `
apiVersion: v1
kind: Pod
metadata: {name: a}
spec: {containers: [{name: one}]}
status:
  phase: Pending
  conditions:
  - {type: PodScheduled, status: "False", reason: SchedulingGated, message: Scheduling is blocked due to non-empty scheduling gates}
`,
			want: Verdict{State: Idle, Reason: "SchedulingGated", Message: "it waits until its scheduling gates are removed"},
		},
		{
			name: "of an unexpected shape",
			object: `
apiVersion: v1
kind: Pod
metadata: {name: a}
status: {phase: 7}
`,
			want: Verdict{State: Unknown, Message: "its status has an unexpected shape"},
		},
	})
}
