package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/redact"
)

// Names of the ConfigMaps and of their keys.
const (
	// ConfigMapName is the ConfigMap of settings, in the operator's namespace and in namespaces with their own settings.
	ConfigMapName = "model-serving-config"
	// ConfigMapKey is its key.
	ConfigMapKey = "config.yaml"
	// DefaultsName is the ConfigMap of defaults in the operator's namespace.
	DefaultsName = "model-serving-config-defaults"
	// DefaultsKey is its key.
	DefaultsKey = "config-defaults.yaml"
)

const (
	// maxDocumentBytes limits documents: any tenant can write one, and the decoding time grows with the square of the size.
	maxDocumentBytes = 64 << 10
	// maxNamespacePods limits the replica count that a namespace can set, unless the administrators set more.
	maxNamespacePods = 20
	// maxMessages limits the number of reported errors of single keys, and that of notes.
	maxMessages = 20
)

// Read merges a document into settings. Notes describe keys without effect and unsupported values. The error has one line for each
// problem. After maxMessages notes or errors of single keys, the last one reports that there are more.
func Read(base Settings, text string) (Settings, []string, error) {
	return read(base, text, adminOnly)
}

// ReadOverride is like Read, but for the document of a namespace, which can set only some keys.
func ReadOverride(base Settings, text string) (Settings, []string, error) {
	return read(base, text, adminOrNamespace)
}

func read(base Settings, text string, author authority) (Settings, []string, error) {
	fields, err := parse(text)
	if err != nil {
		return Settings{}, nil, err
	}
	settings := base.clone()
	p := &parser{documentAuthority: author}
	p.object("", fields, settings.keys())
	if len(p.errs) == 0 {
		p.errs = settings.validate()
	}
	if maximum := max(base.PodsPerRuntime, maxNamespacePods); author == adminOrNamespace && settings.PodsPerRuntime > maximum {
		p.fail("podsPerRuntime %d: must be at most %d for one namespace, unless it is more in ConfigMap %s of the namespace with the ModelMesh configuration",
			settings.PodsPerRuntime, maximum, ConfigMapName)
	}
	if err := errors.Join(p.errs...); err != nil {
		return Settings{}, nil, err
	}
	return settings, p.notes, nil
}

// parse returns the fields of a document, which must be one YAML object or empty. Scalars stay strings, so that a tag of 1.10 is not
// changed, and quotes around numbers and booleans have no effect.
func parse(text string) (map[string]any, error) {
	if len(text) > maxDocumentBytes {
		return nil, fmt.Errorf("the settings have %d bytes: write at most %d", len(text), maxDocumentBytes)
	}
	decoder := yaml.NewDecoder(bytes.NewReader([]byte(text)))
	root := &yaml.Node{}
	if err := decoder.Decode(root); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("not valid YAML: %w", err)
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("the settings must be one YAML document: remove the other documents")
	}
	scalarsToStrings(root)
	var document any
	if err := root.Decode(&document); err != nil {
		return nil, fmt.Errorf("not valid YAML: %w", err)
	}
	fields, ok := document.(map[string]any)
	if document != nil && !ok {
		return nil, fmt.Errorf("the settings must be a YAML object and not %s", quoteValue(document))
	}
	return fields, nil
}

// scalarsToStrings makes all scalars strings, except null and the merge key.
func scalarsToStrings(node *yaml.Node) {
	if tag := node.ShortTag(); node.Kind == yaml.ScalarNode && tag != "!!null" && tag != "!!merge" {
		node.Tag = "!!str"
	}
	for _, child := range node.Content {
		scalarsToStrings(child)
	}
}

// parser reads the fields of a document, and collects its errors and notes.
type parser struct {
	documentAuthority authority
	errs              []error
	notes             []string
}

// object reads the fields of an object. Keys are case-insensitive, as in the legacy controller; null is ignored.
func (p *parser) object(path string, fields map[string]any, keys []keySpec) {
	foundAs := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		i := slices.IndexFunc(keys, func(k keySpec) bool { return strings.EqualFold(k.name, name) })
		if i < 0 {
			p.noteUnknown(path, name, keys)
			continue
		}
		if other, found := foundAs[keys[i].name]; found {
			p.fail("%s%s is set as %s and as %s: remove one of them", path, keys[i].name, other, name)
		}
		foundAs[keys[i].name] = name
		if value := fields[name]; value != nil {
			p.readKey(path+keys[i].name, value, keys[i])
		}
	}
}

// readKey reads the value of a key.
func (p *parser) readKey(path string, raw any, spec keySpec) {
	fields, isObject := raw.(map[string]any)
	switch {
	case spec.set != nil && p.documentAuthority == adminOrNamespace && spec.authority == adminOnly:
		p.fail("%s cannot be set for a single namespace: set it in ConfigMap %s of the namespace with the ModelMesh configuration", path, ConfigMapName)
	case spec.set != nil:
		spec.set(p, path, raw)
	case !isObject:
		p.reject(path, raw, "an object")
	default:
		p.object(path+".", fields, spec.keys)
		if spec.merge == nil {
			return
		}
		if err := spec.merge(); err != nil {
			p.fail("%s.%w", path, err)
		}
	}
}

// noteUnknown notes an unknown key, and suggests a similar one.
func (p *parser) noteUnknown(path, name string, keys []keySpec) {
	hint := ""
	if distance := min(max(2, len(name)/4)+1, 8); len(name) <= 64 && len(p.notes) < maxMessages {
		for _, k := range keys {
			if d := names.EditDistance(strings.ToLower(name), strings.ToLower(k.name)); d < distance {
				hint, distance = fmt.Sprintf(" (did you mean %s?)", k.name), d
			}
		}
	}
	p.note("%s%s is unknown and has no effect%s: remove or correct it", path, clip(name), hint)
}

func (p *parser) reject(path string, raw any, expected string) {
	p.fail("%s %s: must be %s", path, quoteValue(raw), expected)
}

func (p *parser) fail(format string, args ...any) {
	p.errs = appendLimited(p.errs, fmt.Errorf(format, args...), errors.New("there are more errors"))
}

func (p *parser) note(format string, args ...any) {
	p.notes = appendLimited(p.notes, fmt.Sprintf(format, args...), "there are more: correct these first")
}

// appendLimited appends up to maxMessages messages, and then once the message that there are others.
func appendLimited[T any](messages []T, message, others T) []T {
	switch {
	case len(messages) < maxMessages:
		return append(messages, message)
	case len(messages) == maxMessages:
		return append(messages, others)
	}
	return messages
}

// quoteValue returns the text of a value for messages.
func quoteValue(raw any) string {
	switch raw := raw.(type) {
	case string:
		return fmt.Sprintf("%q", clip(raw))
	case []any:
		return "a list"
	case nil:
		return "null"
	case map[any]any:
		return "an object with a key that is not a string"
	}
	return "an object"
}

// clip shortens a text for messages.
func clip(text string) string { return redact.Clip(text, 83) }

// validate returns the errors that setters do not find: missing names, invalid payload processors, and invalid combinations of values.
func (s Settings) validate() []error {
	errs := s.requestsAboveLimits()
	for _, processor := range s.PayloadProcessors {
		if processor == "" || !hasNoSpace(processor) { // spaces separate processors
			errs = append(errs, fmt.Errorf("Error parsing payload processor '%s': endpoint must not contain spaces.", clip(processor))) //nolint:revive,staticcheck // the message of the legacy controller
		}
	}
	for i, secret := range s.ImagePullSecrets {
		if secret.Name == "" {
			errs = append(errs, fmt.Errorf("imagePullSecrets[%d].name is missing: name a Secret", i))
		}
	}
	for i, variable := range s.InternalModelMeshEnvVars {
		if variable.Name == "" {
			errs = append(errs, fmt.Errorf("internalModelMeshEnvVars[%d].name is missing: name a variable", i))
		}
	}
	return append(errs, s.portConflicts()...)
}

// requestsAboveLimits returns errors for resource requests that exceed their limits.
func (s Settings) requestsAboveLimits() (errs []error) {
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
				errs = append(errs, invalidResources(c.name, fmt.Errorf("requests.%s %s is more than limits.%s %s: lower the request or raise the limit",
					name, request.String(), name, limit.String())))
			}
		}
	}
	return errs
}

// portConflicts returns errors for listeners of a pod on the same port. Ports without a setting are fixed.
func (s Settings) portConflicts() []error {
	used := map[int32]string{
		8080: "the traffic between pods", 8085: "the adapter", 8086: "the puller", 8089: "the probes", 8090: "the preStop hooks",
	}
	if s.RESTProxy.Enabled && s.AuthProxy.Mode == AuthProxyAlways { // auto depends on the platform
		used[8443], used[8444] = "the authentication proxy", "the authentication proxy"
	}
	var errs []error
	for _, listener := range []struct {
		name    string
		port    int32
		enabled bool
	}{
		{"inferenceServicePort", s.ServicePort, true}, {"restProxy.port", s.RESTProxy.Port, s.RESTProxy.Enabled},
		{"metrics.port", s.Metrics.Port, s.Metrics.Enabled},
	} {
		if !listener.enabled {
			continue
		}
		if other, found := used[listener.port]; found {
			errs = append(errs, fmt.Errorf("%s %d is also the port of %s: choose another", listener.name, listener.port, other))
		}
		used[listener.port] = listener.name
	}
	return errs
}
