package modelregistry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	pkgresources "github.com/odh-platform/odh-platform-operator/pkg/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/routestatus"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/pkg/status/serving"
)

// Condition types of registries.
const (
	// ConditionAvailable is True if clients can reach the server, through its proxy if it has one.
	ConditionAvailable = "Available"
	// ConditionProgressing is True if the last reconcile created or updated objects.
	ConditionProgressing = "Progressing"
	// ConditionProxy exists while the registry has a proxy, and is True if the proxy serves clients.
	ConditionProxy = "KubeRBACProxyAvailable"
	// ConditionDegraded exists on terminating registries.
	ConditionDegraded = "Degraded"
	// ConditionUnusedDatabase exists, and is True, only while a generated database exists and the spec no longer uses it.
	ConditionUnusedDatabase = "UnusedDatabase"
	// ConditionEarlierData exists, and is True, only while the claim of a generated database is older than the registry.
	ConditionEarlierData = "EarlierData"
	// ConditionStorage exists, and is False, only while claims differ from spec.postgres.storage or spec.postgres.backup.storage.
	ConditionStorage = "StorageInSync"
	// ConditionDatabaseImage exists, and is False, only while the desired image must not run on the data of the generated database. Package
	// database has its reasons and those of ConditionBackup.
	ConditionDatabaseImage = "DatabaseImageInSync"
	// ConditionBackup exists while backups of a generated database are enabled. Ready does not depend on it.
	ConditionBackup = "BackupReady"
	// routestatus.Condition exists only while a route of the registry is rejected, another Ingress has its host, or no Gateway has reported
	// a status for it. reference.Condition exists, and is False, only while a Secret or ConfigMap of the spec, or a key of it, is missing.
	// servingcert.Condition and servingcert.DatabaseCondition exist only while a certificate of a user expires soon.
)

// Reasons of the conditions, in addition to those of package serving.
const (
	ReasonMisplaced            = "NotAllowedHere"
	ReasonConfiguration        = "ConfigurationError"
	ReasonAlert                = "ResourcesAlert"
	ReasonResourcesUnavailable = "ResourcesUnavailable"
	ReasonResourcesAvailable   = "ResourcesAvailable"
	ReasonCreating             = "CreatingDeployment"
	ReasonUpdating             = "UpdatingDeployment"
	ReasonCreated              = "CreatedDeployment"
	ReasonFinalizing           = "Finalizing"
	ReasonKept                 = "DatabaseKept"
	ReasonEarlierData          = "DataTakenUp"
	ReasonClaimDiffers         = "ClaimDiffers"
)

func setCondition(m *v1beta1.ModelRegistry, conditionType string, status metav1.ConditionStatus, reason, message string) {
	conditions.Set(&m.Status.Conditions, conditionType, status, reason, message, m.Generation)
}

// removeOutdatedConditions removes the condition of a proxy that the spec no longer has, and those of a legacy operator.
func (r *registryReconciler) removeOutdatedConditions(_ context.Context, m *v1beta1.ModelRegistry) error {
	if m.Spec.KubeRBACProxy == nil {
		conditions.Remove(&m.Status.Conditions, ConditionProxy)
	}
	r.takeOver.Adopt(m, nil)
	return nil
}

// reportFailure sets the registry unavailable because of an error.
func reportFailure(m *v1beta1.ModelRegistry, err error) {
	reportUnavailable(m, conditionReason{reason: serving.ReasonUnavailable, message: fmt.Sprintf("unexpected reconcile error: %v", err)})
}

// conditionReason is the reason and message of a condition that is not True.
type conditionReason struct{ reason, message string }

// reportUnavailable sets the conditions of server and proxy to False.
func reportUnavailable(m *v1beta1.ModelRegistry, problem conditionReason) {
	setCondition(m, ConditionAvailable, metav1.ConditionFalse, problem.reason, problem.message)
	if m.Spec.KubeRBACProxy != nil {
		reason := ReasonResourcesUnavailable
		if slices.Contains([]string{serving.ReasonStarting, serving.ReasonCooldown, routestatus.ReasonNotAdmitted}, problem.reason) {
			reason = problem.reason
		}
		setCondition(m, ConditionProxy, metav1.ConditionFalse, reason, problem.message)
	}
}

// reportAvailable sets the conditions of server and proxy to True. rollout is the problem of new pods, if any.
func reportAvailable(m *v1beta1.ModelRegistry, rollout string) {
	message := "Deployment is available"
	if rollout != "" {
		message += "; the rollout of the current spec is not finished: " + rollout
	}
	setCondition(m, ConditionAvailable, metav1.ConditionTrue, serving.ReasonAvailable, message)
	if m.Spec.KubeRBACProxy != nil {
		setCondition(m, ConditionProxy, metav1.ConditionTrue, ReasonResourcesAvailable, "kube-rbac-proxy was successfully created")
	}
}

// reportSpec sets the hosts and the defaults in the status, both from the same snapshot of the spec.
func reportSpec(m, effective *v1beta1.ModelRegistry, in resources.Inputs) {
	m.Status.Hosts = resources.Hosts(effective, in)
	m.Status.HostsStr = strings.Join(m.Status.Hosts, ",")
	m.Status.SpecDefaults = resources.SpecDefaults(&m.Spec, &effective.Spec)
}

// observeServer sets the conditions of the server, its database and its backups.
func (r *registryReconciler) observeServer(ctx context.Context, m *v1beta1.ModelRegistry) error {
	if err := errors.Join(r.reportUnusedDatabase(ctx, m), r.reportBackup(ctx, m)); err != nil {
		return err
	}
	readers := []client.Reader{r.Cached, r.APIReader}
	if uid, _ := r.Applier.Version(m.UID, servers.Deployment, client.ObjectKey{Namespace: m.Namespace, Name: resources.ServiceName(m)}); uid != "" {
		readers = readers[:1] // the cache has it, or will have it soon, because it has the managed label
	}
	d, err := servers.DeploymentFrom(ctx, m.Namespace, resources.ServiceName(m), readers...)
	if err != nil {
		return err
	}
	m.Status.Scale = pkgresources.ScaleStatus(d, resources.ServerSelector(m))
	serverState, err := r.evaluateServer(ctx, m, d)
	if err != nil {
		return err
	}
	if serverState.Status != metav1.ConditionTrue {
		reportUnavailable(m, conditionReason{serverState.Reason, serverState.Message})
		return &reconciler.Wait{
			For: "the server to become available", Retry: cmp.Or(serverState.Retry, reconciler.RequeueUnavailable), Stalled: conditions.ProgressDeadlineExceeded(d),
		}
	}
	return r.reportRollout(ctx, m, d, serverState.CheckPods)
}

// evaluateServer returns the state of the server and its proxy, with the problem of an unavailable replica.
func (r *registryReconciler) evaluateServer(ctx context.Context, m *v1beta1.ModelRegistry, d *appsv1.Deployment) (serving.State, error) {
	service := client.ObjectKey{Namespace: m.Namespace, Name: resources.ServiceName(m)}
	wasAvailable := conditions.IsTrue(m.Status.Conditions, ConditionAvailable)
	serverState, err := r.Evaluate(ctx, d, service, wasAvailable)
	switch available := serverState.Status == metav1.ConditionTrue; {
	case err != nil:
		return serverState, err
	case available && m.Spec.KubeRBACProxy != nil:
		problem, err := r.checkProxy(ctx, m, d)
		if problem.message != "" {
			serverState = serving.WaitingFor(d, r.Clock.Now(), problem.message)
			if serverState.Reason != serving.ReasonStarting {
				serverState.Reason = ReasonResourcesUnavailable
			}
			serverState.Reason = cmp.Or(problem.reason, serverState.Reason)
		}
		return serverState, err
	case available, !serverState.CheckPods:
		return serverState, nil
	case d.Status.UnavailableReplicas != 0:
		problem, err := r.diagnose(ctx, m, d)
		if problem != nil {
			serverState.Reason, serverState.Message = problem.reason, problem.message
		}
		return serverState, err
	}
	if conditions.DeploymentCondition(d, appsv1.DeploymentAvailable).Status != "" {
		serverState.Reason = serving.ReasonUnavailable
	}
	return serverState, nil
}

// reportRollout sets the server available. While a rollout is incomplete, the message contains the problem of the new pods, unless they
// start normally.
func (r *registryReconciler) reportRollout(ctx context.Context, m *v1beta1.ModelRegistry, d *appsv1.Deployment, incomplete bool) error {
	if !incomplete {
		reportAvailable(m, "")
		return nil
	}
	problem, err := r.diagnose(ctx, m, d)
	if err != nil {
		return err
	}
	rollout := ""
	if problem.reason != serving.ReasonStarting {
		rollout = problem.message
	}
	reportAvailable(m, rollout)
	return &reconciler.Wait{For: "the rollout to end", Retry: reconciler.RequeueUnavailable, Unready: true, Stalled: conditions.ProgressDeadlineExceeded(d)}
}

// reportEarlierData sets condition EarlierData if the claim is older than the registry, and removes it otherwise.
func (r *registryReconciler) reportEarlierData(m *v1beta1.ModelRegistry, claim *corev1.PersistentVolumeClaim) {
	if claim == nil || !claim.CreationTimestamp.Before(&m.CreationTimestamp) {
		conditions.Remove(&m.Status.Conditions, ConditionEarlierData)
		return
	}
	message := fmt.Sprintf("PersistentVolumeClaim %s is older than this registry, which shows the models that are stored in it: "+
		"to begin without them, delete the registry, the claim and Secret %s, and create the registry again", claim.Name, resources.CredentialsName(m))
	if meta.FindStatusCondition(m.Status.Conditions, ConditionEarlierData) == nil {
		r.eventf(m, corev1.EventTypeNormal, ReasonEarlierData, message)
	}
	setCondition(m, ConditionEarlierData, metav1.ConditionTrue, ReasonEarlierData, message)
}

// reportUnusedDatabase sets condition UnusedDatabase if a generated database exists and the spec no longer uses it.
func (r *registryReconciler) reportUnusedDatabase(ctx context.Context, m *v1beta1.ModelRegistry) error {
	d := &appsv1.Deployment{}
	if !generatesDatabase(m) {
		err := r.Cached.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: resources.DatabaseName(m)}, d)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading Deployment %s: %w", resources.DatabaseName(m), err)
		}
	}
	if !metav1.IsControlledBy(d, m) {
		conditions.Remove(&m.Status.Conditions, ConditionUnusedDatabase)
		return nil
	}
	setCondition(m, ConditionUnusedDatabase, metav1.ConditionTrue, ReasonKept, fmt.Sprintf(
		"Deployment %s is no longer used: move its data, then delete Deployment, Service, NetworkPolicies and PersistentVolumeClaim of the database", d.Name))
	return nil
}
