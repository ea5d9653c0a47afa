package foundation

import (
	"context"
	"net/http"
	"regexp"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

const (
	fieldOwner = "apply-test"
	component  = "applytest"
)

// applyEnv is a namespace with an owner, a cache like in the manager, and an applier whose requests are counted.
type applyEnv struct {
	namespace     string
	owner         *rbacv1.ClusterRole
	applier       *apply.Applier
	cache         cache.Cache
	config        *rest.Config
	reads, writes *atomic.Int64
}

func newApplyEnv(ctx context.Context) *applyEnv {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "apply-"}}
	Expect(env.Admin.Create(ctx, namespace)).To(Succeed())
	testEnv := &applyEnv{namespace: namespace.Name, reads: &atomic.Int64{}, writes: &atomic.Int64{}}
	testEnv.owner = testEnv.newOwner(ctx, "owner")
	testEnv.config = rest.CopyConfig(env.Config)
	testEnv.config.QPS, testEnv.config.Burst = 1000, 1000

	var err error
	testEnv.cache, err = cache.New(testEnv.config, cache.Options{
		Scheme:               scheme.Scheme,
		DefaultTransform:     apply.Transform(fieldOwner),
		DefaultLabelSelector: labels.SelectorFromSet(names.Labels(component)),
	})
	Expect(err).NotTo(HaveOccurred())
	cacheCtx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- testEnv.cache.Start(cacheCtx) }()
	DeferCleanup(func() {
		stop()
		Eventually(done).Should(Receive())
	})
	Expect(testEnv.cache.WaitForCacheSync(ctx)).To(BeTrue())
	testEnv.start(earlyClock{})
	return testEnv
}

// newOwner creates a cluster-scoped object, which can own objects in every namespace.
func (a *applyEnv) newOwner(ctx context.Context, name string) *rbacv1.ClusterRole {
	owner := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: a.namespace + "-" + name}}
	Expect(env.Admin.Create(ctx, owner)).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, owner))).To(Succeed())
	})
	return owner
}

// earlyClock is one minute behind, so that the applier treats the owners of a spec as created after its own start.
type earlyClock struct{ clock.RealClock }

func (c earlyClock) Now() time.Time { return c.RealClock.Now().Add(-time.Minute) }

func (c earlyClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// restart replaces the applier with one that has no records and treats the existing owners as created before its start.
func (a *applyEnv) restart(legacyManagers ...string) { a.start(clock.RealClock{}, legacyManagers...) }

func (a *applyEnv) start(clk clock.PassiveClock, legacyManagers ...string) {
	counted := rest.CopyConfig(a.config)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{a, next} })
	live, err := client.New(counted, client.Options{Scheme: scheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
	cached, err := client.New(counted, client.Options{Scheme: scheme.Scheme, Cache: &client.CacheOptions{Reader: a.cache}})
	Expect(err).NotTo(HaveOccurred())
	a.applier = apply.New(apply.Options{
		Client: cached, Live: live, FieldOwner: fieldOwner, Component: component, LegacyManagers: legacyManagers, Clock: clk,
		FullObjectKinds: []schema.GroupVersionKind{{Group: "apps", Version: "v1", Kind: "Deployment"}},
	})
}

// counter counts the read and write requests, except discovery.
type counter struct {
	*applyEnv
	next http.RoundTripper
}

// discovery matches the paths of API discovery.
var discovery = regexp.MustCompile(`^/api(/[^/]+)?$|^/apis(/[^/]+){0,2}$`)

func (c counter) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case r.Method != http.MethodGet:
		c.writes.Add(1)
	case !discovery.MatchString(r.URL.Path):
		c.reads.Add(1)
	}
	return c.next.RoundTrip(r)
}

// apply applies the objects and returns the number of read and write requests.
func (a *applyEnv) apply(ctx context.Context, desired apply.Desired) (reads, writes int64, err error) {
	a.reads.Store(0)
	a.writes.Store(0)
	err = a.applier.Apply(ctx, a.owner, desired)
	return a.reads.Load(), a.writes.Load(), err
}

// ownerReads is the number of reads of the owner: the applier reads the owner before it creates the only object without an owner reference.
const ownerReads = 1

// expectRequests applies the objects and expects the given numbers of read and write requests.
func (a *applyEnv) expectRequests(ctx context.Context, desired apply.Desired, reads, writes int) {
	GinkgoHelper()
	gotReads, gotWrites, err := a.apply(ctx, desired)
	Expect(err).NotTo(HaveOccurred())
	Expect(gotReads).To(BeEquivalentTo(reads), "reads")
	Expect(gotWrites).To(BeEquivalentTo(writes), "writes")
}

// live reads an object from the API server, not from the cache.
func (a *applyEnv) live(ctx context.Context, kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	GinkgoHelper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	Expect(env.Admin.Get(ctx, client.ObjectKey{Namespace: a.namespace, Name: name}, object)).To(Succeed())
	return object
}

// waitForCache waits until the cache contains the current version of every desired object, or a newer one.
func (a *applyEnv) waitForCache(ctx context.Context, desired apply.Desired) {
	GinkgoHelper()
	rendered, err := apply.Render(desired, component, a.owner)
	Expect(err).NotTo(HaveOccurred())
	for _, object := range rendered {
		Expect(env.Admin.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		cached := a.cachedType(object.GroupVersionKind())
		Eventually(func() (int, error) {
			if err := a.cache.Get(ctx, client.ObjectKeyFromObject(object), cached); err != nil {
				return -1, client.IgnoreNotFound(err)
			}
			return resourceversion.CompareResourceVersion(cached.GetResourceVersion(), object.GetResourceVersion())
		}).Should(BeNumerically(">=", 0), "%s in the cache", object.GetKind())
	}
}

// cachedType returns an empty object of the type that the cache stores for a kind.
func (a *applyEnv) cachedType(kind schema.GroupVersionKind) client.Object {
	if kind.Kind == "Deployment" {
		return &appsv1.Deployment{}
	}
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(kind)
	return metadata
}

// patch sends a merge patch as another field manager.
func (a *applyEnv) patch(ctx context.Context, object client.Object, body string, options ...client.PatchOption) {
	GinkgoHelper()
	options = append([]client.PatchOption{client.FieldOwner("another-manager")}, options...)
	Expect(env.Admin.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(body)), options...)).To(Succeed())
}

func installWidgets(ctx context.Context) {
	Expect(client.IgnoreAlreadyExists(env.Admin.Create(ctx, widgetCRD()))).To(Succeed())
	Eventually(func() error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(widgetKind)
		return env.Admin.List(ctx, list)
	}).Should(Succeed())
}
