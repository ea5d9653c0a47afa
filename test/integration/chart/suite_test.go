// Package chart_test installs charts/mlflow on a real control plane.
package chart_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	helm "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
	"github.com/odh-platform/odh-platform-operator/test/parity"
)

const specTimeout = 5 * time.Minute

var (
	env   *framework.Env
	chart *helm.Chart
)

func TestChart(t *testing.T) { framework.Run(t, "Chart") }

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	chart, err = parity.Load()
	Expect(err).NotTo(HaveOccurred())
	env = framework.Start(ctx, "chart", cluster.Plain)
}, NodeTimeout(framework.StartTimeout))
