package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// DefaultOn reports whether a component is enabled by default. Another operator creates the resources of platform, so platform must be enabled
// explicitly. The OLM bundle enables olm.
func DefaultOn(component string) bool { return component != "platform" && component != "olm" }

// legacyEnableVariables are the variables of the legacy operators that enable a component, by its name. They cannot disable it, because the
// component does more than the legacy operator did.
var legacyEnableVariables = map[string]string{"platform": "ENABLE_MLFLOW_OPERATOR_MODULE_CONTROLLER"}

// componentSettings returns the settings that enable components; [sources.components] evaluates them.
func componentSettings(known []string) []setting {
	settings := []setting{{flag: "components", key: "components", defaultValue: "*", valueType: typeList, set: discard,
		help: "components to run: names, \"*\" for the default set; a leading - disables a component"}}
	for _, name := range known {
		s := setting{flag: "enable-" + name, env: []string{"ENABLE_" + strings.ToUpper(name)}, defaultValue: strconv.FormatBool(DefaultOn(name)),
			valueType: typeBool, set: discard, help: "run the component " + name}
		if legacy := legacyEnableVariables[name]; legacy != "" {
			s.env = append(s.env, legacy)
		}
		settings = append(settings, s)
	}
	return settings
}

// components returns the enabled components. In each source the flag or variable of a component (--enable-x, ENABLE_X) overrides the list, and
// sources of higher precedence override lower ones. Without a source, defaults applies, or DefaultOn if it is nil.
func (s sources) components(known, defaults []string) (map[string]bool, error) {
	enabled := make(map[string]bool, len(known))
	for _, name := range known {
		enabled[name] = DefaultOn(name)
		if defaults != nil {
			enabled[name] = slices.Contains(defaults, name)
		}
	}
	for _, source := range []struct {
		list     value
		switchOf func(component string) value
	}{
		{s.file["components"], s.enableVariable},
		{s.flags["components"], func(component string) value { return s.flags["enable-"+component] }},
	} {
		if err := enableListed(enabled, source.list, known); err != nil {
			return nil, err
		}
		for _, name := range known {
			on := enabled[name]
			if v := source.switchOf(name); v.source != "" {
				if err := v.set(setting{set: boolean(&on)}); err != nil {
					return nil, err
				}
			}
			enabled[name] = on
		}
	}
	return enabled, nil
}

// enableVariable returns the value of ENABLE_X or, if that is unset, of a legacy variable that is true.
func (s sources) enableVariable(component string) value {
	variable := "ENABLE_" + strings.ToUpper(component)
	if legacy := legacyEnableVariables[component]; s.env(variable) == "" && isTrue(s.env(legacy)) {
		variable = legacy
	}
	if raw := s.env(variable); raw != "" {
		return value{source: "environment variable " + variable, raw: raw}
	}
	return value{}
}

// enableListed enables the components in a list such as "*,-appwrapper", and disables all others.
func enableListed(enabled map[string]bool, list value, known []string) error {
	if list.source == "" {
		return nil
	}
	listed := make(map[string]bool, len(known))
	enablesAny := false
	for item := range strings.SplitSeq(list.raw, ",") {
		item = strings.TrimSpace(item)
		name, disabled := strings.CutPrefix(item, "-")
		switch {
		case item == "":
			continue
		case item == "*":
			enablesAny = true
			for _, k := range known {
				if _, named := listed[k]; !named {
					listed[k] = DefaultOn(k)
				}
			}
			continue
		case !slices.Contains(known, name):
			return fmt.Errorf("%s: %w", list, unknownComponent(name, known))
		}
		listed[name] = !disabled
		enablesAny = enablesAny || !disabled
	}
	if !enablesAny {
		return fmt.Errorf("%s: %w", list, errors.New(`enables no component: write "*" for the default set, for example "*,-appwrapper"`))
	}
	for _, name := range known {
		enabled[name] = listed[name]
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
