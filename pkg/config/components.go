package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// DefaultOn reports whether a component runs without any configuration. Only the hand-off resources of the
// platform have to be requested: another operator creates them.
func DefaultOn(component string) bool { return component != "platform" }

// switchedOnBy names the variables with which programs that know the originals switch a component on. Their other values say
// nothing: a component may be wanted for more than what the original did.
var switchedOnBy = map[string]string{"platform": "ENABLE_MLFLOW_OPERATOR_MODULE_CONTROLLER"}

// components decides for every known component. In each source the single switch (--enable-x, ENABLE_X) counts
// more than the list, and a higher source more than a lower one. Without any, the selection counts, if there is one.
func (s sources) components(known, selection []string) (map[string]bool, error) {
	enabled := make(map[string]bool, len(known))
	for _, name := range known {
		enabled[name] = DefaultOn(name)
		if selection != nil {
			enabled[name] = slices.Contains(selection, name)
		}
	}
	if err := applyList(enabled, s.file, s.path+": components", known); err != nil {
		return nil, err
	}
	if err := s.environmentSwitches(enabled, known); err != nil {
		return nil, err
	}
	if err := applyList(enabled, s.flags, "flag --components", known); err != nil {
		return nil, err
	}
	for _, name := range known {
		if raw, ok := s.flags["enable-"+name]; ok {
			if err := applySwitch(enabled, name, value{from: "flag --enable-" + name, raw: raw}); err != nil {
				return nil, err
			}
		}
	}
	return enabled, nil
}

// environmentSwitches reads ENABLE_X for every component, and where that is not set the variable of the originals.
func (s sources) environmentSwitches(enabled map[string]bool, known []string) error {
	for _, name := range known {
		variable := "ENABLE_" + strings.ToUpper(name)
		raw := s.env(variable)
		if legacy := switchedOnBy[name]; raw == "" && legacy != "" && isTrue(s.env(legacy)) {
			variable, raw = legacy, s.env(legacy)
		}
		if raw == "" {
			continue
		}
		if err := applySwitch(enabled, name, value{from: "environment variable " + variable, raw: raw}); err != nil {
			return err
		}
	}
	return nil
}

func applySwitch(enabled map[string]bool, name string, v value) error {
	var on bool
	if err := boolean(&on)(v.raw); err != nil {
		return fmt.Errorf("%s: %w", v, err)
	}
	enabled[name] = on
	return nil
}

// applyList reads the list of a source, such as "*,-appwrapper". What it does not name is off.
func applyList(enabled map[string]bool, source map[string]string, from string, known []string) error {
	raw, given := source["components"]
	if !given {
		return nil
	}
	list := value{from: from, raw: raw}
	wanted := make(map[string]bool, len(known))
	positive := false
	for item := range strings.SplitSeq(list.raw, ",") {
		item = strings.TrimSpace(item)
		name, off := strings.CutPrefix(item, "-")
		switch {
		case item == "":
			continue
		case item == "*":
			positive = true
			for _, k := range known {
				if _, named := wanted[k]; !named {
					wanted[k] = DefaultOn(k)
				}
			}
			continue
		case !slices.Contains(known, name):
			return fmt.Errorf("%s: %w", list, unknownComponent(name, known))
		}
		wanted[name] = !off
		positive = positive || !off
	}
	if !positive {
		return fmt.Errorf("%s: %w", list, errors.New(`names nothing to run: write "*" for the default set, for example "*,-appwrapper"`))
	}
	for _, name := range known {
		enabled[name] = wanted[name]
	}
	return nil
}

func unknownComponent(name string, known []string) error {
	if len(known) == 0 {
		return fmt.Errorf("unknown component %q: this build contains none", name)
	}
	sorted := slices.Sorted(slices.Values(known))
	return fmt.Errorf("unknown component %q; known components: %s", name, strings.Join(sorted, ", "))
}
