package raycluster

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/follow"
)

const (
	// kubeRayDeployment is the name under which KubeRay is installed everywhere.
	kubeRayDeployment = "kuberay-operator"
	// initializationName is the one DSCInitialization that a platform has.
	initializationName = "default-dsci"
	// raySystem is where KubeRay is on clusters without a platform, unless it is found elsewhere.
	raySystem = "ray-system"
)

// platformNamespaces are those of platforms that say nothing else.
var platformNamespaces = []string{"opendatahub", "redhat-ods-applications"}

var (
	deploymentResource     = appsv1.SchemeGroupVersion.WithResource("deployments")
	initializationResource = capability.DSCInitialization.GroupVersion().WithResource("dscinitializations")
)

// locator finds out from which namespaces KubeRay reaches the heads: those among the trusted ones that have its Deployment.
// Labels of pods or namespaces say nothing, because every tenant can set them. It is a manager Runnable.
type locator struct {
	client  dynamic.Interface
	clock   clock.Clock
	log     logr.Logger
	changed func()

	mu sync.Mutex
	// found tells for each trusted namespace that was looked at whether KubeRay is there; trusted are all of them.
	found, trusted map[string]bool
	// platform is the namespace that the platform's resource names; "" for none. initialized tells that it was looked at.
	platform    string
	initialized bool
	// begin follows one more namespace; nil before Start.
	begin          func(namespace string)
	initialization *follow.Follower
}

// newLocator returns a locator that trusts the namespace of the manager and the usual ones. changed is called after each
// change of what it knows and must not block.
func newLocator(client dynamic.Interface, clk clock.Clock, log logr.Logger, own string, changed func()) *locator {
	l := &locator{client: client, clock: clk, log: log, changed: changed, found: map[string]bool{}, trusted: map[string]bool{}}
	for _, namespace := range append(slices.Clone(platformNamespaces), raySystem, own) {
		l.trusted[namespace] = true
	}
	l.initialization = follow.New(follow.Options{
		Client: client.Resource(initializationResource), Resource: initializationResource.GroupResource(), Name: initializationName,
		Clock: clk, Log: log, Take: l.takeInitialization, Denied: func() { l.takeInitialization(nil) },
	})
	return l
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: only a leader looks.
func (l *locator) NeedLeaderElection() bool { return true }

// SetServed says whether the cluster serves the platform's resource.
func (l *locator) SetServed(served bool) {
	if !served {
		l.takeInitialization(nil)
	}
	l.initialization.SetServed(served)
}

// Start implements manager.Runnable.
func (l *locator) Start(ctx context.Context) error {
	var running sync.WaitGroup
	begin := func(namespace string) {
		f := l.follower(namespace)
		f.SetServed(true)
		running.Go(func() { _ = f.Start(ctx) }) // it never fails
	}
	l.mu.Lock()
	l.begin = begin
	for namespace := range l.trusted {
		begin(namespace)
	}
	l.mu.Unlock()
	err := l.initialization.Start(ctx)
	running.Wait()
	return err
}

// follower looks for KubeRay's Deployment in one namespace.
func (l *locator) follower(namespace string) *follow.Follower {
	return follow.New(follow.Options{
		Client: l.client.Resource(deploymentResource).Namespace(namespace), Resource: deploymentResource.GroupResource(),
		Name: kubeRayDeployment, Clock: l.clock, Log: l.log.WithValues("namespace", namespace),
		Take:   func(u *unstructured.Unstructured) { l.take(namespace, u != nil) },
		Denied: func() { l.take(namespace, false) },
	})
}

func (l *locator) take(namespace string, there bool) {
	l.mu.Lock()
	before, known := l.found[namespace]
	l.found[namespace] = there
	l.mu.Unlock()
	if !known || before != there {
		l.changed()
	}
}

// takeInitialization follows the platform to its namespace.
func (l *locator) takeInitialization(u *unstructured.Unstructured) {
	namespace := ""
	if u != nil {
		namespace, _, _ = unstructured.NestedString(u.Object, "spec", "applicationsNamespace") // another type names none
	}
	l.mu.Lock()
	changed := !l.initialized || l.platform != namespace
	l.platform, l.initialized = namespace, true
	if namespace != "" && !l.trusted[namespace] {
		l.trusted[namespace] = true
		if l.begin != nil {
			l.begin(namespace)
		}
	}
	l.mu.Unlock()
	if changed {
		l.changed()
	}
}

// Namespaces returns the namespaces from which KubeRay comes: those of the settings, else those in which it was found, else
// where the platform puts it. False says that it is not known yet.
func (l *locator) Namespaces(settings config.RayCluster, openShift bool) ([]string, bool) {
	if len(settings.KubeRayNamespaces) > 0 {
		return settings.KubeRayNamespaces, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.initialized || len(l.found) < len(l.trusted) {
		return nil, false
	}
	var found []string
	for _, namespace := range slices.Sorted(maps.Keys(l.found)) {
		if l.found[namespace] {
			found = append(found, namespace)
		}
	}
	switch {
	case len(found) > 0:
		return found, true
	case l.platform != "":
		return []string{l.platform}, true
	case openShift:
		return platformNamespaces, true
	default:
		return []string{raySystem}, true
	}
}
