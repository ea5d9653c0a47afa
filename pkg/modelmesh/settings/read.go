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
	// ConfigMapName is the ConfigMap of settings, in the manager's namespace and in those that say something for themselves.
	ConfigMapName = "model-serving-config"
	// ConfigMapKey is its key.
	ConfigMapKey = "config.yaml"
	// DefaultsName is the ConfigMap of defaults in the manager's namespace.
	DefaultsName = "model-serving-config-defaults"
	// DefaultsKey is its key.
	DefaultsKey = "config-defaults.yaml"
)

const (
	// maxDocument bounds the size of a document in bytes: any tenant may write one, and the time of decoding grows with the square of it.
	maxDocumentBytes = 64 << 10
	// maxPods bounds what a namespace sets: who may write a ConfigMap gets no number of pods without a limit. Quotas bound their sizes.
	maxNamespacePods = 20
	// maxFindings bounds how many mistakes of a document are reported.
	maxFindings = 20
)

// Read lays a document over settings. Notes name what has no effect. An error has one line for each mistake: the key, its
// value, and what is right.
func Read(over Settings, text string) (Settings, []string, error) {
	return read(over, text, adminOnly)
}

// ReadOverride is Read for the document of a namespace, which may set some settings only.
func ReadOverride(over Settings, text string) (Settings, []string, error) {
	return read(over, text, adminOrNamespace)
}

func read(over Settings, text string, author authority) (Settings, []string, error) {
	fields, err := parse(text)
	if err != nil {
		return Settings{}, nil, err
	}
	settings := over.clone()
	r := &parser{documentAuthority: author}
	r.object("", fields, settings.keys())
	if len(r.errs) == 0 {
		r.errs = settings.crossFieldErrors()
	}
	if most := max(over.PodsPerRuntime, maxNamespacePods); author == adminOrNamespace && settings.PodsPerRuntime > most {
		r.fail("podsPerRuntime %d: must be at most %d for one namespace, unless it is more in ConfigMap %s of the manager's namespace",
			settings.PodsPerRuntime, most, ConfigMapName)
	}
	if err := errors.Join(r.errs...); err != nil {
		return Settings{}, nil, err
	}
	return settings, r.notes, nil
}

// parse returns the fields of a document, which must be one YAML object or nothing. A scalar is a string as it is written, so that
// a tag of 1.10 stays one, and quotes around numbers and switches do not matter.
func parse(text string) (map[string]any, error) {
	if len(text) > maxDocumentBytes {
		return nil, fmt.Errorf("it has %d bytes: it must have at most %d", len(text), maxDocumentBytes)
	}
	decoder := yaml.NewDecoder(bytes.NewReader([]byte(text)))
	root := &yaml.Node{}
	if err := decoder.Decode(root); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("not valid YAML: %w", err)
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("it must be one YAML document: remove what follows the first")
	}
	keepScalars(root)
	var document any
	if err := root.Decode(&document); err != nil {
		return nil, fmt.Errorf("not valid YAML: %w", err)
	}
	fields, ok := document.(map[string]any)
	if document != nil && !ok {
		return nil, fmt.Errorf("it must be one YAML object with the settings: it is %s", quoteValue(document))
	}
	return fields, nil
}

// asWritten turns all scalars into strings, save null and the key that merges objects.
func keepScalars(node *yaml.Node) {
	if tag := node.ShortTag(); node.Kind == yaml.ScalarNode && tag != "!!null" && tag != "!!merge" {
		node.Tag = "!!str"
	}
	for _, child := range node.Content {
		keepScalars(child)
	}
}

// reader collects what is wrong with a document.
type parser struct {
	documentAuthority authority
	errs              []error
	notes             []string
}

// object reads the fields of an object. Keys are found in any spelling, as in the original; null says nothing.
func (r *parser) object(path string, fields map[string]any, keys []keySpec) {
	spelt := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		i := slices.IndexFunc(keys, func(k keySpec) bool { return strings.EqualFold(k.name, name) })
		if i < 0 {
			r.noteUnknown(path, name, keys)
			continue
		}
		if other, twice := spelt[keys[i].name]; twice {
			r.fail("%s%s: it is given as %s and as %s: leave one", path, keys[i].name, other, name)
		}
		spelt[keys[i].name] = name
		if given := fields[name]; given != nil {
			r.readKey(path+keys[i].name, given, keys[i])
		}
	}
}

// take reads the value of one key.
func (r *parser) readKey(path string, given any, k keySpec) {
	fields, isObject := given.(map[string]any)
	switch {
	case k.set != nil && r.documentAuthority == adminOrNamespace && k.authority == adminOnly:
		r.fail("%s may not be set for one namespace: it can be set in ConfigMap %s of the manager's namespace", path, ConfigMapName)
	case k.set != nil:
		k.set(r, path, given)
	case !isObject:
		r.refuse(path, given, "an object")
	default:
		r.object(path+".", fields, k.keys)
		if k.merge == nil {
			return
		}
		if err := k.merge(); err != nil {
			r.fail("%s.%w", path, err)
		}
	}
}

// unknown notes a key without effect, and the one that may have been meant.
func (r *parser) noteUnknown(path, name string, keys []keySpec) {
	hint := ""
	if distance := min(max(2, len(name)/4)+1, 8); len(name) <= 64 && len(r.notes) < maxFindings {
		for _, k := range keys {
			if d := names.Edits(strings.ToLower(name), strings.ToLower(k.name)); d < distance {
				hint, distance = fmt.Sprintf(" (did you mean %s?)", k.name), d
			}
		}
	}
	r.note("%s%s is unknown and has no effect%s", path, clip(name), hint)
}

func (r *parser) refuse(path string, given any, want string) {
	r.fail("%s %s: must be %s", path, quoteValue(given), want)
}

func (r *parser) fail(format string, args ...any) {
	r.errs = appendLimited(r.errs, fmt.Errorf(format, args...), errors.New("there are more mistakes"))
}

func (r *parser) note(format string, args ...any) {
	r.notes = appendLimited(r.notes, fmt.Sprintf(format, args...), "more is without effect")
}

// add appends a finding while there are few, and then one that stands for all others.
func appendLimited[T any](all []T, one, others T) []T {
	switch {
	case len(all) < maxFindings:
		return append(all, one)
	case len(all) == maxFindings:
		return append(all, others)
	}
	return all
}

// shown is a value as a message quotes it.
func quoteValue(given any) string {
	switch given := given.(type) {
	case string:
		return fmt.Sprintf("%q", clip(given))
	case []any:
		return "a list"
	case nil:
		return "null"
	}
	return "an object"
}

// short keeps messages readable.
func clip(text string) string { return conditions.Clip(text, 83) }

// contradictions are mistakes that only show when several settings meet.
func (s Settings) crossFieldErrors() []error {
	errs := s.requestsAboveLimits()
	for _, one := range s.PayloadProcessors {
		if one == "" || !hasNoSpace(one) { // in the words of the original: blanks part one processor from the next
			errs = append(errs, fmt.Errorf("Error parsing payload processor '%s': endpoint must not contain spaces.", clip(one))) //nolint:revive,staticcheck // the original's words
		}
	}
	for i, one := range s.ImagePullSecrets {
		if one.Name == "" {
			errs = append(errs, fmt.Errorf("imagePullSecrets[%d].name is missing: name a Secret", i))
		}
	}
	for i, one := range s.InternalModelMeshEnvVars {
		if one.Name == "" {
			errs = append(errs, fmt.Errorf("internalModelMeshEnvVars[%d].name is missing: name a variable", i))
		}
	}
	return append(errs, s.portConflicts()...)
}

// exceeded finds requests of resources above their limits.
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
				errs = append(errs, invalidResources(c.name, fmt.Errorf("requests.%s %s is more than limits.%s %s: lower the one or raise the other",
					name, request.String(), name, limit.String())))
			}
		}
	}
	return errs
}

// sharedPorts finds two listeners of one pod on one port. Those without a setting are in runtime pods as well.
func (s Settings) portConflicts() []error {
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
