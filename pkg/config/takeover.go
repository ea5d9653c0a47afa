package config

// This file reads the ConfigMaps of the CodeFlare operator and of the AppWrapper operator. It can be removed in version 1.0, by when
// their settings belong in the configuration file.

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// LegacyConfig is the configuration of an operator that this one replaces.
type LegacyConfig struct {
	// Source names it in messages, for example "ConfigMap opendatahub/codeflare-operator-config".
	Source string
	// Data of the ConfigMap.
	Data map[string]string
	// Embedded means that the settings are below appwrapper.Config, as in the CodeFlare operator; otherwise they are
	// directly below appwrapper.
	Embedded bool
}

// rows are the settings by their keys in the ConfigMap, in lower case. Keys without a setting have no effect here: they are of older
// versions, or flags set the same.
func (o LegacyConfig) rows() map[string]setting {
	rows, wrappers := map[string]setting{}, appWrapperKey
	for _, key := range []string{
		"mcad", "instascale", "clientConnection", "metrics", "health", "leaderElection", "controllerManager", "kuberay.certGeneratorImage",
	} {
		rows[strings.ToLower(key)] = setting{}
	}
	if o.Embedded {
		rows["appwrapper.enabled"], rows["appwrapper.externalcontroller"] = setting{}, setting{}
		wrappers += "config."
	}
	rows[wrappers+"enablekueueintegrations"], rows[wrappers+"kueuejobreconciller"] = setting{}, setting{}
	for _, row := range appWrapperSettings(&AppWrapper{}) {
		rows[wrappers+strings.ToLower(strings.TrimPrefix(row.key, appWrapperKey))] = row
	}
	for _, row := range rayClusterSettings(&RayCluster{}, RegistryGateway{}) {
		name := strings.TrimPrefix(row.key, rayClusterKey)
		if slices.Contains([]string{"rayDashboardOAuthEnabled", "mTLSEnabled", "ingressDomain"}, name) {
			rows["kuberay."+strings.ToLower(name)] = row
		}
	}
	return rows
}

// read reads the one document of the ConfigMap, whatever the name of its key and the case of the keys in it. It returns its values, and
// notes on keys without effect by their paths in lower case.
func (o LegacyConfig) read() (values map[string]value, notes map[string]string, err error) {
	if len(o.Data) != 1 {
		return nil, nil, fmt.Errorf("%s: cannot resolve the configuration: it has %d keys %v: leave exactly one",
			o.Source, len(o.Data), slices.Sorted(maps.Keys(o.Data)))
	}
	d := document{source: o.Source, rows: o.rows(), fold: strings.ToLower, values: map[string]value{}}
	for key, text := range o.Data {
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			return nil, nil, fmt.Errorf("%s: key %s is not valid YAML: %w", o.Source, key, err)
		}
		tree, err := decodeTree(raw)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: key %s must hold one YAML object: %w", o.Source, key, err)
		}
		d.read(tree, "")
	}
	notes = map[string]string{}
	for _, u := range d.unknown {
		path := strings.TrimPrefix(u.path+"."+u.key, ".")
		notes[strings.ToLower(path)] = fmt.Sprintf("%s: %s is unknown and has no effect", o.Source, path)
	}
	const slack = appWrapperKey + "slackQueueName"
	if queue := d.values[slack]; queue.raw != "" {
		notes[strings.ToLower(slack)] = queue.from + " has no effect, as in the operators that wrote it: " +
			"to have the queue managed, set appwrapper.slackQueueName in the configuration file"
	}
	delete(d.values, slack)
	return d.values, notes, nil
}

// layered gives a section its values: the defaults, over them those of the ConfigMaps in the given order, over them what the
// configuration names. It returns notes on keys that have no effect: below appwrapper for the section of AppWrappers, and all others
// for that of Ray clusters.
func (c Config) layered(table []setting, older []LegacyConfig) (notes []string, err error) {
	defaults := map[string]value{}
	for _, row := range table {
		defaults[row.key] = value{from: "default", raw: row.fallback}
	}
	layers := []map[string]value{defaults}
	for _, o := range older {
		values, unknown, err := o.read()
		if err != nil {
			return nil, err
		}
		layers = append(layers, sources{file: values}.given(table))
		maps.DeleteFunc(unknown, func(path, _ string) bool {
			return strings.HasPrefix(path, appWrapperKey) != strings.HasPrefix(table[0].key, appWrapperKey)
		})
		notes = append(notes, slices.Sorted(maps.Values(unknown))...)
	}
	return notes, set(table, append(layers, c.given))
}

// set gives the settings of a table the values of all layers, the later over the earlier, and joins what is wrong with them.
func set(table []setting, layers []map[string]value) error {
	var errs []error
	for _, row := range table {
		for _, layer := range layers {
			v, ok := layer[row.key]
			if !ok {
				continue
			}
			// A section that is no object is the one mistake of all settings in it.
			if err := v.set(row); err != nil && !slices.Contains(errs, err) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}
