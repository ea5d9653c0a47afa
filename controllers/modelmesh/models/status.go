package models

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client/meshpb"
	"github.com/odh-platform/odh-platform-operator/pkg/redact"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// Texts that users of ModelMesh know.
const (
	textNoPods      = "Waiting for runtime Pod to become available"
	textNoHome      = "Waiting for supporting runtime Pod to become available"
	textNoRuntime   = "Specified runtime name not recognized"
	textNoSupport   = "No ServingRuntime supports specified model type and/or protocol"
	textOtherSource = "Predictor already exists with the same name from a different source"
	textDifferent   = "The mesh has a model of this id with another type, path or key: delete the resource and create it again, or change its spec"
	textSilent      = "The mesh does not answer the manager: "
	textNotServed   = "The namespace is not served by ModelMesh: label it modelmesh-enabled=true"
)

// maxMessage is how many bytes of a failure are kept. A runtime may say megabytes, and in an InferenceService each stands three times:
// the API server would refuse the object.
const maxMessage = 32 << 10

// homeless begins the error of the mesh for a model that no live instance may load; the type of the model and the labels that an
// instance would need follow. They are noRuntime where no runtime at all would do.
const (
	homeless  = "There are no running instances that meet the label requirements of type "
	noRuntime = "[_no_runtime]"
)

// reading is what one concrete model's status means. known is false where the mesh does not know it itself.
type reading struct {
	state   v1alpha1.ModelState
	reason  v1alpha1.FailureReason
	message string
	known   bool
}

// read translates the status of one concrete model; nil is one that the mesh did not report.
func read(m *meshpb.ModelStatusInfo) reading {
	if m == nil {
		return reading{state: v1alpha1.Pending, known: true}
	}
	r := reading{known: true}
	if len(m.GetErrors()) > 0 {
		r.reason, r.message = v1alpha1.ModelLoadFailed, strings.TrimPrefix(m.GetErrors()[0], firstWords)
	}
	switch m.GetStatus() {
	case meshpb.ModelStatusInfo_NOT_LOADED:
		r.state = v1alpha1.Standby
	case meshpb.ModelStatusInfo_LOADING:
		r.state = v1alpha1.Loading
	case meshpb.ModelStatusInfo_LOADED:
		r.state = v1alpha1.Loaded
	case meshpb.ModelStatusInfo_LOADING_FAILED:
		return failed(r.message, m.GetModelCopyInfos())
	default:
		return reading{}
	}
	return r
}

// firstWords are before the text of a failure for the first moments after it.
const firstWords = "io.grpc.StatusRuntimeException: "

// failed tells a load that failed from one for which no instance was there: it failed where there is a copy that did. For seconds
// after a pod has started, and from its end until its lease has expired, the mesh finds nowhere to load.
func failed(message string, copies []*meshpb.ModelStatusInfo_ModelCopyInfo) reading {
	r := reading{state: v1alpha1.FailedToLoad, reason: v1alpha1.ModelLoadFailed, message: message, known: true}
	label, found := strings.CutPrefix(message, homeless)
	switch {
	case !found && slices.ContainsFunc(copies, failedThere):
		return r
	case !strings.HasSuffix(label, noRuntime):
		return waiting()
	default:
		return unsupportedLabel(label)
	}
}

// waiting is a model that a pod which comes will load.
func waiting() reading {
	return reading{state: v1alpha1.Loading, reason: v1alpha1.RuntimeUnhealthy, message: textNoHome, known: true}
}

// unsupportedLabel is a model with a label that no runtime supports.
func unsupportedLabel(label string) reading {
	r := reading{state: v1alpha1.FailedToLoad, reason: v1alpha1.NoSupportingRuntime, message: textNoSupport, known: true}
	if strings.HasPrefix(label, "rt:") {
		r.reason, r.message = v1alpha1.RuntimeNotRecognized, textNoRuntime
	}
	return r
}

func failedThere(c *meshpb.ModelStatusInfo_ModelCopyInfo) bool {
	return c.GetCopyStatus() == meshpb.ModelStatusInfo_LOADING_FAILED
}

// unsupported tells that the mesh knows no runtime for the model.
func (r reading) unsupported() bool {
	return r.reason == v1alpha1.RuntimeNotRecognized || r.reason == v1alpha1.NoSupportingRuntime
}

// awaited shows a model for which the mesh knows no runtime yet, although there is one, as waiting for it: the pods learn of a
// new runtime minutes later.
func (r reading) awaited() reading {
	if r.unsupported() {
		return waiting()
	}
	return r
}

// answer is what the mesh said of a vmodel, read.
type answer struct {
	status         meshpb.VModelStatusInfo_VModelStatus
	active, target reading
	// same tells that the active model is the target, and targeted that there is a status of the target.
	same, targeted bool
	targetID       string
	// copies of the target, for where and when it failed.
	targetCopies []*meshpb.ModelStatusInfo_ModelCopyInfo
	failed, all  int
}

// speechless tells that the target waits for an instance that could load it; of that the mesh says nothing.
func (a answer) speechless() bool {
	return a.status == meshpb.VModelStatusInfo_TRANSITION_FAILED && !a.same && a.target.state == v1alpha1.Loading &&
		a.target.reason == "" && len(a.targetCopies) == 0
}

// interpret reads an answer.
func interpret(info *meshpb.VModelStatusInfo) answer {
	a := answer{
		status: info.GetStatus(), same: info.GetActiveModelId() == info.GetTargetModelId(), targetID: info.GetTargetModelId(),
		active: read(info.GetActiveModelStatus()),
	}
	target := info.GetTargetModelStatus()
	if target == nil && a.same {
		target = info.GetActiveModelStatus()
	}
	a.target, a.targeted = read(target), target != nil
	a.targetCopies = target.GetModelCopyInfos()
	a.count(a.active, info.GetActiveModelStatus())
	if !a.same {
		a.count(a.target, target)
	}
	return a
}

// count adds the copies of a model, unless it has no instances to have copies on.
func (a *answer) count(r reading, m *meshpb.ModelStatusInfo) {
	if r.reason != "" && r.reason != v1alpha1.ModelLoadFailed {
		return
	}
	for _, c := range m.GetModelCopyInfos() {
		a.all++
		if failedThere(c) {
			a.failed++
		}
	}
}

// transition relates the active model to the target; empty where the mesh cannot tell.
func (a answer) transition() v1alpha1.TransitionStatus {
	switch a.status {
	case meshpb.VModelStatusInfo_DEFINED:
		return v1alpha1.UpToDate
	case meshpb.VModelStatusInfo_TRANSITIONING:
		return v1alpha1.InProgress
	case meshpb.VModelStatusInfo_TRANSITION_FAILED:
		if a.target.known && a.target.state == v1alpha1.Loading {
			return v1alpha1.InProgress // it waits for a pod, or is tried again
		}
		return v1alpha1.BlockedByFailedLoad
	default:
		return ""
	}
}

// withStates brings the states and copies of an answer into a status; what the mesh does not know stays as it was.
func withStates(s v1alpha1.PredictorStatus, a answer) v1alpha1.PredictorStatus {
	if a.active.known {
		s.ActiveModelState = a.active.state
	}
	switch {
	case a.same:
		s.TargetModelState = v1alpha1.NoState
	case a.targeted && a.target.known:
		s.TargetModelState = a.target.state
	}
	s.FailedCopies, s.TotalCopies = a.failed, a.all
	return s
}

// withAnswer is the status after an answer to a valid spec, save for availability and addresses.
func withAnswer(s v1alpha1.PredictorStatus, a answer, now time.Time) v1alpha1.PredictorStatus {
	s = withStates(s, a)
	if t := a.transition(); t != "" {
		s.TransitionStatus = t
	}
	s.LastFailureInfo = a.failure(s.LastFailureInfo, now)
	return s
}

// failure is why the target is not served; nil for no reason.
func (a answer) failure(before *v1alpha1.FailureInfo, now time.Time) *v1alpha1.FailureInfo {
	switch {
	case !a.targeted || a.target.state == v1alpha1.Loaded: // whatever the rest of the answer is
		return nil
	case a.target.reason == "":
		if before != nil && before.Reason == v1alpha1.RuntimeUnhealthy && !silent(before) && a.target.state != v1alpha1.Standby {
			return before // it waits until it is loaded
		}
		return nil
	}
	f := &v1alpha1.FailureInfo{Reason: a.target.reason, Message: conditions.Clip(redact.Text(a.target.message), maxMessage), ModelID: a.targetID}
	if f.Reason == v1alpha1.ModelLoadFailed {
		f.Location, f.Time = a.place(before)
	}
	if f.Time == nil {
		f.Time = since(before, f, now)
	}
	return f
}

// lastTime in milliseconds has a form in the API, where years have four digits.
const lastTime = 253402300799999

// place is where and when the target failed first; where it failed in several places, the one that was reported before, lest it
// change with their order.
func (a answer) place(before *v1alpha1.FailureInfo) (string, *metav1.Time) {
	var location string
	var at *metav1.Time
	found := false
	for _, c := range a.targetCopies {
		if !failedThere(c) {
			continue
		}
		var when *metav1.Time
		if ms := c.GetTime(); ms > 0 && ms <= lastTime {
			when = seconds(time.UnixMilli(int64(ms)))
		}
		if before != nil && before.ModelID == a.targetID && before.Location == c.GetLocation() && sameMoment(before.Time, when) {
			return c.GetLocation(), before.Time
		}
		if !found {
			location, at, found = c.GetLocation(), when, true
		}
	}
	return location, at
}

// sameMoment tells whether two times are those of one failure: the mesh gives it another time once it has written it down.
func sameMoment(a, b *metav1.Time) bool {
	return a.Equal(b) || a != nil && b != nil && a.Sub(b.Time).Abs() <= 2*time.Second
}

// since is the time of the same failure before, else now: a failure that lasts is no news.
func since(before, f *v1alpha1.FailureInfo, now time.Time) *metav1.Time {
	if before != nil && before.Time != nil && before.Reason == f.Reason && before.Message == f.Message && before.ModelID == f.ModelID {
		return before.Time
	}
	return seconds(now)
}

// seconds is a time as it comes back from the API, which keeps no fractions.
func seconds(t time.Time) *metav1.Time {
	return &metav1.Time{Time: t.Truncate(time.Second)}
}

// withFailure is the status of a model that could not be registered. It has no time where none is given.
func withFailure(s v1alpha1.PredictorStatus, reason v1alpha1.FailureReason, message, id string) v1alpha1.PredictorStatus {
	s.LastFailureInfo = &v1alpha1.FailureInfo{Reason: reason, Message: conditions.Clip(redact.Text(message), maxMessage), ModelID: id}
	if reason == v1alpha1.InvalidPredictorSpec {
		s.TransitionStatus = v1alpha1.InvalidSpec
	}
	return s
}

// available tells whether requests are answered, be it after a moment of loading.
func available(s v1alpha1.PredictorStatus) bool {
	switch s.ActiveModelState {
	case v1alpha1.NoState, v1alpha1.Pending, v1alpha1.FailedToLoad:
		return false
	default:
		return s.LastFailureInfo == nil || s.LastFailureInfo.Reason != v1alpha1.RuntimeUnhealthy
	}
}

// wantsLoad tells whether the model is to be loaded at once, and not with its first request: where it is new, failed, replaces
// another or waits for a pod. Only an order makes the mesh report that no instance can load a model, and each time it reports it again.
func wantsLoad(s v1alpha1.PredictorStatus) bool {
	switch s.ActiveModelState {
	case v1alpha1.Pending, v1alpha1.FailedToLoad:
		return true
	default:
		return waits(s) && s.ActiveModelState == v1alpha1.Loading || s.TargetModelState != v1alpha1.NoState
	}
}

// waits tells that no instance is there that could load the model.
func waits(s v1alpha1.PredictorStatus) bool {
	return s.LastFailureInfo != nil && s.LastFailureInfo.Reason == v1alpha1.RuntimeUnhealthy
}

// invalidRuntime is between the words that users know and what has to be changed before there can be a pod.
const invalidRuntime = ": invalid "

// awaitedPod returns how a failure begins that says which pod is awaited, and "" for all others.
func awaitedPod(f *v1alpha1.FailureInfo) string {
	for _, text := range []string{textNoPods, textNoHome} {
		if f != nil && f.Reason == v1alpha1.RuntimeUnhealthy && strings.HasPrefix(f.Message, text) {
			return text
		}
	}
	return ""
}

// awaitsChange reports a failure that lasts until the runtime is changed.
func awaitsChange(f *v1alpha1.FailureInfo) bool {
	text := awaitedPod(f)
	return text != "" && strings.HasPrefix(f.Message, text+invalidRuntime)
}

// silent tells a failure that says that the mesh did not answer.
func silent(f *v1alpha1.FailureInfo) bool {
	return f != nil && strings.HasPrefix(f.Message, textSilent)
}

// underway tells whether the state will change without a user's doing.
func underway(s v1alpha1.PredictorStatus) bool {
	return s.ActiveModelState == v1alpha1.Loading || s.TargetModelState == v1alpha1.Loading || s.TransitionStatus == v1alpha1.InProgress || waits(s)
}
