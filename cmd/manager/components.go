package main

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/dynamic"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	mlflowconfigv1 "github.com/odh-platform/odh-platform-operator/apis/mlflowconfig/v1"
	registryv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1alpha1"
	registryv1beta1 "github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	servingv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	servingv1beta1 "github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/aihub"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/clusterdomain"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
)

// componentSpec is a component with the parameters that the manager needs.
type componentSpec struct {
	component.Component
	// FieldOwner is the field manager with which the component applies objects, or "" if it applies none. The cache keeps a hash of its
	// managed fields.
	FieldOwner string
	// CABundleTargets are the webhook configurations and CRDs that receive the CA bundle of a self-signed certificate.
	CABundleTargets []certs.Target
}

// Env holds the dependencies of components. Config is set before componentSpecs is called, except its TLS profile. The TLS profile and the
// other fields are set before Controllers and Webhooks are called. An empty Env suffices to list the component names.
type Env struct {
	Config       config.Config
	Clock        clock.Clock
	Capabilities *capability.Watcher
	Dynamic      dynamic.Interface
	// Domain watches the ingress domain of OpenShift.
	Domain *clusterdomain.Watcher
	// Hub watches the AIHub for settings of registries and the catalog; nil if the component platform is disabled.
	Hub *aihub.Watcher
	// FullObjectKinds are the kinds that are cached as full objects, for apply.Options.
	FullObjectKinds []schema.GroupVersionKind
}

// maxParallelWrites limits the number of child objects of one custom resource that are written at the same time.
const maxParallelWrites = 4

// Applier returns an Applier with the options and the clients of the manager.
func (e *Env) Applier(mgr ctrl.Manager, o apply.Options) *apply.Applier {
	o.Client, o.Live, o.FullObjectKinds, o.Indexed, o.MaxParallel = mgr.GetClient(), mgr.GetAPIReader(), e.FullObjectKinds, true, maxParallelWrites
	return apply.New(o)
}

// serverDeps returns the dependencies of the controllers of registries and the catalog. The options are those of their appliers.
func (e *Env) serverDeps(mgr ctrl.Manager, o apply.Options) servers.Deps {
	o.LegacyManagers, o.StripAnnotations = []string{servers.LegacyManager}, []string{servers.LegacyCopyAnnotation}
	return servers.Deps{
		Settings: servers.Settings{AdmissionRules: e.Config.AdmissionRules, ModelRegistry: e.Config.ModelRegistry},
		Served:   e.Capabilities, Domain: e.Domain, Hub: e.Hub, Dynamic: e.Dynamic, Clock: e.Clock,
		Applier: func(reader client.Client) *apply.Applier {
			o.Client, o.Live, o.FullObjectKinds, o.MaxParallel = reader, mgr.GetAPIReader(), e.FullObjectKinds, maxParallelWrites
			return apply.New(o)
		},
	}
}

// withGuards returns a Component.Webhooks function that passes the checks of the requesting users to register.
func (e *Env) withGuards(register func(ctrl.Manager, bool, admission.Guards) error) func(ctrl.Manager, bool) error {
	return func(mgr ctrl.Manager, enabled bool) error {
		guards, err := admission.NewGuards(mgr, e.Config.AdmissionRules)
		if err != nil {
			return err
		}
		return register(mgr, enabled, guards)
	}
}

// componentSpecs returns the specs of all components.
func componentSpecs(env *Env) []componentSpec {
	return slices.Concat([]componentSpec{
		mlflowSpec(env), appWrapperSpec(env), rayClusterSpec(env), modelRegistrySpec(env), modelCatalogSpec(env), modelMeshSpec(env),
	}, platformSpecs(env), []componentSpec{olmSpec(env)})
}

// newScheme returns a scheme with the types of Kubernetes and of the packages in apis, also for disabled components.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, mlflowv1.AddToScheme, mlflowconfigv1.AddToScheme, awv1beta2.AddToScheme,
		registryv1beta1.AddToScheme, registryv1alpha1.AddToScheme, aihubv1alpha1.AddToScheme, servingv1alpha1.AddToScheme, servingv1beta1.AddToScheme,
		platformv1alpha1.AddToScheme)
	utilruntime.Must(builder.AddToScheme(scheme))
	return scheme
}

// componentsOf returns the components of the specs.
func componentsOf(specs []componentSpec) []component.Component {
	out := make([]component.Component, 0, len(specs))
	for _, spec := range specs {
		out = append(out, spec.Component)
	}
	return out
}

func enabledSpecs(specs []componentSpec, enabled func(string) bool) []componentSpec {
	return slices.DeleteFunc(slices.Clone(specs), func(spec componentSpec) bool { return !enabled(spec.Name) })
}
