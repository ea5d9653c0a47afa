// Package upgrade_test upgrades the operator from an earlier version and downgrades it, with a resource of every kind in use.
package upgrade_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/odh-platform/odh-platform-operator/test/everykind"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	// previousCommit is the version from which users upgrade. After a release, set it to the commit of the release and empty the list
	// "Replaced pods" in CHANGELOG.md.
	previousCommit = "94407fc49cf01c223a3ce7ca93ab923e7900dae2"

	specTimeout = 10 * time.Minute
	waitTimeout = 2 * time.Minute
	// idlePeriod is how long the manager must send no request to count as idle.
	idlePeriod = 4 * time.Second
)

var (
	previous *previousRelease
	env      *everykind.Cluster
	manager  *framework.Manager
)

func TestUpgrade(t *testing.T) { framework.Run(t, "Upgrade") }

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	previous, err = fetchPreviousRelease(ctx, previousCommit)
	Expect(err).NotTo(HaveOccurred())
	env = everykind.Start(ctx, "upgrade", previous.tree+"/config/default")
}, NodeTimeout(framework.StartTimeout))
