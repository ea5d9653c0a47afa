package raycluster

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/certificates"
	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/pods"
	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/clusterdomain"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/resources/oauthproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/singleton"
)

// newInputs returns the inputs of a cluster without pods and Secrets.
func newInputs(c raycluster.Cluster, settings config.RayCluster, served capability.Set, domain string) resources.Inputs {
	settings = settings.ForPlatform(served.OpenShift())
	in := resources.Inputs{
		RayCluster: settings, Platform: raycluster.PlatformOf(served), PlatformKubeRay: served.PlatformKubeRay(), Gateway: served.Has(capability.HTTPRoute), BackendTLSPolicies: served.Has(capability.BackendTLSPolicy),
		CertManager: served.Has(capability.Certificate), Domain: clusterdomain.Prefer(settings.IngressDomain, domain),
	}
	in.Mode = raycluster.Decide(settings, in.Platform, c, c)
	return in
}

// inputs returns the inputs of the objects of a cluster.
func (r *clusterReconciler) inputs(ctx context.Context, cluster *unstructured.Unstructured, c raycluster.Cluster) (resources.Inputs, error) {
	settings, err := r.settings(ctx)
	if err != nil {
		return resources.Inputs{}, err
	}
	in := newInputs(c, settings, r.served(), r.domain())
	var known bool
	if in.KubeRay, known = r.kubeRayNamespaces(settings); !known {
		return in, &reconciler.Wait{For: "the namespaces of KubeRay", Retry: reconciler.RequeueSoon}
	}
	if in.Pods, err = pods.List(ctx, r.pods, c.Namespace(), cluster.GetUID()); err != nil {
		return in, err
	}
	in.Heads, in.Mounted = pods.Injections(c, in.Pods)
	if in.Mode.Active() && in.EffectiveAuth(c) == raycluster.AuthOAuth && !in.RetainsSidecar(c) && in.HasPods(c) {
		state := r.memory.of(cluster)
		key := client.ObjectKey{Namespace: c.Namespace(), Name: c.Names().CookieSecret}
		state.cookie, err = oauthproxy.EnsureCookie(ctx, r.cached, r.live, key, state.cookie)
		if oauthproxy.IsPredictable(state.cookie) {
			state.cookie = oauthproxy.NewCookie()
			r.warningEvent(cluster, topicCookie, ReasonCookieReplaced, "the key of the dashboard's login cookies was made by the CodeFlare operator, "+
				"and owners of clusters of the same name in other namespaces may know it, so it is replaced in Secret "+key.Name+
				": delete the pod of the head, which uses the old key until then")
		}
		in.Cookie = state.cookie
	}
	return in, err
}

// list returns all RayClusters of the cache, which must not be changed.
func (r *clusterReconciler) list(ctx context.Context) (*unstructured.UnstructuredList, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(raycluster.GVK.GroupVersion().WithKind(raycluster.GVK.Kind + "List"))
	if err := r.cacheReader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing RayClusters: %w", err)
	}
	return list, nil
}

// certificateInputs returns the inputs of the certificates, in the effective mode.
func certificateInputs(in resources.Inputs, c raycluster.Cluster) certificates.Inputs {
	publishes := in.ViaGateway() && in.BackendTLSPolicies
	return certificates.Inputs{RayCluster: in.RayCluster, Mode: in.EffectiveMode(c), OpenShift: in.OpenShift, Domain: in.Domain, CertManager: in.CertManager, Pods: in.Pods, PublishesAuthority: publishes}
}

// kubeRayLocator finds the namespaces from which KubeRay connects to the heads, see raycluster.KubeRayNamespaces. It is a manager Runnable.
type kubeRayLocator struct {
	binding, deployment, initialization *singleton.Value[[]string]
}

// newKubeRayLocator returns a locator for a manager in operatorNamespace.
func newKubeRayLocator(client dynamic.Interface, clk clock.Clock, log logr.Logger, operatorNamespace string) *kubeRayLocator {
	type object = *unstructured.Unstructured
	source := func(name, namespace string, kind schema.GroupVersionResource, read func(object) []string) *singleton.Value[[]string] {
		return singleton.NewValue(singleton.Options{
			Client: client.Resource(kind).Namespace(namespace), Resource: kind.GroupResource(), Name: name, Clock: clk, Log: log,
		}, singleton.Absent, read)
	}
	l := &kubeRayLocator{
		binding: source(raycluster.KubeRayName, "", rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings"),
			func(u object) []string { return raycluster.KubeRayNamespaces(u, nil, nil) }),
		deployment: source(raycluster.KubeRayName, operatorNamespace, appsv1.SchemeGroupVersion.WithResource("deployments"),
			func(u object) []string { return raycluster.KubeRayNamespaces(nil, u, nil) }),
		initialization: source(raycluster.InitializationName, "", capability.DSCInitialization.GroupVersion().WithResource("dscinitializations"),
			func(u object) []string { return raycluster.KubeRayNamespaces(nil, nil, u) }),
	}
	l.binding.SetServed(true)
	l.deployment.SetServed(true)
	return l
}

func (l *kubeRayLocator) sources() []*singleton.Value[[]string] {
	return []*singleton.Value[[]string]{l.binding, l.deployment, l.initialization}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (l *kubeRayLocator) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable. It never fails.
func (l *kubeRayLocator) Start(ctx context.Context) error {
	var group sync.WaitGroup
	for _, source := range l.sources() {
		group.Go(func() { _ = source.Start(ctx) }) // Start never fails
	}
	group.Wait()
	return nil
}

// Namespaces returns the namespaces of KubeRay: those of the settings, or else the discovered ones, which may be empty. The bool reports
// whether discovery is complete.
func (l *kubeRayLocator) Namespaces(settings config.RayCluster) ([]string, bool) {
	if len(settings.KubeRayNamespaces) > 0 {
		return settings.KubeRayNamespaces, true
	}
	var found []string
	for _, source := range l.sources() {
		namespaces, known := source.Current()
		if !known {
			return nil, false
		}
		found = append(found, namespaces...)
	}
	slices.Sort(found)
	return slices.Compact(found), true
}
