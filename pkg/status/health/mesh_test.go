package health

import "testing"

func TestPredictor(t *testing.T) {
	check(t, []example{
		{
			name: "new",
			object: `
apiVersion: serving.kserve.io/v1alpha1
kind: Predictor
metadata: {name: a, namespace: team}
`,
			want: Verdict{State: Unknown, Message: "ModelMesh has not reported on it yet"},
		},
		{
			name: "loaded",
			object: `
apiVersion: serving.kserve.io/v1alpha1
kind: Predictor
metadata: {name: a, namespace: team}
status: {available: true, transitionStatus: UpToDate, activeModelState: Loaded, targetModelState: "", totalCopies: 2, failedCopies: 0}
`,
			want: Verdict{State: Healthy, Reason: "Loaded", Message: "2 copies"},
		},
		{
			name: "in storage, to be loaded by the first request",
			object: `
apiVersion: serving.kserve.io/v1alpha1
kind: Predictor
metadata: {name: a, namespace: team}
status: {available: true, transitionStatus: UpToDate, activeModelState: Standby}
`,
			want: Verdict{State: Healthy, Reason: "Standby", Message: "0 copies"},
		},
		{
			name: "loading",
			object: `
apiVersion: serving.kserve.io/v1alpha1
kind: Predictor
metadata: {name: a, namespace: team}
status: {available: false, transitionStatus: InProgress, activeModelState: Loading}
`,
			want: Verdict{State: Progressing, Reason: "Loading", Message: "0 copies"},
		},
		{
			name: "failed to load",
			object: `
apiVersion: serving.kserve.io/v1alpha1
kind: Predictor
metadata: {name: a, namespace: team}
status:
  available: false
  transitionStatus: BlockedByFailedLoad
  activeModelState: FailedToLoad
  totalCopies: 0
  failedCopies: 2
  lastFailureInfo: {reason: ModelLoadFailed, message: no such file}
`,
			want: Verdict{State: Failed, Reason: "ModelLoadFailed", Message: "no such file"},
		},
		{
			name: "failed to load for an unknown reason",
			object: `
apiVersion: serving.kserve.io/v1alpha1
kind: Predictor
metadata: {name: a, namespace: team}
status: {available: false, transitionStatus: UpToDate, activeModelState: FailedToLoad, failedCopies: 2}
`,
			want: Verdict{State: Failed, Reason: "FailedToLoad", Message: "0 copies, 2 failed"},
		},
		{
			name: "without a runtime",
			object: `
apiVersion: serving.kserve.io/v1alpha1
kind: Predictor
metadata: {name: a, namespace: team}
status:
  available: false
  transitionStatus: UpToDate
  activeModelState: Pending
  lastFailureInfo: {reason: NoSupportingRuntime, message: no runtime knows the format}
`,
			want: Verdict{State: Failed, Reason: "NoSupportingRuntime", Message: "no runtime knows the format"},
		},
		{
			name: "the new model is on its way",
			object: `
apiVersion: serving.kserve.io/v1alpha1
kind: Predictor
metadata: {name: a, namespace: team}
status: {available: true, transitionStatus: InProgress, activeModelState: Loaded, targetModelState: Loading, totalCopies: 1}
`,
			want: Verdict{State: Progressing, Reason: "InProgress", Message: "the former model answers until the new one does, which is Loading"},
		},
		{
			name: "the new model cannot be loaded",
			object: `
apiVersion: serving.kserve.io/v1alpha1
kind: Predictor
metadata: {name: a, namespace: team}
status:
  available: true
  transitionStatus: BlockedByFailedLoad
  activeModelState: Loaded
  targetModelState: FailedToLoad
  lastFailureInfo: {reason: ModelLoadFailed, message: no such file}
`,
			want: Verdict{State: Degraded, Reason: "ModelLoadFailed", Message: "no such file"},
		},
		{
			name: "with a spec that contradicts itself",
			object: `
apiVersion: serving.kserve.io/v1alpha1
kind: Predictor
metadata: {name: a, namespace: team}
status:
  available: false
  transitionStatus: InvalidSpec
  activeModelState: Pending
  lastFailureInfo: {reason: InvalidPredictorSpec, message: Only one of spec.path and spec.storage.path can be specified}
`,
			want: Verdict{State: Failed, Reason: "InvalidPredictorSpec", Message: "Only one of spec.path and spec.storage.path can be specified"},
		},
	})
}

func TestInferenceService(t *testing.T) {
	check(t, []example{
		{
			name: "new",
			object: `
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: a, namespace: team}
`,
			want: Verdict{State: Unknown, Message: "ModelMesh has not reported on it yet"},
		},
		{
			name: "loaded",
			object: `
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: a, namespace: team}
status:
  conditions:
  - {type: Ready, status: "True", lastTransitionTime: "2026-05-01T03:00:00Z"}
  - {type: PredictorReady, status: "True"}
  modelStatus:
    transitionStatus: UpToDate
    states: {activeModelState: Loaded, targetModelState: ""}
    copies: {totalCopies: 1, failedCopies: 1}
`,
			want: Verdict{State: Healthy, Reason: "Loaded", Message: "1 copy, 1 failed", Since: at(3)},
		},
		{
			name: "failed to load",
			object: `
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: a, namespace: team}
status:
  conditions:
  - {type: Ready, status: "False", reason: ModelLoadFailed, message: of the condition}
  modelStatus:
    transitionStatus: BlockedByFailedLoad
    states: {activeModelState: FailedToLoad}
    lastFailureInfo: {reason: ModelLoadFailed, message: no such bucket}
`,
			want: Verdict{State: Failed, Reason: "ModelLoadFailed", Message: "no such bucket"},
		},
		{
			name: "not available, with what the condition says",
			object: `
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: a, namespace: team}
status:
  conditions:
  - {type: Ready, status: "False", reason: Waiting, message: pods start}
  modelStatus:
    transitionStatus: InProgress
    states: {activeModelState: Pending}
`,
			want: Verdict{State: Progressing, Reason: "Waiting", Message: "pods start"},
		},
		{
			name: "outside ModelMesh",
			object: `
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: a, namespace: team}
status:
  conditions:
  - {type: Ready, status: "False", reason: RevisionFailed, message: no image}
`,
			want: Verdict{State: Failed, Reason: "RevisionFailed", Message: "no image"},
		},
	})
}

func TestServingRuntime(t *testing.T) {
	check(t, []example{
		{
			name: "for ModelMesh",
			object: `
apiVersion: serving.kserve.io/v1alpha1
kind: ServingRuntime
metadata: {name: a, namespace: team}
spec: {multiModel: true, grpcEndpoint: "port:8085"}
`,
			want: Verdict{State: Healthy},
		},
		{
			name: "switched off",
			object: `
apiVersion: serving.kserve.io/v1alpha1
kind: ClusterServingRuntime
metadata: {name: a}
spec: {multiModel: true, disabled: true}
`,
			want: Verdict{State: Idle, Reason: "Disabled", Message: "spec.disabled takes it out of service"},
		},
		{
			name: "for KServe",
			object: `
apiVersion: serving.kserve.io/v1alpha1
kind: ClusterServingRuntime
metadata: {name: a}
spec: {}
`,
			want: Verdict{State: Idle, Reason: "SingleModel", Message: "spec.multiModel is not true, so ModelMesh leaves it to KServe"},
		},
		{
			name: "with a port that is none",
			object: `
apiVersion: serving.kserve.io/v1alpha1
kind: ServingRuntime
metadata: {name: a, namespace: team}
spec: {multiModel: true, grpcEndpoint: "port:8085", grpcDataEndpoint: "port:nope"}
`,
			want: Verdict{State: Failed, Reason: "InvalidRuntime", Message: `no pods are made or changed: spec.grpcDataEndpoint "port:nope" has no port between 1 and 65535: write port:<number>`},
		},
		{
			name: "of the cluster, with a container that is ours",
			object: `
apiVersion: serving.kserve.io/v1alpha1
kind: ClusterServingRuntime
metadata: {name: a}
spec: {multiModel: true, grpcEndpoint: "port:8085", containers: [{name: mm}]}
`,
			want: Verdict{State: Failed, Reason: "InvalidRuntime", Message: "no pods are made or changed: container spec for mm is invalid: container name mm is reserved for internal use"},
		},
		{
			name: "with a field that cannot be read",
			object: `
apiVersion: serving.kserve.io/v1alpha1
kind: ServingRuntime
metadata: {name: a, namespace: team}
spec: {multiModel: true, grpcEndpoint: "port:8085", grpcDataEndpoint: 8001}
`,
			want: Verdict{State: Failed, Reason: "InvalidRuntime", Message: "no pods are made or changed: spec.grpcDataEndpoint cannot be read: " +
				"json: cannot unmarshal number into Go struct field ServingRuntimeSpec.grpcDataEndpoint of type string"},
		},
		{
			name: "with a built-in server of the settings",
			object: `
apiVersion: serving.kserve.io/v1alpha1
kind: ServingRuntime
metadata: {name: a, namespace: team}
spec: {multiModel: true, builtInAdapter: {serverType: own}, containers: [{name: own}]}
`,
			want: Verdict{State: Healthy},
		},
		{
			name: "for KServe, with a port that would be none",
			object: `
apiVersion: serving.kserve.io/v1alpha1
kind: ServingRuntime
metadata: {name: a, namespace: team}
spec: {grpcDataEndpoint: "port:nope"}
`,
			want: Verdict{State: Idle, Reason: "SingleModel", Message: "spec.multiModel is not true, so ModelMesh leaves it to KServe"},
		},
	})
}
