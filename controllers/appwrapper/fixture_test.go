package appwrapper

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/test/fakeapi"
)

var (
	awKey           = types.NamespacedName{Namespace: "team", Name: "train"}
	jobKind         = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
	configMapKind   = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	clusterRoleKind = schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
	namespacedKinds = []schema.GroupVersionKind{podKind, jobKind, configMapKind, rayJobKind}
	testFinalizer   = "test.example.com/hold"
)

// fixture is a fake API server and an operator process, which tests can restart.
type fixture struct {
	testing.TB
	server client.WithWatch
	clock  *clocktesting.FakeClock
	events *events.FakeRecorder

	*workloadReconciler
	base reconcile.Reconciler

	// uncached are the names of objects that the cache does not hold.
	uncached map[string]bool
	// apiDeleted is the result of kindReader.apiDeleted.
	apiDeleted bool
	// beforeRequest may reject a request, afterRequest may lose its response. Their argument is "verb kind name", or
	// "patch status kind name" for a status patch.
	beforeRequest, afterRequest func(request string) error
	writes, reads               []string
	uids                        int
	// createdUIDs are the UIDs of created objects by name. processes is the number of started processes.
	createdUIDs map[string][]types.UID
	processes   int
}

// newAppWrapper returns an AppWrapper with the given JSON templates.
func newAppWrapper(templates []string, changes ...func(*awv1beta2.AppWrapper)) *awv1beta2.AppWrapper {
	aw := &awv1beta2.AppWrapper{ObjectMeta: metav1.ObjectMeta{Namespace: awKey.Namespace, Name: awKey.Name, UID: "aw-uid", Generation: 1,
		CreationTimestamp: metav1.NewTime(noon), Annotations: map[string]string{}, Labels: map[string]string{awv1beta2.LabelUser: "alice"}}}
	for _, template := range templates {
		aw.Spec.Components = append(aw.Spec.Components, awv1beta2.AppWrapperComponent{Template: runtime.RawExtension{Raw: []byte(template)}})
	}
	for _, change := range changes {
		change(aw)
	}
	return aw
}

func withAnnotations(pairs ...string) func(*awv1beta2.AppWrapper) {
	return func(aw *awv1beta2.AppWrapper) {
		for i := 0; i < len(pairs); i += 2 {
			aw.Annotations[awv1beta2.AnnotationPrefix+pairs[i]] = pairs[i+1]
		}
	}
}

func podJSON(name string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q},"spec":{"restartPolicy":"Never","containers":[{"name":"main","image":"i"}]}}`, name)
}

func jobJSON(name string, pods int) string {
	return fmt.Sprintf(`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":%q},"spec":{"parallelism":%d,"completions":%d,
		"template":{"spec":{"containers":[{"name":"main","image":"i"}]}}}}`, name, pods, pods)
}

const (
	configMapJSON      = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"settings-"},"data":{"a":"b"}}`
	namedConfigMapJSON = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"fixed"}}`
	rayJobJSON         = `{"apiVersion":"ray.io/v1","kind":"RayJob","metadata":{"name":"ray"},"spec":{"rayClusterSpec":{"headGroupSpec":{"template":{"spec":{"containers":[{"name":"head","image":"i"}]}}}}}}`
)

func testMapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for _, kind := range append(slices.Clone(namespacedKinds), awv1beta2.GroupVersion.WithKind(awv1beta2.Kind)) {
		m.Add(kind, meta.RESTScopeNamespace)
	}
	m.Add(clusterRoleKind, meta.RESTScopeRoot)
	m.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	return m
}

func newFixture(t testing.TB, aw *awv1beta2.AppWrapper, objects ...client.Object) *fixture {
	t.Helper()
	scheme := fakeapi.Scheme(awv1beta2.AddToScheme)
	f := &fixture{TB: t, clock: clocktesting.NewFakeClock(noon), events: events.NewFakeRecorder(10000), uncached: map[string]bool{},
		createdUIDs: map[string][]types.UID{}}
	noError := func(string) error { return nil }
	f.beforeRequest, f.afterRequest = noError, noError
	f.server = fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(testMapper()).WithStatusSubresource(&awv1beta2.AppWrapper{}, &corev1.Pod{}).
		WithObjects(append(objects, aw)...).
		WithIndex(&corev1.Pod{}, podIndex, func(o client.Object) []string { return []string{o.GetLabels()[awv1beta2.LabelAppWrapper]} }).
		WithIndex(&awv1beta2.AppWrapper{}, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} }).
		WithIndex(&corev1.Event{}, "type", func(o client.Object) []string { return []string{o.(*corev1.Event).Type} }).
		WithInterceptorFuncs(interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			f.uids++
			o.SetUID(types.UID(fmt.Sprintf("uid-%d", f.uids)))
			o.SetCreationTimestamp(metav1.NewTime(f.clock.Now()))
			if err := c.Create(ctx, o, opts...); err != nil {
				o.SetUID("")
				o.SetCreationTimestamp(metav1.Time{})
				return err
			}
			f.createdUIDs[o.GetName()] = append(f.createdUIDs[o.GetName()], o.GetUID())
			return nil
		}}).Build()
	f.restart()
	return f
}

// restart starts another process, with an empty memory.
func (f *fixture) restart() {
	f.processes++
	intercept := func(write bool, verb string, o client.Object, send func() error) error {
		request := verb + " " + kindName(o)
		if o.GetName() != "" {
			request += " " + o.GetName()
		}
		if write {
			f.writes = append(f.writes, request)
		} else {
			f.reads = append(f.reads, request)
		}
		if err := f.beforeRequest(request); err != nil {
			return err
		}
		if err := send(); err != nil {
			return err
		}
		return f.afterRequest(request)
	}
	writeClient := interceptor.NewClient(f.server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := c.Get(ctx, key, o, opts...); err != nil {
				return err
			}
			_, err := Transform(o) // as in the cache
			return err
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return intercept(true, "create", o, func() error { return c.Create(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return intercept(true, "delete", o, func() error { return c.Delete(ctx, o, opts...) })
		},
		Apply: fakeapi.Apply,
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return intercept(true, "patch", o, func() error { return c.Patch(ctx, o, p, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return intercept(true, "patch "+sub, o, func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
	})
	liveClient := interceptor.NewClient(f.server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			o.SetName(key.Name)
			return intercept(false, "get", o, func() error { return c.Get(ctx, key, o, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			f.reads = append(f.reads, "list "+list.GetObjectKind().GroupVersionKind().Kind)
			return c.List(ctx, list, opts...)
		},
	})
	settings := defaultSettings()
	settings.Clock = f.clock
	kinds := &kindReader{cache: &fakeCache{WithWatch: f.server, fixture: f}, apiReader: liveClient, apiDeleted: func(context.Context, schema.GroupVersionKind) bool { return f.apiDeleted }, clock: f.clock, log: logr.Discard(), watched: map[schema.GroupVersionKind]*watchedKind{}}
	kinds.handler = componentHandler(discardQueue{}, func(types.UID, types.UID) {})
	applier := apply.New(apply.Options{Client: writeClient, Live: liveClient, FieldOwner: FieldOwner, Component: ComponentName})
	f.workloadReconciler = newWorkloadReconciler(settings, applier, kinds, testMapper())
	f.recorder = f.events
	f.base = reconciler.New(reconciler.Options{Client: writeClient, Component: ComponentName}, f.logic())
}

// noon is the start time of tests. resourcesDeployed and quotaReserved are types of conditions.
var (
	noon                             = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	resourcesDeployed, quotaReserved = awv1beta2.ConditionResourcesDeployed, awv1beta2.ConditionQuotaReserved
)

// defaultSettings returns the settings of an empty configuration.
func defaultSettings() Settings { return SettingsOf(config.DefaultAppWrapper()) }

// discardQueue is a queue that drops requests.
type discardQueue struct{ reconcileQueue }

type reconcileQueue = interface {
	Add(reconcile.Request)
	Len() int
	Get() (reconcile.Request, bool)
	Done(reconcile.Request)
	ShutDown()
	ShutDownWithDrain()
	ShuttingDown() bool
}

func (discardQueue) Add(reconcile.Request) {}

func kindName(o client.Object) string {
	if kind := o.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	switch o.(type) {
	case *awv1beta2.AppWrapper:
		return "AppWrapper"
	default:
		return fmt.Sprintf("%T", o)
	}
}

// fakeCache reads from the server, except for uncached objects.
type fakeCache struct {
	client.WithWatch
	fixture *fixture
}

func (c *fakeCache) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if c.fixture.uncached[key.Name] {
		return c.WithWatch.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: "missing"}, o, opts...)
	}
	return c.WithWatch.Get(ctx, key, o, opts...)
}

func (*fakeCache) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return syncedInformer{}, nil
}

func (*fakeCache) RemoveInformer(context.Context, client.Object) error { return nil }

type syncedInformer struct{ cache.Informer }

func (syncedInformer) AddEventHandler(toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return syncedRegistration{}, nil
}

type syncedRegistration struct {
	toolscache.ResourceEventHandlerRegistration
}

func (syncedRegistration) HasSynced() bool { return true }

// get reads the AppWrapper.
func (f *fixture) get() *awv1beta2.AppWrapper {
	f.Helper()
	aw := &awv1beta2.AppWrapper{}
	if err := f.server.Get(context.Background(), awKey, aw); err != nil {
		f.Fatal(err)
	}
	return aw
}

func (f *fixture) reconcileOnce() (ctrl.Result, error) {
	return f.base.Reconcile(context.Background(), ctrl.Request{NamespacedName: awKey})
}

// reconcileUntilWait reconciles until the process waits for an event, or for longer than the limit.
func (f *fixture) reconcileUntilWait(limit time.Duration) error {
	f.Helper()
	for range 200 {
		result, err := f.reconcileOnce()
		switch {
		case err != nil:
			return err
		case result.RequeueAfter == 0 || result.RequeueAfter > limit:
			return nil
		}
		f.clock.Step(result.RequeueAfter)
	}
	f.Fatalf("the reconciler still requeues after 200 reconciles; last writes: %q", f.writes[len(f.writes)-10:])
	return nil
}

// reconcileToPhase reconciles until the process waits, and expects a phase.
func (f *fixture) reconcileToPhase(phase awv1beta2.AppWrapperPhase) *awv1beta2.AppWrapper {
	f.Helper()
	if err := f.reconcileUntilWait(time.Second); err != nil {
		f.Fatal(err)
	}
	aw := f.get()
	if aw.Status.Phase != phase {
		status, _ := json.Marshal(aw.Status)
		f.Fatalf("got phase %s, want %s; status %s", aw.Status.Phase, phase, status)
	}
	return aw
}

// setPodPhase sets the phase of the named pods, or of all pods.
func (f *fixture) setPodPhase(phase corev1.PodPhase, names ...string) {
	f.Helper()
	list := &corev1.PodList{}
	if err := f.server.List(context.Background(), list, client.InNamespace(awKey.Namespace)); err != nil {
		f.Fatal(err)
	}
	for i := range list.Items {
		pod := &list.Items[i]
		if len(names) > 0 && !slices.Contains(names, pod.Name) {
			continue
		}
		pod.Status.Phase = phase
		if phase == corev1.PodFailed {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error"}}}}
		}
		if err := f.server.Status().Update(context.Background(), pod); err != nil {
			f.Fatal(err)
		}
	}
}

// updateAppWrapper changes the AppWrapper as a user does.
func (f *fixture) updateAppWrapper(change func(*awv1beta2.AppWrapper)) {
	f.Helper()
	aw := f.get()
	change(aw)
	aw.Generation++
	if err := f.server.Update(context.Background(), aw); err != nil {
		f.Fatal(err)
	}
}

// countRequests returns how often the requests contain a request.
func countRequests(requests []string, request string) int {
	sum := 0
	for _, r := range requests {
		if r == request {
			sum++
		}
	}
	return sum
}

// cacheWithoutPods is a cache that holds no pods.
type cacheWithoutPods struct{ fakeCache }

func (*cacheWithoutPods) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return nil
}
