package framework

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
	"github.com/odh-platform/odh-platform-operator/test/node"
)

const (
	// StartTimeout bounds a BeforeSuite. The first suite on a machine builds the control plane and the programs.
	StartTimeout = 30 * time.Minute

	stopTimeout = time.Minute
	// removeTimeout is longer because the folder of a real node contains the files of all its images.
	removeTimeout = 5 * time.Minute
)

// Env is a running control plane with a client of its administrator.
type Env struct {
	// Instance is the control plane.
	Instance *cluster.Instance
	// Admin reads and writes without a cache, as user [cluster.AdminUser].
	Admin client.Client
	// Config is the client configuration of the administrator.
	Config *rest.Config
	// KubeconfigPath is the kubeconfig of the administrator.
	KubeconfigPath string
	// Scheme is the scheme of Admin. It contains the Kubernetes types, CustomResourceDefinition and the types of WithTypes.
	Scheme *runtime.Scheme

	// Installed is the operator of [WithOperator]. Its ServiceAccount is the default of [Env.StartManager].
	Installed *operator.Installed

	// KeepNamespaces keeps the namespaces of specs until the control plane stops. Deleting the namespaces of all specs takes a quarter of the
	// CPU time of kube-apiserver, etcd and kube-controller-manager.
	KeepNamespaces bool
	// ClearNamespaces deletes the custom resources in the namespaces of specs instead of the namespaces, see [Env.ClearNamespace], so that the
	// manager stops reconciling them.
	ClearNamespaces bool
	// PrunedPeriod is the period in which the API server prunes fields that managers write, because the CRDs are older. Writes without a
	// change are allowed during it.
	PrunedPeriod struct{ From, To time.Time }

	clock       clock.PassiveClock
	managers    recordedManagers
	idlePeriods []idlePeriod
	// managerStartStopTimes are the times at which a manager started or stopped.
	managerStartStopTimes []time.Time
}

// WithOperator installs a kustomization of this checkout like [Env.InstallOperator], but serves its CRDs from the start. This costs the
// API server much less.
func WithOperator(kustomizeDir string) Option {
	return func(s *setup) { s.operator = kustomizeDir }
}

// Option configures [Start].
type Option func(*setup)

type setup struct {
	types []func(*runtime.Scheme) error
	sets  []cluster.Set
	nodes int
	// realNode replaces the fake nodes.
	realNode bool
	// operator is the kustomization to install.
	operator string
	// objects of the kustomization.
	objects []*unstructured.Unstructured
}

// WithTypes adds types to the scheme of Admin.
func WithTypes(add ...func(*runtime.Scheme) error) Option {
	return func(s *setup) { s.types = append(s.types, add...) }
}

// WithSets serves additional sets of CRDs, such as [cluster.KServe].
func WithSets(sets ...cluster.Set) Option {
	return func(s *setup) { s.sets = append(s.sets, sets...) }
}

// WithNodes sets the number of fake nodes.
func WithNodes(count int) Option {
	return func(s *setup) { s.nodes = count }
}

// WithRealNode runs pods on one real node, see package node. The suite is skipped on machines that do not support it.
func WithRealNode() Option {
	return func(s *setup) { s.realNode = true }
}

// Start starts an instance for the calling suite, and stops it at the end of the suite. The suite fails if the instance does not become
// ready.
func Start(ctx context.Context, name string, platform cluster.Platform, options ...Option) *Env {
	ginkgo.GinkgoHelper()
	var s setup
	for _, option := range options {
		option(&s)
	}
	scheme := runtime.NewScheme()
	s.types = append(s.types, clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme)
	for _, add := range s.types {
		gomega.Expect(add(scheme)).To(gomega.Succeed())
	}
	crds, err := s.crds()
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	instance, err := cluster.Start(ctx, cluster.Options{
		Name: fmt.Sprintf("%s-%d", name, os.Getpid()), Platform: platform, Sets: s.sets, CRDs: crds, Nodes: s.nodes, Real: s.realNode, Ephemeral: true,
		Progress: ginkgo.GinkgoWriter,
	})
	if errors.Is(err, node.ErrUnsupported) {
		ginkgo.Skip(err.Error())
	}
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	ginkgo.DeferCleanup(func(ctx context.Context) {
		gomega.Expect(instance.Stop(ctx)).To(gomega.Succeed())
	}, ginkgo.NodeTimeout(removeTimeout))
	config, err := instance.Config()
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	admin, err := client.New(config, client.Options{Scheme: scheme})
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	env := &Env{
		Instance: instance, Admin: admin, Config: config, KubeconfigPath: instance.Kubeconfig(), Scheme: scheme,
		clock: clock.RealClock{},
	}
	if !s.realNode { // a Gateway controller can run on a real node
		env.acceptRoutes()
	}
	ginkgo.DeferCleanup(env.recordRights, ginkgo.NodeTimeout(removeTimeout))
	ginkgo.DeferCleanup(env.checkIdle, ginkgo.NodeTimeout(removeTimeout))
	if s.operator != "" {
		env.Installed, err = operator.InstallObjects(ctx, instance, s.objects)
		gomega.Expect(err).NotTo(gomega.HaveOccurred(), "installing %s", s.operator)
	}
	return env
}

// crds builds the kustomization of the operator to install, and returns its CRDs.
func (s *setup) crds() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	if s.operator == "" {
		return nil, nil
	}
	var err error
	if s.objects, err = operator.Kustomize(s.operator); err != nil {
		return nil, err
	}
	return operator.CRDs(s.objects)
}

// InstallOperator installs a kustomization of this checkout without the Deployment of the manager, see [operator.Install].
func (e *Env) InstallOperator(ctx context.Context, kustomizeDir string) *operator.Installed {
	ginkgo.GinkgoHelper()
	installed, err := operator.Install(ctx, e.Instance, kustomizeDir)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return installed
}
