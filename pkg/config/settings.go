package config

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/odh-platform/odh-platform-operator/pkg/admission"
)

// setting defines the sources, the default and the parser of one setting. Most settings are fields with the tag help, see fieldSettings.
type setting struct {
	flag         string    // name without dashes; "" for no flag
	env          []string  // environment variables in order of precedence
	key          string    // dotted key in the file; "" for no key
	defaultValue string    // value without any configuration
	valueType    valueType // of the value in the file
	nullValue    string    // value of an explicit null in the file; "" to treat null as unset
	itemKeys     []string  // known keys of the list items, if the value is a map of lists
	help         string
	set          func(raw string) error
}

// fieldSettings returns the settings of a struct, in the order of its fields: those with the tag help, and those in fields with the tag
// section. The other tags are flag, env, key, default, null and items (itemKeys), and those of parserOf. $TMPDIR in a default is the
// directory for temporary files.
func fieldSettings(section any) []setting {
	var out []setting
	fields := reflect.ValueOf(section).Elem()
	for i := range fields.NumField() {
		field, tag := fields.Field(i), fields.Type().Field(i).Tag
		if _, isSection := tag.Lookup("section"); isSection {
			out = append(out, fieldSettings(field.Addr().Interface())...)
		}
		if help, found := tag.Lookup("help"); found {
			s := setting{flag: tag.Get("flag"), env: strings.Fields(tag.Get("env")), key: tag.Get("key"), nullValue: tag.Get("null"), itemKeys: strings.Fields(tag.Get("items")), help: help}
			s.defaultValue = strings.Replace(tag.Get("default"), "$TMPDIR", filepath.Clean(os.TempDir()), 1)
			s.valueType, s.set = parserOf(field, tag)
			out = append(out, s)
		}
	}
	return out
}

// indexOf returns the index of the setting with a key.
func indexOf(all []setting, key string) int {
	return slices.IndexFunc(all, func(s setting) bool { return s.key == key })
}

// parserOf returns the type of a field in the file, and the parser that sets the field. The type of the field selects both, and the tag
// oneof a parser of the listed values. The tag parse is for a string "list" or one of the textParsers, where a question mark also accepts
// an empty string; for a bool the only value that sets true; for a duration "nanoseconds" for durationOrNanoseconds.
func parserOf(field reflect.Value, tag reflect.StructTag) (valueType, func(string) error) {
	name, isOptional := strings.CutSuffix(tag.Get("parse"), "?")
	if known := strings.Fields(tag.Get("oneof")); len(known) > 0 {
		return typeString, oneOf(field.SetString, known...)
	}
	switch dst := field.Addr().Interface().(type) {
	case *bool:
		if name != "" {
			return typeBool, equals(name, dst)
		}
		return typeBool, boolean(dst)
	case *int32:
		return typeInt, number(dst)
	case *int:
		return typeInt, port(dst)
	case *time.Duration:
		if name == "nanoseconds" {
			return typeDuration, durationOrNanoseconds(dst)
		}
		return typeString, duration(dst)
	case *[]string:
		return typeList, namespaces(dst)
	case *map[string]string:
		return typeList, keyValues(dst)
	case *map[string][]NodeTaint:
		return typeObject, taints(dst)
	case *string:
		switch {
		case name == "list":
			return typeList, text(dst)
		case isOptional:
			return typeString, optional(textParsers[name], dst)
		}
		return typeString, textParsers[name](dst)
	}
	return typeString, discard
}

// textParsers are the parsers of strings by name.
var textParsers = map[string]func(*string) func(string) error{
	"": text, "required": required, "namespace": namespace, "subdomain": subdomain, "trimmed": trimmedSubdomain, "prefix": prefix, "version": version,
	"image": image, "requiredImage": requiredImage, "domain": domain, "gatewayDomain": gatewayDomain, "address": address, "baseURL": baseURL,
}

// settings returns all settings that Load evaluates.
func settings(c *Config, components []string) []setting {
	return slices.Concat(
		[]setting{{flag: "config", set: discard, help: "configuration file, a " + fileKind}},
		fieldSettings(c), admissionSettings(&c.AdmissionRules), fieldSettings(&c.Exposure), fieldSettings(&c.MLflow),
		fieldSettings(&c.ModelRegistry), catalogSettings(&c.ModelRegistry), fieldSettings(&c.ModelMesh),
		[]setting{{flag: "leader-elect-type", defaultValue: "lease", set: leaderElectType, help: "type of leader election; only lease is supported"}},
		loggingSettings(c), componentSettings(components))
}

// componentSections returns the settings that Config.AppWrapper and Config.RayCluster evaluate. Legacy ConfigMaps may contain some of them.
func componentSections() []setting {
	return append(rayClusterSettings(&RayCluster{}, defaultGateway), appWrapperSettings(&AppWrapper{})...)
}

func admissionSettings(r *admission.Rules) []setting {
	return []setting{
		{flag: "author-checks", env: []string{"AUTHOR_CHECKS"}, key: "admission.authorChecks", defaultValue: string(admission.Enforce),
			set: oneOf(func(mode string) { r.Mode = admission.Mode(mode) }, string(admission.Enforce), string(admission.Warn), string(admission.Off)),
			help: "what to do if custom resources use new ServiceAccounts, Secrets, images or pod fields without the permission of their author: Enforce, Warn or Off; " +
				"references to the ServiceAccount and Secrets of the manager are always rejected"},
		{flag: "pod-security-level", env: []string{"POD_SECURITY_LEVEL"}, key: "admission.podSecurityLevel", defaultValue: string(admission.Baseline),
			set:  oneOf(func(level string) { r.Level = admission.Level(level) }, string(admission.Privileged), string(admission.Baseline), string(admission.Restricted)),
			help: "highest Pod Security level for the pods of custom resources: privileged, baseline or restricted"},
	}
}

// loggingSettings returns the --zap-* flags of controller-runtime.
func loggingSettings(c *Config) []setting {
	zapFlags := flag.NewFlagSet("zap", flag.ContinueOnError)
	c.Logging.BindFlags(zapFlags)
	keys := map[string]string{
		"zap-log-level": "logging.level", "zap-devel": "logging.development", "zap-encoder": "logging.encoder",
		"zap-stacktrace-level": "logging.stacktraceLevel", "zap-time-encoding": "logging.timeEncoding",
	}
	var settings []setting
	zapFlags.VisitAll(func(f *flag.Flag) {
		set := func(raw string) error {
			if raw == "" {
				return nil
			}
			return f.Value.Set(raw)
		}
		s := setting{flag: f.Name, key: keys[f.Name], help: f.Usage, set: set}
		if f.Name == "zap-devel" {
			s.valueType = typeBool
		}
		settings = append(settings, s)
	})
	return settings
}
