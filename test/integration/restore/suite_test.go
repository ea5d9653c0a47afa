// Package restore_test deletes and restores all objects of a user as Velero does, and removes a status field from the CRDs, as if they were
// from an earlier release.
package restore_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/test/everykind"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	specTimeout = 10 * time.Minute
	waitTimeout = 2 * time.Minute
	// idlePeriod is how long the manager must send no request to count as idle.
	idlePeriod = 4 * time.Second
)

// The specs share one control plane, and one manager with the default components and exactly the shipped permissions.
var (
	env     *everykind.Cluster
	manager *framework.Manager
)

func TestRestore(t *testing.T) { framework.Run(t, "Restore") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = everykind.Start(ctx, "restore", "config/default")
	manager = env.StartManager(ctx, env.Options(env.Installed))
}, NodeTimeout(framework.StartTimeout))

// createAndWaitReady creates the resources of package everykind that do not exist, and waits until all are ready and the manager is idle.
func createAndWaitReady(ctx context.Context) []*unstructured.Unstructured {
	GinkgoHelper()
	env.Namespace(ctx)
	resources := env.Resources()
	env.Create(ctx, resources...)
	env.WaitReady(ctx, resources)
	env.WaitIdle(manager.User, idlePeriod, waitTimeout)
	return resources
}
