// Package kinds lists the components of the manager with custom resources, and their kinds with the function that renders each kind.
package kinds

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	mlflowconfigv1 "github.com/odh-platform/odh-platform-operator/apis/mlflowconfig/v1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	servingv1beta1 "github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/cmd/internal/render"
	"github.com/odh-platform/odh-platform-operator/controllers/appwrapper"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow"
	mlflowresources "github.com/odh-platform/odh-platform-operator/controllers/mlflow/resources"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/models"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/openshift"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/runtimes"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry"
	"github.com/odh-platform/odh-platform-operator/controllers/platform"
	"github.com/odh-platform/odh-platform-operator/controllers/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
	ray "github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// Component is a part of the manager that can be enabled.
type Component struct {
	// Name in flags and settings.
	Name string
	// Kinds are the kinds that the component reconciles.
	Kinds []Kind
	// StartsWithAnyKind means that the component starts once any of the kinds is served; otherwise the first kind must be served.
	StartsWithAnyKind bool
}

// Kind is a kind that a component reconciles.
type Kind struct {
	schema.GroupVersionKind
	render render.Func
	// Selects reports whether the component reconciles an object of the kind; nil for all.
	Selects func(*unstructured.Unstructured) bool
}

// Components returns the components with custom resources in the order of output.
func Components() []Component {
	return []Component{
		{Name: platform.ComponentName, StartsWithAnyKind: true, Kinds: []Kind{
			{platformv1alpha1.GroupVersion.WithKind("MLflowOperator"), renderMLflowOperator, nil},
			{platformv1alpha1.GroupVersion.WithKind("AIHub"), renderAIHub, nil},
		}},
		{Name: mlflow.ComponentName, Kinds: []Kind{
			{mlflowv1.GroupVersion.WithKind("MLflow"), renderMLflow, nil}, {mlflowconfigv1.GroupVersion.WithKind("MLflowConfig"), renderMLflowConfig, nil},
		}},
		{Name: modelregistry.ComponentName, Kinds: []Kind{{v1beta1.GroupVersion.WithKind(v1beta1.Kind), renderRegistry, nil}}},
		{Name: modelcatalog.ComponentName, Kinds: []Kind{{aihubv1alpha1.GroupVersion.WithKind(aihubv1alpha1.Kind), renderCatalog, nil}}},
		{Name: modelmesh.ComponentName, Kinds: []Kind{
			{modelmesh.PredictorKind, renderModel, nil}, {capability.InferenceService, renderModel, isModelMesh},
			{capability.ClusterServingRuntime, renderServingRuntime, isMultiModel}, {capability.ServingRuntime, renderServingRuntime, isMultiModel},
		}},
		{Name: raycluster.ComponentName, Kinds: []Kind{{ray.GVK, renderRayCluster, nil}}},
		{Name: appwrapper.ComponentName, Kinds: []Kind{{awv1beta2.GroupVersion.WithKind(awv1beta2.Kind), renderAppWrapper, nil}}},
	}
}

// Names returns the names of the components with custom resources.
func Names() []string {
	var out []string
	for _, c := range Components() {
		out = append(out, c.Name)
	}
	return out
}

// All returns the kinds of all Components.
func All() []Kind {
	var out []Kind
	for _, c := range Components() {
		out = append(out, c.Kinds...)
	}
	return out
}

// Table returns the render functions of all kinds.
func Table() render.Kinds {
	table := render.Kinds{}
	for _, k := range All() {
		table[k.GroupVersionKind] = k.render
	}
	return table
}

// ComponentOf returns the name of the component that reconciles a kind, or "".
func ComponentOf(kind schema.GroupKind) string {
	for _, c := range Components() {
		if slices.ContainsFunc(c.Kinds, func(k Kind) bool { return k.GroupKind() == kind }) {
			return c.Name
		}
	}
	return ""
}

// MissingKinds returns the kinds that a component waits for, or nil if the component can start.
func (c Component) MissingKinds(has func(schema.GroupVersionKind) bool) []string {
	required := c.Kinds[:1]
	if c.StartsWithAnyKind {
		required = c.Kinds
	}
	var missing []string
	for _, kind := range required {
		if has(kind.GroupVersionKind) {
			return nil
		}
		missing = append(missing, kind.Kind+"."+kind.Group+"/"+kind.Version)
	}
	return missing
}

// Select returns the objects of the kind that the component reconciles.
func (k Kind) Select(found []unstructured.Unstructured) []unstructured.Unstructured {
	return slices.DeleteFunc(found, func(u unstructured.Unstructured) bool { return k.Selects != nil && !k.Selects(&u) })
}

// IsRuntime reports whether the kind is ServingRuntime or ClusterServingRuntime.
func IsRuntime(kind schema.GroupVersionKind) bool {
	return kind == capability.ServingRuntime || kind == capability.ClusterServingRuntime
}

// isMultiModel reports whether a runtime belongs to ModelMesh and not to KServe.
func isMultiModel(u *unstructured.Unstructured) bool {
	return nested.At(u.Object, "spec", "multiModel") == true
}

// isModelMesh reports whether a model is deployed in ModelMesh and not in KServe.
func isModelMesh(u *unstructured.Unstructured) bool {
	return u.GetAnnotations()[servingv1beta1.AnnotationDeploymentMode] == servingv1beta1.DeploymentModeModelMesh
}

func renderMLflow(obj *unstructured.Unstructured, env render.Env) (render.Result, error) {
	objects, err := mlflow.Render(MLflow(env.Config), env.Capabilities, obj)
	return render.Result{Objects: objects}, err
}

// renderMLflowConfig returns a note, because MLflow servers read MLflowConfigs and no controller creates objects for them.
func renderMLflowConfig(obj *unstructured.Unstructured, env render.Env) (render.Result, error) {
	namespace := env.EnsureNamespace(obj)
	return render.Result{Notes: []string{
		"nothing is created for MLflowConfig " + obj.GetName() + ": the servers of MLflow read it themselves, with its Secrets, for workspace " + namespace}}, nil
}

func renderRegistry(obj *unstructured.Unstructured, env render.Env) (render.Result, error) {
	settings := env.Config.ModelRegistry
	settings.DefaultDomain = cmp.Or(settings.DefaultDomain, env.Domain)
	objects, err := modelregistry.Render(modelregistry.Settings{ModelRegistry: settings}, env.Capabilities, obj)
	return render.Result{Objects: objects}, err
}

func renderCatalog(obj *unstructured.Unstructured, env render.Env) (render.Result, error) {
	if obj.GetNamespace() == "" && env.Config.ModelRegistry.Namespace != "" {
		obj.SetNamespace(env.Config.ModelRegistry.Namespace)
	}
	env.EnsureNamespace(obj)
	objects, notes, err := modelcatalog.Render(modelcatalog.Settings{ModelRegistry: env.Config.ModelRegistry}, env.Capabilities, env.Domain, obj)
	return render.Result{Objects: objects, Notes: notes}, err
}

func renderAIHub(obj *unstructured.Unstructured, env render.Env) (render.Result, error) {
	objects, notes, err := platform.RenderAIHub(env.Config.ModelRegistry.Namespace, env.Config.Enabled(modelcatalog.ComponentName), obj)
	return render.Result{Objects: objects, Notes: notes}, err
}

func renderMLflowOperator(obj *unstructured.Unstructured, _ render.Env) (render.Result, error) {
	return render.Result{Notes: []string{"nothing is created for MLflowOperator " + obj.GetName() +
		": it hands MLflow over to the manager, which creates the objects of each MLflow"}}, nil
}

func renderAppWrapper(obj *unstructured.Unstructured, env render.Env) (render.Result, error) {
	env.EnsureNamespace(obj)
	settings, err := AppWrapper(env)
	if err != nil {
		return render.Result{}, fmt.Errorf("configuration of appwrapper: %w", err)
	}
	objects, notes, err := appwrapper.Render(appwrapper.SettingsOf(settings), obj)
	return render.Result{Objects: objects, Notes: notes}, err
}

func renderRayCluster(obj *unstructured.Unstructured, env render.Env) (render.Result, error) {
	env.EnsureNamespace(obj)
	settings, _, err := env.Config.RayCluster(env.LegacyConfig(CodeFlareConfig, true))
	if err != nil {
		return render.Result{}, fmt.Errorf("settings of Ray: %w", err)
	}
	objects, notes, err := raycluster.Render(raycluster.RenderInputs{
		Settings: settings, Served: env.Capabilities, Domain: env.Domain, Version: env.Version, KubeRayNamespaces: env.KubeRay,
	}, obj)
	return render.Result{Objects: objects, Notes: notes}, err
}

// renderServingRuntime renders a ServingRuntime in its namespace, and a ClusterServingRuntime in env.Namespace or "default".
func renderServingRuntime(obj *unstructured.Unstructured, env render.Env) (render.Result, error) {
	in := runtimes.RenderInputs{Served: env.Capabilities, SingleNamespace: env.Config.ModelMesh.NamespaceScope, OperatorNamespace: env.Config.ModelMesh.Namespace, ManagerNamespace: env.Config.OperatorNamespace, InUse: true}
	if obj.GetKind() == capability.ClusterServingRuntime.Kind {
		in.Namespace = cmp.Or(env.Namespace, corev1.NamespaceDefault)
	} else {
		in.Namespace = env.EnsureNamespace(obj)
	}
	var settingNotes, notes []string
	var err error
	if in.Settings, settingNotes, err = env.ModelMesh(in.Namespace); err != nil {
		return render.Result{}, fmt.Errorf("settings of ModelMesh: %w", err)
	}
	objects, notes, err := runtimes.Render(in, obj)
	if err != nil || len(objects) == 0 || in.SingleNamespace {
		return render.Result{Objects: objects, Notes: append(settingNotes, notes...)}, err
	}
	openshiftObjects, openshiftNotes, err := openshift.Render(in.Namespace, in.Settings, env.Capabilities, env.Config.ModelMesh.MonitoringNamespace)
	return render.Result{Objects: append(objects, openshiftObjects...), Notes: slices.Concat(settingNotes, notes, openshiftNotes)}, err
}

// renderModel returns the registration of a model in the mesh as a note, because it is a call and not an object.
func renderModel(obj *unstructured.Unstructured, env render.Env) (render.Result, error) {
	namespace := env.EnsureNamespace(obj)
	registration, reason, err := models.NewRegistration(obj)
	if err != nil {
		return render.Result{}, err
	}
	if registration == nil {
		return render.Result{Notes: []string{"nothing is created for " + obj.GetKind() + " " + obj.GetName() + ": " + reason}}, nil
	}
	settings, notes, err := env.ModelMesh(namespace)
	if err != nil {
		return render.Result{}, fmt.Errorf("settings of ModelMesh: %w", err)
	}
	text, err := yaml.Marshal(registration)
	if err != nil {
		return render.Result{}, fmt.Errorf("writing the registration: %w", err)
	}
	return render.Result{Notes: append(notes,
		fmt.Sprintf("nothing is created in the API for %s %s: the mesh behind Service %s of namespace %s registers the model, as", obj.GetKind(), obj.GetName(), settings.ServiceName, namespace),
		string(text[:len(text)-1]))}, nil
}

// CodeFlareConfig is the ConfigMap of the CodeFlare operator, in the namespace of the manager.
const CodeFlareConfig = "codeflare-operator-config"

// LegacyConfigs are the ConfigMaps of legacy operators with settings of AppWrappers, in the namespace of the manager. The last one has
// precedence. An embedded ConfigMap holds the settings of AppWrappers in one of several sections.
var LegacyConfigs = []struct {
	Name     string
	Embedded bool
}{
	{CodeFlareConfig, true},
	{"appwrapper-operator-config", false},
}

// MLflow returns the settings of the component mlflow.
func MLflow(c config.Config) mlflow.Settings {
	return mlflow.Settings{
		Inputs: mlflowresources.Inputs{
			Namespace:        c.Namespace,
			Image:            c.MLflow.Image,
			GatewayName:      c.MLflow.GatewayName,
			GatewayNamespace: c.MLflow.GatewayNamespace,
			ExternalURL:      c.MLflow.ExternalURL,
			SectionTitle:     c.MLflow.SectionTitle,
			Version:          c.MLflow.Version,
			Exposure:         c.Exposure,
			TLS:              c.TLS,
		},
		Platform:       c.Enabled(platform.ComponentName),
		AdmissionRules: c.AdmissionRules,
	}
}

// AppWrapper returns the settings of the component appwrapper, including those of LegacyConfigs in the cluster.
func AppWrapper(env render.Env) (config.AppWrapper, error) {
	var legacy []config.LegacyConfig
	for _, o := range LegacyConfigs {
		if found := env.LegacyConfig(o.Name, o.Embedded); found != nil {
			legacy = append(legacy, *found)
		}
	}
	settings, _, err := env.Config.AppWrapper(legacy...)
	return settings, err
}
