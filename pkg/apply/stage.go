package apply

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Stage orders the objects of one Apply. No object of a stage is written while one of an earlier stage fails: pods must not run before
// their prerequisites are met, or be reachable before they run.
type Stage int

const (
	// Prerequisites are ServiceAccounts, RBAC, policies, configuration, Secrets, PersistentVolumeClaims and all kinds not named below.
	Prerequisites Stage = iota
	// Workloads are pods and the kinds that create pods.
	Workloads
	// Exposure contains the kinds that route traffic to pods, show them to users, monitor or scale them.
	Exposure
)

// stages contains the kinds of the later stages, in any API group.
var stages = map[string]Stage{
	"Deployment": Workloads, "StatefulSet": Workloads, "DaemonSet": Workloads, "ReplicaSet": Workloads, "Job": Workloads, "CronJob": Workloads, "Pod": Workloads,
	"Service": Exposure, "Route": Exposure, "HTTPRoute": Exposure, "Ingress": Exposure, "ReferenceGrant": Exposure, "BackendTLSPolicy": Exposure,
	"ConsoleLink": Exposure, "ServiceMonitor": Exposure, "PodMonitor": Exposure, "PrometheusRule": Exposure, "PodDisruptionBudget": Exposure,
	"HorizontalPodAutoscaler": Exposure,
}

// StageOf returns the stage of a kind.
func StageOf(kind schema.GroupKind) Stage { return stages[kind.Kind] }

// Stage returns the stage of an object.
func (o Object) Stage() Stage {
	k, err := keyOf(o.Config)
	if err != nil {
		return Prerequisites // so that no object is written before the error is reported
	}
	return StageOf(k.GroupKind())
}

// InStages returns the objects of the given stages, in order.
func (d Desired) InStages(stages ...Stage) Desired {
	return slices.DeleteFunc(slices.Clone(d), func(o Object) bool { return !slices.Contains(stages, o.Stage()) })
}

// StageError reports the objects that were skipped because a prerequisite failed.
type StageError struct {
	// Skipped lists the skipped objects, each as "Kind namespace/name".
	Skipped []string
	// Err joins one *Error for each failed object.
	Err error
}

// Error implements error. The message starts with the failures.
func (e *StageError) Error() string {
	return fmt.Sprintf("%v; until then not written: %s", e.Err, strings.Join(e.Skipped, ", "))
}

// Unwrap returns the failures.
func (e *StageError) Unwrap() error {
	return e.Err
}

// OnlyExposureFailed reports whether all errors are about objects of the stage Exposure, so that the workloads are as desired.
func OnlyExposureFailed(err error) bool {
	return AllErrorsMatch(err, func(err error) bool {
		e, ok := any(err).(*Error)
		return ok && e.Stage == Exposure
	})
}
