// Package review validates custom resources as the webhooks of the manager do on creation. It runs the webhooks themselves, for an empty
// cluster and a user with all permissions.
package review

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/cmd/internal/kinds"
	"github.com/odh-platform/odh-platform-operator/cmd/internal/render"
	registrycontroller "github.com/odh-platform/odh-platform-operator/controllers/modelregistry"
	pkgadmission "github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	ray "github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/webhooks/appwrapper"
	"github.com/odh-platform/odh-platform-operator/webhooks/mlflow"
	"github.com/odh-platform/odh-platform-operator/webhooks/modelmesh"
	"github.com/odh-platform/odh-platform-operator/webhooks/modelregistry"
	"github.com/odh-platform/odh-platform-operator/webhooks/raycluster"
)

// webhookPaths are the paths of the webhooks of each kind, in the order of their calls.
var webhookPaths = map[schema.GroupKind][]string{
	{Group: mlflowv1.GroupVersion.Group, Kind: "MLflow"}:                {mlflow.ValidatePath},
	{Group: v1beta1.GroupVersion.Group, Kind: v1beta1.Kind}:             {modelregistry.MutatePath, modelregistry.ValidatePath},
	{Group: aihubv1alpha1.GroupVersion.Group, Kind: aihubv1alpha1.Kind}: {modelregistry.ValidateCatalogPath},
	capability.ServingRuntime.GroupKind():                               {modelmesh.ValidatePath},
	capability.ClusterServingRuntime.GroupKind():                        {modelmesh.ValidatePath},
	ray.GVK.GroupKind(): {raycluster.MutatePath, raycluster.ValidatePath},
	{Group: awv1beta2.GroupVersion.Group, Kind: awv1beta2.Kind}: {appwrapper.MutatePath, appwrapper.ValidatePath},
}

// Func returns the function for [render.Env].
func Func(ctx context.Context) func(render.Env, *unstructured.Unstructured) ([]string, error) {
	return func(env render.Env, obj *unstructured.Unstructured) ([]string, error) { return Create(ctx, env, obj) }
}

// Create reviews the creation of an object. It returns the warnings of the webhooks, and their rejection as an error.
func Create(ctx context.Context, env render.Env, obj *unstructured.Unstructured) (warnings []string, err error) {
	kind := obj.GroupVersionKind().GroupKind()
	raw, err := obj.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encoding the object: %w", err)
	}
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Name: obj.GetName(), Namespace: namespaceOf(env, obj), Object: apiruntime.RawExtension{Raw: raw},
		UserInfo: authenticationv1.UserInfo{Username: "author"},
	}}
	hooks := webhooks(env)
	for _, path := range webhookPaths[kind] {
		response := hooks[path].Handle(ctx, request)
		if err := response.Complete(request); err != nil {
			return warnings, fmt.Errorf("encoding the response of a webhook: %w", err)
		}
		if !response.Allowed {
			return warnings, errors.New(response.Result.Message)
		}
		warnings = append(warnings, response.Warnings...)
		if len(response.Patch) > 0 {
			patch, err := jsonpatch.DecodePatch(response.Patch)
			if err == nil {
				request.Object.Raw, err = patch.Apply(request.Object.Raw)
			}
			if err != nil {
				return warnings, fmt.Errorf("applying the patch of a webhook: %w", err)
			}
		}
	}
	return warnings, nil
}

// namespaceOf returns the namespace of the request: "" for a cluster-scoped kind, else that of the object, of env, of the registries if the
// kind belongs there, or "default".
func namespaceOf(env render.Env, obj *unstructured.Unstructured) string {
	required := ""
	switch obj.GetKind() {
	case "MLflow", capability.ClusterServingRuntime.Kind:
		return ""
	case v1beta1.Kind, aihubv1alpha1.Kind:
		required = env.Config.ModelRegistry.Namespace
	}
	return cmp.Or(obj.GetNamespace(), env.Namespace, required, corev1.NamespaceDefault)
}

// webhooks returns the webhook handlers of all components by path. It registers the webhooks with a fake manager.
func webhooks(env render.Env) map[string]admission.Handler {
	recorder := server{hooks: map[string]admission.Handler{}}
	mgr := manager{server: recorder}
	guards := pkgadmission.Guards{Rules: env.Config.AdmissionRules, Access: func(context.Context, authenticationv1.UserInfo, authorizationv1.ResourceAttributes) (bool, error) {
		return true, nil
	}}
	mlflow.Register(mgr, true, guards, env.Config.Namespace)
	modelregistry.Register(mgr, true, guards, func(context.Context) (modelregistry.Settings, error) {
		return registrycontroller.RuleSettings(env.Config.ModelRegistry, env.Capabilities), nil
	})
	modelregistry.RegisterCatalog(mgr, true, guards, func(context.Context) (modelregistry.Settings, error) {
		return modelregistry.Settings{Namespace: env.Config.ModelRegistry.Namespace}, nil
	})
	modelmesh.Register(mgr, true, guards, func(_ context.Context, namespace string) []string {
		settings, _, _ := env.ModelMesh(cmp.Or(namespace, env.Config.ModelMesh.Namespace)) // the render function returns the error
		return settings.BuiltInServerTypes
	})
	appwrapper.Register(mgr, true, guards, func(context.Context) (appwrapper.Settings, error) {
		settings, err := kinds.AppWrapper(env)
		return appwrapper.Settings{DefaultQueueName: settings.DefaultQueueName}, err
	})
	raycluster.Register(mgr, true, guards, raycluster.Options{
		Settings: func(context.Context) (config.RayCluster, error) {
			settings, _, err := env.Config.RayCluster(env.LegacyConfig(kinds.CodeFlareConfig, true))
			return settings, err
		},
		Served: func() capability.Set { return env.Capabilities }, Domain: func() string { return env.Domain }, Version: env.Version,
	})
	return recorder.hooks
}

// server records webhooks.
type server struct {
	webhook.Server
	hooks map[string]admission.Handler
}

// Register implements webhook.Server. It ignores other handlers than admission webhooks.
func (s server) Register(path string, hook http.Handler) {
	if w, ok := hook.(*admission.Webhook); ok {
		s.hooks[path] = w.Handler
	}
}

// manager implements the methods of ctrl.Manager that webhooks use.
type manager struct {
	ctrl.Manager
	server server
}

func (m manager) GetWebhookServer() webhook.Server { return m.server }
func (m manager) GetAPIReader() client.Reader      { return emptyReader{} }
func (m manager) GetClient() client.Client         { return emptyReader{} }
func (m manager) GetRESTMapper() meta.RESTMapper   { return fallbackMapper{kubernetesMapper()} }

// emptyReader reads a cluster without objects.
type emptyReader struct{ client.Client }

func (emptyReader) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (emptyReader) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// kubernetesMapper maps the kinds of Kubernetes. It is built on first use, because it takes 2 ms and 1 MB.
var kubernetesMapper = sync.OnceValue(func() meta.RESTMapper { return testrestmapper.TestOnlyStaticRESTMapper(clientgoscheme.Scheme) })

// fallbackMapper assumes that kinds of other API groups are served and namespaced.
type fallbackMapper struct{ meta.RESTMapper }

// RESTMapping implements meta.RESTMapper.
func (m fallbackMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := m.RESTMapper.RESTMapping(kind, versions...)
	if !meta.IsNoMatchError(err) || clientgoscheme.Scheme.IsGroupRegistered(kind.Group) || len(versions) == 0 {
		return mapping, err
	}
	plural, _ := meta.UnsafeGuessKindToResource(kind.WithVersion(versions[0]))
	return &meta.RESTMapping{Resource: plural, GroupVersionKind: kind.WithVersion(versions[0]), Scope: meta.RESTScopeNamespace}, nil
}
