package appwrapper

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/conditions"
)

// maxFailure bounds the message about a failure in bytes.
const maxFailure = 1024

// resetOrFail tries again and counts it, while the limit allows it. An exit code may forbid it.
func (f *facts) resetOrFail(reason, message, detail string) decision {
	if f.pods.terminal {
		return f.fail(reason, message, detail)
	}
	return f.resetWithin(reason, message, detail, 1)
}

// evacuate resets without counting and whatever exit codes there were: the workload is not to blame.
func (f *facts) evacuate(reason, message string) decision {
	return f.resetWithin(reason, message, "", 0)
}

func (f *facts) resetWithin(reason, message, detail string, increment int32) decision {
	if f.retries >= f.terms.RetryLimit {
		return f.fail(reason, message, detail)
	}
	d := to(awv1beta2.PhaseResetting, set(awv1beta2.ConditionUnhealthy, metav1.ConditionTrue, reason, message))
	d.retry, d.failure = increment, f.account(reason, message, detail)
	return d
}

// fail ends the workload.
func (f *facts) fail(reason, message, detail string) decision {
	d := to(awv1beta2.PhaseFailed, set(awv1beta2.ConditionUnhealthy, metav1.ConditionTrue, reason, message))
	d.conditions = append(d.conditions, f.clear(awv1beta2.ConditionPodsReady, awv1beta2.ReasonFailed, "")...)
	d.completed, d.failure = &f.now, f.account(reason, message, detail)
	return d
}

// account keeps what is known of a failure before its remains are deleted.
func (f *facts) account(reason, message, detail string) *awv1beta2.AppWrapperFailure {
	text := message
	for _, part := range []string{detail, f.pods.report} {
		switch {
		case part == "":
		case text == "":
			text = part
		default:
			text += "; " + part
		}
	}
	return &awv1beta2.AppWrapperFailure{Time: metav1.NewTime(f.now), Reason: reason, Message: conditions.Clip(text, maxFailure)}
}
