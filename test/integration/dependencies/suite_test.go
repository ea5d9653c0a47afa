// Package dependencies_test covers the optional dependencies of the operator: the ModelMesh etcd and its scripts, the quick start of
// ModelMesh, the OpenShift Templates for model uploads, the sample databases of registries, and the manifests of make deploy-kind.
package dependencies_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const specTimeout = 8 * time.Minute // linking the binaries takes minutes on a loaded machine

// All specs share one control plane and use their own namespaces.
var (
	env *framework.Env
	// binDir is a folder with kubectl, etcd and etcdctl.
	binDir string
)

func TestDependencies(t *testing.T) { framework.Run(t, "Dependencies") }

var _ = BeforeSuite(func(ctx SpecContext) {
	etcdctl, err := cluster.BuildPeer(ctx, cluster.Etcdctl, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	kubectl, err := cluster.Kubectl(ctx, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	_, err = operator.Build(ctx, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	env = framework.Start(ctx, "dependencies", cluster.Bare, framework.WithTypes(mlflowv1.AddToScheme))
	env.KeepNamespaces = true
	binDir = GinkgoT().TempDir()
	for _, path := range []string{etcdctl, kubectl, env.Instance.Process(cluster.Etcd).Path} {
		Expect(os.Symlink(path, filepath.Join(binDir, filepath.Base(path)))).To(Succeed())
	}
}, NodeTimeout(framework.StartTimeout))
