// Package install_test installs, changes and removes the operator with make, kubectl and Helm, as a user does, on a real control plane.
package install_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const specTimeout = 6 * time.Minute

// All specs share one control plane, which serves the APIs of OpenShift. Each spec removes its installation.
var (
	env            *framework.Env
	kubectl        string
	port           int // of the webhooks of the running manager
	initialObjects map[string]bool
)

func TestInstall(t *testing.T) { framework.Run(t, "Installation") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "install", cluster.OpenShift, framework.WithSets(cluster.KServe),
		framework.WithTypes(mlflowv1.AddToScheme, v1beta1.AddToScheme))
	path, err := cluster.Kubectl(ctx, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	kubectl = path
	ports, err := env.Instance.ReservePorts(ctx, 1)
	Expect(err).NotTo(HaveOccurred())
	port = ports[0]
	for _, namespace := range []string{"opendatahub", "redhat-ods-applications", "openshift-config-managed", "openshift-ingress"} {
		createRestrictedNamespace(ctx, namespace)
	}
	initialObjects = listObjects(ctx)
}, NodeTimeout(framework.StartTimeout))
