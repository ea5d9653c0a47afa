package settings

import (
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// keySpec describes a key of a document: a setting, or an object with nested keys.
type keySpec struct {
	name      string
	authority authority
	set       setter
	keys      []keySpec
	// merge combines nested values that depend on each other.
	merge func() error
}

// authority defines who can set a key. For a document it is the author: adminOnly for administrators, adminOrNamespace for a namespace.
type authority bool

const (
	// adminOnly keys affect code, identity, credentials, addresses or access.
	adminOnly authority = false
	// adminOrNamespace keys affect amounts, verbosity, and features such as REST and metrics, within limits.
	adminOrNamespace authority = true
)

const (
	imagePart = "part of an image reference such as quay.io/example/image:v1"
	variables = "a list of objects with name and value"
)

// keys returns the keys of a document with setters for their values.
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
			setting("enabled", adminOnly, boolean(&s.NetworkPolicyEnabled)),
			setting("restricted", adminOnly, boolean(&s.NetworkPolicyRestricted))))
}

// podKeys returns the keys for the content and placement of runtime pods.
func (s *Settings) podKeys() []keySpec {
	return []keySpec{
		setting("serviceAccountName", adminOnly, text(&s.ServiceAccountName, "the name of a ServiceAccount, or empty", orEmpty(isName))),
		setting("runtimePodLabels", adminOnly, podLabels(&s.RuntimePodLabels)),
		setting("runtimePodAnnotations", adminOnly, stringMap(&s.RuntimePodAnnotations, func(key string) []string {
			return validation.IsQualifiedName(strings.ToLower(key)) // as the API server does
		}, func(string) []string { return nil })),
		setting("imagePullSecrets", adminOnly, objectList(&s.ImagePullSecrets, "a list of objects with a name", func(secret *corev1.LocalObjectReference) []keySpec {
			return []keySpec{setting("name", adminOnly, text(&secret.Name, "the name of a Secret", isName))}
		})),
		setting("builtInServerTypes", adminOnly, stringList(&s.BuiltInServerTypes, "a list of names, each of at most 63 characters a-z, 0-9 and -",
			passes(validation.IsDNS1123Label))),
		setting("runtimeArchitectures", adminOnly, stringList(&s.RuntimeArchitectures, "a list of values of the label kubernetes.io/arch",
			func(text string) bool { return text != "" && len(validation.IsValidLabelValue(text)) == 0 })),
		setting("internalModelMeshEnvVars", adminOnly, objectList(&s.InternalModelMeshEnvVars, variables, func(variable *corev1.EnvVar) []keySpec {
			return []keySpec{
				setting("name", adminOnly, text(&variable.Name, "the name of a variable", passes(validation.IsEnvVarName))),
				setting("value", adminOnly, text(&variable.Value, "a string", anyString)),
			}
		})),
	}
}

func setting(name string, a authority, set setter) keySpec {
	return keySpec{name: name, authority: a, set: set}
}

func object(name string, keys ...keySpec) keySpec { return keySpec{name: name, keys: keys} }

// image returns the key of an image. All parts are merged into the previous image together.
func image(name string, target *Image, extraKeys ...keySpec) keySpec {
	var parts struct{ name, tag, digest *string }
	part := func(name string, to **string) keySpec {
		return setting(name, adminOnly, scalar(to, imagePart, func(text string) (*string, bool) {
			return &text, !strings.ContainsAny(text, " \t\n\"'") && !strings.Contains(text, "://")
		}))
	}
	return keySpec{
		name: name, keys: append(extraKeys, part("name", &parts.name), part("tag", &parts.tag), part("digest", &parts.digest)),
		merge: func() error {
			merged, err := target.merge(parts.name, parts.tag, parts.digest)
			if err != nil {
				return fmt.Errorf("name %q %w", *parts.name, err)
			}
			*target = merged
			return nil
		},
	}
}

// resourcesKey returns the key of requests and limits for CPU and memory. Each quantity is merged separately.
func resourcesKey(name string, target *corev1.ResourceRequirements) keySpec {
	part := func(name string, list corev1.ResourceList) keySpec {
		return object(name,
			setting("cpu", adminOrNamespace, resourceQuantity(list, corev1.ResourceCPU)), setting("memory", adminOrNamespace, resourceQuantity(list, corev1.ResourceMemory)))
	}
	return object(name, part("requests", target.Requests), part("limits", target.Limits))
}
