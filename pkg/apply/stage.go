package apply

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Stage says when an object is written. The objects of one call of Apply are written stage by stage, and none of a stage is
// written while one of an earlier stage could not be: pods must not run without what guards them, nor be reached before that.
type Stage int

const (
	// Guards are accounts, rights, policies, configuration, Secrets and claims: what pods run under, and all kinds not named below.
	Guards Stage = iota
	// Workloads are what pods come from.
	Workloads
	// Exposure is what leads to pods, shows them to users, or watches and scales them.
	Exposure
)

// These are the kinds that are no guards, whatever their group.
var (
	workloads = sets.New("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "Pod")
	exposure  = sets.New("Service", "Route", "HTTPRoute", "Ingress", "ReferenceGrant", "BackendTLSPolicy", "ConsoleLink", "ServiceMonitor", "PodMonitor",
		"PrometheusRule", "PodDisruptionBudget", "HorizontalPodAutoscaler")
)

// StageOf returns the stage in which objects of a kind are written.
func StageOf(kind schema.GroupKind) Stage {
	switch {
	case workloads.Has(kind.Kind):
		return Workloads
	case exposure.Has(kind.Kind):
		return Exposure
	default:
		return Guards
	}
}

// Stage returns the stage in which an object is written.
func (o Object) Stage() Stage {
	k, err := identify(o.Config)
	if err != nil {
		return Guards // nothing may come before it is known what it is
	}
	return StageOf(k.GroupKind())
}

// Of returns the objects of some stages, in order.
func (d Desired) Of(wanted ...Stage) Desired {
	return slices.DeleteFunc(slices.Clone(d), func(o Object) bool { return !slices.Contains(wanted, o.Stage()) })
}

// HeldBackError says that objects were not written because others are missing that must exist before them. It wraps what went wrong
// with these, so that it can be judged by that.
type HeldBackError struct {
	// Objects are those that were held back, each as "Kind namespace/name".
	Objects []string
	// Err joins one *Error for each object that could not be written.
	Err error
}

// Error implements error. The text names what is missing first.
func (e *HeldBackError) Error() string {
	return fmt.Sprintf("%v; until then not written: %s", e.Err, strings.Join(e.Objects, ", "))
}

// Unwrap returns the reason.
func (e *HeldBackError) Unwrap() error {
	return e.Err
}

// OnlyExposure says that an error consists of nothing but objects that lead to pods, show or watch them: what runs is as it shall be.
func OnlyExposure(err error) bool {
	return OnlyErrors(err, func(err error) bool {
		e, is := any(err).(*Error)
		return is && e.Stage == Exposure
	})
}
