package openshift

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// What is made stands in the namespaces of users, so the rights cannot be limited to some. `bind` lets us grant two roles without
// holding what they grant. Secrets, ConfigMaps and runtimes are among the rights of the component. NetworkPolicies are written by the
// controller of runtimes, which has this role wherever it makes any.

// +kubebuilder:rbac:groups=serving.kserve.io,resources=inferenceservices,verbs=patch
// +kubebuilder:rbac:groups=serving.kserve.io,resources=inferenceservices/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,verbs=list;watch;create
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,resourceNames=prometheus-ns-access,verbs=get;patch;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterrolebindings,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,resourceNames="system:auth-delegator";prometheus-ns-access,verbs=bind
// +kubebuilder:rbac:groups=route.openshift.io,resources=routes,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=httproutes;backendtlspolicies,verbs=get;list;watch;create;patch;delete

const (
	namespaceController = "modelmesh-companion"
	routeController     = "modelmesh-routes"
)

// Caches says what is held in memory beside what the component holds: of what was made here the metadata.
func Caches() []component.CacheNeed {
	return []component.CacheNeed{
		{Kind: accountKind}, {Kind: bindingKind}, {Kind: delegatorKind}, {Kind: capability.Route},
		{Kind: capability.HTTPRoute}, {Kind: capability.BackendTLSPolicy}, {Kind: ingressKind},
	}
}

// Setup registers the controllers with a manager. It is a modelmesh.Part. Where one namespace alone is served there are none: what
// they make needs rights on the cluster.
func Setup(ctx context.Context, mgr ctrl.Manager, shared *modelmesh.Shared) error {
	if shared.Namespaces.OnlyOwn() {
		return nil
	}
	connections, err := component.Narrow(mgr, modelmesh.Metadata(secretKind), cache.ByObject{
		Label: labels.SelectorFromSet(labels.Set{LabelManaged: yes, LabelDashboard: yes}),
	}, component.Bare)
	if err != nil {
		return err
	}
	shares := common{
		Catalog: shared.Catalog, cached: mgr.GetClient(), live: mgr.GetAPIReader(), applier: shared.Applier, recorder: shared.Recorder,
		enabled: shared.Namespaces.Enabled, exposure: exposureOf(shared.Config),
	}
	own := shared.Config.ModelMesh
	n := &namespaces{common: shares, connections: connections, monitoring: own.MonitoringNamespace, clock: shared.Clock}
	c, err := controller.New(namespaceController, mgr, reconciler.ControllerOptionsFor(n))
	if err != nil {
		return fmt.Errorf("building the controller %s: %w", namespaceController, err)
	}
	w := watching{mgr: mgr, shared: shared, cached: mgr.GetClient(), inferenceServices: !own.IgnoreInferenceServices}
	if err := w.namespaces(ctx, c, connections); err != nil {
		return fmt.Errorf("watching for %s: %w", namespaceController, err)
	}
	if own.IgnoreInferenceServices {
		return nil
	}
	shares.applier = keepingHosts(shared.Applier)
	p := &publications{common: shares}
	c, err = controller.New(routeController, mgr, reconciler.ControllerOptionsFor(p))
	if err != nil {
		return fmt.Errorf("building the controller %s: %w", routeController, err)
	}
	if err := w.publications(ctx, c); err != nil {
		return fmt.Errorf("watching for %s: %w", routeController, err)
	}
	return nil
}

// exposureOf is what the settings say. Models are behind the same Gateway as registries.
func exposureOf(c config.Config) exposure {
	g := c.ModelRegistry.Gateway
	return exposure{Exposure: c.Exposure, gateway: resources.Gateway{Name: g.Name, Namespace: g.Namespace}}
}

// keepingHosts is the applier of Routes: what the former companion wrote is not taken from it, because the host is among that. The
// platform chose it when the Route was made, and clients know it.
func keepingHosts(a *apply.Applier) *apply.Applier {
	options := a.Options
	options.LegacyManagers = nil
	return apply.New(options)
}
