package settings

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Names of the ConfigMaps and of their keys.
const (
	// ConfigMapName is the ConfigMap of settings, in the manager's namespace and in those that say something for themselves.
	ConfigMapName = "model-serving-config"
	// ConfigMapKey is its key.
	ConfigMapKey = "config.yaml"
	// DefaultsName is the ConfigMap of defaults in the manager's namespace.
	DefaultsName = "model-serving-config-defaults"
	// DefaultsKey is its key.
	DefaultsKey = "config-defaults.yaml"
)

// ofNamespace are the settings that a namespace may set for itself: how much, how many, how loud. What decides on code,
// identity, credentials and addresses stays with the administrators.
var ofNamespace = []string{
	"podsPerRuntime", "grpcMaxMessageSizeBytes", "enableAccessLogging", "headlessService",
	"modelMeshResources.", "restProxy.enabled", "restProxy.resources.", "storageHelperResources.", "authProxy.resources.",
	"metrics.", "scaleToZero.", "runtimePodLabels", "runtimePodAnnotations", "imagePullSecrets", "payloadProcessors",
}

// namespaceMaySet tells whether a namespace may set what has the path.
func namespaceMaySet(path string) bool {
	return slices.ContainsFunc(ofNamespace, func(allowed string) bool {
		return path == allowed || strings.HasSuffix(allowed, ".") && strings.HasPrefix(path, allowed)
	})
}

// Read lays a document over settings. Notes name what has no effect. An error has one line for each mistake: the key, its
// value, and what is right.
func Read(over Settings, text string) (Settings, []string, error) { return read(over, text, nil) }

// ReadOverride is Read for the document of a namespace, which may set some settings only.
func ReadOverride(over Settings, text string) (Settings, []string, error) {
	return read(over, text, namespaceMaySet)
}

func read(over Settings, text string, permits func(string) bool) (Settings, []string, error) {
	root, err := parse(text, permits)
	if err != nil {
		return Settings{}, nil, err
	}
	settings := over.clone()
	root.settings(&settings)
	root.finish()
	if len(root.errs) == 0 {
		root.errs = settings.contradictions()
	}
	if err := errors.Join(root.errs...); err != nil {
		return Settings{}, nil, err
	}
	return settings, root.odd, nil
}

// settings reads every key.
func (s *section) settings(to *Settings) {
	s.text("inferenceServiceName", &to.ServiceName, "the name of a Service: at most 63 of a-z, 0-9 and -, a letter first",
		func(text string) bool { return len(validation.IsDNS1035Label(text)) == 0 })
	s.port("inferenceServicePort", &to.ServicePort)
	s.boolean("headlessService", &to.HeadlessService)
	integer(s, "podsPerRuntime", &to.PodsPerRuntime, 0, math.MaxUint16)
	integer(s, "grpcMaxMessageSizeBytes", &to.GRPCMaxMessageSizeBytes, 0, math.MaxInt32)
	s.child("tls", func(c *section) { c.tls(&to.TLS) })
	s.boolean("enableAccessLogging", &to.EnableAccessLogging)
	s.containers(to)
	s.secrets(to)
	s.child("metrics", func(c *section) { c.metrics(&to.Metrics) })
	s.child("scaleToZero", func(c *section) { c.scaleToZero(&to.ScaleToZero) })
	s.pods(to)
	s.boolean("allowAnyPVC", &to.AllowAnyPVC)
	s.boolean("allowNamespaceEtcd", &to.AllowNamespaceEtcd)
	s.processors(&to.PayloadProcessors)
	s.text("modelMeshEndpoint", &to.ModelMeshEndpoint, "an address such as localhost:8033", isAddress)
	s.child("authProxy", func(c *section) { c.authProxy(&to.AuthProxy) })
	s.child("networkPolicy", func(c *section) {
		c.boolean("enabled", &to.NetworkPolicy)
		c.boolean("restricted", &to.NetworkPolicyRestricted)
	})
}

func isAddress(text string) bool { return !strings.ContainsFunc(text, unicode.IsSpace) }

func (s *section) tls(to *TLS) {
	s.text("secretName", &to.SecretName, "the name of a Secret, or empty for no TLS", emptyOr(isName))
	s.text("clientAuth", &to.ClientAuth, "require, optional or empty", isAddress)
	if !slices.Contains([]string{"", "require", "optional"}, to.ClientAuth) {
		s.note("tls.clientAuth %q is handed on as it is: the programs know require and optional", to.ClientAuth)
	}
}

func (s *section) containers(to *Settings) {
	s.image("modelMeshImage", &to.ModelMeshImage, nil)
	s.resources("modelMeshResources", &to.ModelMeshResources)
	s.child("restProxy", func(c *section) {
		c.boolean("enabled", &to.RESTProxy.Enabled)
		c.port("port", &to.RESTProxy.Port)
		c.boolean("skipVerify", &to.RESTProxy.SkipVerify)
		c.image("image", &to.RESTProxy.Image, nil)
		c.resources("resources", &to.RESTProxy.Resources)
	})
	s.image("storageHelperImage", &to.StorageHelper.Image, &to.StorageHelper.Command)
	s.resources("storageHelperResources", &to.StorageHelper.Resources)
}

func (s *section) secrets(to *Settings) {
	s.text("storageSecretName", &to.StorageSecretName, "the name of a Secret", isName)
	s.text("etcdSecretName", &to.EtcdSecretName, "the name of a Secret", isName)
	s.text("serviceAccountName", &to.ServiceAccountName, "the name of a ServiceAccount, or empty", emptyOr(isName))
}

func (s *section) metrics(to *Metrics) {
	s.boolean("enabled", &to.Enabled)
	s.port("port", &to.Port)
	s.text("scheme", &to.Scheme, "http or https", oneOf("http", "https"))
	s.boolean("disablePrometheusOperatorSupport", &to.DisablePrometheusOperatorSupport)
}

func (s *section) scaleToZero(to *ScaleToZero) {
	s.boolean("enabled", &to.Enabled)
	seconds := int64(to.GracePeriod / time.Second)
	integer(s, "gracePeriodSeconds", &seconds, 0, math.MaxInt32)
	to.GracePeriod = time.Duration(seconds) * time.Second
}

// pods are the settings of the pods of runtimes.
func (s *section) pods(to *Settings) {
	s.pairs("runtimePodLabels", &to.RuntimePodLabels, validation.IsQualifiedName, validation.IsValidLabelValue)
	s.pairs("runtimePodAnnotations", &to.RuntimePodAnnotations, func(key string) []string {
		return validation.IsQualifiedName(strings.ToLower(key)) // as the API server does
	}, anyValue)
	var pull []corev1.LocalObjectReference
	if s.objects("imagePullSecrets", "a list of objects with a name", func(c *section) {
		var one corev1.LocalObjectReference
		c.text("name", &one.Name, "the name of a Secret", isName)
		if one.Name == "" && len(c.errs) == 0 {
			c.fail("%sname is missing: name a Secret", c.path)
		}
		pull = append(pull, one)
	}) {
		to.ImagePullSecrets = pull
	}
	s.strings("builtInServerTypes", &to.BuiltInServerTypes, "a list of names, each at most 63 of a-z, 0-9 and -", isLabel)
	s.strings("runtimeArchitectures", &to.RuntimeArchitectures, "a list of values of the label kubernetes.io/arch", func(text string) bool {
		return text != "" && len(validation.IsValidLabelValue(text)) == 0
	})
	var env []corev1.EnvVar
	if s.objects("internalModelMeshEnvVars", "a list of objects with name and value", func(c *section) {
		var one corev1.EnvVar
		c.text("name", &one.Name, "the name of a variable", func(text string) bool { return len(validation.IsEnvVarName(text)) == 0 })
		if one.Name == "" && len(c.errs) == 0 {
			c.fail("%sname is missing: name a variable", c.path)
		}
		c.text("value", &one.Value, "a string", nil)
		env = append(env, one)
	}) {
		to.InternalModelMeshEnvVars = env
	}
}

// processors refuses blanks in the words of the original: they part one processor from the next.
func (s *section) processors(to *[]string) {
	var given []string
	s.strings("payloadProcessors", &given, "a list of URIs such as http://collector:8080/v1", func(string) bool { return true })
	for _, one := range given {
		if one == "" || strings.ContainsFunc(one, unicode.IsSpace) {
			s.fail("%s '%s': endpoint must not contain spaces.", "Error parsing payload processor", short(one))
		}
	}
	if given != nil {
		*to = given
	}
}

func (s *section) authProxy(to *AuthProxy) {
	s.text("mode", &to.Mode, "auto, always or never", oneOf(AuthProxyAuto, AuthProxyAlways, AuthProxyNever))
	s.image("image", &to.Image, nil)
	s.image("rbacImage", &to.RBACImage, nil)
	s.resources("resources", &to.Resources)
	s.strings("extraArgs", &to.ExtraArgs, "a list of arguments", func(text string) bool { return text != "" })
}

// contradictions are mistakes that only show when several settings meet.
func (s Settings) contradictions() []error {
	var errs []error
	for _, c := range []struct {
		name      string
		resources corev1.ResourceRequirements
	}{
		{"modelMeshResources", s.ModelMeshResources}, {"restProxy.resources", s.RESTProxy.Resources},
		{"storageHelperResources", s.StorageHelper.Resources}, {"authProxy.resources", s.AuthProxy.Resources},
	} {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			request, limit := c.resources.Requests[name], c.resources.Limits[name]
			if request.Cmp(limit) > 0 {
				errs = append(errs, invalid(c.name, fmt.Errorf("requests.%s %s is more than limits.%s %s: lower the one or raise the other",
					name, request.String(), name, limit.String())))
			}
		}
	}
	return append(errs, s.sharedPorts()...)
}

// sharedPorts finds two listeners of one pod on one port. Those without a setting are in runtime pods as well.
func (s Settings) sharedPorts() []error {
	used := map[int32]string{8080: "the traffic between pods", 8089: "the probes", 8090: "the end of the pod"}
	var errs []error
	for _, listener := range []struct {
		name string
		port int32
		on   bool
	}{
		{"inferenceServicePort", s.ServicePort, true}, {"restProxy.port", s.RESTProxy.Port, s.RESTProxy.Enabled},
		{"metrics.port", s.Metrics.Port, s.Metrics.Enabled},
	} {
		if !listener.on {
			continue
		}
		if other, taken := used[listener.port]; taken {
			errs = append(errs, fmt.Errorf("%s %d is the port of %s too: give it one of its own", listener.name, listener.port, other))
		}
		used[listener.port] = listener.name
	}
	return errs
}
