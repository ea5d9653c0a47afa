package modelregistry

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
	"github.com/odh-platform/odh-platform-operator/pkg/status/serving"
)

// Condition types of registries.
const (
	// ConditionAvailable says that the server answers, through its proxy if it has one.
	ConditionAvailable = "Available"
	// ConditionProgressing says that objects of the registry have just been written.
	ConditionProgressing = "Progressing"
	// ConditionProxy exists while the registry has a proxy, and says that the proxy admits callers.
	ConditionProxy = "KubeRBACProxyAvailable"
	// ConditionDegraded exists on registries that are being deleted.
	ConditionDegraded = "Degraded"
	// ConditionLeftover exists, and is True, only while a generated database runs that the registry does not use any more.
	ConditionLeftover = "UnusedDatabase"
	// ConditionStorage exists, and is False, only while the claims of a generated database and its backups cannot become what
	// spec.postgres.storage and spec.postgres.backup.storage ask for.
	ConditionStorage = "StorageInSync"
	// ConditionDatabaseImage exists, and is False, only while a generated database does not run the image that it is to run, because that
	// could not read its data. Its reasons, and those of ConditionBackup, are in package database.
	ConditionDatabaseImage = "DatabaseImageInSync"
	// ConditionBackup exists while spec.postgres.backup is set, and says how the last one ended. It takes nothing from Ready.
	ConditionBackup = "BackupReady"
	// ConditionDatabaseCertificate exists, and is False, only while a certificate of a generated database runs out that the operator
	// did not issue.
	ConditionDatabaseCertificate = "DatabaseCertificateReady"
	// reference.Condition exists, and is False, only while a Secret or ConfigMap does not exist that the spec names.
	// servingcert.Condition exists, and is False, only while a certificate runs out that the operator did not issue.
)

// Reasons of the conditions, beside those of package serving.
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
	ReasonClaimDiffers         = "ClaimDiffers"
)

func setCondition(m *v1beta1.ModelRegistry, kind string, status metav1.ConditionStatus, reason, message string) {
	conditions.Set(&m.Status.Conditions, kind, status, reason, message, m.Generation)
}

// reportFailure says what ended a reconcile.
func reportFailure(m *v1beta1.ModelRegistry, err error) {
	reportUnavailable(m, finding{reason: serving.ReasonUnavailable, message: fmt.Sprintf("unexpected reconcile error: %v", err)})
}

// finding is why a server is not available.
type finding struct {
	reason, message string
}

// reportUnavailable reports why the server is not available, and its proxy with it.
func reportUnavailable(m *v1beta1.ModelRegistry, f finding) {
	setCondition(m, ConditionAvailable, metav1.ConditionFalse, f.reason, f.message)
	if m.Spec.KubeRBACProxy != nil {
		reason := ReasonResourcesUnavailable
		if f.reason == serving.ReasonStarting || f.reason == serving.ReasonCooldown {
			reason = f.reason
		}
		setCondition(m, ConditionProxy, metav1.ConditionFalse, reason, f.message)
	}
}

// reportAvailable reports that the server answers, and what keeps its next pods from taking over.
func reportAvailable(m *v1beta1.ModelRegistry, rollout string) {
	message := "Deployment is available"
	if rollout != "" {
		message += "; pods of its present spec are not: " + rollout
	}
	setCondition(m, ConditionAvailable, metav1.ConditionTrue, serving.ReasonAvailable, message)
	if m.Spec.KubeRBACProxy != nil {
		setCondition(m, ConditionProxy, metav1.ConditionTrue, ReasonResourcesAvailable, "kube-rbac-proxy was successfully created")
	}
}

// reportSpec reports where the registry is reached and which defaults are in force. Both come from the same snapshot of the spec.
func reportSpec(m, used *v1beta1.ModelRegistry, in resources.Inputs) error {
	m.Status.Hosts = resources.Hosts(used, in)
	m.Status.HostsStr = strings.Join(m.Status.Hosts, ",")
	defaults, err := resources.SpecDefaults(&m.Spec, &used.Spec)
	if err != nil {
		return err
	}
	m.Status.SpecDefaults = defaults
	return nil
}

// waitForStatus ends a reconcile so that its status is written before the next one.
func waitForStatus() error {
	return &reconciler.Wait{For: "the status to be written", Retry: time.Millisecond}
}
