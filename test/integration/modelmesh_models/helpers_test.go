package modelmesh_models_test

import (
	"context"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/test/framework"
	"github.com/odh-platform/odh-platform-operator/test/modelmesh"
)

// loadGates delays loads: a model is loaded only after the gate with the name of its first path element, if any, is opened.
type loadGates struct {
	mu    sync.Mutex
	gates map[string]chan struct{}
}

func newGates() *loadGates { return &loadGates{gates: map[string]chan struct{}{}} }

// close creates a closed gate and returns a function that opens it. The gate is opened after the spec at the latest.
func (g *loadGates) close(name string) (open func()) {
	gate := make(chan struct{})
	g.mu.Lock()
	g.gates[name] = gate
	g.mu.Unlock()
	open = sync.OnceFunc(func() { close(gate) })
	DeferCleanup(open)
	return open
}

// load implements the loader of the fake ModelMesh.
func (g *loadGates) load(ctx context.Context, l modelmesh.Load) error {
	name, _, _ := strings.Cut(l.Path, "/")
	g.mu.Lock()
	gate := g.gates[name]
	g.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return modelmesh.ByPath(ctx, l)
}

// createNamespace creates a namespace that is enabled for ModelMesh.
func createNamespace(ctx SpecContext, prefix string) string {
	GinkgoHelper()
	name := env.Namespace(ctx, prefix)
	env.SetLabel(ctx, framework.NamespaceNamed(name), "modelmesh-enabled", "true")
	return name
}

// newRuntime returns a multi-model runtime for formats, each as name or name:version.
func newRuntime(name string, formats ...string) *v1alpha1.ServingRuntime {
	r := &v1alpha1.ServingRuntime{ObjectMeta: metav1.ObjectMeta{Name: name}}
	unmarshal(&r.Spec, `
multiModel: true
grpcEndpoint: "port:8085"
grpcDataEndpoint: "port:8001"
protocolVersions: [grpc-v2]
containers: [{name: server, image: registry.example.com/server:1, resources: {limits: {memory: 64Mi}}}]`)
	for _, f := range formats {
		format, version, found := strings.Cut(f, ":")
		supported := v1alpha1.SupportedModelFormat{Name: format, AutoSelect: new(true)}
		if found {
			supported.Version = new(version)
		}
		r.Spec.SupportedModelFormats = append(r.Spec.SupportedModelFormats, supported)
	}
	return r
}

func unmarshal(into any, text string) {
	GinkgoHelper()
	Expect(yaml.Unmarshal([]byte(text), into)).To(Succeed())
}

// create creates an object in a namespace and deletes it after the spec.
func create(ctx SpecContext, namespace string, object client.Object) {
	GinkgoHelper()
	object.SetNamespace(namespace)
	Expect(env.Admin.Create(ctx, object)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, object))).To(Succeed()) })
}

// createPredictor creates a Predictor in the shared namespace with runtimes.
func createPredictor(ctx SpecContext, name, spec string) *v1alpha1.Predictor {
	GinkgoHelper()
	return createPredictorIn(ctx, served, name, spec)
}

func createPredictorIn(ctx SpecContext, namespace, name, spec string) *v1alpha1.Predictor {
	GinkgoHelper()
	p := &v1alpha1.Predictor{ObjectMeta: metav1.ObjectMeta{Name: name}}
	unmarshal(&p.Spec, spec)
	create(ctx, namespace, p)
	return p
}

// createInferenceService creates an InferenceService in ModelMesh mode.
func createInferenceService(ctx SpecContext, namespace, name, predictor string) *v1beta1.InferenceService {
	GinkgoHelper()
	s := &v1beta1.InferenceService{ObjectMeta: metav1.ObjectMeta{
		Name: name, Annotations: map[string]string{v1beta1.AnnotationDeploymentMode: v1beta1.DeploymentModeModelMesh},
	}}
	unmarshal(&s.Spec.Predictor, predictor)
	create(ctx, namespace, s)
	return s
}

// state holds the fields of a Predictor's status that the specs compare.
type state struct {
	available      bool
	active, target v1alpha1.ModelState
	transition     v1alpha1.TransitionStatus
}

func stateOf(s v1alpha1.PredictorStatus) state {
	return state{s.Available, s.ActiveModelState, s.TargetModelState, s.TransitionStatus}
}

var (
	initialState = state{false, v1alpha1.Pending, v1alpha1.NoState, v1alpha1.UpToDate}
	readyState   = state{true, v1alpha1.Loaded, v1alpha1.NoState, v1alpha1.UpToDate}
	failedState  = state{false, v1alpha1.FailedToLoad, v1alpha1.NoState, v1alpha1.UpToDate}
)

// waitForState waits until a Predictor has a state.
func waitForState(ctx SpecContext, p *v1alpha1.Predictor, want state) {
	GinkgoHelper()
	env.WaitFor(ctx, p, func(g Gomega) { g.Expect(stateOf(p.Status)).To(Equal(want), "failure: %+v", p.Status.LastFailureInfo) })
}

// waitForFailure waits until the status of a Predictor has a failure reason.
func waitForFailure(ctx SpecContext, p *v1alpha1.Predictor, reason v1alpha1.FailureReason) *v1alpha1.FailureInfo {
	GinkgoHelper()
	env.WaitFor(ctx, p, func(g Gomega) {
		g.Expect(p.Status.LastFailureInfo).NotTo(BeNil())
		g.Expect(p.Status.LastFailureInfo.Reason).To(Equal(reason))
	})
	return p.Status.LastFailureInfo
}

// vmodels returns the names of the vmodels of a namespace in etcd.
func vmodels(ctx SpecContext, namespace string) []string {
	GinkgoHelper()
	etcdClient, err := clientv3.New(clientv3.Config{Endpoints: []string{etcd.URL}, Logger: zap.NewNop()})
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = etcdClient.Close() }() // a read-only client
	response, err := etcdClient.Get(ctx, "", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	Expect(err).NotTo(HaveOccurred())
	names := []string{}
	for _, kv := range response.Kvs {
		if keyPrefix, name, found := strings.Cut(string(kv.Key), "/vmodels/"); found && strings.Contains(keyPrefix, "/mm_ns/"+namespace+"/") {
			names = append(names, name)
		}
	}
	return names
}

// calls returns the number of calls that the routing layer of a namespace received.
func calls(namespace string) int {
	sum := 0
	for _, n := range network.Calls(namespace) {
		sum += n
	}
	return sum
}
