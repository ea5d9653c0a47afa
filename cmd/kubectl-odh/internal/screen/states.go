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
