package config

// This file reads the ConfigMaps of the CodeFlare and AppWrapper operators. It can be removed in version 1.0, when their settings must be in
// the configuration file.

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// LegacyConfig is the configuration of a legacy operator.
type LegacyConfig struct {
	// Source identifies it in messages, for example "ConfigMap opendatahub/codeflare-operator-config".
	Source string
	// Data is the data of the ConfigMap.
	Data map[string]string
	// Embedded is true if the settings are below appwrapper.Config, as in the CodeFlare operator, and false if they are directly below
	// appwrapper.
	Embedded bool
}

// settings returns the settings by their lower-case keys in the ConfigMap. Known keys that have no effect,
// because they are obsolete or set by flags, have empty settings.
func (c LegacyConfig) settings() map[string]setting {
	rows, appWrapperPrefix := map[string]setting{}, appWrapperKey
	for _, key := range []string{
		"mcad", "instascale", "clientConnection", "metrics", "health", "leaderElection", "controllerManager", "kuberay.certGeneratorImage",
	} {
		rows[strings.ToLower(key)] = setting{}
	}
	if c.Embedded {
		rows["appwrapper.enabled"], rows["appwrapper.externalcontroller"] = setting{}, setting{}
		appWrapperPrefix += "config."
	}
	rows[appWrapperPrefix+"enablekueueintegrations"], rows[appWrapperPrefix+"kueuejobreconciller"] = setting{}, setting{}
	for _, row := range appWrapperSettings(&AppWrapper{}) {
		rows[appWrapperPrefix+strings.ToLower(strings.TrimPrefix(row.key, appWrapperKey))] = row
	}
	for _, row := range rayClusterSettings(&RayCluster{}, RegistryGateway{}) {
		name := strings.TrimPrefix(row.key, rayClusterKey)
		if slices.Contains([]string{"rayDashboardOAuthEnabled", "mTLSEnabled", "ingressDomain"}, name) {
			rows["kuberay."+strings.ToLower(name)] = row
		}
	}
	return rows
}

// read reads the single document of the ConfigMap. Keys are case-insensitive. It returns the values, and warnings about keys without effect by
// their lower-case paths.
func (c LegacyConfig) read() (values map[string]value, warnings map[string]string, err error) {
	if len(c.Data) != 1 {
		return nil, nil, fmt.Errorf("%s: cannot resolve the configuration: it has %d keys %v: leave exactly one",
			c.Source, len(c.Data), slices.Sorted(maps.Keys(c.Data)))
	}
	d := document{source: c.Source, settings: c.settings(), normalizeKey: strings.ToLower, values: map[string]value{}}
	for key, text := range c.Data {
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			return nil, nil, fmt.Errorf("%s: key %s is not valid YAML: %w", c.Source, key, err)
		}
		tree, err := decodeTree(raw)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: key %s must hold one YAML object: %w", c.Source, key, err)
		}
		d.read(tree, "")
	}
	warnings = map[string]string{}
	for _, u := range d.unknownKeys {
		path := strings.TrimPrefix(u.path+"."+u.key, ".")
		warnings[strings.ToLower(path)] = fmt.Sprintf("%s: %s is unknown and has no effect: remove or correct it", c.Source, path)
	}
	const slack = appWrapperKey + "slackQueueName"
	if queue := d.values[slack]; queue.raw != "" {
		warnings[strings.ToLower(slack)] = queue.source + " has no effect, as in the operators that wrote it: " +
			"to have the queue managed, set appwrapper.slackQueueName in the configuration file"
	}
	delete(d.values, slack)
	return d.values, warnings, nil
}

// mergeLayers sets a section from the defaults, the ConfigMaps in the given order and the configuration, in ascending precedence. It returns
// warnings about keys without effect: those below appwrapper for the section of AppWrappers, the others for that of Ray clusters.
func (c Config) mergeLayers(sectionSettings []setting, legacyConfigs []LegacyConfig) (warnings []string, err error) {
	defaults := map[string]value{}
	for _, s := range sectionSettings {
		defaults[s.key] = value{source: "default", raw: s.defaultValue}
	}
	layers := []map[string]value{defaults}
	for _, legacy := range legacyConfigs {
		values, warningByPath, err := legacy.read()
		if err != nil {
			return nil, err
		}
		layers = append(layers, sources{file: values}.explicit(sectionSettings))
		maps.DeleteFunc(warningByPath, func(path, _ string) bool {
			return strings.HasPrefix(path, appWrapperKey) != strings.HasPrefix(sectionSettings[0].key, appWrapperKey)
		})
		warnings = append(warnings, slices.Sorted(maps.Values(warningByPath))...)
	}
	return warnings, storeLayers(sectionSettings, append(layers, c.explicit))
}

// storeLayers parses and stores the values of all layers in ascending precedence, and returns the joined errors.
func storeLayers(table []setting, layers []map[string]value) error {
	var errs []error
	for _, row := range table {
		for _, layer := range layers {
			v, ok := layer[row.key]
			if !ok {
				continue
			}
			// If a section is not an object, all its settings have the same error.
			if err := v.set(row); err != nil && !slices.Contains(errs, err) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}
