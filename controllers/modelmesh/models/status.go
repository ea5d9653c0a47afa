package models

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/meshpb"
	"github.com/odh-platform/odh-platform-operator/pkg/redact"
)

// Messages of lastFailureInfo. Some are those of the legacy controller.
const (
	messageNoPods            = "Waiting for runtime Pod to become available"
	messageNoSupportingPod   = "Waiting for supporting runtime Pod to become available"
	messageUnknownRuntime    = "Specified runtime name not recognized"
	messageUnsupported       = "No ServingRuntime supports specified model type and/or protocol"
	messageIDConflict        = "Predictor already exists with the same name from a different source"
	messageSpecMismatch      = "The mesh has a model of this id with another type, path or key: delete the resource and create it again, or change its spec"
	messageMeshUnreachable   = "The mesh does not answer the manager: "
	messageNamespaceDisabled = "The namespace is not served by ModelMesh: label it modelmesh-enabled=true"
)

// maxMessageBytes limits a failure message. Messages of runtimes can be megabytes long, and the status of an InferenceService holds three
// copies: the API server would reject it.
const maxMessageBytes = 32 << 10

// maxNameBytes limits the IDs of models, which have at most 270 bytes, and the locations of copies in a status.
const maxNameBytes = 320

// noInstancePrefix is the prefix of the error of the mesh for a model that no live instance can load. The type of the model follows, then
// the required labels, or noRuntimeSuffix if no runtime supports the type.
const (
	noInstancePrefix = "There are no running instances that meet the label requirements of type "
	noRuntimeSuffix  = "[_no_runtime]"
)

// concreteStatus is the parsed status of one concrete model. known is false if the mesh returned UNKNOWN or NOT_FOUND.
type concreteStatus struct {
	state   v1alpha1.ModelState
	reason  v1alpha1.FailureReason
	message string
	known   bool
}

// parseConcreteStatus parses the status of one concrete model. info is nil if the mesh did not return it.
func parseConcreteStatus(info *meshpb.ModelStatusInfo) concreteStatus {
	if info == nil {
		return concreteStatus{state: v1alpha1.Pending, known: true}
	}
	parsed := concreteStatus{known: true}
	if len(info.GetErrors()) > 0 {
		parsed.reason, parsed.message = v1alpha1.ModelLoadFailed, strings.TrimPrefix(info.GetErrors()[0], grpcErrorPrefix)
	}
	switch info.GetStatus() {
	case meshpb.ModelStatusInfo_NOT_LOADED:
		parsed.state = v1alpha1.Standby
	case meshpb.ModelStatusInfo_LOADING:
		parsed.state = v1alpha1.Loading
	case meshpb.ModelStatusInfo_LOADED:
		parsed.state = v1alpha1.Loaded
	case meshpb.ModelStatusInfo_LOADING_FAILED:
		return parseLoadFailure(parsed.message, info.GetModelCopyInfos())
	default:
		return concreteStatus{}
	}
	return parsed
}

// grpcErrorPrefix is the prefix of the message of a failure that the mesh has not stored yet.
const grpcErrorPrefix = "io.grpc.StatusRuntimeException: "

// parseLoadFailure distinguishes a failed load, which has a failed copy, from a load without an instance and from an unsupported
// model. The mesh finds no instance for seconds after a pod starts, and after a pod ends until the lease of the pod expires.
func parseLoadFailure(message string, copies []*meshpb.ModelStatusInfo_ModelCopyInfo) concreteStatus {
	label, found := strings.CutPrefix(message, noInstancePrefix)
	switch {
	case !found && slices.ContainsFunc(copies, isFailedCopy):
		return concreteStatus{state: v1alpha1.FailedToLoad, reason: v1alpha1.ModelLoadFailed, message: message, known: true}
	case !strings.HasSuffix(label, noRuntimeSuffix):
		return waitingForPod()
	default:
		return unsupportedStatus(label)
	}
}

// waitingForPod returns the status of a model that waits for a pod of a supporting runtime.
func waitingForPod() concreteStatus {
	return concreteStatus{state: v1alpha1.Loading, reason: v1alpha1.RuntimeUnhealthy, message: messageNoSupportingPod, known: true}
}

// unsupportedStatus returns the status of a model with a label that no runtime supports.
func unsupportedStatus(label string) concreteStatus {
	unsupported := concreteStatus{state: v1alpha1.FailedToLoad, reason: v1alpha1.NoSupportingRuntime, message: messageUnsupported, known: true}
	if name, found := strings.CutPrefix(strings.TrimSuffix(label, ": "+noRuntimeSuffix), "rt:"); found {
		unsupported.reason, unsupported.message = v1alpha1.RuntimeNotRecognized, messageUnknownRuntime+": create or enable the runtime "+name+", or name another one"
	}
	return unsupported
}

func isFailedCopy(c *meshpb.ModelStatusInfo_ModelCopyInfo) bool {
	return c.GetCopyStatus() == meshpb.ModelStatusInfo_LOADING_FAILED
}

// isUnsupported reports whether the mesh knows no runtime for the model.
func (c concreteStatus) isUnsupported() bool {
	return c.reason == v1alpha1.RuntimeNotRecognized || c.reason == v1alpha1.NoSupportingRuntime
}

// waitIfUnsupported returns waitingForPod for an unsupported model. It is called if the namespace has a runtime that supports the model and
// that the mesh does not know yet.
func (c concreteStatus) waitIfUnsupported() concreteStatus {
	if c.isUnsupported() {
		return waitingForPod()
	}
	return c
}

// vmodelStatus is the parsed status of a vmodel. Its size is limited, because the pods of the mesh are not trusted.
type vmodelStatus struct {
	status         meshpb.VModelStatusInfo_VModelStatus
	active, target concreteStatus
	// hasTargetStatus is true if the mesh returned a status of the target or, if targetIsActive, of the active model.
	targetIsActive, hasTargetStatus bool
	targetID                        string
	hasTargetCopies                 bool
	// failedLocation and failedAt are those of a failed copy of the target; failedAt is nil if the mesh returned no valid time.
	failedLocation            string
	failedAt                  *metav1.Time
	failedCopies, totalCopies int
}

// isTargetWithoutInstance reports whether no instance can load the target of a failed transition: the mesh returns no error for this state.
func (v vmodelStatus) isTargetWithoutInstance() bool {
	return v.status == meshpb.VModelStatusInfo_TRANSITION_FAILED && !v.targetIsActive && v.target.state == v1alpha1.Loading &&
		v.target.reason == "" && !v.hasTargetCopies
}

// parseVModelStatus parses a response of the mesh. stored is the failure in the status of the model, or nil.
func parseVModelStatus(info *meshpb.VModelStatusInfo, stored *v1alpha1.FailureInfo) vmodelStatus {
	v := vmodelStatus{
		status: info.GetStatus(), targetIsActive: info.GetActiveModelId() == info.GetTargetModelId(),
		targetID: redact.Clip(info.GetTargetModelId(), maxNameBytes),
		active:   parseConcreteStatus(info.GetActiveModelStatus()),
	}
	target := info.GetTargetModelStatus()
	if target == nil && v.targetIsActive {
		target = info.GetActiveModelStatus()
	}
	v.target, v.hasTargetStatus = parseConcreteStatus(target), target != nil
	v.hasTargetCopies = len(target.GetModelCopyInfos()) > 0
	v.failedLocation, v.failedAt = v.failedCopy(target.GetModelCopyInfos(), stored)
	v.countCopies(v.active, info.GetActiveModelStatus())
	if !v.targetIsActive {
		v.countCopies(v.target, target)
	}
	v.active.message = "" // only the failure of the target is reported
	v.target.message = redact.Clip(v.target.message, maxMessageBytes)
	return v
}

// countCopies adds the copies of a model to the counts, unless it waits for a pod or is unsupported.
func (v *vmodelStatus) countCopies(parsed concreteStatus, info *meshpb.ModelStatusInfo) {
	if parsed.reason != "" && parsed.reason != v1alpha1.ModelLoadFailed {
		return
	}
	for _, c := range info.GetModelCopyInfos() {
		v.totalCopies++
		if isFailedCopy(c) {
			v.failedCopies++
		}
	}
}

// transition returns the transition from the active model to the target, or "" if the mesh does not know it.
func (v vmodelStatus) transition() v1alpha1.TransitionStatus {
	switch v.status {
	case meshpb.VModelStatusInfo_DEFINED:
		return v1alpha1.UpToDate
	case meshpb.VModelStatusInfo_TRANSITIONING:
		return v1alpha1.InProgress
	case meshpb.VModelStatusInfo_TRANSITION_FAILED:
		if v.target.known && v.target.state == v1alpha1.Loading {
			return v1alpha1.InProgress // the target waits for a pod or is loaded again
		}
		return v1alpha1.BlockedByFailedLoad
	default:
		return ""
	}
}

// withStates sets the states and copies. A state that the mesh does not know keeps its value.
func withStates(s v1alpha1.PredictorStatus, v vmodelStatus) v1alpha1.PredictorStatus {
	if v.active.known {
		s.ActiveModelState = v.active.state
	}
	switch {
	case v.targetIsActive:
		s.TargetModelState = v1alpha1.NoState
	case v.hasTargetStatus && v.target.known:
		s.TargetModelState = v.target.state
	}
	s.FailedCopies, s.TotalCopies = v.failedCopies, v.totalCopies
	return s
}

// withVModelStatus sets the states, copies, transition and failure of a model with a valid spec.
func withVModelStatus(s v1alpha1.PredictorStatus, v vmodelStatus, now time.Time) v1alpha1.PredictorStatus {
	s = withStates(s, v)
	if t := v.transition(); t != "" {
		s.TransitionStatus = t
	}
	s.LastFailureInfo = v.failure(s.LastFailureInfo, now)
	return s
}

// failure returns the reason why the target is not served, or nil.
func (v vmodelStatus) failure(stored *v1alpha1.FailureInfo, now time.Time) *v1alpha1.FailureInfo {
	switch {
	case !v.hasTargetStatus || v.target.state == v1alpha1.Loaded:
		return nil
	case v.target.reason == "":
		if stored != nil && stored.Reason == v1alpha1.RuntimeUnhealthy && !isMeshUnreachable(stored) && v.target.state != v1alpha1.Standby {
			return stored // it applies until the model is loaded
		}
		return nil
	}
	f := &v1alpha1.FailureInfo{Reason: v.target.reason, Message: redact.Clip(v.target.message, maxMessageBytes), ModelID: v.targetID}
	if f.Reason == v1alpha1.ModelLoadFailed {
		f.Location, f.Time = v.failedLocation, v.failedAt
	}
	if f.Time == nil {
		f.Time = failureTime(stored, f, now)
	}
	return f
}

// maxUnixMilli is the end of the year 9999: RFC 3339 has no later years.
const maxUnixMilli = 253402300799999

// failedCopy returns location and time of a failed copy of the target: the copy in the stored status if it still exists, otherwise the
// first one. The order of the copies thus does not change a stored status.
func (v vmodelStatus) failedCopy(copies []*meshpb.ModelStatusInfo_ModelCopyInfo, stored *v1alpha1.FailureInfo) (string, *metav1.Time) {
	var location string
	var failedAt *metav1.Time
	found := false
	for _, c := range copies {
		if !isFailedCopy(c) {
			continue
		}
		var copyFailedAt *metav1.Time
		if ms := c.GetTime(); ms > 0 && ms <= maxUnixMilli {
			copyFailedAt = metaTime(time.UnixMilli(int64(ms)))
		}
		copyLocation := redact.Clip(c.GetLocation(), maxNameBytes)
		if stored != nil && stored.ModelID == v.targetID && stored.Location == copyLocation && isSameTime(stored.Time, copyFailedAt) {
			return copyLocation, stored.Time
		}
		if !found {
			location, failedAt, found = copyLocation, copyFailedAt, true
		}
	}
	return location, failedAt
}

// isSameTime reports whether two times belong to one failure: the mesh changes the time slightly when it stores the failure.
func isSameTime(a, b *metav1.Time) bool {
	return a.Equal(b) || a != nil && b != nil && a.Sub(b.Time).Abs() <= 2*time.Second
}

// failureTime returns the time of the stored failure if both failures are the same, otherwise now.
func failureTime(stored, f *v1alpha1.FailureInfo, now time.Time) *metav1.Time {
	if stored != nil && stored.Time != nil && stored.Reason == f.Reason && stored.Message == f.Message && stored.ModelID == f.ModelID {
		return stored.Time
	}
	return metaTime(now)
}

// metaTime returns a time without fractions of a second, which the API does not store.
func metaTime(t time.Time) *metav1.Time {
	return &metav1.Time{Time: t.Truncate(time.Second)}
}

// withFailure sets a failure without a time and, for InvalidPredictorSpec, the transition.
func withFailure(s v1alpha1.PredictorStatus, reason v1alpha1.FailureReason, message, id string) v1alpha1.PredictorStatus {
	s.LastFailureInfo = &v1alpha1.FailureInfo{Reason: reason, Message: redact.Clip(message, maxMessageBytes), ModelID: id}
	if reason == v1alpha1.InvalidPredictorSpec {
		s.TransitionStatus = v1alpha1.InvalidSpec
	}
	return s
}

// isAvailable reports whether the model serves requests, possibly after it was loaded on demand.
func isAvailable(s v1alpha1.PredictorStatus) bool {
	switch s.ActiveModelState {
	case v1alpha1.NoState, v1alpha1.Pending, v1alpha1.FailedToLoad:
		return false
	default:
		return s.LastFailureInfo == nil || s.LastFailureInfo.Reason != v1alpha1.RuntimeUnhealthy
	}
}

// needsLoad reports whether the mesh must load the model before its first request: the model is new, failed, replaces another one, or waits
// for a pod. The mesh reports that no instance can load a model only in responses to calls with LoadNow.
func needsLoad(s v1alpha1.PredictorStatus) bool {
	switch s.ActiveModelState {
	case v1alpha1.Pending, v1alpha1.FailedToLoad:
		return true
	default:
		return isRuntimeUnhealthy(s) && s.ActiveModelState == v1alpha1.Loading || s.TargetModelState != v1alpha1.NoState
	}
}

// isRuntimeUnhealthy reports whether the last failure is RuntimeUnhealthy, for example because no pod can load the model.
func isRuntimeUnhealthy(s v1alpha1.PredictorStatus) bool {
	return s.LastFailureInfo != nil && s.LastFailureInfo.Reason == v1alpha1.RuntimeUnhealthy
}

// invalidRuntimeInfix separates the message about a missing pod from the error of the runtime that prevents the pod.
const invalidRuntimeInfix = ": invalid "

// waitingPrefix returns the prefix of the message if the failure is a missing pod, or "" for any other failure.
func waitingPrefix(f *v1alpha1.FailureInfo) string {
	for _, prefix := range []string{messageNoPods, messageNoSupportingPod} {
		if f != nil && f.Reason == v1alpha1.RuntimeUnhealthy && strings.HasPrefix(f.Message, prefix) {
			return prefix
		}
	}
	return ""
}

// needsRuntimeChange reports whether a failure lasts until the runtime, or an object that it refers to, changes.
func needsRuntimeChange(f *v1alpha1.FailureInfo) bool {
	prefix := waitingPrefix(f)
	return prefix != "" && strings.HasPrefix(f.Message, prefix+invalidRuntimeInfix)
}

// isMeshUnreachable reports whether the failure is that calls of the manager to the mesh failed, see withCallError.
func isMeshUnreachable(f *v1alpha1.FailureInfo) bool {
	return f != nil && strings.HasPrefix(f.Message, messageMeshUnreachable)
}

// isProgressing reports whether the state is expected to change without a change of the spec.
func isProgressing(s v1alpha1.PredictorStatus) bool {
	return s.ActiveModelState == v1alpha1.Loading || s.TargetModelState == v1alpha1.Loading || s.TransitionStatus == v1alpha1.InProgress || isRuntimeUnhealthy(s)
}
