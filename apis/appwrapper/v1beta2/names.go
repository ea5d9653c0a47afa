package v1beta2

// AppWrapperPhase is where in its life an AppWrapper is.
type AppWrapperPhase string

// The phases, as clients know them. A new AppWrapper has the empty one.
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

// Known tells whether a phase is one of these, and not of a newer release.
func (p AppWrapperPhase) Known() bool {
	switch p {
	case PhaseEmpty, PhaseSuspended, PhaseResuming, PhaseRunning, PhaseResetting, PhaseSuspending, PhaseSucceeded, PhaseFailed, PhaseTerminating:
		return true
	}
	return false
}

// The types of the conditions. ResourcesDeployed is a condition of a component too.
const (
	ConditionQuotaReserved     = "QuotaReserved"
	ConditionResourcesDeployed = "ResourcesDeployed"
	ConditionPodsReady         = "PodsReady"
	ConditionUnhealthy         = "Unhealthy"
	ConditionDeletingResources = "DeletingResources"
	// ConditionCompleted is of a component only: it has reported its own success, after which its pods and it may go.
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
	ReasonComponentDeletedTypo = "CompononetDeleted" // what the original wrote, and stored objects carry
)

// Labels, finalizer and other keys.
const (
	// LabelAppWrapper is on every deployed object and pod; its value is the name of
	// the AppWrapper.
	LabelAppWrapper = "workload.codeflare.dev/appwrapper"
	// LabelUser holds the sanitised name of who created the AppWrapper.
	LabelUser = "workload.codeflare.dev/user"
	// LabelUserID holds the sanitised UID of who created the AppWrapper.
	LabelUserID = "workload.codeflare.dev/userid"
	// LabelQueue names the LocalQueue of Kueue.
	LabelQueue = "kueue.x-k8s.io/queue-name"
	// Finalizer keeps an AppWrapper until what it deployed is gone.
	Finalizer = "workload.codeflare.dev/finalizer"
	// ManagedByThis is the value of spec.managedBy that stands for this controller.
	ManagedByThis = "workload.codeflare.dev/appwrapper-controller"
	// LabelAutopilot is the node label that the default Autopilot settings read.
	LabelAutopilot = "autopilot.ibm.com/gpuhealth"
)

// AnnotationPrefix starts every annotation that AppWrappers and pod sets may bear.
const AnnotationPrefix = "workload.codeflare.dev.appwrapper/"

// The annotations of an AppWrapper. Durations are in the format of Go.
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
