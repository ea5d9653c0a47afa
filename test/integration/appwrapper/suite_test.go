package appwrapper_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	specTimeout = 5 * time.Minute
	waitTimeout = 2 * time.Minute
	poll        = 100 * time.Millisecond
	// idlePeriod is the time for which a spec expects no request; see [framework.Env.ExpectIdle] for the check of the whole suite.
	idlePeriod = time.Second
)

// All specs share one control plane and one manager with the shipped permissions; each spec has its own namespace. Without Kueue,
// the specs suspend and resume the AppWrappers.
var (
	env     *framework.Env
	manager *framework.Manager
)

func TestAppWrapper(t *testing.T) { framework.Run(t, "AppWrapper") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "appwrapper", cluster.Plain, framework.WithTypes(awv1beta2.AddToScheme), framework.WithOperator("config/default"))
	env.KeepNamespaces = true
	env.InstallCRDs(ctx, framework.SampleCRD("kubeflow.org", "v1", "PyTorchJob"), framework.SampleCRD("jobset.x-k8s.io", "v1alpha2", "JobSet"),
		framework.SampleCRD("scheduling.x-k8s.io", "v1alpha1", "PodGroup"), framework.SampleCRD("test.example.com", "v1", "Gadget")) // no role has rules for Gadgets
	env.DisableWebhooks(ctx)
	manager = env.StartManager(ctx, framework.ManagerOptions{
		Args: []string{"--components=appwrapper", "--metrics-bind-address=127.0.0.1:0"},
	})
}, NodeTimeout(framework.StartTimeout))
