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
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
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
	// maxDocumentBytes limits documents, which any tenant can write: the decoding time grows with the square of the size.
	maxDocumentBytes = 64 << 10
	// maxNamespacePods limits the replica count that a namespace can set. Quotas limit the resources of its pods.
	maxNamespacePods = 20
	// maxFindings limits the number of reported errors and notes.
	maxFindings = 20
)

// Read merges a document into settings. Notes describe keys without effect. The error has one line for each invalid key, with its value and
// the valid values.
func Read(base Settings, text string) (Settings, []string, error) {
	return read(base, text, adminOnly)
}

// ReadOverride is like Read for the document of a namespace, which can set only some keys.
func ReadOverride(base Settings, text string) (Settings, []string, error) {
	return read(base, text, adminOrNamespace)
}

func read(base Settings, text string, author authority) (Settings, []string, error) {
	fields, err := parse(text)
	if err != nil {
		return Settings{}, nil, err
	}
	settings := base.clone()
	r := &parser{documentAuthority: author}
	r.object("", fields, settings.keys())
	if len(r.errs) == 0 {
		r.errs = settings.crossFieldErrors()
	}
	if maximum := max(base.PodsPerRuntime, maxNamespacePods); author == adminOrNamespace && settings.PodsPerRuntime > maximum {
		r.fail("podsPerRuntime %d: must be at most %d for one namespace, unless it is more in ConfigMap %s of the manager's namespace",
			settings.PodsPerRuntime, maximum, ConfigMapName)
	}
	if err := errors.Join(r.errs...); err != nil {
		return Settings{}, nil, err
	}
	return settings, r.notes, nil
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
	keepScalars(root)
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

// keepScalars makes all scalars strings, except null and the merge key.
func keepScalars(node *yaml.Node) {
	if tag := node.ShortTag(); node.Kind == yaml.ScalarNode && tag != "!!null" && tag != "!!merge" {
		node.Tag = "!!str"
	}
	for _, child := range node.Content {
		keepScalars(child)
	}
}

// parser collects the errors and notes of a document.
type parser struct {
	documentAuthority authority
	errs              []error
	notes             []string
}

// object reads the fields of an object. Keys are case-insensitive, as in the legacy controller; null is ignored.
func (r *parser) object(path string, fields map[string]any, keys []keySpec) {
	foundAs := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		i := slices.IndexFunc(keys, func(k keySpec) bool { return strings.EqualFold(k.name, name) })
		if i < 0 {
			r.noteUnknown(path, name, keys)
			continue
		}
		if other, found := foundAs[keys[i].name]; found {
			r.fail("%s%s is set as %s and as %s: remove one of them", path, keys[i].name, other, name)
		}
		foundAs[keys[i].name] = name
		if value := fields[name]; value != nil {
			r.readKey(path+keys[i].name, value, keys[i])
		}
	}
}

// readKey reads the value of a key.
func (r *parser) readKey(path string, raw any, spec keySpec) {
	fields, isObject := raw.(map[string]any)
	switch {
	case spec.set != nil && r.documentAuthority == adminOrNamespace && spec.authority == adminOnly:
		r.fail("%s cannot be set for a single namespace: set it in ConfigMap %s of the manager's namespace", path, ConfigMapName)
	case spec.set != nil:
		spec.set(r, path, raw)
	case !isObject:
		r.reject(path, raw, "an object")
	default:
		r.object(path+".", fields, spec.keys)
		if spec.merge == nil {
			return
		}
		if err := spec.merge(); err != nil {
			r.fail("%s.%w", path, err)
		}
	}
}

// noteUnknown notes an unknown key, and suggests a similar one.
func (r *parser) noteUnknown(path, name string, keys []keySpec) {
	hint := ""
	if distance := min(max(2, len(name)/4)+1, 8); len(name) <= 64 && len(r.notes) < maxFindings {
		for _, k := range keys {
			if d := names.EditDistance(strings.ToLower(name), strings.ToLower(k.name)); d < distance {
				hint, distance = fmt.Sprintf(" (did you mean %s?)", k.name), d
			}
		}
	}
	r.note("%s%s is unknown and has no effect%s: remove or correct it", path, clip(name), hint)
}

func (r *parser) reject(path string, raw any, expected string) {
	r.fail("%s %s: must be %s", path, quoteValue(raw), expected)
}

func (r *parser) fail(format string, args ...any) {
	r.errs = appendLimited(r.errs, fmt.Errorf(format, args...), errors.New("there are more errors"))
}

func (r *parser) note(format string, args ...any) {
	r.notes = appendLimited(r.notes, fmt.Sprintf(format, args...), "more keys have no effect")
}

// appendLimited appends up to maxFindings findings, and then once a finding that represents the others.
func appendLimited[T any](findings []T, finding, others T) []T {
	switch {
	case len(findings) < maxFindings:
		return append(findings, finding)
	case len(findings) == maxFindings:
		return append(findings, others)
	}
	return findings
}

// quoteValue returns a value as messages quote it.
func quoteValue(raw any) string {
	switch raw := raw.(type) {
	case string:
		return fmt.Sprintf("%q", clip(raw))
	case []any:
		return "a list"
	case nil:
		return "null"
	}
	return "an object"
}

// clip shortens a text for messages.
func clip(text string) string { return conditions.Clip(text, 83) }

// crossFieldErrors returns the errors of values that are only invalid in combination.
func (s Settings) crossFieldErrors() []error {
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
	used := map[int32]string{8080: "the traffic between pods", 8089: "the probes", 8090: "the preStop hooks"}
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
