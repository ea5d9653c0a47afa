package framework_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	suiteTimeout  = 10 * time.Minute
	specTimeout   = 2 * time.Minute
	installDir    = "test/cluster/operator/testdata/install"
	managerSource = "./test/cluster/operator/testdata/manager"
)

func TestFramework(t *testing.T) { framework.Run(t, "Framework") }

var (
	env       *framework.Env
	installed *operator.Installed
	binary    string
)

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "framework", cluster.Bare, framework.WithNodes(1))
	installed = env.InstallOperator(ctx, installDir)
	var err error
	binary, err = cluster.BuildProgram(ctx, managerSource, nil, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
}, NodeTimeout(suiteTimeout))
