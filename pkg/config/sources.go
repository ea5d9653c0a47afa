package config

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// ErrHelp is returned by Load when the arguments contain --help or -h.
var ErrHelp = errors.New("help requested")

// sources holds the flags, the environment and the config file, in order of precedence.
type sources struct {
	flags     map[string]value            // by name
	lookupEnv func(string) (string, bool) // as os.LookupEnv; nil for an empty environment
	file      map[string]value            // by dotted key
}

// env returns the value of an environment variable without surrounding spaces.
func (s sources) env(name string) string {
	if s.lookupEnv == nil {
		return ""
	}
	v, _ := s.lookupEnv(name)
	return strings.TrimSpace(v)
}

// resolve returns the value of a setting from the source with the highest precedence.
func (s sources) resolve(row setting) value {
	if v, ok := s.flags[row.flag]; ok {
		return v
	}
	for _, name := range row.env {
		if raw := s.env(name); raw != "" {
			return value{source: "environment variable " + name, raw: raw}
		}
	}
	if v, ok := s.file[row.key]; ok {
		return v
	}
	return value{source: "default", raw: row.defaultValue}
}

// explicit returns the configured values of the settings by key. An empty string counts as unset, an empty list does not.
func (s sources) explicit(table []setting) map[string]value {
	explicit := map[string]value{}
	for _, row := range table {
		row.defaultValue = ""
		if v := s.resolve(row); v.raw != "" || v.err != nil || row.valueType == typeList && v.source != "default" {
			explicit[row.key] = v
		}
	}
	return explicit
}

// parseArgs returns the values of flags by name.
func parseArgs(args []string, table []setting, components []string) (map[string]value, error) {
	values := map[string]value{}
	flags := flag.NewFlagSet("manager", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	types := flagTypes(table)
	define := func(name, target string) {
		set := func(raw string) error { values[target] = value{source: "flag --" + target, raw: raw}; return nil }
		if types[target] == typeBool {
			flags.BoolFunc(name, "", set) // true without a value
		} else {
			flags.Func(name, "", set)
		}
	}
	for name := range types {
		define(name, name)
	}
	for legacy, name := range legacyFlags {
		define(legacy, name)
	}
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil, ErrHelp
	}
	if err != nil {
		if name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -"); unknown {
			return nil, unknownFlag(name, sortedKeys(types), components)
		}
		if name, missing := strings.CutPrefix(err.Error(), "flag needs an argument: -"); missing {
			name = cmp.Or(legacyFlags[name], name)
			return nil, fmt.Errorf("flag --%s needs a value: --%s=<value>", name, name)
		}
		return nil, fmt.Errorf("%w: --help lists all flags", err)
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("argument %q is neither a sub-command nor a flag: --help lists both", flags.Arg(0))
	}
	return values, nil
}

// legacyFlags maps flags of the legacy operators to current flags.
var legacyFlags = map[string]string{
	"metrics-cert-dir": "metrics-cert-path", "metrics-key-name": "metrics-cert-key",
	"metrics-addr": "metrics-bind-address", "enable-leader-election": "leader-elect",
	"leader-elect-lease-duration-sec":       "leader-elect-lease-duration",
	"leader-elect-lease-renew-deadline-sec": "leader-elect-renew-deadline",
	"leader-elect-retry-period-sec":         "leader-elect-retry-period",
}

// LegacyFlags returns the supported flags of the legacy operators with the current flags that replace them.
func LegacyFlags() map[string]string { return maps.Clone(legacyFlags) }

// flagTypes returns the types of all flags by name.
func flagTypes(table []setting) map[string]valueType {
	types := map[string]valueType{}
	for _, row := range table {
		if row.flag != "" {
			types[row.flag] = row.valueType
		}
	}
	return types
}

func unknownFlag(name string, known, components []string) error {
	if component, ok := strings.CutPrefix(name, "enable-"); ok {
		return fmt.Errorf("flag --%s: %w", name, unknownComponent(component, components))
	}
	hint := ""
	if match := closestMatch(name, known); match != "" {
		hint = fmt.Sprintf(" (did you mean --%s?)", match)
	}
	return fmt.Errorf("unknown flag --%s%s; known flags: --%s", name, hint, strings.Join(known, ", --"))
}

// closestMatch returns the candidate with the smallest edit distance, or "" if none is similar.
func closestMatch(name string, candidates []string) string {
	best, distance := "", max(2, len(name)/4)+1
	for _, candidate := range candidates {
		if d := names.EditDistance(name, candidate); d < distance {
			best, distance = candidate, d
		}
	}
	return best
}

func sortedKeys[K ~string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
