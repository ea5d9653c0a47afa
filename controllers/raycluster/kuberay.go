package raycluster

import (
	"context"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/follow"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// locator finds out from which namespaces KubeRay reaches the heads, see raycluster.KubeRayNamespaces. It is a manager Runnable.
type locator struct {
	log       logr.Logger
	changed   func()
	followers map[string]*follow.Follower

	mu sync.Mutex
	// found is what there is of each source, nil for nothing; one that has not been read yet is missing.
	found map[string]*unstructured.Unstructured
	// logged: the log says that KubeRay was not found.
	logged bool
}

// Sources of a locator.
const (
	fromBinding        = "ClusterRoleBinding"
	fromDeployment     = "Deployment"
	fromInitialization = "DSCInitialization"
)

// newLocator returns a locator for a manager in the namespace own. changed is called after each change of what it knows and must
// not block.
func newLocator(client dynamic.Interface, clk clock.Clock, log logr.Logger, own string, changed func()) *locator {
	l := &locator{log: log, changed: changed, followers: map[string]*follow.Follower{}, found: map[string]*unstructured.Unstructured{}}
	add := func(source, name string, resource dynamic.ResourceInterface, kind schema.GroupVersionResource) {
		l.followers[source] = follow.New(follow.Options{
			Client: resource, Resource: kind.GroupResource(), Name: name, Clock: clk, Log: log,
			Take: func(u *unstructured.Unstructured) { l.take(source, u) }, Denied: func() { l.take(source, nil) },
		})
	}
	bindings := rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings")
	add(fromBinding, raycluster.KubeRayName, client.Resource(bindings), bindings)
	deployments := appsv1.SchemeGroupVersion.WithResource("deployments")
	add(fromDeployment, raycluster.KubeRayName, client.Resource(deployments).Namespace(own), deployments)
	initializations := capability.DSCInitialization.GroupVersion().WithResource("dscinitializations")
	add(fromInitialization, raycluster.InitializationName, client.Resource(initializations), initializations)
	l.followers[fromBinding].SetServed(true)
	l.followers[fromDeployment].SetServed(true)
	return l
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: only a leader looks.
func (l *locator) NeedLeaderElection() bool { return true }

// SetServed says whether the cluster serves the platform's resource.
func (l *locator) SetServed(served bool) {
	if !served {
		l.take(fromInitialization, nil)
	}
	l.followers[fromInitialization].SetServed(served)
}

// Start implements manager.Runnable. It never fails.
func (l *locator) Start(ctx context.Context) error {
	var running sync.WaitGroup
	for _, follower := range l.followers {
		running.Go(func() { _ = follower.Start(ctx) }) // it never fails
	}
	running.Wait()
	return nil
}

func (l *locator) take(source string, object *unstructured.Unstructured) {
	l.mu.Lock()
	_, known := l.found[source]
	before := l.namespaces()
	l.found[source] = object
	changed := !known || !slices.Equal(before, l.namespaces())
	l.mu.Unlock()
	if changed {
		l.changed()
	}
}

func (l *locator) namespaces() []string {
	return raycluster.KubeRayNamespaces(l.found[fromBinding], l.found[fromDeployment], l.found[fromInitialization])
}

// Namespaces returns the namespaces from which KubeRay comes: those of the settings, else those in which it was found, none if it
// was found nowhere. False says that it is not known yet.
func (l *locator) Namespaces(settings config.RayCluster) ([]string, bool) {
	if len(settings.KubeRayNamespaces) > 0 {
		return settings.KubeRayNamespaces, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.found) < len(l.followers) {
		return nil, false
	}
	found := l.namespaces()
	if len(found) == 0 && !l.logged {
		l.log.Info("KubeRay was not found, so NetworkPolicies do not admit it to Ray heads; set raycluster.kubeRayNamespaces")
	}
	l.logged = len(found) == 0
	return found, true
}
