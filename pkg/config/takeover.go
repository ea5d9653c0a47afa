package config

// What stands in this file reads the ConfigMaps of the CodeFlare operator and of the AppWrapper operator. It may go with version 1.0,
// by when their settings belong into the configuration file.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
	// Embedded says that the settings stand below appwrapper.Config, as in the CodeFlare operator; otherwise they stand
	// directly below appwrapper.
	Embedded bool
}

// without are keys of older versions, which have had no effect for long and stand in many ConfigMaps.
var without = []string{"enableKueueIntegrations", "kueueJobReconciller", "slackQueueName"}

// document returns the one document of the ConfigMap, whatever the name of its key.
func (o OlderConfig) document() (map[string]any, error) {
	if len(o.Data) != 1 {
		return nil, fmt.Errorf("cannot resolve the configuration: it has %d keys %v: leave exactly one", len(o.Data), slices.Sorted(maps.Keys(o.Data)))
	}
	var tree map[string]any
	for key, text := range o.Data {
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("key %s is not valid YAML: %w", key, err)
		}
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.UseNumber()
		if err := decoder.Decode(&tree); err != nil {
			return nil, fmt.Errorf("key %s must hold one YAML object: %w", key, err)
		}
	}
	return tree, nil
}

// apply reads the settings over those that are there and returns notes on keys without effect.
func (o OlderConfig) apply(settings *AppWrapper) ([]string, error) {
	tree, err := o.document()
	if err != nil {
		return nil, err
	}
	root := &section{tree: tree, path: "", anyCase: true}
	s, _ := root.child(appWrapperKey)
	s.path = appWrapperKey
	var notes []string
	note := func(s *section, hint string) {
		for _, key := range s.unknown() {
			notes = append(notes, fmt.Sprintf("%s: %s is unknown and has no effect%s", o.Source, key, hint))
		}
	}
	inner := s
	if o.Embedded {
		s.take("enabled")
		s.take("externalController")
		inner, _ = s.child("Config")
		note(s, ": settings stand below "+appWrapperKey+".Config")
	}
	for _, key := range without {
		if value, given := inner.take(key); given && key == "slackQueueName" && value != "" && value != nil {
			notes = append(notes, fmt.Sprintf("%s: %s.slackQueueName has no effect, as in the operators that wrote it: "+
				"to have the queue managed, set appwrapper.slackQueueName in the configuration file", o.Source, inner.path))
		}
	}
	inner.appWrapper(settings)
	note(inner, "")
	if err := errors.Join(append(append(root.errs, s.errs...), inner.errs...)...); err != nil {
		return nil, err
	}
	return notes, nil
}

// past are keys of older versions in the ConfigMap, and sections for things that flags say here.
var past = []string{"mcad", "instascale", "clientConnection", "metrics", "health", "leaderElection", appWrapperKey}

// applyRay reads the settings over those that are there and returns notes on keys without effect. What stands in the
// section of AppWrappers is not looked at.
func (o OlderConfig) applyRay(settings *RayCluster) ([]string, error) {
	tree, err := o.document()
	if err != nil {
		return nil, err
	}
	root := &section{tree: tree, anyCase: true}
	for _, key := range past {
		root.take(key)
	}
	ray, _ := root.child(rayKey)
	ray.path = rayKey
	ray.take("certGeneratorImage")
	ray.kubeRay(settings)
	var notes []string
	for _, key := range root.unknown() {
		key = strings.TrimPrefix(key, ".")
		hint := ""
		if probe := (&section{tree: map[string]any{key: nil}, anyCase: true}); probe.knowsRay() {
			hint = ": settings of Ray stand below " + rayKey
		}
		notes = append(notes, fmt.Sprintf("%s: %s is unknown and has no effect%s", o.Source, key, hint))
	}
	for _, key := range ray.unknown() {
		notes = append(notes, fmt.Sprintf("%s: %s is unknown and has no effect", o.Source, key))
	}
	return notes, errors.Join(append(root.errs, ray.errs...)...)
}

// knowsRay tells whether all keys of the section are settings of Ray.
func (s *section) knowsRay() bool {
	s.kubeRay(&RayCluster{})
	return len(s.unknown()) == 0
}
