package companion

import (
	"context"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
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

const (
	namespaceController = "modelmesh-companion"
	routeController     = "modelmesh-routes"
)

// Caches says what is held in memory beside what the component holds: of what was made here the metadata.
func Caches() []component.CacheNeed {
	return []component.CacheNeed{
		{Kind: accountKind}, {Kind: bindingKind}, {Kind: delegatorKind}, {Kind: capability.Route},
	}
}

// Setup registers the controllers with a manager. It is a modelmesh.Part. Where one namespace alone is served there are none: what
// they make needs rights on the cluster.
func Setup(ctx context.Context, mgr ctrl.Manager, shared *modelmesh.Shared) error {
	if shared.Namespaces.OnlyOwn() {
		return nil
	}
	connections, err := component.Narrow(mgr, headOfKind(secretKind), cache.ByObject{
		Label: labels.SelectorFromSet(labels.Set{LabelManaged: yes, LabelDashboard: yes}),
	}, component.Bare)
	if err != nil {
		return err
	}
	served := shared.Served
	common := around{
		cached: mgr.GetClient(), live: mgr.GetAPIReader(), applier: shared.Applier, recorder: shared.Recorder,
		served: served.Current, settings: shared.Settings.For, enabled: shared.Namespaces.Enabled,
	}
	config := shared.Config.ModelMesh
	n := &namespaces{
		around: common, connections: connections, monitoring: config.MonitoringNamespace, clock: shared.Clock,
		head:  (&heads{of: shared.Namespaces.Head, live: mgr.GetAPIReader(), own: config.Namespace}).read,
		usage: usageReader{cached: mgr.GetClient(), served: served.Current, inferenceServices: !config.IgnoreInferenceServices}.of,
	}
	c, err := controller.New(namespaceController, mgr, reconciler.ControllerOptionsFor(n))
	if err != nil {
		return fmt.Errorf("building the controller %s: %w", namespaceController, err)
	}
	w := watching{mgr: mgr, shared: shared, cached: mgr.GetClient(), inferenceServices: !config.IgnoreInferenceServices}
	if err := w.namespaces(ctx, c, connections); err != nil {
		return fmt.Errorf("watching for %s: %w", namespaceController, err)
	}
	if config.IgnoreInferenceServices {
		return nil
	}
	common.applier = keepingHosts(shared.Applier)
	p := &publications{around: common, clusterRuntimes: !config.IgnoreClusterServingRuntimes}
	c, err = controller.New(routeController, mgr, reconciler.ControllerOptionsFor(p))
	if err != nil {
		return fmt.Errorf("building the controller %s: %w", routeController, err)
	}
	if err := w.publications(ctx, c); err != nil {
		return fmt.Errorf("watching for %s: %w", routeController, err)
	}
	return nil
}

// keepingHosts is the applier of Routes: what the former companion wrote is not taken from it, because the host is among that. The
// platform chose it when the Route was made, and clients know it.
func keepingHosts(a *apply.Applier) *apply.Applier {
	options := a.Options
	options.LegacyManagers = nil
	return apply.New(options)
}

// heads reads the metadata of namespaces.
type heads struct {
	// of knows the namespaces with a label about being served; nil for one without.
	of   func(context.Context, string) (*metav1.PartialObjectMetadata, error)
	live client.Reader
	// own is the namespace of the manager. It is read once, since it lasts as long as the manager runs in it.
	own string

	kept atomic.Pointer[metav1.PartialObjectMetadata]
}

// read returns the metadata of a namespace; nil for one that is gone or going. One without the label is not in memory: it is asked
// for, which happens where something is to be removed, and for the manager's own.
func (h *heads) read(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	head, err := h.of(ctx, name)
	if err != nil {
		return nil, err
	}
	if head == nil {
		head, err = h.ask(ctx, name)
	}
	if err != nil || head == nil || head.DeletionTimestamp != nil {
		return nil, err
	}
	return head, nil
}

// ask reads what is not in memory; nil for a namespace that is gone.
func (h *heads) ask(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	if kept := h.kept.Load(); kept != nil && name == h.own {
		return kept, nil
	}
	head := &metav1.PartialObjectMetadata{}
	head.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := h.live.Get(ctx, client.ObjectKey{Name: name}, head)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	if name == h.own && head.DeletionTimestamp == nil {
		h.kept.Store(head)
	}
	return head, nil
}
