package modelregistry_admission_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	specTimeout = 2 * time.Minute
	// waitTimeout limits the waits for the API server and the manager.
	waitTimeout  = time.Minute
	pollInterval = 100 * time.Millisecond
)

// All specs share one control plane and a manager with the shipped permissions, whose webhooks the API server calls. The manager never
// becomes the leader, so only admission and conversion change objects, except in the specs of the storage migration.
var (
	env     *framework.Env
	manager *framework.Manager
)

func TestModelRegistryAdmission(t *testing.T) { framework.Run(t, "Model registry admission") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "modelregistry-admission", cluster.OpenShift, framework.WithOperator("config/default"), framework.WithTypes(
		v1alpha1.AddToScheme, v1beta1.AddToScheme, aihubv1alpha1.AddToScheme, platformv1alpha1.AddToScheme))
	env.KeepNamespaces = true
	env.HoldLease(ctx)
	manager = startManager(ctx)
	waitForWebhooks(ctx)
}, NodeTimeout(framework.StartTimeout))
