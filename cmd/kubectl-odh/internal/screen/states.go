package screen

import "github.com/odh-platform/odh-platform-operator/pkg/inspect/health"

// Of is the paint of a state of health.
func Of(state health.State) Paint {
	switch state {
	case health.Healthy:
		return Green
	case health.Failed:
		return Red
	case health.Idle:
		return Dim
	}
	return Yellow
}

// roomy is the width from which on a line has room for reasons.
const roomy = 100

// Narrow tells that a line has no room for reasons, which then stand before the messages.
func (s Style) Narrow() bool { return s.Width > 0 && s.Width < roomy }

// More is what a line of its own says about what needs attention; empty about what is well.
func (s Style) More(v health.Verdict) string {
	switch {
	case v.State.OK():
		return ""
	case !s.Narrow() || v.Reason == "":
		return v.Message
	case v.Message == "":
		return v.Reason
	}
	return v.Reason + ": " + v.Message
}
