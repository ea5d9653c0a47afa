package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// DefaultOn reports whether a component runs without any configuration. The hand-off resources of the platform have to be
// requested, because another operator creates them, and the OLM bundle requests what it cannot contain.
func DefaultOn(component string) bool { return component != "platform" && component != "olm" }

// switchedOnBy names the variables with which programs that know the originals switch a component on. Their other values say
// nothing: a component may be wanted for more than what the original did.
var switchedOnBy = map[string]string{"platform": "ENABLE_MLFLOW_OPERATOR_MODULE_CONTROLLER"}

// componentSettings are the rows of the switches, of which [sources.components] makes a decision.
func componentSettings(known []string) []setting {
	rows := []setting{{flag: "components", key: "components", fallback: "*", shape: aList, set: ignore,
		help: "components to run: names, \"*\" for the default set; a leading - disables a component"}}
	for _, name := range known {
		row := setting{flag: "enable-" + name, env: []string{"ENABLE_" + strings.ToUpper(name)}, fallback: strconv.FormatBool(DefaultOn(name)),
			shape: aSwitch, set: ignore, help: "run the component " + name}
		if legacy := switchedOnBy[name]; legacy != "" {
			row.env = append(row.env, legacy)
		}
		rows = append(rows, row)
	}
	return rows
}

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
	for _, source := range []struct {
		list     value
		switchOf func(component string) value
	}{
		{s.file["components"], s.switchVariable},
		{s.flags["components"], func(component string) value { return s.flags["enable-"+component] }},
	} {
		if err := applyList(enabled, source.list, known); err != nil {
			return nil, err
		}
		for _, name := range known {
			on := enabled[name]
			if v := source.switchOf(name); v.from != "" {
				if err := v.set(setting{set: boolean(&on)}); err != nil {
					return nil, err
				}
			}
			enabled[name] = on
		}
	}
	return enabled, nil
}

// switchVariable reads ENABLE_X, and where that is not set the variable of the originals.
func (s sources) switchVariable(component string) value {
	variable := "ENABLE_" + strings.ToUpper(component)
	if legacy := switchedOnBy[component]; s.env(variable) == "" && isTrue(s.env(legacy)) {
		variable = legacy
	}
	if raw := s.env(variable); raw != "" {
		return value{from: "environment variable " + variable, raw: raw}
	}
	return value{}
}

// applyList reads the list of a source, such as "*,-appwrapper". What it does not name is off.
func applyList(enabled map[string]bool, list value, known []string) error {
	if list.from == "" {
		return nil
	}
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
