package modelregistry

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

// requestsFor returns the registries that an event of an object enqueues.
func requestsFor(t *testing.T, h handler.TypedEventHandler[client.Object, reconcile.Request], o client.Object) []string {
	t.Helper()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	h.Create(t.Context(), event.CreateEvent{Object: o}, queue)
	var all []string
	for queue.Len() > 0 {
		request, _ := queue.Get()
		all = append(all, request.String())
		queue.Done(request)
	}
	return all
}

func withLabels(o client.Object, namespace, name string, labels map[string]string) client.Object {
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetLabels(labels)
	return o
}

// Objects without an owner reference enqueue their registry by labels; those of other components enqueue nothing.
func TestEventsByLabels(t *testing.T) {
	managed := names.Labels(ComponentName)
	with := func(labels map[string]string, more ...string) map[string]string {
		all := map[string]string{}
		for key, value := range labels {
			all[key] = value
		}
		for i := 0; i+1 < len(more); i += 2 {
			all[more[i]] = more[i+1]
		}
		return all
	}
	for name, test := range map[string]struct {
		handler handler.TypedEventHandler[client.Object, reconcile.Request]
		object  client.Object
		want    []string
	}{
		"cluster-scoped object":                             {enqueueNamed(resources.LabelApp, true), withLabels(&corev1.ConfigMap{}, "", "x", with(managed, resources.LabelApp, "demo", resources.LabelNamespace, "ns")), []string{"ns/demo"}},
		"cluster-scoped object without the namespace label": {enqueueNamed(resources.LabelApp, true), withLabels(&corev1.ConfigMap{}, "", "x", with(managed, resources.LabelApp, "demo")), nil},
		"object of the catalog": {enqueueNamed(resources.LabelApp, true), withLabels(&corev1.ConfigMap{}, "", "x",
			with(names.Labels("modelcatalog"), resources.LabelApp, "demo", resources.LabelNamespace, "ns")), nil},
		"pod of the server":                    {enqueueNamed(resources.LabelApp, false), withLabels(&corev1.Pod{}, "ns", "demo-1", map[string]string{resources.LabelApp: "demo"}), []string{"ns/demo"}},
		"pod of the database":                  {enqueueNamed(resources.LabelApp, false), withLabels(&corev1.Pod{}, "ns", "demo-postgres-1", resources.DatabaseSelector(newRegistry("demo"))), []string{"ns/demo"}},
		"pod without labels":                   {enqueueNamed(resources.LabelApp, false), withLabels(&corev1.Pod{}, "ns", "x", nil), nil},
		"EndpointSlice of the registry":        {enqueueNamed(discoveryv1.LabelServiceName, true), withLabels(&discoveryv1.EndpointSlice{}, "ns", "x", with(managed, discoveryv1.LabelServiceName, "demo")), []string{"ns/demo"}},
		"EndpointSlice without managed labels": {enqueueNamed(discoveryv1.LabelServiceName, true), withLabels(&discoveryv1.EndpointSlice{}, "ns", "x", map[string]string{discoveryv1.LabelServiceName: "demo"}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, requestsFor(t, test.handler, test.object)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// [W2] Secrets, ConfigMaps and claims enqueue the registries of their namespace that use them.
func TestEventsOfReferencedObjects(t *testing.T) {
	otherRegistry := newRegistry("demo")
	otherRegistry.Namespace = "elsewhere"
	env := newTestEnv(t, nil, newRegistry("demo", registrytest.AddProxy), newRegistry("own", withGeneratedDatabase), newRegistry("tls", registrytest.PostgresTLS), otherRegistry)
	secret := func(name string) client.Object { return withLabels(&corev1.Secret{}, "ns", name, nil) }
	for name, test := range map[string]struct {
		uses   func(*v1beta1.ModelRegistry, string) bool
		object client.Object
		want   []string
	}{
		"password":                      {usesSecret, secret("pg-login"), []string{"ns/demo", "ns/tls"}},
		"certificate of the spec":       {usesSecret, secret("team-a-kube-rbac-proxy"), []string{"ns/demo"}},
		"certificate of the platform":   {usesSecret, secret("own-kube-rbac-proxy"), []string{"ns/own"}},
		"generated credentials":         {usesSecret, secret("own-postgres-credentials"), []string{"ns/own"}},
		"credentials of no registry":    {usesSecret, secret("demo-postgres-credentials"), nil},
		"client certificate":            {usesSecret, secret("pg-client"), []string{"ns/tls"}},
		"Secret without a reference":    {usesSecret, secret("other"), nil},
		"claim":                         {usesClaim, withLabels(&corev1.PersistentVolumeClaim{}, "ns", "own-postgres-storage", nil), []string{"ns/own"}},
		"claim of no registry":          {usesClaim, withLabels(&corev1.PersistentVolumeClaim{}, "ns", "demo-postgres-storage", nil), nil},
		"ConfigMap without a reference": {usesConfigMap, withLabels(&corev1.ConfigMap{}, "ns", "other", nil), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, requestsFor(t, env.enqueueConsumers(test.uses), test.object)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if got := requestsFor(t, env.enqueueAll(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}}); len(got) != 4 {
		t.Errorf("got requests %v, want one for each registry", got)
	}
}

// Each cached kind is declared once. Of foreign objects, only the metadata of Secrets and ConfigMaps is cached.
func TestCaches(t *testing.T) {
	for _, namespace := range []string{"", "registries"} {
		seen := map[string]bool{}
		for _, need := range Caches(namespace) {
			if seen[need.Kind.String()] {
				t.Errorf("%s is declared twice", need.Kind)
			}
			seen[need.Kind.String()] = true
			if need.IncludeForeign && need.Kind != servers.Secret && need.Kind != servers.ConfigMap {
				t.Errorf("foreign objects of %s are cached", need.Kind)
			}
			if need.FullObjects && (need.Kind == servers.Secret || need.Kind == servers.ConfigMap) {
				t.Errorf("full objects of %s are cached", need.Kind)
			}
			if scoped := need.Namespace != ""; scoped && need.Namespace != namespace {
				t.Errorf("%s is cached in namespace %q, want %q", need.Kind, need.Namespace, namespace)
			}
		}
	}
}
