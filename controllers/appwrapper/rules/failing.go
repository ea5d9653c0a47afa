package rules

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// maxFailure bounds the message about a failure in bytes.
const maxFailure = 1024

// resetOrFail tries again and counts it, while the limit allows it. An exit code may forbid it.
func (f *Facts) resetOrFail(reason, message, detail string) Decision {
	if f.Pods.Terminal {
		return f.fail(reason, message, detail)
	}
	return f.resetWithin(reason, message, detail, 1)
}

// evacuate resets without counting and whatever exit codes there were: the workload is not to blame.
func (f *Facts) evacuate(reason, message string) Decision {
	return f.resetWithin(reason, message, "", 0)
}

func (f *Facts) resetWithin(reason, message, detail string, increment int32) Decision {
	if f.Retries >= f.Terms.RetryLimit {
		return f.fail(reason, message, detail)
	}
	d := to(awv1beta2.PhaseResetting, NewCondition(awv1beta2.ConditionUnhealthy, metav1.ConditionTrue, reason, message))
	d.Retry, d.Failure = increment, f.account(reason, message, detail)
	return d
}

// fail ends the workload.
func (f *Facts) fail(reason, message, detail string) Decision {
	d := to(awv1beta2.PhaseFailed, NewCondition(awv1beta2.ConditionUnhealthy, metav1.ConditionTrue, reason, message))
	d.Conditions = append(d.Conditions, f.clear(awv1beta2.ConditionPodsReady, awv1beta2.ReasonFailed, "")...)
	d.Completed, d.Failure = &f.Now, f.account(reason, message, detail)
	return d
}

// account keeps what is known of a failure before its remains are deleted.
func (f *Facts) account(reason, message, detail string) *awv1beta2.AppWrapperFailure {
	text := message
	for _, part := range []string{detail, f.Pods.Report} {
		switch {
		case part == "":
		case text == "":
			text = part
		default:
			text += "; " + part
		}
	}
	return &awv1beta2.AppWrapperFailure{Time: metav1.NewTime(f.Now), Reason: reason, Message: conditions.Clip(text, maxFailure)}
}
