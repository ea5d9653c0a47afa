package raycluster

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

func kubeRayIn(namespace string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("apps/v1")
	u.SetKind("Deployment")
	u.SetNamespace(namespace)
	u.SetName("kuberay-operator")
	return u
}

// kubeRayBinding returns KubeRay's ClusterRoleBinding, as Helm and kustomize create it.
func kubeRayBinding(namespace string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"subjects": []any{
		map[string]any{"kind": "ServiceAccount", "name": "kuberay-operator", "namespace": namespace}, map[string]any{"kind": "Group", "name": "admins"},
	}}}
	u.SetAPIVersion("rbac.authorization.k8s.io/v1")
	u.SetKind("ClusterRoleBinding")
	u.SetName("kuberay-operator")
	return u
}

var deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

func dsci(namespace any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"applicationsNamespace": namespace}}}
	u.SetAPIVersion("dscinitialization.opendatahub.io/v1")
	u.SetKind("DSCInitialization")
	u.SetName("default-dsci")
	return u
}

// testLocator is a kubeRayLocator with a fake client. run starts it.
type testLocator struct {
	*kubeRayLocator
	client  *dynamicfake.FakeDynamicClient
	changes atomic.Int32
}

func newTestLocator(t *testing.T, served bool, objects ...runtime.Object) *testLocator {
	t.Helper()
	s := &testLocator{client: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		deployments: "DeploymentList", {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}: "ClusterRoleBindingList",
		{Group: "dscinitialization.opendatahub.io", Version: "v1", Resource: "dscinitializations"}: "DSCInitializationList",
	}, objects...)}
	s.kubeRayLocator = newKubeRayLocator(s.client, clocktesting.NewFakeClock(time.Unix(0, 0)), logr.Discard(), "operators")
	for _, source := range s.sources {
		source.Subscribe(t.Context(), func([]string) { s.changes.Add(1) })
	}
	s.initialization.SetServed(served)
	return s
}

func (s *testLocator) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// waitForNamespaces waits until discovery is complete with these namespaces.
func (s *testLocator) waitForNamespaces(t *testing.T, want ...string) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		got, known := s.Namespaces(config.RayCluster{})
		if known && slices.Equal(got, want) {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("got namespaces %v, known %t; want %v", got, known, want)
		case <-tick.C:
		}
	}
}

// [R2] [R18] The namespaces come from the subjects of KubeRay's binding, its Deployment in the namespace of the manager, and the
// DSCInitialization. Objects that tenants can create are ignored.
func TestKubeRayLocator(t *testing.T) {
	for name, tc := range map[string]struct {
		served  bool
		objects []runtime.Object
		want    []string
	}{
		"no KubeRay":                                 {false, nil, nil},
		"no DSCInitialization":                       {true, nil, nil},
		"DSCInitialization":                          {true, []runtime.Object{dsci("apps")}, []string{"apps"}},
		"empty namespace":                            {true, []runtime.Object{dsci("")}, nil},
		"namespace of a wrong type":                  {true, []runtime.Object{dsci(int64(5))}, nil},
		"binding of Helm":                            {false, []runtime.Object{kubeRayBinding("default")}, []string{"default"}},
		"binding and DSCInitialization":              {true, []runtime.Object{kubeRayBinding("default"), dsci("apps")}, []string{"apps", "default"}},
		"Deployment next to the manager":             {false, []runtime.Object{kubeRayIn("operators")}, []string{"operators"}},
		"Deployment next to the manager and binding": {false, []runtime.Object{kubeRayIn("operators"), kubeRayBinding("operators")}, []string{"operators"}},
		"Deployments in other namespaces":            {false, []runtime.Object{kubeRayIn("tenant"), kubeRayIn("ray-system"), kubeRayIn("opendatahub")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestLocator(t, tc.served, tc.objects...)
			if _, known := s.Namespaces(config.RayCluster{}); known {
				t.Error("the namespaces of KubeRay are known before the first list")
			}
			s.run(t)
			s.waitForNamespaces(t, tc.want...)
			if s.changes.Load() == 0 {
				t.Error("the listener was not called")
			}
		})
	}
}

func TestKubeRayLocatorFollowsChanges(t *testing.T) {
	s := newTestLocator(t, false)
	s.run(t)
	s.waitForNamespaces(t)
	deadline := time.After(10 * time.Second)
	for watches := 0; watches < 2; { // of the ClusterRoleBinding and of the Deployment
		watches = 0
		for _, a := range s.client.Actions() {
			if a.GetVerb() == "watch" {
				watches++
			}
		}
		select {
		case <-deadline:
			t.Fatal("timed out waiting for the watches to start")
		default:
		}
	}
	if err := s.client.Tracker().Create(deployments, kubeRayIn("operators"), "operators"); err != nil {
		t.Fatal(err)
	}
	s.waitForNamespaces(t, "operators")
	if err := s.client.Tracker().Delete(deployments, "operators", "kuberay-operator"); err != nil {
		t.Fatal(err)
	}
	s.waitForNamespaces(t)
}

// [R2] Without permissions, discovery completes without namespaces, so NetworkPolicies are not blocked.
func TestKubeRayLocatorWithoutRights(t *testing.T) {
	s := newTestLocator(t, true)
	s.client.PrependReactor("list", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", errors.New("no"))
	})
	s.run(t)
	s.waitForNamespaces(t)
}

func TestKubeRayLocatorPrefersSettings(t *testing.T) {
	s := newTestLocator(t, false)
	got, known := s.Namespaces(config.RayCluster{KubeRayNamespaces: []string{"mine"}})
	if !known || !slices.Equal(got, []string{"mine"}) {
		t.Errorf("got namespaces %v, known %t, want those of the settings", got, known)
	}
	if !s.NeedLeaderElection() {
		t.Error("want NeedLeaderElection to report true")
	}
}
