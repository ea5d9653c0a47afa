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

func dsci(namespace any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"applicationsNamespace": namespace}}}
	u.SetAPIVersion("dscinitialization.opendatahub.io/v1")
	u.SetKind("DSCInitialization")
	u.SetName("default-dsci")
	return u
}

// search is a locator that runs.
type search struct {
	*locator
	client  *dynamicfake.FakeDynamicClient
	changes atomic.Int32
}

func startSearch(t *testing.T, served bool, objects ...runtime.Object) *search {
	t.Helper()
	s := &search{client: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		deploymentResource: "DeploymentList", initializationResource: "DSCInitializationList",
	}, objects...)}
	s.locator = newLocator(s.client, clocktesting.NewFakeClock(time.Unix(0, 0)), logr.Discard(), "operators", func() { s.changes.Add(1) })
	s.SetServed(served)
	return s
}

func (s *search) run(t *testing.T) {
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

// finds waits until the locator says so.
func (s *search) finds(t *testing.T, openShift bool, want ...string) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		got, known := s.Namespaces(config.RayCluster{}, openShift)
		if known && slices.Equal(got, want) {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%v, known %t; want %v", got, known, want)
		case <-tick.C:
		}
	}
}

// [R2] [R18] KubeRay is where its Deployment is, among namespaces that tenants cannot have; else where the platform says, else
// where it usually is.
func TestWhereKubeRayIs(t *testing.T) {
	for name, tc := range map[string]struct {
		served, openShift bool
		objects           []runtime.Object
		want              []string
	}{
		"nothing is known, plain":          {false, false, nil, []string{"ray-system"}},
		"nothing is known, OpenShift":      {false, true, nil, []string{"opendatahub", "redhat-ods-applications"}},
		"the platform's kind, no object":   {true, true, nil, []string{"opendatahub", "redhat-ods-applications"}},
		"the platform says":                {true, true, []runtime.Object{dsci("apps")}, []string{"apps"}},
		"the platform says nothing":        {true, true, []runtime.Object{dsci("")}, []string{"opendatahub", "redhat-ods-applications"}},
		"the platform says something odd":  {true, true, []runtime.Object{dsci(int64(5))}, []string{"opendatahub", "redhat-ods-applications"}},
		"found beside the platform":        {true, true, []runtime.Object{dsci("apps"), kubeRayIn("redhat-ods-applications")}, []string{"redhat-ods-applications"}},
		"found where the platform says":    {true, true, []runtime.Object{dsci("apps"), kubeRayIn("apps"), kubeRayIn("opendatahub")}, []string{"apps", "opendatahub"}},
		"found beside the manager":         {false, false, []runtime.Object{kubeRayIn("operators")}, []string{"operators"}},
		"in the namespace of a tenant":     {false, false, []runtime.Object{kubeRayIn("tenant")}, []string{"ray-system"}},
		"where it usually is, and tenants": {false, false, []runtime.Object{kubeRayIn("tenant"), kubeRayIn("ray-system")}, []string{"ray-system"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := startSearch(t, tc.served, tc.objects...)
			if _, known := s.Namespaces(config.RayCluster{}, tc.openShift); known {
				t.Error("known before anybody looked")
			}
			s.run(t)
			s.finds(t, tc.openShift, tc.want...)
			if s.changes.Load() == 0 {
				t.Error("nobody was told")
			}
		})
	}
}

func TestKubeRayMoves(t *testing.T) {
	s := startSearch(t, false)
	s.run(t)
	s.finds(t, false, "ray-system")
	deadline := time.After(10 * time.Second)
	for watches := 0; watches < 4; { // one for each trusted namespace
		watches = 0
		for _, a := range s.client.Actions() {
			if a.GetVerb() == "watch" {
				watches++
			}
		}
		select {
		case <-deadline:
			t.Fatal("the watches do not run")
		default:
		}
	}
	if err := s.client.Tracker().Create(deploymentResource, kubeRayIn("operators"), "operators"); err != nil {
		t.Fatal(err)
	}
	s.finds(t, false, "operators")
	if err := s.client.Tracker().Delete(deploymentResource, "operators", "kuberay-operator"); err != nil {
		t.Fatal(err)
	}
	s.finds(t, false, "ray-system")
}

// [R2] Rights that are missing keep no cluster without policies.
func TestLookingIsForbidden(t *testing.T) {
	s := startSearch(t, true)
	s.client.PrependReactor("list", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", errors.New("no"))
	})
	s.run(t)
	s.finds(t, false, "ray-system")
}

func TestSettingsSayWhereKubeRayIs(t *testing.T) {
	s := startSearch(t, false)
	got, known := s.Namespaces(config.RayCluster{KubeRayNamespaces: []string{"mine"}}, true)
	if !known || !slices.Equal(got, []string{"mine"}) {
		t.Errorf("%v, known %t", got, known)
	}
	if !s.NeedLeaderElection() {
		t.Error("only a leader looks")
	}
}
