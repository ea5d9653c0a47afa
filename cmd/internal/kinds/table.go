package kinds

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	mlflowconfigv1 "github.com/odh-platform/odh-platform-operator/apis/mlflowconfig/v1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/cmd/internal/render"
	"github.com/odh-platform/odh-platform-operator/controllers/appwrapper"
	"github.com/odh-platform/odh-platform-operator/controllers/mlflow"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/models"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/openshift"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/runtimes"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry"
	"github.com/odh-platform/odh-platform-operator/controllers/platform"
	"github.com/odh-platform/odh-platform-operator/controllers/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	ray "github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// ByComponent are the kinds of each component, by its name.
func ByComponent() map[string]render.Kinds {
	return map[string]render.Kinds{
		mlflow.ComponentName: {
			mlflowv1.GroupVersion.WithKind("MLflow"):             mlflows,
			mlflowconfigv1.GroupVersion.WithKind("MLflowConfig"): mlflowConfigs,
		},
		modelregistry.ComponentName: {v1beta1.GroupVersion.WithKind(v1beta1.Kind): registries},
		modelcatalog.ComponentName:  {aihubv1alpha1.GroupVersion.WithKind(aihubv1alpha1.Kind): catalogs},
		platform.ComponentName: {
			platformv1alpha1.GroupVersion.WithKind("AIHub"):          hubs,
			platformv1alpha1.GroupVersion.WithKind("MLflowOperator"): mlflowOperators,
		},
		appwrapper.ComponentName: {awv1beta2.GroupVersion.WithKind(awv1beta2.Kind): appWrappers},
		raycluster.ComponentName: {ray.GVK: rayClusters},
		modelmesh.ComponentName: {
			capability.ServingRuntime:        servingRuntimes,
			capability.ClusterServingRuntime: servingRuntimes,
			modelmesh.PredictorKind:          registrations,
			capability.InferenceService:      registrations,
		},
	}
}

// Table are the kinds of all components.
func Table() render.Kinds {
	all := render.Kinds{}
	for _, kinds := range ByComponent() {
		maps.Copy(all, kinds)
	}
	return all
}

func mlflows(obj *unstructured.Unstructured, env render.Env) (render.Result, error) {
	objects, err := mlflow.Render(MLflow(env.Config), env.Capabilities, obj)
	return render.Result{Objects: objects}, err
}

// mlflowConfigs are read by the MLflow servers themselves.
func mlflowConfigs(obj *unstructured.Unstructured, env render.Env) (render.Result, error) {
	namespace := env.Placed(obj)
	return render.Result{Notes: []string{
		"nothing is created for MLflowConfig " + obj.GetName() + ": the servers of MLflow read it themselves, and keep artifacts of workspace " +
			namespace + " in the bucket of Secret " + nested(obj, "spec", "artifactRootSecret") + " there"}}, nil
}

func registries(obj *unstructured.Unstructured, env render.Env) (render.Result, error) {
	settings := env.Config.ModelRegistry
	settings.DefaultDomain = cmp.Or(settings.DefaultDomain, env.Domain)
	objects, err := modelregistry.Render(modelregistry.Settings{ModelRegistry: settings}, env.Capabilities, obj)
	return render.Result{Objects: objects}, err
}

func catalogs(obj *unstructured.Unstructured, env render.Env) (render.Result, error) {
	if obj.GetNamespace() == "" && env.Config.ModelRegistry.Namespace != "" {
		obj.SetNamespace(env.Config.ModelRegistry.Namespace)
	}
	env.Placed(obj)
	objects, notes, err := modelcatalog.Render(modelcatalog.Settings{ModelRegistry: env.Config.ModelRegistry}, env.Capabilities, env.Domain, obj)
	return render.Result{Objects: objects, Notes: notes}, err
}

func hubs(obj *unstructured.Unstructured, env render.Env) (render.Result, error) {
	objects, notes, err := platform.RenderHub(env.Config.ModelRegistry.Namespace, env.Config.Enabled(modelcatalog.ComponentName), obj)
	return render.Result{Objects: objects, Notes: notes}, err
}

func mlflowOperators(obj *unstructured.Unstructured, _ render.Env) (render.Result, error) {
	return render.Result{Notes: []string{"nothing is created for MLflowOperator " + obj.GetName() +
		": it hands MLflow over to the program, which creates what each MLflow asks for"}}, nil
}

func appWrappers(obj *unstructured.Unstructured, env render.Env) (render.Result, error) {
	env.Placed(obj)
	settings, err := AppWrapper(env)
	if err != nil {
		return render.Result{}, fmt.Errorf("configuration of appwrapper: %w", err)
	}
	objects, notes, err := appwrapper.Render(appwrapper.SettingsOf(settings), obj)
	return render.Result{Objects: objects, Notes: notes}, err
}

func rayClusters(obj *unstructured.Unstructured, env render.Env) (render.Result, error) {
	env.Placed(obj)
	settings, _, err := env.Config.RayCluster(env.Older(CodeFlareConfig, true))
	if err != nil {
		return render.Result{}, fmt.Errorf("settings of Ray: %w", err)
	}
	objects, notes, err := raycluster.Render(raycluster.RenderInputs{
		Settings: settings, Served: env.Capabilities, Domain: env.Domain, Version: env.Version, KubeRay: env.KubeRay,
	}, obj)
	return render.Result{Objects: objects, Notes: notes}, err
}

// servingRuntimes are shown in their namespace; those of cluster scope in the one that objects without a namespace go to.
func servingRuntimes(obj *unstructured.Unstructured, env render.Env) (render.Result, error) {
	in := runtimes.RenderInputs{Served: env.Capabilities, OnlyOwn: env.Config.ModelMesh.NamespaceScope, Home: env.Config.ModelMesh.Namespace, Used: true}
	if obj.GetKind() == capability.ClusterServingRuntime.Kind {
		in.Namespace = cmp.Or(env.Namespace, corev1.NamespaceDefault)
	} else {
		in.Namespace = env.Placed(obj)
	}
	var notes, more []string
	var err error
	if in.Settings, notes, err = env.Mesh(in.Namespace); err != nil {
		return render.Result{}, fmt.Errorf("settings of ModelMesh: %w", err)
	}
	objects, more, err := runtimes.Render(in, obj)
	if err != nil || len(objects) == 0 || in.OnlyOwn {
		return render.Result{Objects: objects, Notes: append(notes, more...)}, err
	}
	beside, about, err := openshift.Render(in.Namespace, in.Settings, env.Capabilities, env.Config.ModelMesh.MonitoringNamespace)
	return render.Result{Objects: append(objects, beside...), Notes: slices.Concat(notes, more, about)}, err
}

// registrations are made in the mesh, not in the API.
func registrations(obj *unstructured.Unstructured, env render.Env) (render.Result, error) {
	namespace := env.Placed(obj)
	registration, reason, err := models.Register(obj)
	if err != nil {
		return render.Result{}, err
	}
	if registration == nil {
		return render.Result{Notes: []string{"nothing is made for " + obj.GetKind() + " " + obj.GetName() + ": " + reason}}, nil
	}
	settings, notes, err := env.Mesh(namespace)
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

// nested is a text in an object; "" when there is none.
func nested(obj *unstructured.Unstructured, fields ...string) string {
	text, _, _ := unstructured.NestedString(obj.Object, fields...) // another type says nothing
	return text
}
