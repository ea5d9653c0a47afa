package mlflow

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// ConditionModule says whether the platform has handed MLflow over. It exists only while the component platform is on.
const ConditionModule = "MLflowOperatorReady"

// Reasons of ConditionModule beside those of the MLflowOperator itself.
const (
	ReasonModuleReady    = "Ready"
	ReasonModuleMissing  = "MLflowOperatorMissing"
	ReasonModuleStale    = "MLflowOperatorStatusStale"
	ReasonModuleNotReady = "MLflowOperatorNotReady"

	// reasonInstancesPresent is the reason of an MLflowOperator whose deletion waits for the MLflow objects.
	reasonInstancesPresent = "MLflowInstancesPresent"
)

const (
	messageModuleWaiting = "Waiting for MLflowOperator to become ready before reconciling MLflow custom resources"
	messageModuleReady   = "MLflowOperator is ready to manage MLflow custom resources"
)

// mlflowOperatorKind is the resource with which the platform hands MLflow over.
var mlflowOperatorKind = platformv1alpha1.GroupVersion.WithKind("MLflowOperator")

// verdict is what an MLflowOperator means for the MLflow objects.
type verdict struct {
	// open: they are reconciled.
	open bool
	// silent: nothing is known that is worth saying.
	silent bool
	// ready, reason and message are those of ConditionModule.
	ready           metav1.ConditionStatus
	reason, message string
}

func closed(reason, detail string) verdict {
	message := messageModuleWaiting
	if detail != "" {
		message += ": " + detail
	}
	return verdict{ready: metav1.ConditionFalse, reason: reason, message: message}
}

// judge decides from the MLflowOperator, or nil when there is none. One that is being deleted keeps the servers
// that it let in: their end was not requested, so they are repaired like all others.
func judge(module *platformv1alpha1.MLflowOperator) verdict {
	if module == nil {
		return closed(ReasonModuleMissing, "there is no MLflowOperator "+platformv1alpha1.MLflowOperatorName)
	}
	var ready platformv1alpha1.Condition
	i := slices.IndexFunc(module.Status.Conditions, func(c platformv1alpha1.Condition) bool { return c.Type == "Ready" })
	if i >= 0 {
		ready = module.Status.Conditions[i]
	}
	deleting, isReady := module.DeletionTimestamp != nil, ready.Status == metav1.ConditionTrue
	switch observed := module.Status.ObservedGeneration; {
	case deleting && ready.Reason == reasonInstancesPresent:
		return verdict{open: true, ready: metav1.ConditionFalse, reason: ready.Reason, message: ready.Message}
	case deleting && isReady: // its status is about to report more
		return verdict{open: true, silent: true}
	case observed > 0 && observed < module.Generation:
		return closed(ReasonModuleStale, fmt.Sprintf("its status is about generation %d, and it has generation %d", observed, module.Generation))
	case i < 0:
		return closed(ReasonModuleNotReady, "")
	case isReady:
		return verdict{open: true, ready: metav1.ConditionTrue, reason: ReasonModuleReady, message: messageModuleReady}
	case ready.Reason == "":
		return closed(ReasonModuleNotReady, ready.Message)
	default:
		return closed(ready.Reason, ready.Message)
	}
}

// module is the gate between the platform and the MLflow objects. With the component platform off it is always open.
type module struct {
	on     bool
	cached client.Reader
	served func() capability.Set
	// spec is that of the MLflowOperator as the last reconciliation saw it; nil when there is none.
	spec atomic.Pointer[platformv1alpha1.MLflowOperatorSpec]
}

// pass is the phase that lets an MLflow through, or says what it waits for. Events of the MLflowOperator and its API wake it.
func (g *module) pass(ctx context.Context, m *mlflowv1.MLflow) error {
	if !g.on {
		conditions.Remove(&m.Status.Conditions, ConditionModule)
		return nil
	}
	found, err := g.find(ctx)
	if err != nil {
		return err
	}
	v := judge(found)
	if !g.served().Has(mlflowOperatorKind) {
		v = closed(ReasonModuleMissing, "the cluster does not serve "+mlflowOperatorKind.GroupKind().String()+"; install its definition")
	}
	if !v.silent {
		setCondition(m, ConditionModule, v.ready, v.reason, v.message)
	}
	if v.open {
		return nil
	}
	setCondition(m, ConditionAvailable, metav1.ConditionFalse, v.reason, v.message)
	setCondition(m, ConditionProgressing, metav1.ConditionTrue, v.reason, v.message)
	return &reconciler.Wait{For: "MLflowOperator " + platformv1alpha1.MLflowOperatorName}
}

// find reads the MLflowOperator from the cache, and remembers its spec for the inputs of this reconciliation.
func (g *module) find(ctx context.Context) (*platformv1alpha1.MLflowOperator, error) {
	g.spec.Store(nil)
	if !g.served().Has(mlflowOperatorKind) {
		return nil, nil
	}
	found := &platformv1alpha1.MLflowOperator{}
	err := g.cached.Get(ctx, client.ObjectKey{Name: platformv1alpha1.MLflowOperatorName}, found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading MLflowOperator %s: %w", platformv1alpha1.MLflowOperatorName, err)
	}
	g.spec.Store(&found.Spec)
	return found, nil
}

// inputs joins the settings, what the cluster serves and what the platform decided.
func (g *module) inputs(settings Settings) resources.Inputs {
	return overlay(settings.Inputs(g.served()), g.spec.Load())
}

// overlay lets the platform's decisions take the place of the settings; nil changes nothing.
func overlay(in resources.Inputs, spec *platformv1alpha1.MLflowOperatorSpec) resources.Inputs {
	if spec == nil {
		return in
	}
	if name := strings.TrimSpace(spec.GatewayName); name != "" {
		in.GatewayName = name
	}
	if title := strings.TrimSpace(spec.SectionTitle); title != "" {
		in.SectionTitle = title
	}
	if spec.Gateway != nil && !in.Exposure.Ingress() {
		if url := domainURL(spec.Gateway.Domain); url != "" {
			in.ExternalURL = url
		}
	}
	return in
}

// domainURL makes the base of public URLs of the domain of a gateway; "" when it names none.
func domainURL(domain string) string {
	domain = strings.TrimRightFunc(strings.TrimSpace(domain), func(r rune) bool { return r == '/' || unicode.IsSpace(r) })
	if domain == "" || strings.HasPrefix(domain, "http://") || strings.HasPrefix(domain, "https://") {
		return domain
	}
	return "https://" + domain
}

// isModule admits events of the one MLflowOperator that counts.
func isModule() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == platformv1alpha1.MLflowOperatorName })
}

// follow wakes every MLflow when the MLflowOperator changes. Without the component platform no controller looks after the
// finalizer of an MLflowOperator that it left behind, so it is taken off when that one is deleted.
func (g *module) follow(ctx context.Context, mgr ctrl.Manager, served *capability.Watcher, c capability.Controller, every handler.EventHandler) error {
	if !g.on {
		return releaseModule(ctx, mgr, served)
	}
	served.Watch(ctx, c, mlflowOperatorKind, func() source.Source {
		return source.Kind(mgr.GetCache(), client.Object(&platformv1alpha1.MLflowOperator{}), every, isModule())
	})
	return nil
}
