package settings

import (
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// key is a key of a document: a setting, or an object with keys of its own.
type keySpec struct {
	name      string
	authority authority
	set       setter
	keys      []keySpec
	// merge puts together what the keys of an object gave, where they depend on each other.
	merge func() error
}

// scope says who may set a key.
type authority bool

const (
	// administrators decide on code, identity, credentials and addresses.
	adminOnly authority = false
	// namespaces may say for themselves how much, how many, how loud, within bounds.
	adminOrNamespace authority = true
)

const (
	imagePart = "part of an image reference such as quay.io/example/image:v1"
	variables = "a list of objects with name and value"
)

// keys are the keys of a document, and where their values go.
func (s *Settings) keys() []keySpec {
	return append(s.podKeys(),
		setting("inferenceServiceName", adminOnly, text(&s.ServiceName, "the name of a Service: at most 63 of a-z, 0-9 and -, a letter first",
			passes(validation.IsDNS1035Label))),
		setting("inferenceServicePort", adminOnly, port(&s.ServicePort)),
		setting("headlessService", adminOrNamespace, boolean(&s.HeadlessService)),
		setting("podsPerRuntime", adminOrNamespace, integer(&s.PodsPerRuntime, 0, math.MaxUint16)),
		setting("grpcMaxMessageSizeBytes", adminOrNamespace, integer(&s.GRPCMaxMessageSizeBytes, 0, math.MaxInt32)),
		object("tls",
			setting("secretName", adminOnly, text(&s.TLS.SecretName, "the name of a Secret, or empty for no TLS", orEmpty(isName))),
			setting("clientAuth", adminOnly, clientAuth(&s.TLS.ClientAuth))),
		setting("enableAccessLogging", adminOrNamespace, boolean(&s.EnableAccessLogging)),
		image("modelMeshImage", &s.ModelMeshImage),
		resourcesKey("modelMeshResources", &s.ModelMeshResources),
		object("restProxy",
			setting("enabled", adminOrNamespace, boolean(&s.RESTProxy.Enabled)),
			setting("port", adminOnly, port(&s.RESTProxy.Port)),
			setting("skipVerify", adminOnly, boolean(&s.RESTProxy.SkipVerify)),
			image("image", &s.RESTProxy.Image),
			resourcesKey("resources", &s.RESTProxy.Resources)),
		image("storageHelperImage", &s.StorageHelper.Image,
			setting("command", adminOnly, stringList(&s.StorageHelper.Command, "a list of strings", anyString))),
		resourcesKey("storageHelperResources", &s.StorageHelper.Resources),
		setting("storageSecretName", adminOnly, text(&s.StorageSecretName, "the name of a Secret", isName)),
		setting("etcdSecretName", adminOnly, text(&s.EtcdSecretName, "the name of a Secret", isName)),
		object("metrics",
			setting("enabled", adminOrNamespace, boolean(&s.Metrics.Enabled)),
			setting("port", adminOrNamespace, port(&s.Metrics.Port)),
			setting("scheme", adminOrNamespace, text(&s.Metrics.Scheme, "http or https", oneOf("http", "https"))),
			setting("disablePrometheusOperatorSupport", adminOrNamespace, boolean(&s.Metrics.DisablePrometheusOperatorSupport))),
		object("scaleToZero",
			setting("enabled", adminOrNamespace, boolean(&s.ScaleToZero.Enabled)),
			setting("gracePeriodSeconds", adminOrNamespace, seconds(&s.ScaleToZero.GracePeriod))),
		setting("allowAnyPVC", adminOnly, boolean(&s.AllowAnyPVC)),
		setting("allowNamespaceEtcd", adminOnly, boolean(&s.AllowNamespaceEtcd)),
		setting("etcdUserPerNamespace", adminOnly, boolean(&s.EtcdUserPerNamespace)),
		setting("payloadProcessors", adminOnly, stringList(&s.PayloadProcessors, "a list of URIs such as http://collector:8080/v1", anyString)),
		setting("modelMeshEndpoint", adminOnly, text(&s.ModelMeshEndpoint, "an address such as localhost:8033", hasNoSpace)),
		object("authProxy",
			setting("mode", adminOnly, text(&s.AuthProxy.Mode, "auto, always or never", oneOf(AuthProxyAuto, AuthProxyAlways, AuthProxyNever))),
			image("image", &s.AuthProxy.Image),
			image("rbacImage", &s.AuthProxy.RBACImage),
			resourcesKey("resources", &s.AuthProxy.Resources),
			setting("extraArgs", adminOnly, stringList(&s.AuthProxy.ExtraArgs, "a list of arguments", func(text string) bool { return text != "" }))),
		object("networkPolicy",
			setting("enabled", adminOnly, boolean(&s.NetworkPolicy)),
			setting("restricted", adminOnly, boolean(&s.NetworkPolicyRestricted))))
}

// podKeys are the keys of what runtime pods get and where they run.
func (s *Settings) podKeys() []keySpec {
	return []keySpec{
		setting("serviceAccountName", adminOnly, text(&s.ServiceAccountName, "the name of a ServiceAccount, or empty", orEmpty(isName))),
		setting("runtimePodLabels", adminOnly, podLabels(&s.RuntimePodLabels)),
		setting("runtimePodAnnotations", adminOnly, stringMap(&s.RuntimePodAnnotations, func(key string) []string {
			return validation.IsQualifiedName(strings.ToLower(key)) // as the API server does
		}, func(string) []string { return nil })),
		setting("imagePullSecrets", adminOnly, objectList(&s.ImagePullSecrets, "a list of objects with a name", func(one *corev1.LocalObjectReference) []keySpec {
			return []keySpec{setting("name", adminOnly, text(&one.Name, "the name of a Secret", isName))}
		})),
		setting("builtInServerTypes", adminOnly, stringList(&s.BuiltInServerTypes, "a list of names, each at most 63 of a-z, 0-9 and -",
			passes(validation.IsDNS1123Label))),
		setting("runtimeArchitectures", adminOnly, stringList(&s.RuntimeArchitectures, "a list of values of the label kubernetes.io/arch",
			func(text string) bool { return text != "" && len(validation.IsValidLabelValue(text)) == 0 })),
		setting("internalModelMeshEnvVars", adminOnly, objectList(&s.InternalModelMeshEnvVars, variables, func(one *corev1.EnvVar) []keySpec {
			return []keySpec{
				setting("name", adminOnly, text(&one.Name, "the name of a variable", passes(validation.IsEnvVarName))),
				setting("value", adminOnly, text(&one.Value, "a string", anyString)),
			}
		})),
	}
}

func setting(name string, who authority, set setter) keySpec {
	return keySpec{name: name, authority: who, set: set}
}

func object(name string, keys ...keySpec) keySpec { return keySpec{name: name, keys: keys} }

// image is the key of an image, whose parts are laid over the image below together.
func image(name string, to *Image, more ...keySpec) keySpec {
	var given struct{ name, tag, digest *string }
	part := func(name string, to **string) keySpec {
		return setting(name, adminOnly, func(r *parser, path string, value any) {
			given, ok := value.(string)
			if given = strings.TrimSpace(given); !ok || strings.ContainsAny(given, " \t\n\"'") || strings.Contains(given, "://") {
				r.refuse(path, value, imagePart)
				return
			}
			*to = &given
		})
	}
	return keySpec{
		name: name, keys: append(more, part("name", &given.name), part("tag", &given.tag), part("digest", &given.digest)),
		merge: func() error {
			merged, err := to.merge(given.name, given.tag, given.digest)
			if err != nil {
				return fmt.Errorf("name %q %w", *given.name, err)
			}
			*to = merged
			return nil
		},
	}
}

// resourcesKey is the key of requests and limits of CPU and memory, each of which is set on its own.
func resourcesKey(name string, to *corev1.ResourceRequirements) keySpec {
	part := func(name string, list corev1.ResourceList) keySpec {
		return object(name,
			setting("cpu", adminOrNamespace, quantity(list, corev1.ResourceCPU)), setting("memory", adminOrNamespace, quantity(list, corev1.ResourceMemory)))
	}
	return object(name, part("requests", to.Requests), part("limits", to.Limits))
}
