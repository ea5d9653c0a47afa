package modelmesh

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	meshclient "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/client"
	meshevents "github.com/odh-platform/odh-platform-operator/controllers/modelmesh/events"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	pkgmodelmesh "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/takeover"
)

// ComponentName is the name of the component in flags, labels, metrics and directories.
const ComponentName = "modelmesh"

// FieldOwner is the field manager of server-side apply.
const FieldOwner = "modelmesh-controller"

// PredictorKind is the API that the component requires. All other APIs of KServe are optional.
var PredictorKind = schema.GroupVersionKind{Group: "serving.kserve.io", Version: "v1alpha1", Kind: "Predictor"}

// RBAC for cluster-scoped kinds, and for the kinds of KServe and Prometheus, which are watched in all namespaces. The permission to
// update finalizers is needed to set blockOwnerDeletion. RBAC for other objects is in the packages of the controllers.

// +kubebuilder:rbac:groups=serving.kserve.io,resources=predictors;inferenceservices;servingruntimes;clusterservingruntimes,verbs=list;watch
// +kubebuilder:rbac:groups=serving.kserve.io,resources=servingruntimes/finalizers;clusterservingruntimes/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces/finalizers,verbs=update
// +kubebuilder:rbac:groups=monitoring.coreos.com,resources=servicemonitors,verbs=get;list;watch;create;patch;delete

// Options are the parameters of Setup.
type Options struct {
	Config config.Config
	Served *capability.Watcher
	Clock  clock.Clock
	// Applier applies as FieldOwner.
	Applier *apply.Applier
	// Settings provides the settings of each namespace. The caller adds it to the manager.
	Settings       *meshsettings.Source
	Subcontrollers []Subcontroller
}

// Setup registers the controllers with a manager. It is called when the API of Predictors is served, and again after an error.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	operatorNamespace := o.Config.ModelMesh.Namespace
	namespaces, err := NewNamespaces(mgr, operatorNamespace, o.Config.ModelMesh.NamespaceScope)
	if err != nil {
		return err
	}
	endpointSlices, err := namespaces.NewCache(mgr, pkgmodelmesh.LabelService, nil) // EndpointSlices have the labels of their Service
	if err != nil {
		return err
	}
	log := mgr.GetLogger().WithName(ComponentName)
	shared := &Dependencies{
		Options: o, Recorder: mgr.GetEventRecorder(ComponentName), Namespaces: namespaces, RouteApplier: o.Applier, TakeOver: NoTakeOver{},
		Lister: &Lister{
			Config: o.Config.ModelMesh, Cached: mgr.GetClient(), Namespaces: namespaces, Served: o.Served.Current, Settings: o.Settings.For,
		},
		Pool:   meshclient.NewPool(log.WithName("mesh")),
		Events: meshevents.NewWatcher(meshevents.Options{OperatorNamespace: operatorNamespace, Clock: o.Clock, Log: log.WithName("events")}),
	}
	if err := errors.Join(mgr.Add(shared.Pool), mgr.Add(shared.Events), meshclient.SetupEndpointSliceController(mgr, ComponentName+"-endpoints", endpointSlices, shared.Pool)); err != nil {
		return err
	}
	for _, setup := range o.Subcontrollers {
		if err := setup(ctx, mgr, shared); err != nil {
			return err
		}
	}
	return nil
}

// Dependencies are the objects that the subcontrollers share while the component runs.
type Dependencies struct {
	Options
	Recorder   events.EventRecorder
	Namespaces *Namespaces
	// Pool holds the mesh clients of the namespaces. Events watches the models of the namespaces in etcd.
	Pool   *meshclient.Pool
	Events *meshevents.Watcher
	Lister *Lister
	// RouteApplier applies the objects that publish models. Without a take-over it is Applier.
	RouteApplier *apply.Applier
	TakeOver     TakeOver
}

// ClaimResolver returns the PersistentVolumeClaims that the pods of a runtime mount, and those that are missing.
type ClaimResolver func(resources.RuntimeInputs) (claims, missing []string, err error)

// TakeOver is the take-over from the legacy controllers. Finalize is called for InferenceServices, and Prune is not called.
type TakeOver interface {
	takeover.Interface[client.Object]
	// BuildDeployment builds the Deployment of a runtime with the pod template of the legacy controller if the live Deployment has such a
	// template and can keep it. Otherwise it returns nil, and the message of an Event if the pods must be replaced. live is nil if it does
	// not exist.
	BuildDeployment(in resources.RuntimeInputs, live *appsv1.Deployment, resolve ClaimResolver) (built *resources.Deployment, replaced string, err error)
	// LegacyRoutes selects the Routes of the legacy controller for an InferenceService; nil for none.
	LegacyRoutes(s *v1beta1.InferenceService) client.ListOption
}

// NoTakeOver takes over nothing.
type NoTakeOver struct{ takeover.None[client.Object] }

// BuildDeployment implements TakeOver.
func (NoTakeOver) BuildDeployment(resources.RuntimeInputs, *appsv1.Deployment, ClaimResolver) (*resources.Deployment, string, error) {
	return nil, "", nil
}

// LegacyRoutes implements TakeOver.
func (NoTakeOver) LegacyRoutes(*v1beta1.InferenceService) client.ListOption { return nil }

// Subcontroller registers a group of controllers. ctx is cancelled when the component stops.
type Subcontroller func(ctx context.Context, mgr ctrl.Manager, shared *Dependencies) error
