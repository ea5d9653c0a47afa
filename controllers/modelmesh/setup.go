package modelmesh

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/clusterdomain"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

// ComponentName is the name of the component in flags, labels, metrics and folders.
const ComponentName = "modelmesh"

// FieldOwner is the manager of every field we set.
const FieldOwner = "modelmesh-controller"

// LegacyManagers are the names under which the original updated whole objects.
func LegacyManagers() []string { return []string{"manager"} }

// LegacyAnnotations are those in which the original kept a copy of what it had written.
func LegacyAnnotations() []string {
	return []string{corev1.LastAppliedConfigAnnotation, "manifestival"}
}

// PredictorKind is the resource of our own that the component needs; all other APIs of KServe may come and go.
var PredictorKind = schema.GroupVersionKind{Group: "serving.kserve.io", Version: "v1alpha1", Kind: "Predictor"}

var (
	namespaceKind  = corev1.SchemeGroupVersion.WithKind("Namespace")
	serviceKind    = corev1.SchemeGroupVersion.WithKind("Service")
	configMapKind  = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	secretKind     = corev1.SchemeGroupVersion.WithKind("Secret")
	deploymentKind = appsv1.SchemeGroupVersion.WithKind("Deployment")
	autoscalerKind = autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler")
)

// What is made stands in the namespaces of users, so the rights cannot be limited to some. Of runtimes, Predictors and
// InferenceServices only the finalizers may be written here: what an owner reference that holds up deletion asks for.

// +kubebuilder:rbac:groups=serving.kserve.io,resources=predictors;inferenceservices;servingruntimes;clusterservingruntimes,verbs=get;list;watch
// +kubebuilder:rbac:groups=serving.kserve.io,resources=servingruntimes/finalizers;clusterservingruntimes/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=services;secrets;configmaps,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=monitoring.coreos.com,resources=servicemonitors,verbs=get;list;watch;create;patch;delete

// Caches says what is held in memory: of children the metadata, by our label; Deployments whole, for their replicas; Secrets and
// ConfigMaps, which belong to users, as bare metadata. An empty namespace is all.
func Caches(namespace string) []component.CacheNeed {
	return []component.CacheNeed{
		{Kind: deploymentKind, Namespace: namespace, Whole: true},
		{Kind: serviceKind, Namespace: namespace},
		{Kind: autoscalerKind, Namespace: namespace},
		{Kind: secretKind, Namespace: namespace, Everything: true},
		{Kind: configMapKind, Namespace: namespace, Everything: true},
		{Kind: capability.ServiceMonitor},
	}
}

// Environment is what Setup needs from the program. What the functions return is needed when the component starts, not before.
type Environment struct {
	Config  config.Config
	Served  func() *capability.Watcher
	Domain  func() *clusterdomain.Watcher
	Clock   func() clock.Clock
	Applier func(ctrl.Manager) *apply.Applier
	// Parts are the controllers beside that of runtimes.
	Parts []Part
}

// Setup registers the controllers with a manager. It is called anew whenever the API of Predictors appears.
func Setup(e Environment) func(context.Context, ctrl.Manager) error {
	return func(ctx context.Context, mgr ctrl.Manager) error {
		client, err := dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
		if err != nil {
			return fmt.Errorf("building the dynamic client: %w", err)
		}
		namespaces, err := NewNamespaces(mgr, e.Config.OperatorNamespace, false)
		if err != nil {
			return err
		}
		shared := &Shared{
			Config: e.Config, Served: e.Served(), Domain: e.Domain(), Clock: e.Clock(), Applier: e.Applier(mgr), Dynamic: client,
			Recorder: mgr.GetEventRecorder(ComponentName), Namespaces: namespaces,
		}
		for _, part := range e.Parts {
			if err := part(ctx, mgr, shared); err != nil {
				return err
			}
		}
		return nil
	}
}
