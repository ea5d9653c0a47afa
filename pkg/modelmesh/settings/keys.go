package settings

import (
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// key is a key of a document: a setting, or an object with keys of its own.
type key struct {
	name  string
	scope scope
	set   setter
	keys  []key
	// merge puts together what the keys of an object gave, where they depend on each other.
	merge func() error
}

// scope says who may set a key.
type scope bool

const (
	// administrators decide on code, identity, credentials and addresses.
	administrators scope = false
	// namespaces may say for themselves how much, how many, how loud, within bounds.
	namespaces scope = true
)

const (
	imagePart = "part of an image reference such as quay.io/example/image:v1"
	variables = "a list of objects with name and value"
)

// keys are the keys of a document, and where their values go.
func (s *Settings) keys() []key {
	return append(s.podKeys(),
		setting("inferenceServiceName", administrators, text(&s.ServiceName, "the name of a Service: at most 63 of a-z, 0-9 and -, a letter first",
			valid(validation.IsDNS1035Label))),
		setting("inferenceServicePort", administrators, port(&s.ServicePort)),
		setting("headlessService", namespaces, boolean(&s.HeadlessService)),
		setting("podsPerRuntime", namespaces, integer(&s.PodsPerRuntime, 0, math.MaxUint16)),
		setting("grpcMaxMessageSizeBytes", namespaces, integer(&s.GRPCMaxMessageSizeBytes, 0, math.MaxInt32)),
		object("tls",
			setting("secretName", administrators, text(&s.TLS.SecretName, "the name of a Secret, or empty for no TLS", emptyOr(isName))),
			setting("clientAuth", administrators, clientAuth(&s.TLS.ClientAuth))),
		setting("enableAccessLogging", namespaces, boolean(&s.EnableAccessLogging)),
		image("modelMeshImage", &s.ModelMeshImage),
		resourcesKey("modelMeshResources", &s.ModelMeshResources),
		object("restProxy",
			setting("enabled", namespaces, boolean(&s.RESTProxy.Enabled)),
			setting("port", administrators, port(&s.RESTProxy.Port)),
			setting("skipVerify", administrators, boolean(&s.RESTProxy.SkipVerify)),
			image("image", &s.RESTProxy.Image),
			resourcesKey("resources", &s.RESTProxy.Resources)),
		image("storageHelperImage", &s.StorageHelper.Image,
			setting("command", administrators, list(&s.StorageHelper.Command, "a list of strings", anyText))),
		resourcesKey("storageHelperResources", &s.StorageHelper.Resources),
		setting("storageSecretName", administrators, text(&s.StorageSecretName, "the name of a Secret", isName)),
		setting("etcdSecretName", administrators, text(&s.EtcdSecretName, "the name of a Secret", isName)),
		object("metrics",
			setting("enabled", namespaces, boolean(&s.Metrics.Enabled)),
			setting("port", namespaces, port(&s.Metrics.Port)),
			setting("scheme", namespaces, text(&s.Metrics.Scheme, "http or https", oneOf("http", "https"))),
			setting("disablePrometheusOperatorSupport", namespaces, boolean(&s.Metrics.DisablePrometheusOperatorSupport))),
		object("scaleToZero",
			setting("enabled", namespaces, boolean(&s.ScaleToZero.Enabled)),
			setting("gracePeriodSeconds", namespaces, seconds(&s.ScaleToZero.GracePeriod))),
		setting("allowAnyPVC", administrators, boolean(&s.AllowAnyPVC)),
		setting("allowNamespaceEtcd", administrators, boolean(&s.AllowNamespaceEtcd)),
		setting("etcdUserPerNamespace", administrators, boolean(&s.EtcdUserPerNamespace)),
		setting("payloadProcessors", administrators, list(&s.PayloadProcessors, "a list of URIs such as http://collector:8080/v1", anyText)),
		setting("modelMeshEndpoint", administrators, text(&s.ModelMeshEndpoint, "an address such as localhost:8033", hasNoBlank)),
		object("authProxy",
			setting("mode", administrators, text(&s.AuthProxy.Mode, "auto, always or never", oneOf(AuthProxyAuto, AuthProxyAlways, AuthProxyNever))),
			image("image", &s.AuthProxy.Image),
			image("rbacImage", &s.AuthProxy.RBACImage),
			resourcesKey("resources", &s.AuthProxy.Resources),
			setting("extraArgs", administrators, list(&s.AuthProxy.ExtraArgs, "a list of arguments", func(text string) bool { return text != "" }))),
		object("networkPolicy",
			setting("enabled", administrators, boolean(&s.NetworkPolicy)),
			setting("restricted", administrators, boolean(&s.NetworkPolicyRestricted))))
}

// podKeys are the keys of what runtime pods get and where they run.
func (s *Settings) podKeys() []key {
	return []key{
		setting("serviceAccountName", administrators, text(&s.ServiceAccountName, "the name of a ServiceAccount, or empty", emptyOr(isName))),
		setting("runtimePodLabels", administrators, podLabels(&s.RuntimePodLabels)),
		setting("runtimePodAnnotations", administrators, pairs(&s.RuntimePodAnnotations, func(key string) []string {
			return validation.IsQualifiedName(strings.ToLower(key)) // as the API server does
		}, func(string) []string { return nil })),
		setting("imagePullSecrets", administrators, objects(&s.ImagePullSecrets, "a list of objects with a name", func(one *corev1.LocalObjectReference) []key {
			return []key{setting("name", administrators, text(&one.Name, "the name of a Secret", isName))}
		})),
		setting("builtInServerTypes", administrators, list(&s.BuiltInServerTypes, "a list of names, each at most 63 of a-z, 0-9 and -",
			valid(validation.IsDNS1123Label))),
		setting("runtimeArchitectures", administrators, list(&s.RuntimeArchitectures, "a list of values of the label kubernetes.io/arch",
			func(text string) bool { return text != "" && len(validation.IsValidLabelValue(text)) == 0 })),
		setting("internalModelMeshEnvVars", administrators, objects(&s.InternalModelMeshEnvVars, variables, func(one *corev1.EnvVar) []key {
			return []key{
				setting("name", administrators, text(&one.Name, "the name of a variable", valid(validation.IsEnvVarName))),
				setting("value", administrators, text(&one.Value, "a string", anyText)),
			}
		})),
	}
}

func setting(name string, who scope, set setter) key { return key{name: name, scope: who, set: set} }

func object(name string, keys ...key) key { return key{name: name, keys: keys} }

// image is the key of an image, whose parts are laid over the image below together.
func image(name string, to *Image, more ...key) key {
	var given struct{ name, tag, digest *string }
	part := func(name string, to **string) key {
		return setting(name, administrators, func(r *reader, path string, value any) {
			given, ok := value.(string)
			if given = strings.TrimSpace(given); !ok || strings.ContainsAny(given, " \t\n\"'") || strings.Contains(given, "://") {
				r.refuse(path, value, imagePart)
				return
			}
			*to = &given
		})
	}
	return key{
		name: name, keys: append(more, part("name", &given.name), part("tag", &given.tag), part("digest", &given.digest)),
		merge: func() error {
			merged, err := to.over(given.name, given.tag, given.digest)
			if err != nil {
				return fmt.Errorf("name %q %w", *given.name, err)
			}
			*to = merged
			return nil
		},
	}
}

// resourcesKey is the key of requests and limits of CPU and memory, each of which is set on its own.
func resourcesKey(name string, to *corev1.ResourceRequirements) key {
	part := func(name string, list corev1.ResourceList) key {
		return object(name,
			setting("cpu", namespaces, quantity(list, corev1.ResourceCPU)), setting("memory", namespaces, quantity(list, corev1.ResourceMemory)))
	}
	return object(name, part("requests", to.Requests), part("limits", to.Limits))
}
