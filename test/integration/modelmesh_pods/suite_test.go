package modelmesh_pods_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	specTimeout = 3 * time.Minute
	// waitTimeout limits the wait for the ServiceAccount of a new namespace, and retries after conflicts.
	waitTimeout  = 90 * time.Second
	pollInterval = 100 * time.Millisecond
)

// The specs send the rendered objects of runtimes to an API server without a manager, to check validation, defaulting and Pod Security.
// Each spec has its own namespaces.
var env *framework.Env

func TestModelMeshPods(t *testing.T) { framework.Run(t, "Pods of ModelMesh") }

var _ = BeforeSuite(func(ctx SpecContext) {
	env = framework.Start(ctx, "modelmesh-pods", cluster.Plain, framework.WithSets(cluster.KServe))
	env.KeepNamespaces = true
}, NodeTimeout(framework.StartTimeout))
