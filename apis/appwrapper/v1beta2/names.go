package v1beta2

// AppWrapperPhase is the phase of an AppWrapper.
type AppWrapperPhase string

// The phases of an AppWrapper. The phase of a new AppWrapper is empty.
const (
	PhaseEmpty       AppWrapperPhase = ""
	PhaseSuspended   AppWrapperPhase = "Suspended"
	PhaseResuming    AppWrapperPhase = "Resuming"
	PhaseRunning     AppWrapperPhase = "Running"
	PhaseResetting   AppWrapperPhase = "Resetting"
	PhaseSuspending  AppWrapperPhase = "Suspending"
	PhaseSucceeded   AppWrapperPhase = "Succeeded"
	PhaseFailed      AppWrapperPhase = "Failed"
	PhaseTerminating AppWrapperPhase = "Terminating"
)

// IsKnown reports whether the phase is one of this release.
func (p AppWrapperPhase) IsKnown() bool {
	switch p {
	case PhaseEmpty, PhaseSuspended, PhaseResuming, PhaseRunning, PhaseResetting, PhaseSuspending, PhaseSucceeded, PhaseFailed, PhaseTerminating:
		return true
	}
	return false
}

// The types of the conditions. ResourcesDeployed is also a condition of components.
const (
	ConditionQuotaReserved     = "QuotaReserved"
	ConditionResourcesDeployed = "ResourcesDeployed"
	ConditionPodsReady         = "PodsReady"
	ConditionUnhealthy         = "Unhealthy"
	ConditionDeletingResources = "DeletingResources"
	// ConditionCompleted is a condition of components only: the object has reported its success. Its deletion is then not a failure.
	ConditionCompleted = "Completed"
)

// The reasons of the conditions.
const (
	ReasonResuming             = "Resuming"
	ReasonSucceeded            = "Succeeded"
	ReasonSuspended            = "Suspended"
	ReasonResetting            = "Resetting"
	ReasonFailed               = "Failed"
	ReasonTerminating          = "Terminating"
	ReasonSufficientPodsReady  = "SufficientPodsReady"
	ReasonInsufficientPods     = "InsufficientPodsReady"
	ReasonCreateFailed         = "CreateFailed"
	ReasonMissingComponent     = "MissingComponent"
	ReasonComponentsChanged    = "ComponentsChanged"
	ReasonNotReviewed          = "NotReviewed"
	ReasonPodsRunning          = "PodsRunning"
	ReasonFailedComponent      = "FailedComponent"
	ReasonFoundFailedPods      = "FoundFailedPods"
	ReasonFoundNoFailedPods    = "FoundNoFailedPods"
	ReasonAutopilotNoExecute   = "AutopilotNoExecute"
	ReasonDeletionInitiated    = "DeletionInitiated"
	ReasonDeletionComplete     = "DeletionComplete"
	ReasonDeletionPaused       = "DeletionPaused"
	ReasonComponentInitiated   = "ComponentCreationInitiated"
	ReasonComponentErrored     = "ComponentCreationErrored"
	ReasonComponentCreated     = "ComponentCreatedSuccessfully"
	ReasonComponentDeleted     = "ComponentDeleted"
	ReasonComponentDeletedTypo = "CompononetDeleted" // the spelling of the legacy operator, which this operator writes too
)

// Labels, finalizer and other keys.
const (
	// LabelAppWrapper is the label of the created objects and of the pods in pod sets. Its value is the name of the AppWrapper.
	LabelAppWrapper = "workload.codeflare.dev/appwrapper"
	// LabelUser contains the sanitized name of the user who created the AppWrapper.
	LabelUser = "workload.codeflare.dev/user"
	// LabelUserID contains the sanitized UID of the user who created the AppWrapper.
	LabelUserID = "workload.codeflare.dev/userid"
	// LabelQueue contains the name of the LocalQueue of Kueue.
	LabelQueue = "kueue.x-k8s.io/queue-name"
	// Finalizer prevents the deletion of an AppWrapper until its objects are deleted.
	Finalizer = "workload.codeflare.dev/finalizer"
	// ManagedByThis is the value of spec.managedBy that selects this operator.
	ManagedByThis = "workload.codeflare.dev/appwrapper-controller"
	// LabelAutopilot is the node label in the default Autopilot settings.
	LabelAutopilot = "autopilot.ibm.com/gpuhealth"
)

// AnnotationPrefix is the prefix of the annotations of AppWrappers and pod sets.
const AnnotationPrefix = "workload.codeflare.dev.appwrapper/"

// The annotations of an AppWrapper. Durations have the format of time.ParseDuration.
const (
	AnnotationAdmissionGrace     = AnnotationPrefix + "admissionGracePeriodDuration"
	AnnotationWarmupGrace        = AnnotationPrefix + "warmupGracePeriodDuration"
	AnnotationFailureGrace       = AnnotationPrefix + "failureGracePeriodDuration"
	AnnotationRetryPause         = AnnotationPrefix + "retryPausePeriodDuration"
	AnnotationRetryLimit         = AnnotationPrefix + "retryLimit"
	AnnotationForcefulDeletion   = AnnotationPrefix + "forcefulDeletionGracePeriodDuration"
	AnnotationDeletionOnFailure  = AnnotationPrefix + "deletionOnFailureGracePeriodDuration"
	AnnotationSuccessTTL         = AnnotationPrefix + "successTTLDuration"
	AnnotationTerminalExitCodes  = AnnotationPrefix + "terminalExitCodes"
	AnnotationRetryableExitCodes = AnnotationPrefix + "retryableExitCodes"
	AnnotationPodIndexLabel      = AnnotationPrefix + "tas-pod-index-label"       // of a pod set
	AnnotationSubGroupIndexLabel = AnnotationPrefix + "tas-sub-group-index-label" // of a pod set
	AnnotationSubGroupCount      = AnnotationPrefix + "tas-sub-group-count"       // of a pod set
)
