package config

// This file reads the ConfigMaps of the CodeFlare operator and of the AppWrapper operator. It can be removed in version 1.0, by when
// their settings belong in the configuration file.

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// OlderConfig is the configuration of an operator that this one replaces.
type OlderConfig struct {
	// Source names it in messages, for example "ConfigMap opendatahub/codeflare-operator-config".
	Source string
	// Data of the ConfigMap.
	Data map[string]string
	// Embedded means that the settings are below appwrapper.Config, as in the CodeFlare operator; otherwise they are
	// directly below appwrapper.
	Embedded bool
}

// olderDocument has the keys of the ConfigMaps. Those of type any have no effect here: they are of older versions, or flags set the same.
type olderDocument[Settings any] struct {
	AppWrapper       Settings `json:"appwrapper"`
	KubeRay          kubeRay  `json:"kuberay"`
	MCAD             any      `json:"mcad"`
	InstaScale       any      `json:"instascale"`
	ClientConnection any      `json:"clientConnection"`
	Metrics          any      `json:"metrics"`
	Health           any      `json:"health"`
	LeaderElection   any      `json:"leaderElection"`
	Manager          any      `json:"controllerManager"`
}

type embeddedAppWrapper struct {
	Enabled            any             `json:"enabled"`
	ExternalController any             `json:"externalController"`
	Config             olderAppWrapper `json:"Config"`
}

type olderAppWrapper struct {
	AppWrapper              `json:",inline"`
	EnableKueueIntegrations any `json:"enableKueueIntegrations"`
	KueueJobReconciller     any `json:"kueueJobReconciller"`
}

// kubeRay is what the CodeFlare operator reads of the settings of Ray.
type kubeRay struct {
	OAuth              bool   `json:"rayDashboardOAuthEnabled"`
	MTLS               bool   `json:"mTLSEnabled"`
	IngressDomain      string `json:"ingressDomain"`
	CertGeneratorImage any    `json:"certGeneratorImage"`
}

// document returns the one document of the ConfigMap, whatever the name of its key, with the keys in the usual case; and a note on each
// unknown key, by its path.
func (o OlderConfig) document() (tree map[string]any, unknown map[string]string, err error) {
	if len(o.Data) != 1 {
		return nil, nil, fmt.Errorf("cannot resolve the configuration: it has %d keys %v: leave exactly one", len(o.Data), slices.Sorted(maps.Keys(o.Data)))
	}
	for key, text := range o.Data {
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			return nil, nil, fmt.Errorf("key %s is not valid YAML: %w", key, err)
		}
		if tree, err = decodeTree(raw); err != nil {
			return nil, nil, fmt.Errorf("key %s must hold one YAML object: %w", key, err)
		}
	}
	typ := reflect.TypeFor[olderDocument[olderAppWrapper]]()
	if o.Embedded {
		typ = reflect.TypeFor[olderDocument[embeddedAppWrapper]]()
	}
	unknown = map[string]string{}
	for _, u := range unknownKeys(tree, typ, "", strings.EqualFold) {
		path := strings.TrimPrefix(u.path+"."+u.key, ".")
		unknown[path] = fmt.Sprintf("%s: %s is unknown and has no effect", o.Source, path)
	}
	return tree, unknown, nil
}

// apply reads the settings over those that are there and returns notes on keys without effect.
func (o OlderConfig) apply(settings *AppWrapper) ([]string, error) {
	tree, unknown, err := o.document()
	if err != nil {
		return nil, err
	}
	var notes []string
	for _, path := range sortedKeys(unknown) {
		if strings.HasPrefix(path, appWrapperKey+".") {
			notes = append(notes, unknown[path])
		}
	}
	path := appWrapperKey
	section, err := child(tree, appWrapperKey, path)
	if err == nil && o.Embedded {
		path += ".Config"
		section, err = child(section, "Config", path)
	}
	if err != nil {
		return nil, err
	}
	if queue := section["slackQueueName"]; queue != "" && queue != nil {
		notes = append(notes, fmt.Sprintf("%s: %s.slackQueueName has no effect, as in the operators that wrote it: "+
			"to have the queue managed, set appwrapper.slackQueueName in the configuration file", o.Source, path))
	}
	delete(section, "slackQueueName")
	return notes, settings.read(section, path)
}

// applyRay is apply for the settings of Ray. Keys of the section of AppWrappers are not reported.
func (o OlderConfig) applyRay(settings *RayCluster) ([]string, error) {
	tree, unknown, err := o.document()
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(unknown, func(path, _ string) bool { return strings.HasPrefix(path, appWrapperKey+".") })
	notes := slices.Sorted(maps.Values(unknown))
	section, err := child(tree, rayKey, rayKey)
	if err != nil {
		return nil, err
	}
	read := kubeRay{OAuth: settings.OAuth, MTLS: settings.MTLS, IngressDomain: settings.IngressDomain}
	if err := decode(section, rayKey, &read); err != nil {
		return nil, err
	}
	settings.OAuth, settings.MTLS, settings.IngressDomain = read.OAuth, read.MTLS, read.IngressDomain
	return notes, settings.check(rayKey)
}

// child returns an object in an object; an absent one is empty.
func child(tree map[string]any, name, path string) (map[string]any, error) {
	section, isObject := tree[name].(map[string]any)
	if tree[name] != nil && !isObject {
		return nil, fmt.Errorf("%s %q: must be an object", path, fmt.Sprint(tree[name]))
	}
	return section, nil
}
